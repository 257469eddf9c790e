# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of section 14 of docs/design.md, with the rows and tests that stand for them.

A row is named by its id, a test as `file::name`.
"""

from __future__ import annotations

from tests.unit._decide.sentences_sending import Sentence

LIFE = "tests/unit/_operations/test_machine_removal.py"
LAB = "tests/lives/test_removal.py::test_the_life_of_removals"
PODS = "tests/unit/_decide/test_drain.py"
DRAINING = "tests/unit/_operations/test_draining.py"
SCENARIO = "tests/scenarios/test_drain.py"
HELD = f"{LIFE}::test_the_condition_holds_the_machine_from_before_the_first_step"
KILLED = f"{LIFE}::test_killed_at_every_boundary_and_resumed"


def _s(quote: str, *shown: str) -> Sentence:
    return Sentence(14, quote, shown)


SENTENCES: tuple[Sentence, ...] = (
    _s("`talos_machine_removal`, confirmed by the machine's name;", "14/not-confirmed", LAB),
    _s("condition `Removal=Removing` is written before the first step, holds every send to the machine (a loop that runs beside it must not re-install it), "
       "and only a person lifts it:", HELD, "12/being-removed", f"{LIFE}::test_a_removal_is_called_off_by_a_person"),
    _s("`evacuate storage → drain → leave etcd (control planes) → reset → delete the record`; it comes back as pending.", "14/evacuated", "14/drained",
       "14/drained-and-empty", "14/drained-control-plane", "14/no-node-to-drain", "14/budget-allows-nothing", "14/pod-of-nobody", "14/no-other-node",
       "14/skipped-and-its-node-goes", "14/skipped-and-its-node-unread", "14/skipped-and-another-s-node", "14/node-of-another-board",
       "14/control-plane-over-the-count", "14/worker", "14/a-learner-leaves-too", KILLED, LAB),
    _s("Evacuation lists the local volumes that pods of the node own and that would be lost, and asks for `accept_data_loss`; this product moves no data.",
       "14/volumes-would-be-lost", "14/volumes-unread", "14/not-drained-by-anybody"),
    _s("Volumes are claims whose volume can be used on this node alone, folders below /var, and scratch volumes of pods that have to go.",
       f"{PODS}::test_lost", f"{DRAINING}::test_volumes_on_its_disks_are_told"),
    _s("The drain cordons the Node, evicts every pod but static ones, finished ones and those of DaemonSets, and has its own deadline: what a "
       "PodDisruptionBudget or anything else keeps until then is named, the cordon is taken back, and nothing is reset.", "14/budget-allows-nothing",
       f"{PODS}::test_fate", f"{DRAINING}::test_what_may_go_goes_and_the_rest_stays",
       f"{DRAINING}::test_a_budget_that_allows_nothing_blocks_and_is_named_until_the_deadline", f"{DRAINING}::test_a_pod_that_does_not_end_is_named",
       f"{SCENARIO}::test_a_budget_that_allows_nothing_ends_the_drain_with_nothing_reset"),
    _s("Nothing disruptive happens where Kubernetes cannot be read or its Node is another machine, unless `skip_drain: true`.", "14/volumes-unread",
       "14/node-of-another-board", "14/skipped-and-its-node-unread", "14/skipped-and-another-s-node",
       f"{SCENARIO}::test_a_kubernetes_out_of_reach_stops_everything"),
    _s("Once the machine is in maintenance mode its Node is deleted.", "14/drained", "14/skipped-and-its-node-goes", "14/no-node-to-drain",
       f"{SCENARIO}::test_a_worker_is_evacuated_drained_reset_and_gone"),
    _s("Refused when the cluster would fall below `controlPlane.count` (\"approve a replacement first, or lower the count first (to 1, 3 or 5)\", the smaller "
       "allowed counts), lose quorum, or lose its last control plane; the last two never bend, and from two control planes none is removed, dead or not: "
       "a removal needs three.", "14/healthy-below-the-count", "14/healthy-of-five", "14/healthy-of-seven", "14/too-many-is-no-obstacle", "14/two-dead",
       "14/two-alive", "14/last", "14/three-records-two-voters", "14/leaves-two-voters", "14/leaves-without-quorum", "14/dead-and-no-quorum"),
    _s("**A dead control plane** may go below the count: a healthy sibling lists the member and the machine is unreachable (the same call proxied through the "
       "sibling fails too, and its Kubernetes Node, where readable, is not Ready: a lost route of ours is no death), or its etcd status fails there as well, "
       "or sees no leader.", "14/dead-below-the-count", "14/dead-of-five", "14/dead-in-upper-case", "14/dead-etcd-on-a-living-machine",
       "14/dead-without-a-leader", "14/dead-while-another-joins", "14/dead-wiped-machine", "14/route-of-ours", "14/our-own-trouble", "14/node-is-ready",
       "14/node-is-not-ready", "14/node-unreadable", f"{LIFE}::test_a_route_of_ours_that_is_lost_is_no_death"),
    _s("A member that answers with a leader is healthy and the refusal stands and says so;", "14/answers-through-another", "14/is-healthy-by-the-view",
       "14/id-answers", "14/id-learner-answers"),
    _s("names that cannot be told, a sibling that cannot be dialled, or an unlisted member leave the refusal in place, except for a removal that had already "
       "proceeded (`Removal`, reason `DeadMemberRemoval`, marks it).", "14/fqdn", "14/name-unknown", "14/name-elsewhere", "14/name-twice",
       "14/somebody-joins-there", "14/its-own-member-is-not-listed", "14/sibling-silent", "14/sibling-silent-and-it-answers", "14/sibling-silent-and-wiped",
       "14/not-listed", "14/resumed-after-the-dead-member-went", "14/resumed-without-a-marker", "14/resumed-after-leaving",
       "14/resumed-after-leaving-with-another-count", "14/resumed-in-the-reset", "14/resumed-after-the-reset"),
    _s("Its steps: member removed by id through the sibling, record deleted; evacuation, drain, leave and reset are skipped and the Kubernetes Node stays, "
       "as the plan says.", "14/dead-below-the-count", "14/id-dead", "14/id-of-nobody", "14/id-gone", "14/id-gone-by-nobody-s-word", "14/id-unreadable",
       "14/id-nameless-learner", "14/id-status-gone", "14/id-shutting-down", "14/id-restore-under-way"),
    _s("It warns with event `DeadMemberRemoved`, and asks for a replacement.", f"{LIFE}::test_a_dead_one_tells_an_event_and_asks_for_a_replacement", LAB),
    _s("The plan says all of this beforehand; where it cannot read etcd it goes by `NodeUnreachable` and warns that the run reads again under the lock and "
       "decides.", "14/sibling-silent-by-condition", "14/sibling-silent-under-the-lock", "14/disks-unread", "14/disks-bare",
       f"{LIFE}::test_a_dead_one_that_answers_again_under_the_lock_stays", f"{LIFE}::test_check_is_run_and_a_second_run_changes_nothing"),
    _s("Success of a reset is reaching maintenance mode, never the call's OK; nothing else (a reboot least of all) is sent between.",
       f"{LIFE}::test_a_reset_that_fails_after_its_ok_is_told_and_the_record_stays", LAB),
    _s("**A reset alone** keeps the record and the Node object, needs the node to answer, and keeps the count check also for a control plane that looks dead.",
       "14/reset-of-a-worker", "14/reset-of-a-control-plane", "14/reset-below-the-count", "14/reset-of-a-dead-one-below-the-count", "14/reset-of-a-silent-one",
       "14/reset-with-deaf-etcd", "14/reset-in-maintenance", "14/reset-of-a-never-sent", f"{LIFE}::test_a_reset_alone_keeps_the_record"),
)

#: What is no rule of this section.
REST = ("Which partitions go: section 16.",)

#: Rows of other sections that a removal keeps: records, deletion, identity, lock.
ELSEWHERE = (
    "14/pending-is-its-record", "14/rejected-is-its-record", "14/never-sent-is-its-record", "14/gone-is-done", "14/record-broken", "14/in-git",
    "14/send-under-way", "14/status-gone", "14/restore-under-way", "14/shutting-down", "14/another-machine-there", "14/no-credentials", "14/worker-silent",
    "14/other-s-turn", "14/wiped-and-data-left")
