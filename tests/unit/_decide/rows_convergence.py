# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of a converged machine: an observation, the gate that decides it, and what the machine is then (design sections 10 and 11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.convergence_words import Converging
from ansible_collections.ichor.talos.plugins.module_utils._decide.machine_edit_words import Etcd
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember, Link, NodePlace, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY
from ansible_collections.ichor.talos.plugins.module_utils._model.workloads import Hosting, Pod
from tests.unit._decide import converging_case as case
from tests.unit._operations import world as w


@dataclass(frozen=True)
class Row:
    """An observation, the rule that decides it, the reason of the Ready condition, and what follows: steps and refusals by name."""

    id: str
    rule: str
    seen: Callable[[], Converging]
    ready: str
    follows: str = ""


SILENT = Unknown("TimedOut", "10.0.0.1:50000 gives no answer.")
FOREIGN = Unknown("UnknownAuthority", "10.0.0.1:50000 shows a certificate of another authority.")
MEMBERS = tuple(EtcdMember(str(number), f"cp{number}", (f"https://10.0.0.{number}:2380",)) for number in (1, 2, 3))
PENDING = {"approvalState": "pending"}


def silent(age: float | None = None, told: str = "", **changed: object) -> Converging:
    """No answer; `age` is since when, None where this is the first."""
    status = {} if age is None else case.condition("NodeReachable", "False", age)
    return replace(case.case(status=status, **changed), node=SILENT, compared=Absent(), told=told)  # type: ignore[arg-type]


def restarting(etcd: Observed[Etcd] | None, **changed: object) -> Converging:
    """A control plane of three that has to restart."""
    return replace(case.case("controlplane", case.udev, others=2, **changed), quorum=etcd)  # type: ignore[arg-type]


def etcd(others: int, members: int = 3) -> Observed[Etcd]:
    return Present(Etcd(MEMBERS[:members], others))


def renamed(members: Observed[tuple[EtcdMember, ...]] | None, others: int = 2) -> Converging:
    """A control plane that gets another host name."""
    return replace(case.case("controlplane", case.hostname, others=others), members=members, quorum=etcd(2), named=())


def named_like_another(change: case.Change) -> Converging:
    seen = case.case(change=change)
    return replace(seen, siblings=(*seen.siblings, w.machine_record("m2", 2, hostname="M1")), named=())


def with_links(*names: str) -> Converging:
    """The render names the link eth9, and the node has these."""
    seen = replace(case.case(change=case.sysctl), wanted=Present(case.rendered(link="eth9")))
    return case.with_node(seen, links=Present(tuple(Link(name, physical=True) for name in names)))


def stage(name: str, ready: bool = False, unattended: str = "", change: case.Change | None = None, **changed: object) -> Converging:
    return case.with_node(case.case(change=change, **changed), stage=StageReading(name, ready, (), unattended))  # type: ignore[arg-type]


def drained(hosting: Observed[Hosting] | None, **changed: object) -> Converging:
    """A worker that has to restart, with what runs on its Node."""
    return replace(case.case(change=case.udev, **changed), drains=True, hosting=hosting)  # type: ignore[arg-type]


def hosted(*pods: Pod, uuid: str = "", **more: object) -> Observed[Hosting]:
    node = NodePlace("m1", ("10.0.0.1",), uuid or w.uuid(1).upper(), "uid-node", ready=True)
    return Present(Hosting(node, pods, **more))  # type: ignore[arg-type]


WEB = Pod("web", "web-1", "uid-web", owner_kind="ReplicaSet", labels={"app": "web"})
NO_REBOOT, STAGED = "ApplyDrift NO_REBOOT", "ApplyDrift STAGED, Reboot after the configuration to be staged"

