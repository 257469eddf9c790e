# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of section 12 of docs/design.md, with the rows and tests that stand for them.

A row is named by its id, a test as `file::name`.
"""

from __future__ import annotations

from tests.unit._decide.sentences_sending import Sentence

LIFE = "tests/unit/_operations/test_reprovision.py"
DISTURBED = "tests/unit/_operations/test_reprovision_disturbed.py"
GATES = "tests/unit/_decide/test_reprovision_gates.py"
PROPERTIES = "tests/unit/_decide/test_reprovision_properties.py"
LAB = "tests/lives/test_fallen_back.py"


def _s(quote: str, *shown: str) -> Sentence:
    return Sentence(12, quote, shown)


SENTENCES: tuple[Sentence, ...] = (
    _s("The disk was wiped or replaced.", "12/worker-wiped", "12/another-blank-disk", "12/no-such-disk", "12/another-disk-in-use",
       "12/another-disk-of-unknown-contents", "12/another-disk-and-no-labels", "12/another-disk-on-usb", "12/no-install-disk"),
    _s("When the authenticated read fails, the maintenance API is probed (5 s).",
       f"{LIFE}::test_a_machine_that_does_not_answer_in_maintenance_mode_is_not_this_file_s",
       "12/runs-again", "12/another-answers-with-authentication"),
    _s("If it answers with the approved identity, the render is sent again with the same install settings and the machine is followed as in section 9.",
       f"{LIFE}::test_a_wiped_worker_is_sent_its_configuration_once_and_followed", "12/other-machine", "12/booting", "12/nobody"),
    _s("Automatic; `hold-apply` is the only opt-out (`ReprovisionBlocked`).", "12/held", f"{LIFE}::test_hold_apply_is_the_opt_out",
       f"{DISTURBED}::test_a_hold_between_plan_and_step_is_heard"),
    _s("Same gates as a join.", f"{GATES}::test_a_gate_that_provisioning_gains_holds_here_too", "12/pending", "12/no-configuration",
       "12/partial-configuration", "12/no-credentials", "12/other-authority", "12/address-refused", "12/status-lost", "12/secure-boot-off", "12/links",
       "12/disks", "12/name-of-a-patch",
       "12/older", "12/shutting-down", "12/rotating", "12/over-cap", "12/being-removed", "12/operation", "12/bytes-that-were-refused", "12/host-name-taken",
       "12/record-twin", "12/two-at-one-address", "12/answers-to-another", "12/sent-by-another-run"),
    _s("The label and member gates of this section hold for every insecure send to a control plane of a bootstrapped cluster, also one that `trust` re-armed.",
       "12/send-with-state", "12/send-with-state-to-a-worker", "12/send-with-state-before-the-bootstrap", "12/send-with-encrypted-state",
       "12/send-without-labels", "12/send-with-a-stale-member", "12/send-with-a-member-under-its-old-name", "12/send-with-data-and-its-member",
       "12/send-with-a-nameless-learner"),
    _s("The pin of the first provisioning is not held (a wiped node has a new certificate), the new one is recorded; the annotation, if set, is held: "
       "another certificate than the annotation's is `MaintenanceIdentityChanged`.", "12/new-certificate", "12/accepted-certificate-is-not-held",
       "12/annotation-fits", "12/annotation-names-another", f"{LIFE}::test_a_wiped_worker_is_sent_its_configuration_once_and_followed"),
    _s("Sending clears `appliedConfigHash` and `observedInputsHash` and sets `configStoredAt`: once per wipe.",
       f"{LIFE}::test_a_wiped_worker_is_sent_its_configuration_once_and_followed",
       f"{LIFE}::test_a_machine_that_is_wiped_again_before_it_converged_is_followed_and_never_sent", "12/wiped-again-before-it-converged",
       "12/stored-meanwhile", "12/lost-answer-and-it-runs", "12/no-answer-and-another-boot", "12/no-answer-and-silent", "12/second-attempt"),
    _s("Event `NodeReinstalled` (Warning), message \"Ichor re-installed this node\" with the hash.",
       f"{LIFE}::test_a_wiped_worker_is_sent_its_configuration_once_and_followed",
       f"{DISTURBED}::test_a_lost_answer_of_the_send_counts_as_stored_and_is_told_as_a_reinstall"),
    _s("STATE present with a file system: not wiped, a boot that missed its disk; report `StateNotFound`, look again, send nothing.",
       "12/state-is-there", "12/state-is-there-on-a-control-plane", f"{LIFE}::test_state_that_was_not_found_is_one_warning_and_nothing_is_sent"),
    _s("No STATE, but EPHEMERAL or ETCD present: etcd's data is still there and, while META is, Talos will not install whatever the install settings say, "
       "so the\n  configuration is sent and the member is **kept** (a removed member with data loops for ever); this needs no other control plane.",
       "12/worker-state-only", "12/state-only-wiped", "12/state-only-and-alone", "12/state-only-and-first-reading", "12/etcd-partition-kept",
       "12/data-without-meta", f"{LIFE}::test_state_only_wiped_keeps_the_member_and_needs_no_second_reading"),
    _s("Neither STATE nor EPHEMERAL nor ETCD: wiped, whatever else (EFI, BOOT, META) is left.", "12/worker-with-efi-left", "12/second-with-the-same-labels"),
    _s("STATE that is encrypted or has no file system, or labels unreadable: unknown, which blocks control planes only.", "12/encrypted",
       "12/no-file-system", "12/labels-unreadable", "12/worker-unclear", "12/worker-unreadable"),
    _s("A wiped control plane is still an etcd member: under the lock, before sending, and only when two readings a follow interval apart agree (`wipeSeen` "
       "keeps the first across runs, the second counts only with the same fingerprint, any other observation clears it, and the lease is not held between), ",
       "12/first-reading", "12/second-reading", "12/second-too-early", "12/first-of-the-future", "12/first-of-another-boot", "12/gone-and-first-reading",
       f"{LIFE}::test_any_other_observation_clears_the_first_reading",
       f"{LIFE}::test_the_lease_is_not_held_between_the_readings_and_is_confirmed_before_the_removal"),
    _s("the member (by `spec.hostname`, else `status.nodeName`, and by its peer address; never a nameless learner, never one whose peer answers healthy, "
       "never by anything but its id) is looked up through another approved control plane and removed (`StaleEtcdMemberRemoved`).", "12/name-of-the-node",
       "12/nameless-learner-stays", "12/named-learner", "12/member-answers", "12/member-twice", "12/nameless-voter",
       f"{PROPERTIES}::test_a_member_is_removed_only_by_its_name_and_address_and_never_against_the_quorum",
       f"{LIFE}::test_a_member_that_lives_elsewhere_under_the_machine_s_address_is_left_alone"),
    _s("Gone already is done.", "12/member-gone-already", f"{DISTURBED}::test_a_member_that_another_run_removed_counts_as_done"),
    _s("Removal fails → `StaleEtcdMember`, the message naming `talos_machine_removal`.",
       f"{DISTURBED}::test_a_removal_that_etcd_refuses_is_told_and_nothing_is_sent"),
    _s("Name unknown, etcd unreadable, or no other control plane → `ReprovisionBlocked`, nothing sent; with no other control plane the message points to the "
       "restore, and a confirmed restore, or `discard_etcd: <cluster>` typed by a person, lifts it once for the machine that it names.", "12/name-unknown",
       "12/all-wiped", "12/no-list", "12/only-control-plane", "12/others-were-never-sent", "12/others-are-workers", "12/given-up-by-another-name",
       "12/given-up", "12/given-up-and-unreadable", "12/given-up-and-answering",
       f"{LIFE}::test_the_only_control_plane_is_blocked_and_given_up_only_by_its_cluster_s_name",
       f"{LIFE}::test_etcd_is_given_up_only_for_the_machine_that_was_named",
       f"{LIFE}::test_all_control_planes_wiped_are_never_sent_and_never_bootstrapped"),
    _s("Dialled only at addresses the machine is known at (section 6), so a twin elsewhere gets nothing and no member is removed.",
       f"{LIFE}::test_a_twin_at_another_address_gets_nothing",
       "tests/scenarios/test_reconcile_wipes.py::test_a_twin_elsewhere_while_the_machine_is_down_and_the_others_go_on"),
    _s("A first reading pairs for two hours, so that an hourly pass finds its partner and a daily one does not; the labels have to be equal too, the send "
       "waits for the pair as well as the removal, and a node that gives no answer in between clears it.", "12/second-at-an-hourly-pass",
       "12/first-of-long-ago",
       "12/first-with-other-labels", f"{LIFE}::test_runs_of_one_pass_pair_across_runs_and_a_first_reading_of_long_ago_does_not"),
    _s("A node that lists no block device at all has not looked yet: unreadable, not wiped.",
       "tests/unit/_node/test_against_lab.py::test_a_node_that_lists_no_block_device_has_not_looked_for_partitions"),
    _s("A member is the machine's only where name and peer address both are; its name at an address that it is not known at is `HostnameConflict`, another "
       "name at its address `ReprovisionBlocked`.", "12/member-elsewhere", "12/member-under-another-name"),
    _s("\"Answers healthy\" is asked at every other control plane and at the member's own peer address, and after the removal a majority of the voters that "
       "are left has to answer healthy.", "12/quorum", "12/quorum-of-five", "12/quorum-does-not-count-learners",
       f"{LIFE}::test_a_member_that_lives_elsewhere_under_the_machine_s_address_is_left_alone"),
    _s("The control planes have to list the same members.", "12/lists-differ", f"{LIFE}::test_control_planes_that_list_different_members_block"),
    _s("The removal waits for no other machine's evidence (section 13), because etcd takes no new member while a voter is dead: with two of five "
       "wiped, both go "
       "before either has joined.", "12/two-of-five-wiped", "12/removal-before-another-has-joined", "12/send-after-another-has-joined",
       f"{LIFE}::test_two_of_five_wiped_at_once_both_come_back"),
    _s("It writes the disruption `join` where none of another machine stands.", "12/own-disruption",
       f"{LIFE}::test_a_wiped_control_plane_of_three_two_readings_removal_send"),
    _s("A control plane that kept its data joins nothing, so that its send writes no disruption and waits for none.", "12/state-only-waits-for-nobody",
       f"{LIFE}::test_all_state_wiped_comes_back_although_etcd_has_no_quorum"),
    _s("For a send that `trust` re-armed, or a first one of a machine that etcd lists already, the controller removes the member by the same rows; "
       "`talos_maintenance_apply` refuses that send (`StaleEtcdMember`).", "tests/unit/_decide/test_rejoin_gates.py::test_row",
       f"{LIFE}::test_a_control_plane_that_trust_armed_again_has_its_stale_member_removed_before_the_send", "12/send-with-a-stale-member"),
    _s("A resolved weak identity is re-provisioned after `trust` with the fingerprint of this boot.", "12/weak", "12/weak-by-its-condition",
       "12/weak-and-trusted"),
    _s("Both `spec.endpoint` and the address where it was read are asked, since a wiped machine may be back at its DHCP lease; two nodes that answer as the "
       "machine with two certificates get nothing.", "12/two-answer", f"{LIFE}::test_a_machine_is_found_at_its_endpoint_and_where_it_was_read",
       f"{LIFE}::test_two_that_answer_as_the_machine_get_nothing"),
)

#: What says nothing that a test could show here.
REST: tuple[str, ...] = (
    "**Wiped, or only looks like it?** The partition labels, readable in maintenance mode, tell.", "**Settled beyond that.**",
    "The Kubernetes Node object is not touched.",
    "A wiped machine that also moved is not found by discovery; the message says: set `spec.hostname` beforehand, or edit `spec.endpoint`.",
)
