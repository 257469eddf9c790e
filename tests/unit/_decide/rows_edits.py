# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What sections 3 to 7 and 9 of the design say of a person's edits, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.machine_edit import decide_edit
from ansible_collections.ichor.talos.plugins.module_utils._decide.machine_edit_words import Edit, Edited, EditSeen, Etcd
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember, NodeFacts
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Json, Record

from tests.unit._decide.rows import Row, Seen, of_plan
from tests.unit._decide.rows_approval import CONVERGED, SENT, SILENT, TRACKED, answers, planes
from tests.unit.machine_world import NOW, cluster, fingerprint, identity, machine


def edited(
    record: Record | None,
    node: Observed[NodeFacts] | None = None,
    *,
    machines: Sequence[Record] = (),
    etcd: Observed[Etcd] | None = None,
    in_cluster: Record | None = None,
    **edit: object,
) -> Edited:
    everybody = (*((record,) if record else ()), *machines)
    seen = EditSeen(record, in_cluster or cluster(), everybody, None, node or Absent(), etcd or Absent())
    return decide_edit(Edit(**{"name": "prod-1", **edit}), seen, NOW)  # type: ignore[arg-type]


def edit(record: Record | None, node: Observed[NodeFacts] | None = None, **more: object) -> Seen:
    """One edit as the decision sees it."""
    return of_plan(edited(record, node, **more).plan)  # type: ignore[arg-type]


def trust(record: Record, node: Observed[NodeFacts], **more: object) -> Seen:
    return edit(record, node, trust=True, **more)


def after_trust(record: Record, node: Observed[NodeFacts], **more: object) -> Seen:
    """Which status keys a trust changes (`-key` is taken away)."""
    (step,) = edited(record, node, trust=True, **more).plan.steps  # type: ignore[arg-type]
    change = step.change  # type: ignore[attr-defined]
    values: Mapping[str, Json] = change.values if change is not None else {}
    return Seen(
        actions=tuple(
            sorted(
                f"-{key}" if value is None else key
                for key, value in values.items()
                if key not in ("discoveredDisks", "discoveredLinks", "talosVersion", "secureBoot")
            )
        ),
        told="annotation" if step.annotate else "pin",
    )  # type: ignore[attr-defined]


def sending_since(age: float) -> dict[str, Json]:
    return {"sending": {"hash": "a", "time": moment(NOW - age), "by": "run-2", "attempt": 1}}


MOVED = {"observedEndpoint": "10.0.0.7", "observedEndpointFor": "10.0.0.1"}
BOOTSTRAPPED = replace(cluster(), status={"bootstrappedAt": "2026-01-01T00:00:00Z"})
MEMBERS = tuple(EtcdMember(f"{number:016x}", f"cp-{number}") for number in range(1, 4))
PLANE = machine(1, "approved", role="controlplane", status=CONVERGED)

