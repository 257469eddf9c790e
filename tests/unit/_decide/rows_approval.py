# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Section 7 of the design as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.approval import decide_approval
from ansible_collections.ichor.talos.plugins.module_utils._decide.approval_words import Candidate, Decision, Wanted
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity, swapped_uuid
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Disk, NodeFacts
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Broken, Json, Record

from tests.unit._decide.rows import Row, Seen, of_plan
from tests.unit.machine_world import DISK, NOW, SECOND, STICK, cluster, facts, fingerprint, identity, machine, uuid_of

ANN = Actor("ann", "login")
SENT = {"configStoredAt": "2026-01-01T00:00:00Z"}
CONVERGED = {"appliedConfigHash": "aa"}
TRACKED = {"argocd.argoproj.io/tracking-id": "apps:x"}
WEAK = {"conditions": [{"type": "WeakIdentity", "status": "True", "reason": "WeakIdentity", "message": "It is weak."}]}
TWIN = {"conditions": [{"type": "WeakIdentity", "status": "True", "reason": "TwinIdentity", "message": "Two nodes say so."}]}
PLACEHOLDER = "03000200-0400-0500-0006-000700080009"


def answers(who: Identity | int = 1, key: str = "one", address: str = "10.0.0.1", disks: tuple[Disk, ...] = (DISK, SECOND)) -> Observed[NodeFacts]:
    return Present(facts(address, identity(who) if isinstance(who, int) else who, key, disks))


def decision(
    record: Record | None,
    node: Observed[NodeFacts] | None = None,
    *,
    machines: Sequence[Record] = (),
    actor: Actor = ANN,
    home: Observed[NodeFacts] | None = None,
    broken: Broken | None = None,
    in_cluster: Record | None = None,
    **wanted: object,
) -> Decision:
    said: dict[str, object] = {"name": record.name if record else "prod-1", "role": "worker", "install": {"disk": "/dev/nvme0n1"}, **wanted}
    everybody = (*((record,) if record else ()), *machines)
    seen = Candidate(record, actor, in_cluster or cluster(), everybody, broken, node if node is not None else answers(), home or Absent())
    return decide_approval(Wanted(**said), seen, NOW)  # type: ignore[arg-type]


def approve(record: Record | None, node: Observed[NodeFacts] | None = None, **more: object) -> Seen:
    """One approval as the decision sees it."""
    return of_plan(decision(record, node, **more).plan)  # type: ignore[arg-type]


def reject(record: Record, **more: object) -> Seen:
    return of_plan(decision(record, Absent(), state="rejected", role="", install=None, **more).plan)  # type: ignore[arg-type]


def written(record: Record, key: str, node: Observed[NodeFacts] | None = None, **more: object) -> Seen:
    """What an approval writes under one key of the spec."""
    made = decision(record, node, **more).record  # type: ignore[arg-type]
    return Seen(told=repr(made.spec.get(key)) if made is not None else "", actions=())


def planes(*numbers: int) -> list[Record]:
    return [machine(number, "approved", role="controlplane", hostname=f"cp-{number}") for number in numbers]


def copy(state: str, who: Identity | None = None, **spec: Json) -> Record:
    """A second record, by default of the very machine 1."""
    return machine(1, state, name="prod-dup", who=who, **spec)


def same_plan(one: Decision, other: Decision) -> Seen:
    return Seen(actions=("equal",) if one.plan.id == other.plan.id else ("different",))


SILENT: Observed[NodeFacts] = Unknown("NotListening", "nothing listens")