CONVERGENCE: tuple[Row, ...] = (
    Row("11/pending-again", "11/not-approved", lambda: case.case(change=case.sysctl, **PENDING), "PendingApproval", "NotApproved"),
    Row("11/wiped-meanwhile", "11/not-converged", lambda: case.case(change=case.sysctl, status={"appliedConfigHash": ""}), "RecordChanged", "RecordChanged"),
    Row("11/no-address", "11/endpoint", lambda: replace(case.case(change=case.sysctl), endpoint=Unknown("EndpointRefused", "It is the VIP.")),
        "EndpointRefused", "EndpointRefused"),
    Row("11/render-fails", "11/render", lambda: replace(case.case(), wanted=Unknown("RenderFailed", "Patch bad: no."), node=None, compared=Absent()),
        "RenderFailed", "RenderFailed"),
    Row("11/no-bundle", "11/render", lambda: replace(case.case(), wanted=Unknown("SecretsUnavailable", "It is exposed."), node=None, compared=Absent()),
        "SecretsUnavailable", "SecretsUnavailable"),
    Row("11/no-credentials", "11/bundle", lambda: replace(case.case(change=case.sysctl), authority=Unknown("SecretsUnavailable", "None.")),
        "SecretsUnavailable", "SecretsUnavailable"),
    Row("11/first-silence", "11/silent", silent, "CurrentConfigUnavailable"),
    Row("11/silent-within-the-grace", "11/silent", lambda: silent(59), "CurrentConfigUnavailable"),
    Row("11/silent-after-the-grace", "11/silent", lambda: silent(60), "NodeUnreachable"),
    Row("11/silent-and-moved", "11/silent", lambda: silent(900, "10.0.0.7:50000"), "NodeUnreachable"),
    Row("11/silent-while-it-reboots", "11/silent", lambda: silent(300, cluster_status=case.disruption(age=300)), "NodeRebooting"),
    Row("11/silent-long-after-its-reboot", "11/silent", lambda: silent(700, cluster_status=case.disruption(age=700)), "NodeUnreachable"),
    Row("11/silent-while-another-reboots", "11/silent", lambda: silent(300, cluster_status=case.disruption("m2")), "NodeUnreachable"),
    Row("11/rotated-away", "11/foreign", lambda: replace(silent(), node=FOREIGN), "AuthorityMismatch", "AuthorityMismatch"),
    Row("11/in-maintenance-mode", "11/silent", lambda: replace(silent(), node=FOREIGN, maintained=True), "CurrentConfigUnavailable"),
    Row("11/other-machine-answers", "11/other-node", lambda: case.with_node(case.case(change=case.sysctl), identity=w.identity(9)),
        "EndpointIdentityMismatch", "EndpointIdentityMismatch"),
    Row("11/another-network-card", "11/converged", lambda: case.with_node(case.case(), identity=Identity(w.uuid(1), "SER-1", ("00:1c:42:00:00:77",))),
        "Converged"),
    Row("11/known-by-its-serial", "11/other-node", lambda: case.with_node(case.case(identity={"serial": "SER-1"}), identity=w.identity(9)),
        "EndpointIdentityMismatch", "EndpointIdentityMismatch"),
    Row("11/lesser-role", "11/unreadable", lambda: replace(case.case(), compared=Unknown("PermissionDenied", "not authorized")),
        "CurrentConfigUnavailable", "CurrentConfigUnavailable"),
    Row("11/no-configuration", "11/unreadable", lambda: replace(case.case(), compared=Absent()), "CurrentConfigUnavailable", "CurrentConfigUnavailable"),
    Row("11/rotating", "11/rotation", lambda: case.case(change=case.both(case.accepted, case.sysctl)), "CARotation", "CARotation"),
    Row("11/rotated", "11/authority", lambda: case.case(change=case.both(case.token, case.sysctl)), "AuthorityMismatch", "AuthorityMismatch"),
    Row("11/rotated-in-what-is-staged", "11/authority", lambda: case.case(kept=case.token), "AuthorityMismatch", "AuthorityMismatch"),
    Row("11/rotated-and-accepting", "11/authority", lambda: case.case(change=case.both(case.accepted, case.token)), "AuthorityMismatch", "AuthorityMismatch"),
    Row("11/rotated-and-report", "11/authority", lambda: case.case(change=case.token, cluster={"driftPolicy": "report"}),
        "AuthorityMismatch", "AuthorityMismatch"),
    Row("11/back-and-not-yet-ready", "11/evidence", lambda: case.case("controlplane", others=2, cluster_status=case.disruption(boot="boot-1")),
        "NodeStarting"),
    Row("11/applied-and-not-yet-ready", "11/evidence", lambda: case.case("controlplane", others=2, cluster_status=case.disruption(step="apply")),
        "NodeStarting"),
    Row("11/told-and-still-up", "11/evidence", lambda: case.case(cluster_status=case.disruption()), "NodeStarting"),
    Row("11/booting", "11/starting", lambda: stage("booting"), "NodeStarting"),
    Row("11/upgrading", "11/starting", lambda: stage("upgrading"), "NodeStarting"),
    Row("11/on-its-way-down", "11/starting", lambda: stage("shuttingDown"), "NodeRebooting"),
    Row("11/reinstalling", "11/starting", lambda: stage("running", unattended="installing"), "NodeInstalling"),
    Row("11/in-step", "11/converged", case.case, "Converged"),
    Row("11/in-step-and-held", "11/converged", lambda: case.case(annotations={HOLD_APPLY: "true"}, cluster={"hold": "shutdown", "driftPolicy": "report"}),
        "Converged"),
    Row("11/in-step-and-not-ready", "11/converged", lambda: stage("running"), "Converged"),
    Row("11/in-step-but-for-newer-images", "11/converged", lambda: case.case(change=case.newer), "Converged"),
    Row("11/in-step-while-another-reboots", "11/converged", lambda: case.case(cluster_status=case.disruption("m2")), "Converged"),
    Row("11/kept-is-the-same", "11/converged", lambda: case.case(kept=case.as_is), "Converged"),
    Row("11/other-authority", "11/authority-of-render", lambda: replace(case.case(change=case.sysctl), authority=Present("another CA")),
        "AuthorityMismatch", "AuthorityMismatch"),
    Row("11/reported", "11/report", lambda: case.case(change=case.sysctl, cluster={"driftPolicy": "report"}), "Drifted"),
    Row("11/reported-and-held", "11/report", lambda: case.case(change=case.sysctl, annotations={HOLD_APPLY: "true"}, cluster={"driftPolicy": "report"}),
        "Drifted"),
    Row("11/held", "11/hold-apply", lambda: case.case(change=case.sysctl, annotations={HOLD_APPLY: "true"}), "Drifted", "HoldApply"),
    Row("11/hold-lifted", "", lambda: case.case(change=case.sysctl, annotations={HOLD_APPLY: "false"}), "Drifted", NO_REBOOT),
    Row("11/being-removed", "11/removal", lambda: case.case(change=case.sysctl, status=case.condition("Removal")), "Drifted", "RemovalInProgress"),
    Row("11/removal-lifted", "", lambda: case.case(change=case.sysctl, status=case.condition("Removal", "False")), "Drifted", NO_REBOOT),
    Row("11/restoring", "11/operation", lambda: case.case(change=case.sysctl, cluster_status={"operation": {"what": "restore"}}),
        "Drifted", "OperationInProgress"),
    Row("11/shutting-down", "11/lock", lambda: case.case(change=case.sysctl, cluster={"hold": "shutdown"}), "ClusterShuttingDown", "ClusterShuttingDown"),
    Row("11/rotation-announced", "11/lock", lambda: case.case(change=case.sysctl, cluster={"hold": "caRotation"}), "CARotation", "CARotation"),
    Row("11/even", "11/lock", lambda: case.case("controlplane", case.sysctl, others=1), "Transitioning", "Transitioning"),
    Row("11/over-the-cap", "11/lock", lambda: case.case("controlplane", case.sysctl, others=4), "ControlPlaneCapExceeded", "ControlPlaneCapExceeded"),
    Row("11/even-and-a-worker-has-to-restart", "11/lock", lambda: case.case(change=case.udev, others=2), "Transitioning", "Transitioning"),
    Row("11/even-and-a-worker", "", lambda: case.case(change=case.sysctl, others=2), "Drifted", NO_REBOOT),
    Row("11/even-and-a-worker-may-not-restart", "", lambda: replace(case.case(change=case.udev, others=2), allow_reboot=False),
        "Drifted", "ApplyDrift STAGED, RebootRequired"),
    Row("11/older-talos", "11/contract", lambda: case.with_node(case.case(change=case.sysctl), version="v1.12.4"), "ContractTooNew", "ContractTooNew"),
    Row("11/unknown-talos", "11/contract", lambda: case.with_node(case.case(change=case.sysctl), version=""), "ContractTooNew", "ContractTooNew"),
    Row("11/newer-talos", "", lambda: case.with_node(case.case(change=case.sysctl), version="v1.14.0"), "Drifted", NO_REBOOT),
    Row("11/link-missing", "11/links", lambda: with_links("eth0"), "RenderFailed", "RenderFailed"),
    Row("11/link-there", "", lambda: with_links("eth9"), "Drifted", NO_REBOOT),
    Row("11/name-of-another", "11/hostname", lambda: named_like_another(case.hostname), "HostnameConflict", "HostnameConflict"),
    Row("11/name-copied", "11/hostname", lambda: named_like_another(case.sysctl), "HostnameConflict", "HostnameConflict"),
    Row("11/name-of-a-patch", "11/hostname-rendered", lambda: replace(case.case(change=case.hostname), named=(("m2", "other"), ("m3", "M1"))),
        "HostnameConflict", "HostnameConflict"),
    Row("11/name-of-a-member", "11/hostname-members", lambda: renamed(Present((*MEMBERS, EtcdMember("9", "m1", ("https://10.0.0.9:2380",))))),
        "HostnameConflict", "HostnameConflict"),
    Row("11/members-unread", "11/hostname-members", lambda: renamed(Unknown("TimedOut", "no answer")), "HostnameConflict", "HostnameConflict"),
    Row("11/own-member", "", lambda: renamed(Present((EtcdMember("1", "m1", ("https://10.0.0.1:2380",)),))), "Drifted", STAGED),
    Row("11/refused-before", "11/rejected",
        lambda: case.case(change=case.sysctl, status={"rejectedInputsHash": case.compared("worker", case.sysctl).sha256}),
        "ConfigRejected", "ConfigRejected"),
    Row("11/refused-others", "", lambda: case.case(change=case.sysctl, status={"rejectedInputsHash": "other"}), "Drifted", NO_REBOOT),
    Row("11/told-to-reboot", "11/reboot-under-way", lambda: case.case(change=case.udev, kept=case.as_is, cluster_status=case.disruption()), "NodeRebooting"),
    Row("11/told-long-ago", "", lambda: case.case(change=case.udev, kept=case.as_is, cluster_status=case.disruption(age=601)), "RebootRequired", "Reboot"),
    Row("11/booted-and-drifted-again", "", lambda: case.case(change=case.sysctl, cluster_status=case.disruption(boot="boot-1")), "Drifted", NO_REBOOT),
    Row("11/resetting", "11/busy", lambda: stage("resetting", change=case.sysctl), "NodeRebooting"),
    Row("11/upgrading-and-drifted", "11/busy", lambda: stage("upgrading", change=case.sysctl), "NodeStarting"),
    Row("11/installing-and-drifted", "11/busy", lambda: stage("booting", unattended="installing", change=case.sysctl), "NodeInstalling"),
    Row("11/booting-and-drifted", "", lambda: stage("booting", change=case.sysctl), "Drifted", NO_REBOOT),
    Row("11/quorum-at-risk", "11/quorum", lambda: restarting(etcd(1)), "Drifted", "QuorumAtRisk"),
    Row("11/quorum-unknown", "11/quorum", lambda: restarting(Unknown("ControlPlaneUnreachable", "nobody answers")), "Drifted", "QuorumUnknown"),
    Row("11/quorum-while-one-learns", "11/quorum", lambda: restarting(Present(Etcd((*MEMBERS[:2], replace(MEMBERS[2], learner=True)), 1))), "Drifted",
        "QuorumAtRisk"),
    Row("11/quorum-kept", "", lambda: restarting(etcd(2)), "Drifted", STAGED),
    Row("11/only-member", "", lambda: replace(case.case("controlplane", case.udev), quorum=etcd(0, 1)), "Drifted", STAGED),
    Row("11/quorum-when-its-turn-comes", "", lambda: restarting(None, cluster_status=case.disruption("cp2")), "Drifted",
        "ApplyDrift STAGED after cp2, Reboot after cp2 and the configuration to be staged"),
    Row("11/quorum-of-no-restart", "", lambda: replace(case.case("controlplane", case.sysctl, others=2), quorum=etcd(0)), "Drifted", NO_REBOOT),
    Row("11/quorum-without-leave", "", lambda: replace(restarting(etcd(0)), allow_reboot=False), "Drifted", "ApplyDrift STAGED, RebootRequired"),
    Row("11/drained-first", "", lambda: drained(hosted(WEB)), "Drifted", STAGED),
    Row("11/no-node-to-drain", "", lambda: drained(Absent("no Kubernetes")), "Drifted", STAGED),
    Row("11/kubernetes-unread", "11/drain-unknown", lambda: drained(Unknown("TimedOut", "no answer")), "Drifted", "DrainRequired"),
    Row("11/kubernetes-unread-and-no-leave", "", lambda: replace(drained(None), allow_reboot=False), "Drifted", "ApplyDrift STAGED, RebootRequired"),
    Row("11/kubernetes-unread-and-no-drain", "", lambda: replace(drained(None), drains=False), "Drifted", STAGED),
    Row("11/kubernetes-of-no-restart", "", lambda: replace(case.case(change=case.sysctl), drains=True), "Drifted", NO_REBOOT),
    Row("11/drained-when-its-turn-comes", "", lambda: drained(None, cluster_status=case.disruption("m2")), "Drifted",
        "ApplyDrift STAGED, Reboot after m2 and the configuration to be staged"),
    Row("11/node-of-another-board", "11/drain-other-node", lambda: drained(hosted(WEB, uuid=w.uuid(9))), "Drifted", "IdentityMismatch"),
    Row("11/cordoned-by-a-run-that-is-gone", "11/evidence", lambda: case.case(cluster_status=case.disruption(step="drain")), "NodeStarting"),
    Row("11/at-once", "", lambda: case.case(change=case.sysctl), "Drifted", NO_REBOOT),
    Row("11/needs-a-reboot", "", lambda: case.case(change=case.udev), "Drifted", STAGED),
    Row("11/needs-none-on-the-newest", "", lambda: case.case(change=case.udev, version="v1.14.0"), "Drifted", NO_REBOOT),
    Row("11/renamed-on-the-newest", "", lambda: replace(case.case(change=case.hostname, version="v1.14.0"), named=()), "Drifted", STAGED),
    Row("11/only-the-reboot-is-left", "", lambda: case.case(change=case.udev, kept=case.as_is), "RebootRequired", "Reboot"),
    Row("11/only-the-reboot-and-no-leave", "", lambda: replace(case.case(change=case.udev, kept=case.as_is), allow_reboot=False),
        "RebootRequired", "RebootRequired"),
    Row("11/staged-and-needs-none", "", lambda: case.case(change=case.sysctl, kept=case.as_is), "Drifted", NO_REBOOT),
    Row("11/staged-by-somebody", "", lambda: case.case(kept=case.sysctl), "Drifted", NO_REBOOT),
    Row("11/refused-at-once", "", lambda: replace(case.case(change=case.sysctl), refused_at_once=True), "Drifted", STAGED),
    Row("11/refused-at-once-and-staged", "", lambda: replace(case.case(change=case.sysctl, kept=case.as_is), refused_at_once=True),
        "RebootRequired", "Reboot"),
    Row("11/control-plane-waits", "", lambda: case.case("controlplane", case.sysctl, others=2, cluster_status=case.disruption("cp2", "apply")),
        "Drifted", f"{NO_REBOOT} after cp2"),
    Row("11/worker-waits-only-to-reboot", "", lambda: case.case(change=case.udev, cluster_status=case.disruption("m2")),
        "Drifted", "ApplyDrift STAGED, Reboot after m2 and the configuration to be staged"),
    Row("11/worker-does-not-wait", "", lambda: case.case(change=case.sysctl, cluster_status=case.disruption("m2")), "Drifted", NO_REBOOT),
    Row("11/own-disruption-is-no-wait", "", lambda: case.case("controlplane", case.sysctl, others=2, cluster_status=case.disruption(step="apply")),
        "Drifted", NO_REBOOT),
)
