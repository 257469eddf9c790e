# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of provisioning: an observation, the gate that decides it, and what it decides (design section 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Provisioning
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.render import PatchRecord, RenderInput, render
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Disk, EtcdMember, Link
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY, TRUST_FINGERPRINT, Json
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._operations import world as w


@dataclass(frozen=True)
class Row:
    """An observation, the rule that decides it, and what it decides: a reason, or the kind of the verdict."""

    id: str
    rule: str
    seen: Callable[[], Provisioning]
    says: str


STORED = {"configStoredAt": "2023-11-14T00:00:00Z", "storedConfigHash": "a"}
JOINED = {**STORED, "appliedConfigHash": "a"}


def sending(age: float = 500, by: str = "run-0", attempt: int = 1, fingerprint: str = "FP-one", config: str = "") -> dict[str, object]:
    digest = config or case.worker().config.value.sha256  # type: ignore[union-attr]
    return {"sending": {"hash": digest, "fingerprint": fingerprint, "time": moment(case.NOW - age), "attempt": attempt, "by": by}}


def members(*entries: EtcdMember) -> Provisioning:
    return replace(case.controlplane(bootstrapped=True), members=Present(entries))


def twin(seen: Provisioning | None = None, status: Mapping[str, object] | None = None, **spec: object) -> Provisioning:
    """Another record in the store; unless said otherwise a copy of the machine's own."""
    copied = {"identity": {"uuid": w.uuid(1), "serial": "SER-1", "macs": ["00:1c:42:00:00:01"]}, "hostname": "copy", **spec}
    return replace(seen or case.worker(), everybody=(w.machine_record("m9", 9, status=status, **copied),))  # type: ignore[arg-type]


def condition(kind: str, status: str = "True") -> dict[str, object]:
    return {"conditions": [{"type": kind, "status": status, "reason": "Removing", "message": ""}]}


def disk(**changed: object) -> Disk:
    return Disk(**{"name": "sda", "path": "/dev/sda", "size": 10 ** 11, "wwid": "wwid-sda", **changed})  # type: ignore[arg-type]


UNATTENDED = (b"version: v1alpha1\nmachine: {type: worker, token: abcdef.0123456789abcdef}\ncluster: {clusterName: prod}\n---\napiVersion: v1alpha1\n"
              b"kind: UnattendedInstallConfig\nprovisioning: {diskSelector: {match: 'disk.dev_path == \"/dev/sda\"'}}\n")
CEL = UNATTENDED.replace(b'disk.dev_path == "/dev/sda"', b"disk.size > 100u * GB")
NO_DISK = w.config("worker", "m1").replace(b"    disk: /dev/sda\n", b"    wipe: false\n")
CONTROL_PLANES = tuple(w.machine_record(f"cp{number}", number, "controlplane") for number in (4, 5, 6, 7))


def with_links(seen: Provisioning, named: str, there: str, *documents: Json) -> Provisioning:
    """A configuration rendered from the records (with a patch of those documents) that names a link, and a node with one link and one disk."""
    bundle = read_bundle((Path(__file__).parents[2] / "vectors" / "secrets.yaml").read_bytes())
    rendered = render(RenderInput(
        "prod", {"talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.9.9.9:6443"}, "m1",
        {"role": "worker", "hostname": "m1", "install": {"disk": "/dev/sda"}, "network": {"primary": {"interface": named, "dhcp": True}}}, bundle,
        (PatchRecord("p", "cluster", 0, documents),)))
    facts = replace(case.facts(), links=Present((Link(there, "00:1c:42:00:00:01", physical=True),)))
    return replace(seen, config=Present(rendered.brought()), rendered=rendered, maintenance=Present(facts),
                   authority=Present(rendered.brought().machine_ca))


