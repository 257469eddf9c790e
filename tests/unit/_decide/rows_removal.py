# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of removals, resets and removed members: an observation, and what the decision says of it (design section 14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.etcd_member import MemberSeen, decide_member
from ansible_collections.ichor.talos.plugins.module_utils._decide.removal import decide_removal
from ansible_collections.ichor.talos.plugins.module_utils._decide.removal_words import Leaving, MemberLook, RemovalWish
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember, EtcdStatus, NodePlace
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Target
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Broken
from ansible_collections.ichor.talos.plugins.module_utils._model.workloads import Budget, Hosting, Pod, Requirement, Volume
from tests.unit._decide import removal_case as case
from tests.unit._decide.rows import Row, Seen, of_plan
from tests.unit._operations import world as w

DEAD, LEAVES = ("RemoveEtcdMember", "DeleteRecord"), ("LeaveEtcd", "ResetMachine", "DeleteRecord")
RESETS = ("ResetMachine", "DeleteRecord")
UNREAD = Unknown("ControlPlaneUnreachable", "no other control plane answers")
NODE = NodePlace("w1", ("10.0.0.1",), w.uuid(1).upper(), "uid-w1", "w1", ready=True)
OTHERS = replace(NODE, system_uuid=w.uuid(9))
ALONE = RemovalWish("cp1", record=False)
UNREACHABLE = [{"type": "Ready", "status": "False", "reason": "NodeUnreachable", "message": ""}]


def removal(make: Callable[[], Leaving]) -> Callable[[], Seen]:
    return lambda: of_plan(decide_removal(make()).plan)


def look(seen: Leaving, direct: Observed[EtcdStatus] | None = None, through: Observed[EtcdStatus] | None = None,
         ready: Observed[bool] | None = None) -> Leaving:
    return replace(seen, look=MemberLook(direct or case.SILENT, through or case.SILENT, ready or Absent()))


def etcd(seen: Leaving, *numbers: int, healthy: tuple[int, ...], members: tuple[EtcdMember, ...] = ()) -> Leaving:
    return replace(seen, etcd=case.view(*numbers, healthy=healthy, members=members))


def deaf(seen: Leaving) -> Leaving:
    """The machine answers, and its etcd does not."""
    hung = Unknown("TimedOut", "no answer within 20 s")
    if not isinstance(seen.node, Present):
        raise ValueError("the machine answers")
    return replace(seen, node=Present(replace(seen.node.value, etcd=hung)), look=MemberLook(hung, hung))


def wish(seen: Leaving, **changes: object) -> Leaving:
    return replace(seen, wish=replace(seen.wish, **changes))  # type: ignore[arg-type]


def spec(seen: Leaving, **changes: object) -> Leaving:
    machine = seen.machine
    if machine is None:
        raise ValueError("there is no record")
    return case.with_machine(seen, replace(machine, spec={key: value for key, value in {**machine.spec, **changes}.items() if value is not None}))


def hosted(seen: Leaving, *pods: Pod, node: NodePlace = NODE, **more: object) -> Leaving:
    """Its Kubernetes Node, with these pods on it."""
    return replace(wish(seen, skip_drain=False), hosting=Present(Hosting(node, pods, **more)))  # type: ignore[arg-type]


def local_volume(*nodes: str) -> Volume:
    return Volume("pv-1", "db", "data-db-0", local=True, places=tuple((node,) for node in nodes))


def id_of(member: str = "", make: Callable[[], Leaving] = case.silent_plane, **changes: object) -> Callable[[], Seen]:
    """The same observation for a member that is named by its id."""
    def seen() -> Seen:
        found = make()
        observed = MemberSeen(Target(name="prod", cluster="prod"), member or case.hex_of(1), found.cluster, found.machines,
                              found.etcd if found.etcd is not None else UNREAD, found.look)
        return of_plan(decide_member(replace(observed, **changes)).plan)  # type: ignore[arg-type]

    return seen


DB = Pod("db", "db-0", "uid-db-0", owner_kind="StatefulSet", owner="db", claims=("data-db-0",))
WEB = Pod("web", "web-1", "uid-web-1", owner_kind="ReplicaSet", owner="web", labels={"app": "web"})
BARE = Pod("web", "by-hand", "uid-by-hand")
TIGHT = Budget("web", "web", (Requirement("app", "In", ("web",)),), 0)
DRAINED = ("DrainNode", "ResetMachine", "DeleteNode", "DeleteRecord")
OTHER_NODE = w.identity(7)