EDITS: tuple[Row, ...] = (
    Row("3/edit-endpoint", lambda: edit(machine(1), endpoint="10.0.0.20"), actions=("EditMachine",)),
    Row("3/edit-equal-endpoint", lambda: edit(machine(1), endpoint="10.0.0.1:50000")),
    Row("3/edit-endpoint-refused", lambda: edit(machine(1), endpoint="127.0.0.1"), ("3/endpoint-refused",), reasons=("EndpointRefused",)),
    Row("3/edit-endpoint-wrong", lambda: edit(machine(1), endpoint="http://x"), ("3/endpoint-refused",), reasons=("InvalidAddress",)),
    Row("3/edit-endpoint-shared", lambda: edit(machine(1), endpoint="10.0.0.2", machines=[machine(2)]), ("3/endpoint-shared",), actions=("EditMachine",)),
    Row("3/edit-hold", lambda: edit(machine(1), hold=True), actions=("EditMachine",)),
    Row("3/edit-hold-again", lambda: edit(machine(1, annotations={"ichor.maesh.dev/hold-apply": "true"}), hold=True)),
    Row("3/edit-gitops", lambda: edit(machine(1, annotations=TRACKED), hold=True), ("3/gitops",), reasons=("RecordTracked",), says=("git",)),
    Row("3/edit-gitops-overridden", lambda: edit(machine(1, annotations=TRACKED), hold=True, override=True), actions=("EditMachine",)),
    Row("3/edit-schema", lambda: edit(machine(1), labels={"bad key!": "x"}), ("3/schema",), reasons=("RecordInvalid",)),
    Row("3/edit-missing", lambda: edit(None, hold=True), ("7/record-missing",), reasons=("RecordNotFound",)),
    Row("7/late-install", lambda: edit(machine(1, "approved"), install={"disk": "/dev/nvme0n1"}), actions=("EditMachine",)),
    Row(
        "3/edit-shows-from-and-to",
        lambda: edit(
            machine(1, "approved", install={"disk": "/dev/nvme0n1"}, approvedDisk={"wwid": "eui.01"}, hostname="w-1", labels={"a": "1"}),
            install={"disk": "/dev/sda", "wipe": True}, endpoint="10.0.0.20", hostname="w-2", labels={"a": "2", "b": "3"}, hold=True,
        ),
        actions=("EditMachine",),
        says=("install disk /dev/nvme0n1 → /dev/sda", "the approved disk becomes the one with serial D2", "endpoint 10.0.0.1 → 10.0.0.20",
              "hostname w-1 → w-2",
              "labels.a 1 → 2", "labels.b nothing → 3", "install.wipe nothing → true", "hold-apply is set"),
    ),
    Row(
        "3/edit-shows-a-selector",
        lambda: edit(machine(1, "approved"), install={"diskSelector": {"model": "Fast*"}}),
        actions=("EditMachine",),
        says=("install disk nothing → the disk with model Fast*",),
    ),
    Row("7/late-install-pending", lambda: edit(machine(1), install={"disk": "/dev/nvme0n1"}), ("7/install-pending",), reasons=("InstallNotAllowed",)),
    Row(
        "7/late-install-applied",
        lambda: edit(machine(1, "approved", status=CONVERGED), install={"disk": "/dev/nvme0n1"}),
        ("7/install-applied",),
        reasons=("InstallNotAllowed",),
    ),
    Row(
        "7/late-install-stored",
        lambda: edit(machine(1, "approved", status=SENT), install={"disk": "/dev/nvme0n1"}),
        ("7/install-applied",),
        reasons=("InstallNotAllowed",),
    ),
    Row(
        "7/late-install-has-the-disk-gates",
        lambda: edit(machine(1, "approved"), install={"diskSelector": {"size": ">= 1GB"}}),
        ("7/disk-ambiguous",),
        reasons=("DiskAmbiguous",),
    ),
    Row(
        "7/identity-immutable",
        lambda: edit(machine(1, "approved", status=SENT), identity={"serial": "X-9"}),
        ("7/identity-immutable",),
        reasons=("IdentityImmutable",),
    ),
    Row("7/identity-before-a-send", lambda: edit(machine(1, "approved"), identity={"serial": "X-9"}), actions=("EditMachine",)),
    Row(
        "6/weak-is-resolved-by-hand", lambda: edit(machine(1, name="weak-1", identity={}), name="weak-1", identity={"serial": "X-9"}), actions=("EditMachine",)
    ),
    Row("7/edit-hostname-taken", lambda: edit(machine(1), machines=planes(2), hostname="cp-2"), ("7/hostname-taken",), reasons=("HostnameTaken",)),
    # trust
    Row("5/trust-new-pin", lambda: trust(machine(1, "approved"), answers(key="two")), actions=("TrustMachine",), says=(fingerprint("one"), fingerprint("two"))),
    Row("5/trust-same-pin", lambda: trust(machine(1, "approved"), answers())),
    Row(
        "5/trust-elsewhere",
        lambda: trust(machine(1, "approved", status=MOVED), answers(key="two", address="10.0.0.7")),
        ("5/trust-elsewhere",),
        reasons=("FingerprintMismatch",),
        says=(f"fingerprint: {fingerprint('two')}",),
    ),
    Row(
        "5/trust-elsewhere-named",
        lambda: trust(machine(1, "approved", status=MOVED), answers(key="two", address="10.0.0.7"), fingerprint=fingerprint("two")),
        actions=("TrustMachine",),
    ),
    Row(
        "5/trust-weak",
        lambda: trust(machine(1, "approved", name="weak-1", who=identity(1, uuid="")), answers(identity(1, uuid=""), "two"), name="weak-1"),
        ("5/trust-weak",),
        reasons=("WeakIdentity",),
    ),
    Row(
        "5/trust-weak-named",
        lambda: trust(
            machine(1, "approved", name="weak-1", who=identity(1, uuid="")), answers(identity(1, uuid=""), "two"), name="weak-1", fingerprint=fingerprint("two")
        ),
        actions=("TrustMachine",),
    ),
    Row("5/trust-another-identity", lambda: trust(machine(1, "approved"), answers(5, "two")), ("5/trust-identity",), reasons=("IdentityMismatch",)),
    Row(
        "5/trust-another-fingerprint",
        lambda: trust(machine(1, "approved"), answers(key="two"), fingerprint=fingerprint("three")),
        ("5/trust-fingerprint",),
        reasons=("FingerprintMismatch",),
    ),
    Row("5/trust-rejected", lambda: trust(machine(1, "rejected"), Absent()), ("5/trust-rejected",), reasons=("NotApproved",)),
    Row("5/trust-silent", lambda: trust(machine(1, "approved"), SILENT), ("5/trust-silent",), reasons=("NodeUnreachable",)),
    Row("5/trust-silent-named", lambda: after_trust(machine(1, "approved"), SILENT, fingerprint=fingerprint("two")), says=("annotation",)),
    Row(
        "5/trust-configured",
        lambda: trust(machine(1, "approved"), Unknown("ClientCertificateRequired", "x")),
        ("5/trust-configured",),
        reasons=("TrustNotNeeded",),
    ),
    Row("6/trust-pending-annotates", lambda: after_trust(machine(1), answers(key="two")), says=("annotation",)),
    Row(
        "12/trust-converged", lambda: trust(machine(1, "approved", status=CONVERGED), answers(key="two")), ("12/trust-converged",), reasons=("TrustNotNeeded",)
    ),
    Row(
        "6/trust-weak-converged",
        lambda: after_trust(
            machine(1, "approved", name="weak-1", who=identity(1, uuid=""), status=CONVERGED),
            answers(identity(1, uuid=""), "two"),
            name="weak-1",
            fingerprint=fingerprint("two"),
        ),
        says=("annotation",),
    ),
    Row(
        "9/trust-rearms",
        lambda: after_trust(machine(1, "approved", status=SENT), answers(key="two")),
        says=("pin",),
        actions=(
            "-configStoredAt",
            "-rejectedInputsHash",
            "-sending",
            "-storedConfigHash",
            "maintenanceFingerprint",
            "maintenanceFingerprintAt",
            "stage",
            "stageObserved",
        ),
    ),
    Row(
        "9/trust-while-sending",
        lambda: trust(machine(1, "approved", status=sending_since(10)), answers(key="two")),
        ("9/sending-fresh",),
        reasons=("SendingUnconfirmed",),
    ),
    Row(
        "9/trust-while-sending-at-an-unreadable-time",
        lambda: trust(machine(1, "approved", status={"sending": {"hash": "a", "time": "soon", "by": "run-2"}}), answers(key="two")),
        ("9/sending-fresh",),
        reasons=("SendingUnconfirmed",),
    ),
    Row(
        "4/trust-lost-status",
        lambda: after_trust(machine(1, "approved", pin=""), answers()),
        says=("pin",),
        actions=("maintenanceFingerprint", "maintenanceFingerprintAt", "recordUID", "stage", "stageObserved"),
    ),
    Row(
        "4/trust-lost-status-configured",
        lambda: after_trust(machine(1, "approved", pin=""), Unknown("ClientCertificateRequired", "x")),
        actions=("recordUID", "stage", "stageObserved"),
        says=("pin",),
    ),
    # deletion
    Row("4/delete-needs-allow-delete", lambda: edit(machine(1), absent=True), ("4/allow-delete",), reasons=("DeleteNotAllowed",)),
    Row("4/delete-pending", lambda: edit(machine(1), absent=True, allow_delete=True), actions=("DeleteRecord",), says=("all there is to its removal",)),
    Row(
        "4/delete-rejected",
        lambda: edit(machine(1, "rejected"), absent=True, allow_delete=True),
        actions=("DeleteRecord",),
        says=("all there is to its removal",),
    ),
    Row(
        "4/delete-never-sent",
        lambda: edit(machine(1, "approved", role="controlplane"), absent=True, allow_delete=True, in_cluster=BOOTSTRAPPED),
        actions=("DeleteRecord",),
        says=("all there is to its removal",),
    ),
    Row("4/delete-by-annotation", lambda: edit(machine(1, annotations={"ichor.maesh.dev/allow-delete": "true"}), absent=True), actions=("DeleteRecord",)),
    Row(
        "4/delete-while-sending",
        lambda: edit(machine(1, "approved", status=sending_since(10)), absent=True, allow_delete=True),
        ("4/sending",),
        reasons=("SendingUnconfirmed",),
        says=("talos_stage",),
    ),
    Row(
        "4/delete-with-a-lost-answer",
        lambda: edit(machine(1, "approved", status=sending_since(9000)), absent=True, allow_delete=True),
        ("4/sending",),
        reasons=("SendingUnconfirmed",),
    ),
    Row("4/delete-twice", lambda: edit(None, absent=True)),
    Row(
        "4/delete-worker",
        lambda: edit(machine(1, "approved", status=CONVERGED), absent=True, allow_delete=True, in_cluster=BOOTSTRAPPED),
        actions=("DeleteRecord",),
    ),
    Row(
        "4/delete-before-bootstrap",
        lambda: edit(machine(1, "approved", role="controlplane", status=SENT), absent=True, allow_delete=True),
        actions=("DeleteRecord",),
    ),
    Row(
        "4/delete-quorum-unknown",
        lambda: edit(PLANE, absent=True, allow_delete=True, in_cluster=BOOTSTRAPPED, etcd=Unknown("ControlPlaneUnreachable", "no")),
        ("4/quorum-unknown",),
        reasons=("QuorumUnknown",),
    ),
    Row(
        "4/delete-lost-status",
        lambda: edit(machine(1, "approved", role="controlplane", pin=""), absent=True, allow_delete=True, in_cluster=BOOTSTRAPPED),
        ("4/quorum-unknown",),
        reasons=("QuorumUnknown",),
    ),
    Row(
        "4/delete-would-cost-quorum",
        lambda: edit(PLANE, absent=True, allow_delete=True, in_cluster=BOOTSTRAPPED, etcd=Present(Etcd(MEMBERS, 1))),
        ("4/quorum",),
        reasons=("QuorumAtRisk",),
    ),
    Row(
        "4/delete-last-control-plane",
        lambda: edit(PLANE, absent=True, allow_delete=True, in_cluster=BOOTSTRAPPED, etcd=Present(Etcd(MEMBERS[:1], 0))),
        ("4/quorum",),
        reasons=("QuorumAtRisk",),
    ),
    Row(
        "4/delete-keeps-quorum",
        lambda: edit(PLANE, absent=True, allow_delete=True, in_cluster=BOOTSTRAPPED, etcd=Present(Etcd(MEMBERS, 2))),
        actions=("DeleteRecord",),
    ),
    Row("4/delete-gitops", lambda: edit(machine(1, annotations=TRACKED), absent=True, allow_delete=True), ("3/gitops",), reasons=("RecordTracked",)),
)