PROVISIONING: tuple[Row, ...] = (
    Row("9/pending", "9/0-not-approved", lambda: case.worker(machine={"approvalState": "pending"}), "NotApproved"),
    Row("9/approved-by-nobody", "9/0-not-approved", lambda: case.worker(machine={"approvedBy": None}), "NotApproved"),
    Row("9/no-configuration", "9/1-render", lambda: replace(case.worker(), config=Absent()), "RenderFailed"),
    Row("9/template", "9/1-render", lambda: replace(case.worker(), config=Unknown("TemplateUnexpanded", "line 3")), "TemplateUnexpanded"),
    Row("9/render-before-everything", "9/1-render", lambda: replace(case.worker(), config=Unknown("RenderFailed", "no"), authority=Unknown(
        "SecretsUnavailable"), endpoint=Unknown("EndpointRefused"), running=None, maintenance=None), "RenderFailed"),
    Row("9/partial-configuration", "9/1-config-mismatch", lambda: case.worker(
        config=b"apiVersion: v1alpha1\nkind: HostnameConfig\nauto: 'off'\nhostname: m1\n"), "RenderFailed"),
    Row("9/other-role", "9/1-config-mismatch", lambda: case.worker(config=w.config("controlplane", "m1")), "RenderFailed"),
    Row("9/other-host-name", "9/1-config-mismatch", lambda: case.worker(hostname="other"), "RenderFailed"),
    Row("9/no-credentials", "9/1-bundle", lambda: replace(case.worker(), authority=Unknown("SecretsUnavailable", "no")), "SecretsUnavailable"),
    Row("9/bundle-before-endpoint", "9/1-bundle", lambda: replace(case.worker(), authority=Unknown("SecretsUnavailable", "no"), endpoint=Absent()),
        "SecretsUnavailable"),
    Row("9/other-authority", "9/1-authority", lambda: case.worker(config=w.config("worker", "m1").replace(
        b"  install:", b"  ca: {crt: T1RIRVI=, key: ''}\n  install:")), "AuthorityMismatch"),
    Row("9/loopback", "9/1-endpoint", lambda: replace(case.worker(), endpoint=Unknown("EndpointRefused", "no")), "EndpointRefused"),
    Row("9/status-lost", "9/1-status-missing", lambda: replace(case.worker(), machine=w.machine_record("m1", 1, status={})), "StatusMissing"),
    Row("9/another-machine-of-the-cluster", "9/2-other-node", lambda: case.running(case.worker(), 9), "EndpointIdentityMismatch"),
    Row("9/a-good-read-settles-a-lost-answer", "9/2-left-over-sending", lambda: case.running(case.worker(status=sending(age=5))), "Follow"),
    Row("9/stored-and-running", "9/2-stored", lambda: case.running(case.worker(status=STORED)), "Follow"),
    Row("9/joined-and-running", "9/2-running", lambda: case.running(case.worker(status=JOINED)), "Unchanged"),
    Row("9/runs-other-bytes", "9/2-running", lambda: case.running(case.worker(status=JOINED), config="b" * 64), "Unchanged"),
    Row("9/stored-and-silent", "9/3-stored", lambda: case.silent(case.worker(status=STORED)), "Follow"),
    Row("9/stored-and-in-maintenance-again", "9/3-stored", lambda: case.shows(case.worker(status=STORED), certificate="two"), "Follow"),
    Row("9/sent-by-another-run", "9/10-sent-by-other", lambda: case.worker(status=sending(age=10)), "SendingUnconfirmed"),
    Row("9/sent-in-the-future", "9/10-sent-by-other", lambda: case.worker(status=sending(age=-1000)), "SendingUnconfirmed"),
    Row("9/no-answer-and-silent", "9/10-counts-as-stored", lambda: case.silent(case.worker(status=sending())), "Follow"),
    Row("9/no-answer-and-another-certificate", "9/10-counts-as-stored", lambda: case.shows(case.worker(status=sending()), certificate="two"), "Follow"),
    Row("9/no-answer-and-another-identity", "9/10-counts-as-stored", lambda: case.shows(case.worker(status=sending()), identity=w.identity(9)), "Follow"),
    Row("9/no-answer-to-the-second-attempt", "9/10-counts-as-stored", lambda: case.worker(status=sending(attempt=2)), "Follow"),
    Row("9/no-answer-and-other-bytes", "9/10-counts-as-stored", lambda: case.worker(status=sending(config="f" * 64)), "Follow"),
    Row("9/no-answer-and-another-stage", "9/10-counts-as-stored", lambda: case.shows(case.worker(status=sending()), stage="booting"), "Follow"),
    Row("9/joined-and-silent", "9/4-converged", lambda: case.silent(case.worker(status=JOINED)), "NodeUnreachable"),
    Row("9/joined-and-in-maintenance-again", "9/4-converged", lambda: case.worker(status=JOINED), "ReprovisionBlocked"),
    Row("9/nobody-answers", "9/4-nobody", lambda: case.silent(case.worker()), "CurrentConfigUnavailable"),
    Row("9/wants-a-certificate", "9/4-nobody", lambda: case.silent(case.worker(), "ClientCertificateRequired"), "CurrentConfigUnavailable"),
    Row("9/answers-and-boots", "9/4-not-maintenance", lambda: case.shows(case.worker(), stage="booting"), "NotInMaintenance"),
    Row("9/other-uuid", "9/5-identity", lambda: case.shows(case.worker(), identity=w.identity(9)), "IdentityMismatch"),
    Row("9/uuid-not-reported", "9/5-identity", lambda: case.shows(case.worker(), identity=replace(w.identity(1), uuid="")), "IdentityMismatch"),
    Row("9/other-serial", "9/5-identity", lambda: case.shows(case.worker(), identity=replace(w.identity(1), serial="SER-9")), "IdentityMismatch"),
    Row("9/other-macs", "9/5-identity", lambda: case.shows(case.worker(), identity=replace(w.identity(1), macs=w.identity(9).macs)), "IdentityMismatch"),
    Row("9/a-mac-less", "9/5-identity", lambda: case.shows(case.worker(), identity=replace(w.identity(1), macs=())), "IdentityMismatch"),
    Row("9/weak-and-other-serial", "9/5-identity", lambda: case.shows(
        case.worker(machine={"identity": {"serial": "SER-1"}}), identity=Identity(w.uuid(9), "SER-9")), "IdentityMismatch"),
    Row("9/nothing-recorded", "9/5-identity", lambda: case.worker(machine={"identity": {}}), "IdentityMismatch"),
    Row("9/other-certificate", "9/6-pin", lambda: case.shows(case.worker(), certificate="two"), "MaintenanceIdentityChanged"),
    Row("9/accepted-wins-over-read", "9/6-pin", lambda: case.worker(machine={"acceptedFingerprint": "FP-zero"}), "MaintenanceIdentityChanged"),
    Row("9/annotation-names-another", "9/6-pin", lambda: case.shows(case.worker(annotations={TRUST_FINGERPRINT: "FP-three"}), certificate="two"),
        "MaintenanceIdentityChanged"),
    Row("9/no-pin", "9/6-no-pin", lambda: case.settled(case.worker(status={"maintenanceFingerprint": None})), "Pin"),
    Row("9/no-pin-and-restless", "9/6-no-pin", lambda: case.settled(case.worker(status={"maintenanceFingerprint": None}), "two"),
        "MaintenanceIdentityChanged"),
    Row("9/record-twin-approved", "9/5-record-twin", twin, "TwinIdentity"),
    Row("9/record-twin-of-another-cluster", "9/5-record-twin", lambda: twin(clusterRef="other"), "TwinIdentity"),
    Row("9/record-twin-rejected", "9/5-record-twin", lambda: twin(approvalState="rejected"), "TwinIdentity"),
    Row("9/record-twin-sent", "9/5-record-twin", lambda: twin(approvalState="pending", status=STORED), "TwinIdentity"),
    Row("9/record-twin-joined-by-its-macs", "9/5-record-twin", lambda: twin(
        identity={"uuid": w.uuid(7), "macs": ["00:1c:42:00:00:01"]}, status=JOINED), "TwinIdentity"),
    Row("9/record-twin-by-its-serial", "9/5-record-twin", lambda: twin(identity={"serial": "SER-1"}), "TwinIdentity"),
    Row("9/record-twin-of-a-lost-answer", "9/5-record-twin", lambda: twin(case.worker(status=sending())), "TwinIdentity"),
    Row("9/record-twin-and-stored", "9/3-stored", lambda: twin(case.worker(status=STORED)), "Follow"),
    Row("9/record-twin-pending", "", lambda: twin(approvalState="pending"), "Send"),
    Row("9/resolved-weak-identity", "", lambda: twin(identity={"uuid": w.uuid(1), "serial": "SER-7"}), "Send"),
    Row("9/serial-of-the-chassis", "", lambda: twin(identity={"uuid": w.uuid(7), "serial": "SER-1", "macs": ["00:1c:42:00:00:07"]}), "Send"),
    Row("9/answers-to-another-record", "9/5-answers-to-another", lambda: twin(
        case.worker(machine={"identity": {"uuid": w.uuid(1)}}), identity={"serial": "SER-1"}), "TwinIdentity"),
    Row("9/two-at-one-address", "9/5-same-address", lambda: replace(case.worker(), same_address=("m9",)), "EndpointRefused"),
    Row("9/no-record-and-no-pin", "9/6-pin-missing", lambda: replace(case.case("worker", stored=False), pin=""), "InvalidInput"),
    Row("9/secure-boot-off", "9/7-secure-boot", lambda: case.worker(cluster={"secureBoot": "Required"}), "SecureBootRequired"),
    Row("9/no-install-disk", "9/7-disk", lambda: case.worker(config=NO_DISK), "InstallDiskUnknown"),
    Row("9/another-disk-than-approved", "9/7-disk", lambda: case.shows(case.worker(), disks=(disk(wwid="other"),)), "InstallDiskUnknown"),
    Row("9/another-size-than-approved", "9/7-disk", lambda: case.shows(case.worker(), disks=(disk(size=5),)), "InstallDiskUnknown"),
    Row("9/no-such-disk", "9/7-disk", lambda: case.shows(case.worker(), disks=(disk(path="/dev/sdb"),)), "InstallDiskUnknown"),
    Row("9/selector-that-only-talos-evaluates", "9/7-disk", lambda: case.shows(case.worker(config=CEL), version="v1.14.0"), "InstallDiskUnknown"),
    Row("9/selector-that-picks-two", "9/7-disk", lambda: case.shows(case.worker(config=w.config("worker", "m1").replace(
        b"disk: /dev/sda", b"diskSelector: {size: '>= 1GB'}")), disks=(disk(), disk(name="sdb", path="/dev/sdb"))), "InstallDiskUnknown"),
    Row("9/older-than-the-cluster", "9/7-contract", lambda: case.shows(case.worker(), version="v1.12.11"), "ContractTooNew"),
    Row("9/older-than-the-documents", "9/7-contract", lambda: case.worker(config=UNATTENDED), "ContractTooNew"),
    Row("9/of-unknown-version", "9/7-contract", lambda: case.shows(case.worker(), version=""), "ContractTooNew"),
    Row("15/adopted-and-held", "15/held", lambda: case.worker(status={"conditions": [
        {"type": "Ready", "status": "False", "reason": "AdoptionHeld", "message": ""}]}), "AdoptionHeld"),
    Row("9/held-by-its-annotation", "9/8-hold-apply", lambda: case.worker(annotations={HOLD_APPLY: "true"}), "HoldApply"),
    Row("9/shutting-down", "9/8-cluster", lambda: case.worker(cluster={"hold": "shutdown"}), "ClusterShuttingDown"),
    Row("9/rotating", "9/8-cluster", lambda: case.worker(cluster={"hold": "caRotation"}), "CARotation"),
    Row("9/over-cap", "9/8-cluster", lambda: case.controlplane(others=CONTROL_PLANES), "ControlPlaneCapExceeded"),
    Row("9/being-removed", "9/8-removal", lambda: case.worker(status=condition("Removal")), "RemovalInProgress"),
    Row("9/operation", "9/8-operation", lambda: case.worker(cluster_status={"operation": {"name": "restore", "since": "x"}}), "OperationInProgress"),
    Row("9/member-of-the-same-name", "9/8-hostname", lambda: members(EtcdMember("a9", "m1", ("https://10.0.0.9:2380",))), "HostnameConflict"),
    Row("9/members-unreadable", "9/8-hostname", lambda: replace(case.controlplane(bootstrapped=True), members=Unknown("TimedOut", "no")), "HostnameConflict"),
    Row("9/machine-of-the-same-name", "9/8-hostname-record", lambda: case.worker(others=(w.machine_record("m9", 9, hostname="M1"),)), "HostnameConflict"),
    Row("9/node-of-the-same-name", "9/8-hostname-record", lambda: case.worker(
        others=(w.machine_record("m9", 9, hostname=None, status={"nodeName": "m1"}),)), "HostnameConflict"),
    Row("9/name-of-a-patch", "9/8-hostname-rendered", lambda: replace(
        case.worker(others=(w.machine_record("m9", 9, hostname=None),)), named=(("m8", "other"), ("m9", "M1"))), "HostnameConflict"),
    Row("9/name-of-no-patch", "", lambda: replace(case.worker(others=(w.machine_record("m9", 9, hostname=None),)), named=(("m9", "m9"),)), "Send"),
    Row("9/same-name-in-the-same-task", "9/8-hostname-record", lambda: replace(case.worker(), beside=(("m9", "m1"),)), "HostnameConflict"),
    Row("12/send-with-state", "12/send-state-present", lambda: case.shows(case.controlplane(bootstrapped=True), partitions=case.labels("META", "STATE")),
        "StateNotFound"),
    Row("12/send-with-state-to-a-worker", "", lambda: case.shows(case.worker(cluster_status=case.BOOTSTRAPPED), partitions=case.labels("STATE")), "Send"),
    Row("12/send-with-state-before-the-bootstrap", "", lambda: case.shows(case.controlplane(), partitions=case.labels("STATE")), "Send"),
    Row("12/send-with-encrypted-state", "12/send-labels-unclear", lambda: case.shows(
        case.controlplane(bootstrapped=True), partitions=case.labels("STATE", state="luks")), "ReprovisionBlocked"),
    Row("12/send-without-labels", "12/send-labels-unclear", lambda: case.shows(
        case.controlplane(bootstrapped=True), partitions=Unknown("TimedOut", "no answer")), "ReprovisionBlocked"),
    Row("12/send-with-a-stale-member", "12/send-stale-member", lambda: members(EtcdMember("a1", "m1", ("https://10.0.0.1:2380",))), "StaleEtcdMember"),
    Row("12/send-with-a-member-under-its-old-name", "12/send-stale-member", lambda: members(EtcdMember("a1", "old", ("https://10.0.0.1:2380",))),
        "StaleEtcdMember"),
    Row("12/send-with-data-and-its-member", "", lambda: case.shows(
        members(EtcdMember("a1", "m1", ("https://10.0.0.1:2380",))), partitions=case.labels("META", "EPHEMERAL")), "Send"),
    Row("12/send-with-a-nameless-learner", "", lambda: members(EtcdMember("a1", "", ("https://10.0.0.1:2380",), (), True)), "Send"),
    Row("8/a-disk-that-is-not-there", "8/disks", lambda: with_links(case.worker(), "enp1s0", "enp1s0", {"machine": {"disks": [{"device": "/dev/sdz"}]}}),
        "RenderFailed"),
    Row("8/a-disk-that-is-there", "", lambda: with_links(case.worker(), "enp1s0", "enp1s0", {"machine": {"disks": [
        {"device": "/dev/sda"}, {"device": "/dev/disk/by-id/x"}]}}), "Send"),
    Row("8/a-legacy-link-that-is-not-there", "8/links", lambda: with_links(
        case.worker(), "enp1s0", "enp1s0", {"machine": {"network": {"interfaces": [{"interface": "eth7", "dhcp": True}]}}}), "RenderFailed"),
    Row("8/a-link-that-is-not-there", "8/links", lambda: with_links(case.worker(), "eth7", "enp1s0"), "RenderFailed"),
    Row("8/a-link-that-is-there", "", lambda: with_links(case.worker(), "enp1s0", "enp1s0"), "Send"),
    Row("9/bytes-that-were-refused", "9/10-rejected", lambda: case.worker(status={"rejectedInputsHash": sending()["sending"]["hash"]}),  # type: ignore[index]
        "ConfigRejected"),
)