REMOVAL: tuple[Row, ...] = (
    # What is done.
    Row("14/worker", removal(case.worker), actions=RESETS, rules=("14/not-drained",),
        says=("wipes STATE, EPHEMERAL", "EFI on /dev/sda1", "comes back as pending")),
    Row("14/control-plane-over-the-count", removal(case.alive_plane), actions=LEAVES, rules=("14/not-drained",)),
    Row("14/a-learner-leaves-too", removal(lambda: etcd(case.alive_plane(), 2, 3, 4, healthy=(2, 3, 4), members=(case.member(1, learner=True),))),
        actions=LEAVES),
    Row("14/dead-below-the-count", removal(case.silent_plane), actions=DEAD, rules=("14/dead-skips", "14/node-stays"),
        says=("evacuation, drain, leaving etcd and the reset are skipped", "Kubernetes Node stays", "Approve a replacement")),
    Row("14/dead-of-five", removal(lambda: case.silent_plane(5, 5)), actions=DEAD),
    Row("14/dead-in-upper-case", removal(lambda: spec(case.silent_plane(), hostname="CP1")), actions=DEAD),
    Row("14/dead-etcd-on-a-living-machine", removal(lambda: deaf(case.alive_plane(3, 3))), actions=DEAD),
    Row("14/dead-without-a-leader", removal(lambda: look(case.silent_plane(), through=case.status(1, 0))), actions=DEAD),
    Row("14/dead-while-another-joins", removal(lambda: case.disrupted(case.silent_plane(), "cp2", "join")), actions=DEAD),
    Row("14/dead-wiped-machine", removal(lambda: case.in_maintenance(case.silent_plane())), actions=DEAD),
    Row("14/pending-is-its-record", removal(lambda: spec(case.silent_plane(), approvalState="pending")), actions=("DeleteRecord",)),
    Row("14/rejected-is-its-record", removal(lambda: spec(case.silent_plane(), approvalState="rejected")), actions=("DeleteRecord",)),
    Row("14/never-sent-is-its-record", removal(lambda: case.with_machine(case.silent_plane(), w.machine_record("cp1", 1, "controlplane"))),
        actions=("DeleteRecord",)),
    Row("14/gone-is-done", removal(lambda: replace(case.silent_plane(), machine=None))),
    Row("14/drained", removal(lambda: hosted(case.worker(), WEB)), actions=DRAINED, absent=("14/not-drained", "14/drain-blocked"),
        says=("1 pod of Node w1 goes elsewhere first",)),
    Row("14/drained-and-empty", removal(lambda: hosted(case.worker())), actions=DRAINED, says=("takes no more pods",)),
    Row("14/drained-control-plane", removal(lambda: hosted(case.alive_plane(), WEB)),
        actions=("DrainNode", "LeaveEtcd", "ResetMachine", "DeleteNode", "DeleteRecord")),
    Row("14/evacuated", removal(lambda: wish(hosted(case.worker(), DB, volumes=(local_volume("w1"),)), accept_data_loss=True)),
        actions=("EvacuateStorage", *DRAINED), says=("db/data-db-0 of db/db-0",)),
    Row("14/no-node-to-drain", removal(lambda: replace(hosted(case.worker()), hosting=Absent())), actions=RESETS, rules=("14/no-node",)),
    Row("14/budget-allows-nothing", removal(lambda: hosted(case.worker(), WEB, budgets=(TIGHT,))), actions=DRAINED, rules=("14/drain-blocked",),
        says=("web/web-1 (PodDisruptionBudget web/web allows no disruption)", "ends without a reset")),
    Row("14/pod-of-nobody", removal(lambda: hosted(case.worker(), BARE)), actions=DRAINED, rules=("14/drain-unowned",), says=("web/by-hand",)),
    Row("14/no-other-node", removal(lambda: hosted(case.worker(), WEB, elsewhere=0)), actions=DRAINED, rules=("14/drain-nowhere",)),
    Row("14/skipped-and-its-node-goes", removal(lambda: wish(hosted(case.worker(), WEB), skip_drain=True)),
        actions=("ResetMachine", "DeleteNode", "DeleteRecord"), rules=("14/not-drained",)),
    Row("14/skipped-and-its-node-unread", removal(lambda: replace(case.worker(), hosting=Unknown("TimedOut", "no answer"))), actions=RESETS,
        rules=("14/not-drained", "14/node-unread")),
    Row("14/skipped-and-another-s-node", removal(lambda: wish(hosted(case.worker(), node=OTHERS), skip_drain=True)), actions=RESETS,
        rules=("14/node-of-another",)),
    # Resumed.
    Row("14/resumed-after-leaving", removal(lambda: etcd(deaf(case.removing(case.alive_plane())), 2, 3, 4, healthy=(2, 3, 4))), actions=RESETS),
    Row("14/resumed-after-leaving-with-another-count", removal(lambda: etcd(deaf(case.removing(case.alive_plane(5, 4))), 2, 3, 4, healthy=(2, 3, 4))),
        actions=RESETS),
    Row("14/resumed-in-the-reset", removal(lambda: etcd(case.disrupted(case.removing(case.silent_plane()), "cp1"), 2, 3, healthy=(2, 3))),
        actions=("DeleteRecord",)),
    Row("14/resumed-after-the-reset", removal(lambda: etcd(case.in_maintenance(case.removing(case.silent_plane())), 2, 3, healthy=(2, 3))),
        actions=("DeleteRecord",), absent=("14/data-left",)),
    Row("14/resumed-after-the-dead-member-went", removal(lambda: etcd(case.removing(case.silent_plane(), "DeadMemberRemoval"), 2, 3, healthy=(2, 3))),
        actions=("DeleteRecord",), rules=("14/node-stays",)),
    Row("14/resumed-without-a-marker", removal(lambda: etcd(case.silent_plane(), 2, 3, healthy=(2, 3))), rules=("14/count",), reasons=("ControlPlaneNeeded",)),
    Row("14/wiped-and-data-left", removal(lambda: case.in_maintenance(replace(case.worker(), wish=RemovalWish("w1")), ("EPHEMERAL",))),
        actions=("DeleteRecord",), rules=("14/data-left",), says=("still holds EPHEMERAL",)),
    # What refuses.
    Row("14/not-confirmed", removal(lambda: wish(case.silent_plane(), confirm="cp2")), rules=("14/confirm",), reasons=("ConfirmationMissing",)),
    Row("14/record-broken", removal(lambda: replace(case.silent_plane(), machine=None, broken=Broken("TalosMachine", "cp1", "cp1.yaml", 3, "no YAML"))),
        rules=("4/record-broken",)),
    Row("14/in-git", removal(lambda: case.with_machine(case.worker(), replace(case.worker().machine, labels={"argocd.argoproj.io/instance": "x"}))),
        rules=("14/gitops",), reasons=("RecordTracked",)),
    Row("14/send-under-way", removal(lambda: case.with_status(case.worker(), sending={"hash": "a"})), rules=("14/sending",)),
    Row("14/status-gone", removal(lambda: case.with_machine(case.silent_plane(), replace(case.plane(1), status={}))), rules=("14/status-missing",)),
    Row("14/restore-under-way", removal(lambda: replace(
        case.worker(), cluster=w.cluster_record(status={**case.BOOTSTRAPPED, "operation": {"what": "restore"}}))),
        rules=("14/operation",)),
    Row("14/shutting-down", removal(lambda: replace(case.worker(), cluster=w.cluster_record(status=case.BOOTSTRAPPED, hold="shutdown"))),
        rules=("13/shutdown",)),
    Row("14/too-many-is-no-obstacle", removal(lambda: case.alive_plane(1, 4)), actions=LEAVES),
    Row("14/healthy-below-the-count", removal(lambda: case.alive_plane(3, 3)), rules=("14/count",), reasons=("ControlPlaneNeeded",),
        says=("it is healthy", "Approve a replacement first, or lower the count first (to 1).")),
    Row("14/healthy-of-five", removal(lambda: case.alive_plane(5, 5)), rules=("14/count",), says=("lower the count first (to 1 or 3).",)),
    Row("14/healthy-of-seven", removal(lambda: case.alive_plane(7, 7)), rules=("14/count",), says=("lower the count first (to 1, 3 or 5).",)),
    Row("14/two-dead", removal(lambda: case.silent_plane(1, 2)), rules=("14/last-two",), says=("dead or not",)),
    Row("14/two-alive", removal(lambda: case.alive_plane(1, 2)), rules=("14/last-two",)),
    Row("14/last", removal(lambda: case.alive_plane(1, 1)), rules=("14/last-two",), says=("the last control plane",)),
    Row("14/three-records-two-voters", removal(lambda: etcd(case.silent_plane(), 1, 2, healthy=(2,))), rules=("14/two-members",)),
    Row("14/leaves-two-voters", removal(lambda: etcd(case.alive_plane(), 1, 2, healthy=(1, 2))), rules=("14/two-voters",)),
    Row("14/leaves-without-quorum", removal(lambda: etcd(case.alive_plane(), 1, 2, 3, 4, healthy=(1, 2))), rules=("14/leave-quorum",),
        reasons=("QuorumAtRisk",)),
    Row("14/dead-and-no-quorum", removal(lambda: etcd(case.silent_plane(5, 5), 1, 2, 3, 4, 5, healthy=(2, 3))), rules=("14/quorum",)),
    Row("14/answers-through-another", removal(lambda: look(case.silent_plane(), through=case.status(1))), rules=("14/member-answers",),
        reasons=("MemberAnswers",), says=("controlPlane.count is 3", "it is healthy")),
    Row("14/is-healthy-by-the-view", removal(lambda: etcd(case.silent_plane(), 1, 2, 3, healthy=(1, 2, 3))), rules=("14/member-answers",)),
    Row("14/route-of-ours", removal(lambda: look(case.silent_plane(), through=Absent())), rules=("14/death-unproven",), reasons=("DeathUnproven",)),
    Row("14/our-own-trouble", removal(lambda: look(case.silent_plane(), direct=Unknown("ClockSkew", "the clock"))), rules=("14/death-unproven",)),
    Row("14/node-is-ready", removal(lambda: look(case.silent_plane(), ready=Present(True))), rules=("14/node-ready",)),
    Row("14/node-is-not-ready", removal(lambda: look(case.silent_plane(), ready=Present(False))), actions=DEAD),
    Row("14/node-unreadable", removal(lambda: look(case.silent_plane(), ready=Unknown("TimedOut", "no API server"))), actions=DEAD),
    Row("14/sibling-silent", removal(lambda: replace(case.silent_plane(), etcd=UNREAD)), rules=("14/etcd-unreadable",), reasons=("QuorumUnknown",)),
    Row("14/sibling-silent-by-condition", removal(lambda: replace(case.with_status(case.silent_plane(), conditions=UNREACHABLE), etcd=UNREAD)),
        actions=DEAD, rules=("14/goes-by-condition",), says=("reads again under the lock",)),
    Row("14/sibling-silent-under-the-lock",
        removal(lambda: replace(case.with_status(case.silent_plane(), conditions=UNREACHABLE), etcd=UNREAD, strict=True)), rules=("14/etcd-unreadable",)),
    Row("14/sibling-silent-and-it-answers", removal(lambda: replace(case.alive_plane(), etcd=UNREAD)), rules=("14/etcd-unreadable",)),
    Row("14/sibling-silent-and-wiped", removal(lambda: case.in_maintenance(replace(case.silent_plane(), etcd=UNREAD))), rules=("14/etcd-unreadable",)),
    Row("14/not-listed", removal(lambda: etcd(case.silent_plane(1), 2, 3, healthy=(2, 3))), rules=("14/unlisted",), reasons=("MemberUnclear",)),
    Row("14/fqdn", removal(lambda: etcd(case.silent_plane(), 2, 3, healthy=(2, 3), members=(case.member(1, "cp1.example.com"),))),
        rules=("14/member-unclear",), reasons=("MemberUnclear",)),
    Row("14/name-unknown", removal(lambda: spec(case.silent_plane(), hostname=None)), rules=("14/member-unclear",)),
    Row("14/name-elsewhere", removal(lambda: etcd(case.silent_plane(), 2, 3, healthy=(2, 3), members=(
        case.member(1, peer_urls=("https://10.0.0.7:2380",)),))), rules=("14/member-unclear",)),
    Row("14/name-twice", removal(lambda: etcd(case.silent_plane(), 1, 2, 3, healthy=(2, 3), members=(case.member(8, "cp1"),))), rules=("14/member-unclear",)),
    Row("14/somebody-joins-there", removal(lambda: etcd(case.silent_plane(), 1, 2, 3, healthy=(2, 3), members=(
        replace(case.member(1), id=case.hex_of(9), name="", learner=True),))), rules=("14/member-unclear",)),
    Row("14/its-own-member-is-not-listed", removal(lambda: etcd(case.alive_plane(), 2, 3, 4, healthy=(2, 3, 4))), rules=("14/own-unlisted",)),
    Row("14/another-machine-there", removal(lambda: replace(case.worker(), node=Present(replace(case.worker().node.value, identity=OTHER_NODE)))),
        rules=("14/other-machine",), reasons=("EndpointIdentityMismatch",)),
    Row("14/no-credentials", removal(lambda: replace(case.worker(), node=Unknown("SecretsUnavailable", "no bundle"))), rules=("14/cannot-look",)),
    Row("14/worker-silent", removal(lambda: replace(case.worker(), node=case.SILENT)), rules=("14/silent",), reasons=("NodeUnreachable",)),
    Row("14/other-s-turn", removal(lambda: case.disrupted(case.worker(), "cp2", "reboot")), rules=("14/turn",), reasons=("OperationInProgress",)),
    Row("14/disks-unread", removal(lambda: replace(case.worker(), node=Present(replace(case.worker().node.value, partitions=Unknown("TimedOut", ""))))),
        rules=("14/partitions-unknown",)),
    Row("14/disks-bare", removal(lambda: replace(case.worker(), node=Present(replace(case.worker().node.value, partitions=Present(case.DISKS[:2]))))),
        rules=("14/nothing-to-wipe",)),
    Row("14/not-drained-by-anybody", removal(lambda: wish(case.worker(), skip_drain=False)), rules=("14/drain",), reasons=("DrainRequired",),
        says=("skip_drain: true",)),
    Row("14/volumes-unread", removal(lambda: replace(hosted(case.worker()), hosting=Unknown("TimedOut", "no answer"))), rules=("14/drain-unknown",),
        reasons=("DrainRequired",)),
    Row("14/node-of-another-board", removal(lambda: hosted(case.worker(), node=OTHERS)), rules=("14/other-node",), reasons=("IdentityMismatch",)),
    Row("14/volumes-would-be-lost", removal(lambda: hosted(case.worker(), DB, volumes=(local_volume("w1"),))), rules=("14/data-loss",),
        reasons=("DataLossNotAccepted",), says=("data-db-0 of db/db-0",)),
    # A reset alone.
    Row("14/reset-of-a-worker", removal(lambda: replace(case.worker(), wish=RemovalWish("w1", record=False))), actions=("ResetMachine",),
        rules=("14/reset-alone",), says=("controller installs the machine again",)),
    Row("14/reset-of-a-control-plane", removal(lambda: replace(case.alive_plane(), wish=ALONE)), actions=("LeaveEtcd", "ResetMachine")),
    Row("14/reset-below-the-count", removal(lambda: replace(case.alive_plane(3, 3), wish=ALONE)), rules=("14/count",)),
    Row("14/reset-of-a-dead-one-below-the-count", removal(lambda: replace(case.silent_plane(), wish=ALONE)), rules=("14/count",)),
    Row("14/reset-of-a-silent-one", removal(lambda: replace(case.worker(), wish=RemovalWish("w1", record=False), node=case.SILENT)),
        rules=("14/reset-silent",)),
    Row("14/reset-with-deaf-etcd", removal(lambda: replace(deaf(case.alive_plane()), wish=ALONE)), rules=("14/reset-etcd",)),
    Row("14/reset-in-maintenance", removal(lambda: case.in_maintenance(replace(case.worker(), wish=RemovalWish("w1", record=False))))),
    Row("14/reset-of-a-never-sent", removal(lambda: spec(replace(case.silent_plane(), wish=ALONE), approvalState="pending")), rules=("14/never-sent",)),
    # A member by its id.
    Row("14/id-dead", id_of(), actions=("RemoveEtcdMember",), rules=("14/member-of-machine",)),
    Row("14/id-gone", id_of(case.hex_of(9))),
    Row("14/id-of-nobody", id_of(case.hex_of(8), lambda: look(etcd(case.silent_plane(), 2, 3, 4, healthy=(2, 3, 4), members=(case.member(8, "old"),)))),
        actions=("RemoveEtcdMember",), absent=("14/member-of-machine",)),
    Row("14/id-gone-by-nobody-s-word", id_of(case.hex_of(9), etcd=case.view(1, 2, 3)), rules=("14/list-unsure",)),
    Row("14/id-unreadable", id_of(etcd=UNREAD), rules=("14/etcd-unreadable",)),
    Row("14/id-nameless-learner", id_of(case.hex_of(8), lambda: look(etcd(case.silent_plane(), 1, 2, 3, healthy=(2, 3), members=(
        replace(case.member(8), name="", learner=True),)))), rules=("14/nameless",)),
    Row("14/id-answers", id_of(look=MemberLook(case.status(1), Absent())), rules=("14/member-answers",)),
    Row("14/id-learner-answers", id_of(look=MemberLook(case.SILENT, case.status(1, learner=True))), rules=("14/member-answers",)),
    Row("14/id-status-gone", id_of(machines=(replace(case.plane(1), status={}), case.plane(2), case.plane(3))), rules=("14/status-missing",)),
    Row("14/id-shutting-down", id_of(cluster=w.cluster_record(status=case.BOOTSTRAPPED, hold="shutdown")), rules=("13/shutdown",)),
    Row("14/id-restore-under-way", id_of(cluster=w.cluster_record(status={"operation": {"what": "restore"}})), rules=("14/operation",)),
)