APPROVAL: tuple[Row, ...] = (
    Row("7/approves", lambda: approve(machine(1)), actions=("ApproveMachine",), says=("ann", fingerprint("one"), "/dev/nvme0n1")),
    Row("3/approval-names-what-it-is-about", lambda: approve(machine(1), hostname="w-1"), actions=("ApproveMachine",),
        says=("as worker, host name w-1, to be installed on /dev/nvme0n1 (Fast 500, 500 GB, serial D1, blank)",)),
    Row("3/approval-names-what-is-on-the-disk", lambda: approve(machine(1), answers(disks=(replace(DISK, contents=("EFI vfat",)),))),
        actions=("ApproveMachine",), says=("serial D1, carries EFI vfat)",)),
    Row("3/approval-does-not-know-what-is-on-the-disk", lambda: approve(machine(1), answers(disks=(replace(DISK, contents=("unknown",)),))),
        ("7/disk-contents-unknown",), ("7/disk-in-use",), actions=("ApproveMachine",), says=("what is on it is not known",)),
    Row("3/approval-of-a-silent-one-says-where-the-disk-is-from", lambda: approve(machine(1), SILENT), actions=("ApproveMachine",),
        says=("as discovery saw it",)),
    Row("3/approval-over-an-edit", lambda: approve(machine(
        1, "approved", install={"disk": "/dev/sda"}, approvedDisk={"wwid": "naa.02"}, role="controlplane", hostname="a"), hostname="b"),
        ("7/approved-otherwise",), actions=("ApproveMachine",),
        says=("was approved for /dev/sda and is approved for /dev/nvme0n1 now", "as controlplane and is approved as worker now",
              "with the host name a and is approved with the host name b now", "wwid naa.02 and is approved for the one with wwid eui.01 now")),
    Row("3/approval-of-a-rejected", lambda: approve(machine(1, "rejected", approvedBy="bob", approvedAt="2026-01-01T00:00:00Z")), ("7/was-rejected",),
        actions=("ApproveMachine",), says=("rejected by bob at 2026-01-01T00:00:00Z",)),
    Row("7/rejects", lambda: reject(machine(1)), actions=("RejectMachine",)),
    Row("7/exact-names", lambda: approve(machine(1, name="prod-*")), ("7/exact-names",), reasons=("InvalidInput",)),
    Row("7/no-such-record", lambda: approve(None), ("7/record-missing",), reasons=("RecordNotFound",)),
    Row(
        "7/record-broken",
        lambda: approve(None, broken=Broken("TalosMachine", "prod-1", "machines/prod-1.yaml", 7, "bad")),
        ("4/record-broken",),
        reasons=("RecordBroken",),
        says=("line 7",),
    ),
    Row("7/other-cluster", lambda: approve(machine(1), cluster="dev"), ("7/other-cluster",), reasons=("RecordNotFound",)),
    Row(
        "7/cluster-missing",
        lambda: of_plan(decide_approval(Wanted("prod-1", role="worker"), Candidate(machine(1), ANN, None, (machine(1),)), NOW).plan),
        ("7/cluster-missing",),
        reasons=("RecordNotFound",),
    ),
    Row("7/role-missing", lambda: approve(machine(1), role=""), ("7/role-missing",), reasons=("InvalidInput",)),
    # what it sets
    Row("7/sets-role", lambda: written(machine(1), "role"), says=("worker",)),
    Row("7/sets-labels", lambda: written(machine(1), "labels", labels={"rack": "a1"}), says=("'rack': 'a1'",)),
    Row("7/sets-install", lambda: written(machine(1), "install"), says=("/dev/nvme0n1",)),
    Row("7/sets-other-disks", lambda: written(machine(1), "disks", disks=({"selector": {"name": "/dev/sda"}, "role": "storage"},)), says=("storage",)),
    Row(
        "7/sets-static-network",
        lambda: written(machine(1), "network", network={"interface": "eth0", "addresses": ["10.0.0.1/24"], "vlan": 5}),
        says=("10.0.0.1/24", "5"),
    ),
    Row("7/sets-dhcp", lambda: written(machine(1), "network", network={"interface": "eth0", "dhcp": True}), says=("'dhcp': True",)),
    Row(
        "7/dhcp-and-static",
        lambda: approve(machine(1), network={"interface": "eth0", "dhcp": True, "addresses": ["10.0.0.1/24"]}),
        ("3/schema",),
        reasons=("RecordInvalid",),
    ),
    Row("7/link-unknown", lambda: approve(machine(1), network={"interface": "eth7", "dhcp": True}), ("7/link-unknown",), actions=("ApproveMachine",)),
    Row("7/sets-hostname", lambda: written(machine(1), "hostname", hostname="w-1"), says=("w-1",)),
    Row("7/sets-who", lambda: written(machine(1), "approvedBy"), says=("ann",)),
    Row("7/sets-when", lambda: written(machine(1), "approvedAt"), says=(moment(NOW),)),
    Row("7/records-the-fingerprint", lambda: written(machine(1), "acceptedFingerprint"), says=(fingerprint("one"),)),
    Row("7/records-the-disk", lambda: written(machine(1), "approvedDisk"), says=("eui.01", "D1", "Fast 500", "500000000000")),
    # fingerprint
    Row(
        "7/changed-pin-shows-both",
        lambda: approve(machine(1), answers(key="two")),
        ("7/fingerprint-changed",),
        actions=("ApproveMachine",),
        says=(fingerprint("one"), fingerprint("two"), moment(NOW - 100), "12 hours"),
    ),
    Row(
        "7/named-fingerprint-fits",
        lambda: approve(machine(1), answers(key="two"), fingerprint=fingerprint("two")),
        actions=("ApproveMachine",),
        absent=("7/fingerprint",),
    ),
    Row(
        "7/named-fingerprint-differs",
        lambda: approve(machine(1), answers(key="two"), fingerprint=fingerprint("one")),
        ("7/fingerprint",),
        reasons=("FingerprintMismatch",),
        says=(fingerprint("one"), fingerprint("two"), "equal", moment(NOW - 100), "approve with fingerprint:"),
    ),
    Row("7/plan-id-holds-the-fingerprint", lambda: same_plan(decision(machine(1)), decision(machine(1), answers(key="two"))), actions=("different",)),
    Row("7/plan-id-is-stable", lambda: same_plan(decision(machine(1)), decision(machine(1), actor=Actor("bob", "awx"))), actions=("equal",)),
    Row("7/silent-keeps-the-pin", lambda: approve(machine(1), SILENT), ("7/silent-node",), actions=("ApproveMachine",), says=(fingerprint("one"), "stays")),
    Row("7/silent-records-the-pin", lambda: written(machine(1), "acceptedFingerprint", SILENT), says=(fingerprint("one"),)),
    Row(
        "7/silent-without-a-pin",
        lambda: approve(machine(1, pin="", status={"stage": "maintenance"}), SILENT, install=None),
        ("7/silent-node", "7/no-install"),
        actions=("ApproveMachine",),
        says=("no certificate is recorded",),
    ),
    Row(
        "7/silent-and-another-named", lambda: approve(machine(1), SILENT, fingerprint=fingerprint("two")), ("7/fingerprint",), reasons=("FingerprintMismatch",)
    ),
    Row(
        "7/configured-node",
        lambda: approve(machine(1), Unknown("ClientCertificateRequired", "it wants one")),
        ("7/configured-node",),
        actions=("ApproveMachine",),
    ),
    Row("7/another-machine-answers", lambda: approve(machine(1), answers(5)), ("7/identity-differs",), reasons=("IdentityMismatch",)),
    Row(
        "7/redirected-machine",
        lambda: approve(machine(1, status={"observedEndpoint": "10.0.0.7", "observedEndpointFor": "10.0.0.1"}), answers(address="10.0.0.7")),
        ("7/moved-address",),
        actions=("ApproveMachine",),
        says=("10.0.0.7", "10.0.0.1"),
    ),
    Row(
        "7/redirected-twin",
        lambda: approve(
            machine(1, status={"observedEndpoint": "10.0.0.7", "observedEndpointFor": "10.0.0.1"}), answers(key="two", address="10.0.0.7"), home=answers()
        ),
        ("6/twin",),
        reasons=("TwinIdentity",),
    ),
    # refusals
    Row("7/cap-allows-one-more", lambda: approve(machine(1), machines=planes(2, 3, 4), role="controlplane"), actions=("ApproveMachine",)),
    Row(
        "7/cap-refuses-two-more",
        lambda: approve(machine(1), machines=planes(2, 3, 4, 5), role="controlplane"),
        ("7/control-plane-cap",),
        reasons=("TooManyControlPlanes",),
    ),
    Row(
        "7/cap-counts-this-cluster",
        lambda: approve(machine(1), machines=[replace(entry, spec={**entry.spec, "clusterRef": "dev"}) for entry in planes(2, 3, 4, 5)], role="controlplane"),
        actions=("ApproveMachine",),
    ),
    Row(
        "7/cap-counts-only-approvals",
        lambda: approve(machine(1), machines=[*planes(2, 3, 4), machine(5, "approved", role="controlplane", approvedBy="")], role="controlplane"),
        actions=("ApproveMachine",),
    ),
    Row("7/cap-is-not-for-workers", lambda: approve(machine(1), machines=planes(2, 3, 4, 5)), actions=("ApproveMachine",)),
    Row(
        "7/weak-unresolved",
        lambda: approve(machine(1, name="weak-1", status=WEAK, identity={}), answers(identity(1, uuid=PLACEHOLDER))),
        ("7/weak-unresolved",),
        reasons=("WeakIdentityUnresolved",),
    ),
    Row(
        "7/weak-unresolved-even-if-accepted",
        lambda: approve(machine(1, name="weak-1", status=WEAK, identity={}), answers(identity(1, uuid=PLACEHOLDER)), accept_weak_identity=True),
        ("7/weak-unresolved",),
        reasons=("WeakIdentityUnresolved",),
    ),
    Row(
        "7/weak-parts-not-unique",
        lambda: approve(
            machine(1, name="weak-1", identity={"serial": "SN-0002-A"}),
            answers(identity(1, uuid="", serial="SN-0002-A")),
            machines=[machine(2)],
            accept_weak_identity=True,
        ),
        ("7/weak-unresolved",),
        reasons=("WeakIdentityUnresolved",),
    ),
    Row(
        "7/weak-not-accepted",
        lambda: approve(machine(1, name="weak-1", who=identity(1, uuid="")), answers(identity(1, uuid=PLACEHOLDER))),
        ("7/weak-not-accepted",),
        reasons=("WeakIdentity",),
    ),
    Row(
        "7/weak-accepted",
        lambda: approve(machine(1, name="weak-1", who=identity(1, uuid="")), answers(identity(1, uuid=PLACEHOLDER)), accept_weak_identity=True),
        ("7/weak-accepted",),
        actions=("ApproveMachine",),
    ),
    Row(
        "7/weak-by-what-the-store-says",
        lambda: approve(machine(1), SILENT, machines=[machine(2, identity={"uuid": uuid_of(1), "serial": "X-1"})]),
        ("7/weak-not-accepted",),
        reasons=("WeakIdentity",),
    ),
    Row(
        "6/byte-swapped-not-silently",
        lambda: approve(machine(1), machines=[machine(2, identity={"uuid": swapped_uuid(uuid_of(1)), "serial": "X-1"})]),
        ("7/weak-not-accepted",),
        reasons=("WeakIdentity",),
        says=("probably one board",),
    ),
    Row("6/twin-not-approved", lambda: approve(machine(1, status=TWIN)), ("6/twin",), reasons=("TwinIdentity",)),
    Row(
        "6/record-twin-approved",
        lambda: approve(machine(1), machines=[copy("approved")]),
        ("6/record-twin",),
        reasons=("TwinIdentity",),
        says=("prod-dup", "state: absent"),
    ),
    Row("6/record-twin-rejected", lambda: approve(machine(1), machines=[copy("rejected")]), ("6/record-twin",), says=("is rejected",)),
    Row("6/record-twin-of-another-cluster", lambda: approve(machine(1), machines=[copy("approved", clusterRef="lab")]), ("6/record-twin",), says=("lab",)),
    Row(
        "6/record-twin-byte-swapped",
        lambda: approve(machine(1), machines=[copy("approved", who=identity(1, uuid=swapped_uuid(uuid_of(1))))], accept_weak_identity=True),
        ("6/record-twin",),
    ),
    Row(
        "6/record-twin-by-what-answers",
        lambda: approve(machine(1, who=Identity(uuid_of(1))), machines=[copy("approved", who=Identity("", "SN-0001-A"))]),
        ("6/record-twin",),
    ),
    Row("6/record-twin-pending", lambda: approve(machine(1), machines=[copy("pending")]), absent=("6/record-twin",), actions=("ApproveMachine",)),
    Row(
        "6/record-twin-resolved",
        lambda: approve(machine(1), machines=[copy("approved", who=identity(1, serial="SN-9", macs=("3c:ec:ef:00:00:99",)))], accept_weak_identity=True),
        absent=("6/record-twin",),
        actions=("ApproveMachine",),
    ),
    Row("7/disk-matches-none", lambda: approve(machine(1), install={"disk": "/dev/sdz"}), ("7/disk-not-found",), reasons=("DiskNotFound",), says=("Fast 500",)),
    Row("7/selector-matches-none", lambda: approve(machine(1), install={"diskSelector": {"model": "Nope*"}}), ("7/disk-not-found",), reasons=("DiskNotFound",)),
    Row(
        "7/selector-matches-several",
        lambda: approve(machine(1), install={"diskSelector": {"size": ">= 1GB"}}),
        ("7/disk-ambiguous",),
        reasons=("DiskAmbiguous",),
    ),
    Row("7/selector-matches-one", lambda: approve(machine(1), install={"diskSelector": {"size": "<= 1TB", "type": "nvme"}}), actions=("ApproveMachine",)),
    Row(
        "7/selector-is-none", lambda: approve(machine(1), install={"diskSelector": {"colour": "red"}}), ("7/disk-selector-invalid",), reasons=("InvalidInput",)
    ),
    Row("7/disk-by-link", lambda: approve(machine(1), install={"disk": "/dev/disk/by-id/nvme-fast"}), actions=("ApproveMachine",)),
    Row("7/disks-unknown", lambda: approve(machine(1, pin="", status={"stage": "maintenance"}), SILENT), ("7/disk-not-found",), reasons=("DiskNotFound",)),
    Row(
        "7/disk-boot-medium",
        lambda: approve(machine(1), answers(disks=(replace(DISK, boot_medium=True), SECOND))),
        ("7/disk-boot-medium",),
        reasons=("DiskUnsuitable",),
    ),
    Row(
        "7/disk-optical", lambda: approve(machine(1), answers(disks=(replace(DISK, cdrom=True), SECOND))), ("7/disk-boot-medium",), reasons=("DiskUnsuitable",)
    ),
    Row(
        "7/disk-read-only",
        lambda: approve(machine(1), answers(disks=(replace(DISK, readonly=True),)), install={"diskSelector": {"type": "nvme"}}),
        ("7/disk-readonly",),
        reasons=("DiskUnsuitable",),
    ),
    Row(
        "7/disk-read-only-outright",
        lambda: approve(machine(1), answers(disks=(replace(DISK, readonly=True),))),
        actions=("ApproveMachine",),
        absent=("7/disk-readonly",),
    ),
    Row(
        "7/disk-usb",
        lambda: approve(machine(1), answers(disks=(DISK, STICK)), install={"diskSelector": {"model": "Stick"}}),
        ("7/disk-usb",),
        reasons=("DiskUnsuitable",),
    ),
    Row(
        "7/disk-usb-outright",
        lambda: approve(machine(1), answers(disks=(DISK, STICK)), install={"disk": "/dev/sdb"}),
        actions=("ApproveMachine",),
        absent=("7/disk-usb",),
    ),
    Row(
        "7/disk-in-use",
        lambda: approve(machine(1), answers(disks=(replace(DISK, contents=("STATE xfs", "EPHEMERAL xfs")),))),
        ("7/disk-in-use",),
        actions=("ApproveMachine",),
        says=("STATE xfs, EPHEMERAL xfs",),
    ),
    Row(
        "7/disk-in-use-otherwise",
        lambda: approve(machine(1), answers(disks=(replace(DISK, contents=("ext4",)),))),
        ("7/disk-in-use",),
        actions=("ApproveMachine",),
        says=("ext4",),
    ),
    Row(
        "7/other-disk-not-found",
        lambda: approve(machine(1), disks=({"selector": {"name": "/dev/sdz"}, "role": "storage"},)),
        ("7/other-disk-not-found",),
        reasons=("DiskNotFound",),
    ),
    Row(
        "7/other-disk-is-the-install-disk",
        lambda: approve(machine(1), disks=({"selector": {"type": "nvme"}, "role": "storage"},)),
        ("7/other-disk-twice",),
        reasons=("DiskAmbiguous",),
    ),
    Row("7/hostname-taken", lambda: approve(machine(1), machines=planes(2), hostname="CP-2".lower()), ("7/hostname-taken",), reasons=("HostnameTaken",)),
    Row(
        "7/hostname-of-another-cluster",
        lambda: approve(machine(1), machines=[machine(2, "approved", role="controlplane", hostname="cp-2", clusterRef="dev")], hostname="cp-2"),
        actions=("ApproveMachine",),
    ),
    Row("3/gitops-approval", lambda: approve(machine(1, annotations=TRACKED)), ("3/gitops",), reasons=("RecordTracked",), says=("git", "override: true")),
    Row("3/gitops-approval-overridden", lambda: approve(machine(1, annotations=TRACKED), override=True), actions=("ApproveMachine",), absent=("3/gitops",)),
    Row("3/endpoint-refused-approval", lambda: approve(machine(1, address="10.9.0.1"), Absent()), ("3/endpoint-refused",), reasons=("EndpointRefused",)),
    Row(
        "3/endpoint-refused-by-the-resolver",
        lambda: approve(machine(1), Unknown("EndpointRefused", "node-1, which resolves to 127.0.0.1, is not dialled")),
        ("3/endpoint-refused",),
        reasons=("EndpointRefused",),
    ),
    # afterwards
    Row(
        "7/approve-twice", lambda: approve(machine(1, "approved", install={"disk": "/dev/nvme0n1"}, acceptedFingerprint=fingerprint("one")), answers(key="two"))
    ),
    Row(
        "7/approve-twice-named",
        lambda: approve(machine(1, "approved", install={"disk": "/dev/nvme0n1"}, acceptedFingerprint=fingerprint("one")), fingerprint=fingerprint("one")),
    ),
    Row("7/reject-twice", lambda: reject(machine(1, "rejected"))),
    Row("7/approve-again-before-a-send", lambda: approve(machine(1, "approved", install={"disk": "/dev/sda"})), actions=("ApproveMachine",)),
    Row("7/reject-before-a-send", lambda: reject(machine(1, "approved")), actions=("RejectMachine",)),
    Row("7/reject-after-a-send", lambda: reject(machine(1, "approved", status=SENT)), ("7/reject-after-send",), reasons=("AlreadySent",)),
    Row(
        "7/reject-while-sending", lambda: reject(machine(1, "approved", status={"sending": {"hash": "a"}})), ("7/reject-after-send",), reasons=("AlreadySent",)
    ),
    Row("7/approve-again-with-lost-status", lambda: approve(machine(1, "approved", pin=""), Absent(), install=None), ("4/status-missing",),
        reasons=("StatusMissing",), says=("trust: true",)),
    Row("7/approve-again-with-the-status-of-another", lambda: approve(
        replace(machine(1, "approved"), status_set_aside=True), Absent(), install=None), ("4/status-missing",), reasons=("StatusMissing",)),
    Row("7/reject-with-lost-status", lambda: reject(machine(1, "approved", pin="")), ("4/status-missing",), reasons=("StatusMissing",)),
    Row(
        "7/role-immutable",
        lambda: approve(machine(1, "approved", status=SENT), role="controlplane", install=None),
        ("7/role-immutable",),
        reasons=("RoleImmutable",),
    ),
    Row(
        "7/approve-after-a-send",
        lambda: approve(machine(1, "approved", status=SENT), hostname="w-9", install=None),
        ("7/approve-after-send",),
        reasons=("AlreadySent",),
    ),
    Row("7/schedule", lambda: approve(machine(1), actor=Actor("ann", "awx", schedule=True)), ("7/schedule",), reasons=("ScheduleCannotApprove",)),
    Row(
        "7/schedule-rejects-nothing", lambda: reject(machine(1), actor=Actor("ann", "awx", schedule=True)), ("7/schedule",), reasons=("ScheduleCannotApprove",)
    ),
    Row("7/nobody", lambda: approve(machine(1), actor=Actor("", "")), ("7/approver-unknown",), reasons=("ApproverUnknown",)),
    Row("7/hand-written-counts-as-pending", lambda: reject(machine(1, "approved", approvedAt="", status=SENT)), actions=("RejectMachine",)),
)
