# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of re-provisioning: an observation, the gate that decides it, and what it decides (design section 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Provisioning
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import CONTENTS_UNKNOWN
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY, TRUST_FINGERPRINT, Json
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._decide import reprovision_case as again
from ansible_collections.ichor.talos.tests.unit._decide.rows_provisioning import NO_DISK, STORED, condition, disk, sending, with_links
from ansible_collections.ichor.talos.tests.unit._operations import world as w

SECOND, GONE = "a second equal reading of the wiped disk", "its stale etcd member to be removed"
JOINS = "joined, a voting etcd member with a leader"


@dataclass(frozen=True)
class Row:
    """An observation, the rule that decides it ('' for what is done), what it decides (a reason, or the kinds of the steps in order),
    and what the first step waits for."""

    id: str
    rule: str
    seen: Callable[[], Provisioning]
    says: str
    waits: tuple[str, ...] = ()


def disrupted(seen: Provisioning, machine: str) -> Provisioning:
    """Something disruptive is open on that machine."""
    return replace(seen, cluster=w.cluster_record(status={**case.BOOTSTRAPPED, "disruption": {
        "machine": machine, "step": "join", "time": "2023-11-14T00:00:00Z"}}))


def moved(seen: Provisioning, **spec: object) -> Provisioning:
    """The machine's record says something else."""
    record = seen.machine
    if record is None:
        raise ValueError("a converged machine has a record")
    given = {key: value for key, value in {**record.spec, **spec}.items() if value is not None}
    return replace(seen, machine=replace(record, spec=given))  # type: ignore[misc]


UNREADABLE = Unknown("ControlPlaneUnreachable", "no other control plane answers")
ENCRYPTED = case.labels("META", "STATE", state="crypto_LUKS")
NO_FILE_SYSTEM = case.labels("META", "STATE", "EPHEMERAL", state="")
ANOTHER = disk(wwid="another")
FIVE = (again.plane(2), again.plane(3), again.plane(4), again.plane(5))

