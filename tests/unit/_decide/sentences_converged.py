# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of sections 10 and 11 of docs/design.md, with the rows and tests that stand for them."""

from __future__ import annotations

from tests.unit._decide.sentences_sending import Sentence

ROUNDS = "tests/unit/_operations/test_converge.py"
LAB = "tests/unit/_operations/test_converge_against_lab.py"
GATES = "tests/unit/_decide/test_convergence_gates.py"
LOCKED = "tests/unit/_operations/test_converge_locked.py"
KILLED = "tests/unit/_operations/test_converge_killed.py"
STAGE = "tests/unit/_operations/test_stage.py"
PLAYED = "tests/scenarios/test_moved_nodes.py"
DRAIN = "tests/unit/_operations/test_converge_drained.py"
PODS = "tests/unit/_decide/test_drain.py"
MOVED = "tests/unit/_decide/test_moved_node.py"
MANAGED = "tests/unit/_operations/test_managed_cluster.py"


def _s(section: int, quote: str, *shown: str) -> Sentence:
    return Sentence(section, quote, shown)


SENTENCES: tuple[Sentence, ...] = (
    _s(10, "When a machine that was sent a configuration (a lease may change during the install) cannot be read and has `spec.hostname`, the Kubernetes Node "
       "of that name says where it is now (InternalIP);", f"{MOVED}::test_who_is_looked_for", f"{MOVED}::test_where_a_node_says_that_it_is",
       f"{STAGE}::test_a_lease_that_changed_during_the_install_is_followed_to_where_its_node_is", f"{STAGE}::test_a_node_that_is_not_its_own_is_not_followed",
       f"{PLAYED}::test_a_machine_that_moved_is_ready_at_its_new_address"),
    _s(10, "if that differs it is dialled there in the same round, with authentication only, and becomes `observedEndpoint` once this machine's UUID was "
       "read there:", f"{ROUNDS}::test_a_node_that_moved_is_found_where_its_kubernetes_node_says_and_by_its_uuid_alone"),
    _s(10, "an insecure probe goes to `spec.endpoint` or to an address where this UUID was once read with authentication, never to one that only a Node told.",
       f"{ROUNDS}::test_an_address_that_only_kubernetes_tells_is_named_and_not_believed"),
    _s(10, "Authenticated reads check that the node is the machine (UUID): another one answering is `EndpointIdentityMismatch`.",
       "11/other-machine-answers", "11/another-network-card", "11/known-by-its-serial",
       f"{ROUNDS}::test_another_machine_at_the_address_is_told_and_nothing_is_sent",
       f"{PLAYED}::test_another_machine_takes_the_old_address"),
    _s(10, "A converged machine's address changes only so, through what its authenticated reads report, or by an edited `spec.endpoint`.",
       f"{ROUNDS}::test_a_static_address_of_the_spec_is_where_it_is_found_when_the_lease_is_gone"),
    _s(10, "When all control planes moved at once the endpoints have to be edited, and the message says so.",
       f"{GATES}::test_another_machine_at_the_address_is_told_with_what_to_edit",
       f"{GATES}::test_when_all_control_planes_moved_at_once_the_message_says_what_to_edit",
       f"{PLAYED}::test_all_control_planes_moved_at_once"),
    _s(10, "**Access to the managed cluster's Kubernetes** (Nodes, drain): an admin certificate issued in memory from the bundle, at `spec.endpoint`, or a "
       "`kubeconfig` given.", f"{MANAGED}::test_who_asks_is_an_administrator_for_an_hour",
       f"{MANAGED}::test_a_kubeconfig_that_is_given_is_used_instead_of_endpoint_and_bundle",
       f"{MANAGED}::test_a_kubeconfig_of_another_cluster_is_never_used_for_this_one"),
    _s(10, "Failing is unknown, never absent.", f"{MANAGED}::test_what_cannot_be_told_is_unknown",
       f"{MANAGED}::test_a_server_of_another_authority_is_unknown", f"{MOVED}::test_a_kubernetes_that_cannot_be_asked_tells_nothing"),
    _s(11, "Re-read every two minutes.", f"{ROUNDS}::test_a_machine_that_runs_what_the_records_say_is_converged"),
    _s(11, "The first failed read sets `NodeReachable=False`; within 60 s of it `Ready=False/CurrentConfigUnavailable`; after that `NodeUnreachable`,",
       "11/first-silence", "11/silent-within-the-grace", "11/silent-after-the-grace",
       f"{ROUNDS}::test_a_node_off_for_ever_is_unreachable_after_the_grace_and_back_at_the_first_read"),
    _s(11, "naming the endpoint, the last error and, where the Kubernetes Node (matched by hostname, node name or systemUUID) shows another\nInternalIP, "
       '"spec.endpoint may need updating to ip:port".', "11/silent-and-moved",
       f"{ROUNDS}::test_a_machine_without_a_host_name_is_hinted_at_by_its_system_uuid_and_not_dialled",
       f"{MOVED}::test_a_machine_without_a_name_is_looked_for_by_its_uuid", f"{PLAYED}::test_without_a_host_name_there_is_a_hint",
       f"{GATES}::test_a_silent_node_is_named_with_endpoint_error_and_where_kubernetes_has_it"),
    _s(11, "The first good read removes it.", f"{LAB}::test_a_node_that_is_off_is_named_and_the_first_read_of_it_back_is_enough"),
    _s(11, "A good machine is `Ready=True/Converged`.", "11/in-step", "11/in-step-and-held", "11/in-step-and-not-ready",
       "11/in-step-while-another-reboots", "11/kept-is-the-same"),
    _s(11, "Drift is the semantic difference between the render and what the node runs, by path, secrets masked.", "11/at-once",
       "11/in-step-but-for-newer-images", f"{ROUNDS}::test_newer_kubernetes_images_stay_when_other_drift_is_put_back",
       f"{GATES}::test_what_is_sent_keeps_the_images_that_are_newer_on_the_node"),
    _s(11, "`driftPolicy: apply` applies it, `report` only shows it (`Drifted`).", "11/reported", "11/reported-and-held",
       f"{LAB}::test_report_shows_and_sends_nothing"),
    _s(11, "A render whose machine CA is not the one that the node was authenticated with is refused (`AuthorityMismatch`; Talos would take it and lock "
       "us out).", "11/other-authority"),
    _s(11, "It is sent with NO_REBOOT where Talos takes it so; 1.12 and 1.13 refuse other changes that way (with a diff in the text that holds secrets), so "
       "there it is STAGED.", "11/needs-a-reboot", "11/needs-none-on-the-newest", "11/staged-and-needs-none",
       f"{LAB}::test_a_change_that_needs_a_reboot_is_staged_and_then_the_reboot"),
    _s(11, "A reboot that is needed follows under the lock (persistent equal and active different means that only it is left), or `RebootRequired` when "
       "`allow_reboot: false`.", "11/only-the-reboot-is-left", "11/only-the-reboot-and-no-leave", "11/quorum-without-leave",
       f"{GATES}::test_the_reboot_that_is_left_is_the_very_step_that_was_planned_before"),
    _s(11, "Before the reboot the machine's Kubernetes Node is drained under the same lock, and uncordoned before the disruption counts as over;",
       "11/drained-first", "11/drained-when-its-turn-comes", "11/kubernetes-of-no-restart", f"{DRAIN}::test_it_is_drained_rebooted_and_uncordoned"),
    _s(11, "pods of DaemonSets, static pods and pods that nobody makes again stay, and so does everything where no other Node is Ready and takes pods.",
       f"{PODS}::test_fate", f"{GATES}::test_what_a_drain_before_a_reboot_means_is_told"),
    _s(11, "A Kubernetes that cannot be read, a Node that is another machine, and a drain that has not ended by its deadline hold the reboot, and the pods "
       "that block are named; a machine without a Node is just rebooted.", "11/kubernetes-unread", "11/node-of-another-board", "11/no-node-to-drain",
       f"{DRAIN}::test_a_drain_that_does_not_end_holds_the_reboot"),
    _s(11, "With `drain: false`, or where no Kubernetes can be asked, the plan says that it is not drained.", "11/kubernetes-unread-and-no-drain",
       "11/kubernetes-unread-and-no-leave", f"{GATES}::test_a_reboot_is_announced_to_come_without_a_drain"),
    _s(11, "A run that is gone in the middle of a drain leaves the disruption `drain`, and whoever finds the lock free takes the cordon back.",
       "11/cordoned-by-a-run-that-is-gone", f"{DRAIN}::test_killed_at_every_boundary_no_node_stays_cordoned"),
    _s(11, "Every apply to a control plane takes the lock, and the next control plane follows only on the evidence of section 13: an API server or etcd flag "
       "on all of them at once is an outage too.", "11/control-plane-waits", "11/own-disruption-is-no-wait", "11/even", "11/over-the-cap",
       f"{LOCKED}::test_an_api_server_flag_goes_to_one_control_plane_after_the_other_each_with_its_evidence",
       f"{LOCKED}::test_a_control_plane_that_does_not_come_back_ready_holds_the_next"),
    _s(11, "Workers take it only to reboot.", "11/worker-waits-only-to-reboot", "11/worker-does-not-wait", "11/even-and-a-worker",
       "11/even-and-a-worker-has-to-restart", "11/even-and-a-worker-may-not-restart"),
    _s(11, "A node has the configuration that it runs and the one for its next boot: both are compared, so what somebody staged is drift "
       "too.", "11/staged-by-somebody"),
    _s(11, "Any change of a host name is STAGED, on every version, since a reboot is needed for it.", "11/renamed-on-the-newest", "11/own-member",
       "11/name-of-another", "11/name-of-a-patch", "11/name-copied", "11/name-of-a-member", "11/members-unread"),
    _s(11, "Where a node refuses NO_REBOOT against expectation, the change is staged at the next look.", "11/refused-at-once",
       "11/refused-at-once-and-staged"),
    _s(11, "Nothing is sent to a node that is on its way down, upgrading or installing.", "11/resetting", "11/upgrading-and-drifted",
       "11/installing-and-drifted", "11/booting-and-drifted", "11/booting", "11/upgrading", "11/on-its-way-down", "11/reinstalling"),
    _s(11, "CAs that the node accepts beside its own and the render does not have are a rotation under way (`CARotation`); every other CA, key or token that "
       "differs, also in what is staged, is `AuthorityMismatch`, and so is a configured node whose API does not know our authority.", "11/rotated-away",
       "11/in-maintenance-mode", "11/rotating", "11/rotated", "11/rotated-in-what-is-staged",
       "11/rotated-and-accepting", "11/rotated-and-report"),
    _s(11, "A control plane restarts only while etcd keeps its quorum without it, and what cannot be told blocks; the only member of an etcd may restart.",
       "11/quorum-at-risk", "11/quorum-unknown", "11/quorum-while-one-learns",
       "11/quorum-kept", "11/only-member", "11/quorum-when-its-turn-comes", "11/quorum-of-no-restart"),
    _s(11, "After a reboot it has to show the evidence of an apply as well, and a machine that is in step is not `Ready` before it has shown its evidence.",
       "11/back-and-not-yet-ready", "11/applied-and-not-yet-ready", "11/told-and-still-up"),
    _s(11, "Silence within 10 minutes of a reboot that this product sent is `NodeRebooting`, and no second reboot is sent meanwhile.",
       "11/silent-while-it-reboots", "11/silent-long-after-its-reboot", "11/silent-while-another-reboots", "11/told-to-reboot", "11/told-long-ago",
       "11/booted-and-drifted-again"),
    _s(11, "A machine that runs 10 minutes after a reboot was announced, with the boot id of before, was never told: the run stopped before it sent it, and "
       "nobody waits for it any longer.",
       f"{KILLED}::test_a_run_that_stops_between_the_announcement_of_a_reboot_and_the_reboot_blocks_nobody_for_ever"),
    _s(11, "Evidence is what the machine itself shows, known by its identity.", f"{LOCKED}::test_what_another_machine_shows_at_the_address_is_no_evidence"),
    _s(11, "While the inputs of a render are those of the last accepted apply (`observedInputsHash`) and the node runs its bytes (`appliedConfigHash`), it is "
       "in step without being rendered again.", f"{ROUNDS}::test_a_machine_is_read_without_rendering_while_nothing_changed"),
)

#: Rows of what other sections say of every send: approval, render, holds, versions, links, refused bytes, what a lesser role may read.
OTHERS: tuple[str, ...] = (
    "11/pending-again", "11/wiped-meanwhile", "11/no-address", "11/render-fails", "11/no-bundle", "11/no-credentials", "11/lesser-role",
    "11/no-configuration", "11/held", "11/hold-lifted", "11/being-removed", "11/removal-lifted", "11/restoring", "11/shutting-down",
    "11/rotation-announced", "11/older-talos", "11/unknown-talos", "11/newer-talos", "11/link-missing", "11/link-there", "11/refused-before",
    "11/refused-others",
)