REPROVISION: tuple[Row, ...] = (
    # What is done.
    Row("12/worker-wiped", "", again.worker, "Reinstall"),
    Row("12/worker-with-efi-left", "", lambda: again.shows(again.worker(), partitions=case.labels("EFI", "BOOT", "META")), "Reinstall"),
    Row("12/worker-state-only", "", lambda: again.keeps_data(again.worker()), "Resume"),
    Row("12/worker-unclear", "", lambda: again.shows(again.worker(), partitions=ENCRYPTED), "Reinstall"),
    Row("12/worker-unreadable", "", lambda: again.shows(again.worker(), partitions=Unknown("TimedOut", "no answer")), "Reinstall"),
    Row("12/first-reading", "", lambda: again.controlplane(seen_before={}), "RemoveEtcdMember, Reinstall", (SECOND,)),
    Row("12/second-reading", "", again.controlplane, "RemoveEtcdMember, Reinstall"),
    Row("12/second-too-early", "", lambda: again.controlplane(seen_before=again.first_reading(14)), "RemoveEtcdMember, Reinstall", (SECOND,)),
    Row("12/second-at-an-hourly-pass", "", lambda: again.controlplane(seen_before=again.first_reading(3660)), "RemoveEtcdMember, Reinstall"),
    Row("12/first-of-long-ago", "", lambda: again.controlplane(seen_before=again.first_reading(7260)), "RemoveEtcdMember, Reinstall", (SECOND,)),
    Row("12/first-of-the-future", "", lambda: again.controlplane(seen_before=again.first_reading(-60)), "RemoveEtcdMember, Reinstall", (SECOND,)),
    Row("12/first-of-another-boot", "", lambda: again.controlplane(seen_before=again.first_reading(20, "FP-one")), "RemoveEtcdMember, Reinstall", (SECOND,)),
    Row("12/first-with-other-labels", "", lambda: again.controlplane(seen_before=again.first_reading(20, labels=("META",))),
        "RemoveEtcdMember, Reinstall", (SECOND,)),
    Row("12/second-with-the-same-labels", "", lambda: again.shows(
        again.controlplane(seen_before=again.first_reading(20, labels=("EFI", "META"))), partitions=case.labels("META", "EFI")), "RemoveEtcdMember, Reinstall"),
    Row("12/member-gone-already", "", lambda: again.controlplane(etcd=again.view(again.member(2), again.member(3))), "Reinstall"),
    Row("12/gone-and-first-reading", "", lambda: again.controlplane(seen_before={}, etcd=again.view(again.member(2), again.member(3))), "Reinstall", (SECOND,)),
    Row("12/nameless-learner-stays", "", lambda: again.controlplane(etcd=again.view(
        again.member(1, "-", learner=True), again.member(2), again.member(3))), "Reinstall"),
    Row("12/named-learner", "", lambda: again.controlplane(etcd=again.view(
        again.member(1, learner=True), again.member(2), again.member(3))), "RemoveEtcdMember, Reinstall"),
    Row("12/name-of-the-node", "", lambda: moved(again.controlplane(status={"nodeName": "m1"}), hostname=None), "RemoveEtcdMember, Reinstall"),
    Row("12/two-of-five-wiped", "", lambda: again.controlplane(others=FIVE, cluster={"count": 5}, etcd=again.view(
        *(again.member(number) for number in range(1, 6)), healthy=(3, 4, 5))), "RemoveEtcdMember, Reinstall"),
    Row("12/removal-before-another-has-joined", "", lambda: disrupted(again.controlplane(), "cp2"), "RemoveEtcdMember, Reinstall"),
    Row("12/send-after-another-has-joined", "", lambda: disrupted(
        again.controlplane(etcd=again.view(again.member(2), again.member(3))), "cp2"), "Reinstall", (JOINS,)),
    Row("12/own-disruption", "", lambda: disrupted(again.controlplane(etcd=again.view(again.member(2), again.member(3))), "m1"), "Reinstall"),
    Row("12/state-only-wiped", "", lambda: again.keeps_data(again.controlplane()), "Resume"),
    Row("12/state-only-and-alone", "", lambda: again.keeps_data(again.controlplane(others=(), etcd=None)), "Resume"),
    Row("12/state-only-and-first-reading", "", lambda: again.keeps_data(again.controlplane(seen_before={}, etcd=None)), "Resume"),
    Row("12/state-only-waits-for-nobody", "", lambda: disrupted(again.keeps_data(again.controlplane()), "cp2"), "Resume"),
    Row("12/etcd-partition-kept", "", lambda: again.keeps_data(again.controlplane(etcd=None), "META", "ETCD"), "Resume"),
    Row("12/data-without-meta", "", lambda: again.keeps_data(again.controlplane(etcd=None), "EPHEMERAL"), "Reinstall"),
    Row("12/given-up", "", lambda: again.controlplane(others=(), etcd=None, discard="prod"), "Reinstall"),
    Row("12/given-up-and-unreadable", "", lambda: again.controlplane(etcd=UNREADABLE, discard="prod"), "Reinstall"),
    Row("12/given-up-and-answering", "", lambda: again.controlplane(discard="prod"), "RemoveEtcdMember, Reinstall"),
    Row("12/new-certificate", "", lambda: again.shows(again.worker(), certificate="three"), "Reinstall"),
    Row("12/accepted-certificate-is-not-held", "", lambda: again.worker(machine={"acceptedFingerprint": "FP-zero"}), "Reinstall"),
    Row("12/annotation-fits", "", lambda: again.worker(annotations={TRUST_FINGERPRINT: "FP-two"}), "Reinstall"),
    Row("12/another-blank-disk", "", lambda: again.shows(again.worker(), disks=(ANOTHER,)), "Reinstall"),
    Row("12/weak-and-trusted", "", lambda: again.worker(machine={"identity": {"serial": "SER-1"}}, annotations={TRUST_FINGERPRINT: "FP-two"}), "Reinstall"),
    Row("12/second-attempt", "", lambda: again.shows(again.worker(status=sending(fingerprint="FP-two"))), "Reinstall"),
    # Gates of its own.
    Row("12/state-is-there", "12/state-present", lambda: again.shows(again.worker(), partitions=case.labels("META", "STATE", "EPHEMERAL")), "StateNotFound"),
    Row("12/state-is-there-on-a-control-plane", "12/state-present", lambda: again.shows(
        again.controlplane(), partitions=case.labels("META", "STATE")), "StateNotFound"),
    Row("12/weak", "12/weak-identity", lambda: again.worker(machine={"identity": {"serial": "SER-1"}}), "ReprovisionBlocked"),
    Row("12/weak-by-its-condition", "12/weak-identity", lambda: again.worker(status=condition("WeakIdentity")), "ReprovisionBlocked"),
    Row("12/annotation-names-another", "12/annotation", lambda: again.worker(annotations={TRUST_FINGERPRINT: "FP-three"}), "MaintenanceIdentityChanged"),
    Row("12/record-twin", "12/record-twin", lambda: again.worker(everybody=(w.machine_record(
        "m8", 8, identity={"uuid": w.uuid(1), "serial": "SER-1", "macs": ["00:1c:42:00:00:01"]}, hostname="copy"),)), "TwinIdentity"),
    Row("12/two-at-one-address", "12/same-address", lambda: replace(again.worker(), same_address=("m8",)), "EndpointRefused"),
    Row("12/two-answer", "12/two-answer", lambda: replace(again.worker(), maintenance=Unknown("TwinIdentity", "Two nodes answer.")), "TwinIdentity"),
    Row("12/no-install-disk", "12/disk", lambda: again.worker(config=NO_DISK), "InstallDiskUnknown"),
    Row("12/no-such-disk", "12/disk", lambda: again.shows(again.worker(), disks=()), "InstallDiskUnknown"),
    Row("12/another-disk-in-use", "12/disk", lambda: again.shows(again.worker(), disks=(replace(ANOTHER, contents=("ext4",)),)), "InstallDiskUnknown"),
    Row("12/another-disk-of-unknown-contents", "12/disk", lambda: again.shows(
        again.worker(), disks=(replace(ANOTHER, contents=CONTENTS_UNKNOWN),)), "InstallDiskUnknown"),
    Row("12/another-disk-and-no-labels", "12/disk", lambda: again.shows(
        again.worker(), disks=(ANOTHER,), partitions=Unknown("TimedOut", "no answer")), "InstallDiskUnknown"),
    Row("12/another-disk-on-usb", "12/disk", lambda: again.shows(again.worker(), disks=(replace(ANOTHER, usb=True),)), "InstallDiskUnknown"),
    Row("12/held", "12/hold-apply", lambda: again.worker(annotations={HOLD_APPLY: "true"}), "ReprovisionBlocked"),
    Row("12/host-name-taken", "12/hostname", lambda: again.worker(others=(w.machine_record("w8", 8, hostname="m1", status=again.JOINED),)), "HostnameConflict"),
    Row("12/encrypted", "12/labels-unclear", lambda: again.shows(again.controlplane(), partitions=ENCRYPTED), "ReprovisionBlocked"),
    Row("12/no-file-system", "12/labels-unclear", lambda: again.shows(again.controlplane(), partitions=NO_FILE_SYSTEM), "ReprovisionBlocked"),
    Row("12/labels-unreadable", "12/labels-unclear", lambda: again.shows(
        again.controlplane(), partitions=Unknown("TimedOut", "no answer")), "ReprovisionBlocked"),
    Row("12/name-unknown", "12/name-unknown", lambda: moved(again.controlplane(), hostname=None), "ReprovisionBlocked"),
    Row("12/only-control-plane", "12/alone", lambda: again.controlplane(others=(), etcd=None), "ReprovisionBlocked"),
    Row("12/others-were-never-sent", "12/alone", lambda: again.controlplane(others=(w.machine_record("cp2", 2, "controlplane"),), etcd=None),
        "ReprovisionBlocked"),
    Row("12/others-are-workers", "12/alone", lambda: again.controlplane(others=(w.machine_record("w2", 2, status=again.JOINED),), etcd=None),
        "ReprovisionBlocked"),
    Row("12/given-up-by-another-name", "12/alone", lambda: again.controlplane(others=(), etcd=None, discard="test"), "ReprovisionBlocked"),
    Row("12/all-wiped", "12/etcd-unreadable", lambda: again.controlplane(etcd=UNREADABLE), "ReprovisionBlocked"),
    Row("12/lists-differ", "12/etcd-unreadable", lambda: again.controlplane(etcd=Unknown("ControlPlaneUnreachable", "they differ")), "ReprovisionBlocked"),
    Row("12/no-list", "12/etcd-unreadable", lambda: again.controlplane(etcd=Absent()), "ReprovisionBlocked"),
    Row("12/member-elsewhere", "12/member-elsewhere", lambda: again.controlplane(etcd=again.view(
        again.member(1, at="10.0.0.7"), again.member(2), again.member(3))), "HostnameConflict"),
    Row("12/member-under-another-name", "12/member-renamed", lambda: again.controlplane(etcd=again.view(
        again.member(1, "old"), again.member(2), again.member(3))), "ReprovisionBlocked"),
    Row("12/nameless-voter", "12/member-renamed", lambda: again.controlplane(etcd=again.view(
        again.member(1, "-"), again.member(2), again.member(3))), "ReprovisionBlocked"),
    Row("12/member-twice", "12/member-twice", lambda: again.controlplane(etcd=again.view(
        again.member(1), replace(again.member(1), id=f"{17:016x}"), again.member(2), again.member(3))), "ReprovisionBlocked"),
    Row("12/member-answers", "12/member-answers", lambda: again.controlplane(etcd=again.view(
        again.member(1), again.member(2), again.member(3), healthy=(1, 2, 3))), "ReprovisionBlocked"),
    Row("12/quorum", "12/quorum", lambda: again.controlplane(etcd=again.view(
        again.member(1), again.member(2), again.member(3), healthy=(2,))), "ReprovisionBlocked"),
    Row("12/quorum-of-five", "12/quorum", lambda: again.controlplane(others=FIVE, cluster={"count": 5}, etcd=again.view(
        *(again.member(number) for number in range(1, 6)), healthy=(4, 5))), "ReprovisionBlocked"),
    Row("12/quorum-does-not-count-learners", "12/quorum", lambda: again.controlplane(etcd=again.view(
        again.member(1), again.member(2), again.member(3), again.member(4, learner=True), healthy=(2, 4))), "ReprovisionBlocked"),
    # Gates of a join.
    Row("12/pending", "9/0-not-approved", lambda: again.worker(machine={"approvalState": "pending"}), "NotApproved"),
    Row("12/no-configuration", "9/1-render", lambda: replace(again.worker(), config=Unknown("RenderFailed", "no")), "RenderFailed"),
    Row("12/partial-configuration", "9/1-config-mismatch", lambda: again.worker(config=w.config("controlplane", "m1")), "RenderFailed"),
    Row("12/no-credentials", "9/1-bundle", lambda: replace(again.worker(), authority=Unknown("SecretsUnavailable", "no")), "SecretsUnavailable"),
    Row("12/other-authority", "9/1-authority", lambda: again.worker(config=w.config("worker", "m1").replace(
        b"  install:", b"  ca: {crt: T1RIRVI=, key: ''}\n  install:")), "AuthorityMismatch"),
    Row("12/address-refused", "9/1-endpoint", lambda: replace(again.worker(), endpoint=Unknown("EndpointRefused", "no")), "EndpointRefused"),
    Row("12/status-lost", "9/1-status-missing", lambda: replace(again.worker(), machine=w.machine_record("m1", 1, status={})), "StatusMissing"),
    Row("12/another-answers-with-authentication", "9/2-other-node", lambda: case.running(again.worker(), 9), "EndpointIdentityMismatch"),
    Row("12/lost-answer-and-it-runs", "9/2-left-over-sending", lambda: case.running(again.worker(status=sending(age=5))), "Follow"),
    Row("12/stored-meanwhile", "9/2-stored", lambda: case.running(again.worker(status={**STORED, "appliedConfigHash": None})), "Follow"),
    Row("12/runs-again", "9/2-running", lambda: case.running(again.worker()), "Unchanged"),
    Row("12/wiped-again-before-it-converged", "9/3-stored", lambda: again.worker(status={"appliedConfigHash": None}), "Follow"),
    Row("12/sent-by-another-run", "9/10-sent-by-other", lambda: again.worker(status=sending(age=10)), "SendingUnconfirmed"),
    Row("12/no-answer-and-another-boot", "9/10-counts-as-stored", lambda: again.worker(status=sending(fingerprint="FP-one")), "Follow"),
    Row("12/no-answer-and-silent", "9/10-counts-as-stored", lambda: case.silent(again.worker(status=sending(fingerprint="FP-two"))), "Follow"),
    Row("12/nobody", "9/4-nobody", lambda: case.silent(again.worker()), "CurrentConfigUnavailable"),
    Row("12/booting", "9/4-not-maintenance", lambda: again.shows(again.worker(), stage="booting"), "NotInMaintenance"),
    Row("12/other-machine", "9/5-identity", lambda: again.shows(again.worker(), identity=w.identity(9)), "IdentityMismatch"),
    Row("12/answers-to-another", "9/5-answers-to-another", lambda: again.worker(
        machine={"identity": {"uuid": w.uuid(1)}}, everybody=(w.machine_record("m8", 8, identity={"serial": "SER-1"}, hostname="x"),)), "TwinIdentity"),
    Row("12/secure-boot-off", "9/7-secure-boot", lambda: again.worker(cluster={"secureBoot": "Required"}), "SecureBootRequired"),
    Row("12/links", "8/links", lambda: again_with_links("eth7"), "RenderFailed"),
    Row("12/disks", "8/disks", lambda: again_with_links("enp1s0", {"machine": {"disks": [{"device": "/dev/sdz"}]}}), "RenderFailed"),
    Row("12/name-of-a-patch", "9/8-hostname-rendered", lambda: replace(
        again.worker(others=(w.machine_record("m9", 9, hostname=None),)), named=(("m9", "M1"),)), "HostnameConflict"),
    Row("12/older", "9/7-contract", lambda: again.shows(again.worker(), version="v1.12.11"), "ContractTooNew"),
    Row("12/shutting-down", "9/8-cluster", lambda: again.worker(cluster={"hold": "shutdown"}), "ClusterShuttingDown"),
    Row("12/rotating", "9/8-cluster", lambda: again.controlplane(cluster={"hold": "caRotation"}), "CARotation"),
    Row("12/over-cap", "9/8-cluster", lambda: again.controlplane(others=(*FIVE, again.plane(6))), "ControlPlaneCapExceeded"),
    Row("12/being-removed", "9/8-removal", lambda: again.worker(status=condition("Removal")), "RemovalInProgress"),
    Row("12/operation", "9/8-operation", lambda: again.worker(
        cluster_status={**case.BOOTSTRAPPED, "operation": {"name": "restore", "since": "x"}}), "OperationInProgress"),
    Row("12/bytes-that-were-refused", "9/10-rejected", lambda: again.worker(
        status={"rejectedInputsHash": sending()["sending"]["hash"]}), "ConfigRejected"),  # type: ignore[index]
)


def again_with_links(named: str, *documents: Json) -> Provisioning:
    """A rendered configuration that names a link, on a machine that fell back."""
    seen = with_links(again.worker(), named, "enp1s0", *documents)
    return replace(seen, maintenance=Present(replace(seen.maintenance.value, certificate=w.certificate(again.BOOT))))  # type: ignore[union-attr]
