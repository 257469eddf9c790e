# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of sections 9 and 13 of docs/design.md, with the rows and tests that stand for them.

A row is named by its id, a test as `file::name`.
"""

from __future__ import annotations

from dataclasses import dataclass

APPLY = "tests/unit/_operations/test_maintenance_apply.py"
STAGE = "tests/unit/_operations/test_stage.py"
BOOTSTRAP = "tests/unit/_operations/test_bootstrap.py"
LEASE = "tests/unit/_operations/test_lease.py"
GATES = "tests/unit/_decide/test_provisioning_gates.py"
LIFE = "tests/unit/_decide/test_following.py"
LOCK = "tests/unit/_decide/test_lock.py"
STRANGERS = "tests/laws/test_law_03_nothing_to_strangers.py"
STORED = "tests/laws/test_law_04_stored_is_stored.py"
CRASH = "tests/laws/test_law_08_a_crash_repeats_nothing.py"
DOWNGRADE = "tests/laws/test_law_09_never_downgrade.py"
LEASES = "tests/unit/_store/test_leases.py"


@dataclass(frozen=True)
class Sentence:
    """Words of the design as they stand in that section, and what shows them."""

    section: int
    quote: str
    shown: tuple[str, ...]


def _s(section: int, quote: str, *shown: str) -> Sentence:
    return Sentence(section, quote, shown)


SENTENCES: tuple[Sentence, ...] = (
    _s(
        9,
        "`hold-apply` and the cluster's holds are checked just before anything is sent.",
        "9/held-by-its-annotation",
        "9/shutting-down",
        "9/rotating",
        f"{APPLY}::test_a_person_who_edits_the_record_between_plan_and_send_is_heard",
    ),
    _s(
        9,
        "Render (`RenderFailed`) and bundle (`SecretsUnavailable`) fail first, and then nothing is probed.",
        "9/no-configuration",
        "9/no-credentials",
        "9/render-before-everything",
        "9/bundle-before-endpoint",
        "9/template",
        "9/partial-configuration",
        "9/other-role",
        "9/other-host-name",
    ),
    _s(9, "`EndpointRefused`, `StatusMissing` likewise.", "9/loopback", "9/status-lost", f"{APPLY}::test_loopback_is_refused_before_anything_is_dialled"),
    _s(
        9,
        "The authenticated read of the current configuration works → section 11.",
        "9/joined-and-running",
        "9/runs-other-bytes",
        "9/other-authority",
        "9/another-machine-of-the-cluster",
    ),
    _s(
        9,
        "It fails and a configuration was stored and not yet joined (`configStoredAt` set, `appliedConfigHash` empty) → follow only.",
        "9/stored-and-running",
        "9/stored-and-silent",
    ),
    _s(
        9,
        "Another identity at the address is `IdentityMismatch`; a changed certificate is not an error, since nothing is sent.",
        "9/another-machine-in-maintenance",
        "9/stored-and-in-maintenance-again",
    ),
    _s(
        9,
        "Wiped again before it converged: followed, never sent again; the message names the way out.",
        "9/stored-and-in-maintenance-again",
        "9/awaiting-install",
    ),
    _s(
        9,
        "It fails, and the machine was never sent a configuration, or has converged (section 12) → ask the maintenance API (the "
        "failed authenticated read is shown at `-vv` only).",
        f"{GATES}::test_what_is_read_next_is_a_decision",
        "9/joined-and-in-maintenance-again",
        "9/joined-and-silent",
    ),
    _s(
        9,
        "The first connection is read-only and unpinned: it gives certificate and identity together.",
        f"{STRANGERS}::test_no_other_stream_is_open_while_the_configuration_goes_out",
    ),
    _s(9, "Neither API answers and nothing was ever stored → `CurrentConfigUnavailable`.", "9/nobody-answers", "9/wants-a-certificate", "9/answers-and-boots"),
    _s(
        9,
        "Identity differs (UUID always; serial and MAC set wherever the spec records them; a recorded UUID that the node does "
        "not report is a mismatch; a resolved weak identity is compared on what it records) → `IdentityMismatch`, nothing sent.",
        "9/other-uuid",
        "9/other-serial",
        "9/other-macs",
        "9/a-mac-less",
        "9/uuid-not-reported",
        "9/weak-and-other-serial",
        "9/nothing-recorded",
        f"{STRANGERS}::test_a_twin_of_the_uuid_gets_nothing",
    ),
    _s(
        9,
        "Certificate differs from the pin, and no annotation accepts it → `MaintenanceIdentityChanged`, nothing sent.",
        "9/other-certificate",
        "9/accepted-wins-over-read",
        "9/annotation-names-another",
        f"{GATES}::test_exceptions_that_may_be_sent",
    ),
    _s(
        9,
        "No pin (the module approved it while the node was silent): this round records it (two equal readings, event) and a "
        "later round with the same pin sends.",
        "9/no-pin",
        "9/no-pin-and-restless",
        f"{APPLY}::test_a_machine_without_a_pin_is_pinned_first_and_sent_to_by_a_later_run",
    ),
    _s(9, "SecureBoot required and not on → `SecureBootRequired`.", "9/secure-boot-off"),
    _s(
        9,
        "No install disk in the rendered bytes (`UnattendedInstallConfig`, or `machine.install.disk`/`diskSelector`), or it does "
        "not pick exactly the `approvedDisk` (device names move; section 12 accepts another disk only when it is entirely blank) "
        "→ `InstallDiskUnknown`.",
        "9/no-install-disk",
        "9/another-disk-than-approved",
        "9/another-size-than-approved",
        "9/no-such-disk",
        "9/selector-that-picks-two",
        "9/selector-that-only-talos-evaluates",
        f"{GATES}::test_exceptions_that_may_be_sent",
    ),
    _s(9, "The installer image is not checked.", f"{GATES}::test_exceptions_that_may_be_sent"),
    _s(9, "Node older than the contract → `ContractTooNew`.", "9/older-than-the-cluster", "9/older-than-the-documents", "9/of-unknown-version"),
    _s(
        9,
        "`hold-apply`, over-cap, CA rotation, shutdown, a `Removal` condition, `status.operation` → hold with that reason.",
        "9/held-by-its-annotation",
        "9/over-cap",
        "9/rotating",
        "9/shutting-down",
        "9/being-removed",
        "9/operation",
    ),
    _s(
        9,
        "The rendered host name must differ from that of every other approved machine and, for a control plane, from every etcd "
        "member that is not its own by peer address; a member list that cannot be read holds, in a bootstrapped cluster "
        "(`HostnameConflict`).",
        "9/machine-of-the-same-name",
        "9/node-of-the-same-name",
        "9/same-name-in-the-same-task",
        "9/name-of-a-patch",
        "9/name-of-no-patch",
        "9/member-of-the-same-name",
        "9/members-unreadable",
        f"{APPLY}::test_a_member_of_the_same_name_holds_a_control_plane",
    ),
    _s(
        9,
        "Control planes take the cluster lock (section 13) for the send only, with `completes_transition`: a join turns an even "
        "count back to odd, so `Transitioning` does not apply to it; the others do.",
        "13/even-and-completed",
        "13/two-more-and-completed",
        "13/hold-and-completed",
        f"{APPLY}::test_the_lock_is_got_for_control_planes_or_nothing_is_sent",
    ),
    _s(
        9,
        "What is done under a lease is decided on readings made after it was taken.",
        f"{APPLY}::test_sending_is_written_before_the_bytes_leave_and_the_lock_is_proven_last",
        f"{STORED}::test_a_rotation_while_the_lock_is_waited_for_leaves_nothing_behind",
    ),
    _s(
        9,
        "Open a new connection pinned to the certificate of step 4 and read the identity again on it.",
        f"{STRANGERS}::test_a_leaf_that_is_reissued_at_any_moment_gets_nothing_unless_the_connection_was_pinned_before",
        f"{STRANGERS}::test_a_machine_that_is_swapped_for_another_at_any_moment_gets_nothing",
    ),
    _s(
        9,
        "Then write `status.sending` (hash, fingerprint, time, attempt, by) only if spec and status are still the versions "
        "observed (a conflict is a new observation), and apply on that connection, mode AUTO, 60 s.",
        f"{STORED}::test_two_runs_at_once_send_once",
        f"{APPLY}::test_a_person_who_edits_the_record_between_plan_and_send_is_heard",
        f"{APPLY}::test_a_worker_is_sent_its_configuration_once",
    ),
    _s(
        9,
        "On success `configStoredAt`, `storedConfigHash`, `Provisioned=False/ConfigStored`, event `ConfigApplied`, `sending` cleared.",
        f"{APPLY}::test_a_worker_is_sent_its_configuration_once",
    ),
    _s(
        9,
        "A failure before the request left withdraws `sending`.",
        f"{APPLY}::test_a_lock_that_is_lost_before_the_send_withdraws_everything",
        f"{STORED}::test_a_node_that_said_no_stored_nothing",
    ),
    _s(
        9,
        "A refusal of the bytes is `ConfigRejected`: not stored, `rejectedInputsHash` kept, tried again only when the inputs "
        "change; \"another apply in progress\" is transient.",
        "9/bytes-that-were-refused",
        f"{STORED}::test_rejected_bytes_are_tried_again_only_when_they_change",
        f"{STORED}::test_a_node_that_said_no_stored_nothing",
    ),
    _s(
        9,
        "Somebody else's `sending` younger than 90 s waits.",
        "9/sent-by-another-run",
        "9/sent-in-the-future",
        f"{STORED}::test_a_send_of_another_run_is_waited_for",
    ),
    _s(
        9,
        "**No answer**: the same identity with the *same certificate* still in maintenance, the same hash and attempt 1 → the "
        "same bytes may go once more; anything else counts as stored and is followed.",
        "9/no-answer-and-silent",
        "9/no-answer-and-another-certificate",
        "9/no-answer-and-another-identity",
        "9/no-answer-to-the-second-attempt",
        "9/no-answer-and-other-bytes",
        "9/no-answer-and-another-stage",
        f"{STORED}::test_a_request_that_was_lost_goes_once_more_with_the_same_bytes_to_the_same_certificate",
    ),
    _s(
        9,
        "A good authenticated read turns a left-over `sending` into `configStoredAt` and `storedConfigHash`.",
        "9/a-good-read-settles-a-lost-answer",
        f"{STAGE}::test_a_left_over_sending_becomes_stored_by_a_good_read_and_not_otherwise",
    ),
    _s(
        9,
        "No other stream is open on the node while the apply goes out (one would hold its maintenance API for 10 s).",
        f"{STRANGERS}::test_no_other_stream_is_open_while_the_configuration_goes_out",
    ),
    _s(
        9,
        "**Following.** Every 15 s, at the address to dial and, with authentication only, at the static addresses of the spec "
        "(the flow from a DHCP lease to a static address; the one whose UUID matches becomes `observedEndpoint`): ",
        f"{STAGE}::test_it_looks_every_fifteen_seconds_and_stops_when_the_time_is_over",
        "9/static-address",
        "9/static-address-of-another",
        f"{STAGE}::test_the_machine_is_found_again_at_its_static_address",
    ),
    _s(
        9,
        "answers insecurely → `AwaitingInstall`; neither API answers → `NodeRebooting`; authenticated → by the stage (section "
        "3); on `running`\n`Provisioned=True/NodeJoined`, event `NodeJoined`, and section 11 takes over.",
        "9/awaiting-install",
        "9/says-maintenance-with-authentication",
        "9/neither-answers",
        "9/installing",
        "9/rebooting",
        "9/shutting-down-node",
        "9/resetting",
        "9/booting",
        "9/upgrading",
        "9/unknown-stage",
        "9/worker-running",
        f"{STAGE}::test_a_worker_is_followed_to_running",
    ),
    _s(
        9,
        "For a control plane `running` and `ready` do not prove that etcd answers: it is joined when it is also a started voting "
        "member that answers with a leader.",
        "9/control-plane-is-a-member",
        "9/etcd-silent",
        "9/etcd-learner",
        "9/etcd-without-leader",
        "9/etcd-absent",
        "9/control-plane-without-a-record",
        f"{LIFE}::test_joined_is_only_a_machine_that_itself_runs_and_a_control_plane_that_is_a_member",
    ),
    _s(
        9,
        "The reply of the apply says nothing about what follows; a v1.14 install never shows stage `installing` (its progress is "
        "in `UnattendedInstallStatuses`); a node that already has a META partition neither\ninstalls nor reboots; a first control "
        "plane stays in `booting` until it is bootstrapped (`NodeStarting`, and the message names `talos_bootstrap`; that counts "
        "as settled); port 50000 may be closed for the whole install.",
        "9/unattended-pending",
        "9/unattended-while-preparing",
        "9/unattended-before-its-reboot",
        "9/unattended-failed",
        "9/waits-for-the-bootstrap",
        "9/etcd-not-yet-preparing",
        "9/joins-a-bootstrapped-cluster",
        "9/worker-running-before-the-bootstrap",
        "9/port-closed-for-the-whole-install",
        f"{STAGE}::test_a_control_plane_is_settled_when_it_waits_for_the_bootstrap",
    ),
    _s(
        9,
        "After 10 minutes the message says slow, after 30 that it may be stuck, and that a DHCP lease may have changed, with the "
        "MACs to look for; it never gives up by itself.",
        "9/slow",
        "9/not-slow-yet",
        "9/stuck",
        "9/not-stuck-yet",
        f"{STAGE}::test_it_looks_every_fifteen_seconds_and_stops_when_the_time_is_over",
    ),
    _s(
        9,
        "`status.stage` holds the last stage and `stageObserved` whether it was observed or inferred (installing right after the "
        "store, rebooting while unreachable, and maintenance are inferred).",
        "9/neither-answers",
        "9/awaiting-install",
        "9/another-member-answers",
        f"{LIFE}::test_ready_carries_the_reason_of_provisioned_meanwhile",
    ),
    _s(9, "`Ready` carries the same reason as `Provisioned` meanwhile.", f"{LIFE}::test_ready_carries_the_reason_of_provisioned_meanwhile"),
    _s(
        9,
        "A node stuck in maintenance after the store is never sent again by itself; the message names the ways out: `trust: "
        "true` re-arms one send when it answers in maintenance mode as itself (Talos refuses a reset there), or delete the "
        "record (`allow-delete`) and approve it again.",
        "9/awaiting-install",
        "9/stored-and-in-maintenance-again",
    ),
    _s(
        9,
        "**Bootstrap** of a new cluster's etcd is `talos_bootstrap`, a step that a person's playbook names; the controller never "
        "does it by itself, since it would bootstrap an all-wiped cluster empty.",
        f"{BOOTSTRAP}::test_once",
    ),
    _s(
        9,
        "It runs under the lock, only when no machine of the cluster ever had an `appliedConfigHash` or was adopted, no control "
        "plane is `StatusMissing`, and every approved and sent control plane answers with authentication, is in `booting` and "
        "has no etcd member (one unreachable → refused; before a bootstrap EtcdMemberList hangs until the deadline, which counts "
        "as no answer, so the etcd service's state is read), and never again once `TalosCluster.status.bootstrappedAt` is set "
        "(adoption sets it too; restore is the way).",
        "9/bootstrap-alone",
        "9/bootstrap-of-three",
        "9/bootstrap-beside-a-pending",
        "9/bootstrap-beside-two-never-sent",
        "9/bootstrap-asks",
        "9/bootstrap-a-worker-had-joined",
        "9/bootstrap-adopted",
        "9/bootstrap-status-lost",
        "9/bootstrap-one-unreachable",
        "9/bootstrap-other-node-answers",
        "9/bootstrap-runs",
        "9/bootstrap-etcd-runs",
        "9/bootstrap-etcd-failed",
        "9/bootstrap-another-has-a-member",
        "9/bootstrap-unattended",
        "9/bootstrap-installing-node",
        "9/bootstrap-no-etcd-service",
        "9/bootstrap-done",
        "9/bootstrap-done-wins",
        "9/bootstrap-done-on-another",
        "9/bootstrap-done-and-a-worker",
        "9/bootstrap-and-lost",
        "9/bootstrap-and-lost-before-it-is-installed-anew",
        "9/bootstrap-and-one-of-three-lost",
        "9/bootstrap-shutdown",
        "9/bootstrap-rotation",
        "9/bootstrap-over-cap",
        "9/bootstrap-even",
        "9/bootstrap-pending",
        "9/bootstrap-worker",
        "9/bootstrap-never-sent",
        "9/bootstrap-during-a-restore",
        "9/bootstrap-during-a-disruption",
        f"{BOOTSTRAP}::test_etcd_is_never_asked_before_the_bootstrap_since_it_would_hang",
        f"{CRASH}::test_two_bootstraps_at_once_on_two_machines_give_one_cluster",
    ),
    _s(
        9,
        "`status.bootstrapping` is written before the call, and while it is set only that machine may be bootstrapped.",
        "9/bootstrap-begun-elsewhere",
        "9/bootstrap-again-on-the-same",
        "9/bootstrap-lost-answer",
        "9/bootstrap-lost-answer-and-followed-since",
        "9/bootstrap-lost-answer-and-joined-since",
        "9/bootstrap-begun-and-etcd-comes-up",
        "9/bootstrap-begun-joined-and-wiped",
        f"{CRASH}::test_a_bootstrap_that_is_killed_anywhere_happens_once",
        f"{BOOTSTRAP}::test_a_lost_request_leaves_the_word_that_only_this_machine_may_be_bootstrapped",
    ),
    _s(
        9,
        "`AlreadyExists` is success only where that node is a member.",
        f"{BOOTSTRAP}::test_data_without_a_member_is_no_success",
        f"{BOOTSTRAP}::test_a_lost_answer_is_success_where_the_node_became_a_member",
    ),
    _s(
        9,
        "**Reads by people** (info modules) are authenticated; only an approved, never-converged machine falls back to the "
        "maintenance API, and the result says `maintenance_mode: true`. A converged one never does.",
        f"{DOWNGRADE}::test_a_joined_machine_is_read_with_authentication_only",
        f"{LIFE}::test_what_a_look_may_write_and_ask",
    ),
    _s(
        13,
        "A lease per cluster: holder, what for, acquired at, renewed at, duration (60 s, renewed every 20 s, waited for up to "
        "`lock_wait`).",
        f"{LEASE}::test_it_is_renewed_every_twenty_seconds_and_the_acquire_time_stays",
        f"{LEASE}::test_a_lock_that_is_held_is_waited_for_and_the_person_hears_who_has_it",
    ),
    _s(13, "Renewal does not move the acquire time.", f"{LEASE}::test_it_is_renewed_every_twenty_seconds_and_the_acquire_time_stays"),
    _s(13, "Expiry is judged by the reader's own monotonic clock since it last saw the lease change, never by comparing times of two machines.", LEASES),
    _s(13, "In the directory store a holder's process that is provably gone (pid, start time, pid namespace, machine and boot id) frees it at once.", LEASES),
    _s(
        13,
        "**The disruption outlives the lease**: before each disruptive send `TalosCluster.status.disruption` is written, and "
        "nothing disruptive starts on another machine until that one gave evidence later than its time (reboot: another boot id; "
        "reset: maintenance mode; apply to a control plane: two readings a follow interval apart that are ready, its own API "
        "server answering, and etcd a voter with a leader), or a person clears it by name.",
        f"{LOCK}::test_evidence",
        f"{LOCK}::test_a_disruption_holds_the_others",
        f"{APPLY}::test_after_it_one_joins_after_the_other_on_evidence",
        f"{STAGE}::test_its_own_disruption_ends_after_two_good_readings",
        f"{GATES}::test_a_control_plane_of_a_bootstrapped_cluster_waits_for_the_one_that_joins",
        f"{APPLY}::test_a_join_that_the_node_refused_is_no_disruption",
    ),
    _s(
        13,
        "The holder checks that it still holds it as the last thing before each disruptive send (Talos has no fencing: the "
        "window that remains is documented).",
        f"{LEASE}::test_a_lost_lock_is_found_out_before_the_send_and_never_given_back_to_another",
        f"{APPLY}::test_sending_is_written_before_the_bytes_leave_and_the_lock_is_proven_last",
        f"{BOOTSTRAP}::test_once",
    ),
    _s(
        13,
        "Without a store there is no lock, and what needs it is refused (`NoLock`): member removal, bootstrap, removal or reset "
        "of a control plane.",
        "13/without-a-store",
        f"{LEASE}::test_without_a_store_there_is_no_lock",
        f"{BOOTSTRAP}::test_without_a_store_there_is_no_lock",
    ),
    _s(
        13,
        "A lease whose holder has **stopped** may be taken before it expires, once it has not changed for one renewal interval: "
        "a machine holder has stopped when its record is gone or its `configStoredAt` is no older than the acquire time (being "
        "`Ready` does not count).",
        LEASES,
    ),
    _s(
        13,
        "Refusals are typed (section 3) and say who holds it, since when and for what.",
        "13/free",
        "13/shutting-down",
        "13/rotating",
        "13/even",
        "13/even-of-pending",
        "13/even-of-workers",
        "13/one-more-than-the-count",
        "13/two-more-than-the-count",
        "13/no-control-plane-yet",
        f"{APPLY}::test_the_lock_is_got_for_control_planes_or_nothing_is_sent",
    ),
    _s(
        13,
        "It is released on every exit path, SIGTERM included.",
        f"{LEASE}::test_it_is_released_on_every_way_out",
        f"{CRASH}::test_a_run_that_is_stopped_anywhere_leaves_no_lock_and_a_state_to_go_on_from",
    ),
)

#: Rows that stand for sentences of other sections.
OTHERS: dict[str, str] = {
    "15/adopted-and-held": "section 15, a machine that was adopted and is not released",
    "12/send-with-state": "section 12, the gates of every insecure send to a control plane of a bootstrapped cluster",
    "12/send-with-state-to-a-worker": "section 12, the gates of every insecure send to a control plane of a bootstrapped cluster",
    "12/send-with-state-before-the-bootstrap": "section 12, the gates of every insecure send to a control plane of a bootstrapped cluster",
    "12/send-with-encrypted-state": "section 12, the gates of every insecure send to a control plane of a bootstrapped cluster",
    "12/send-without-labels": "section 12, the gates of every insecure send to a control plane of a bootstrapped cluster",
    "12/send-with-a-stale-member": "section 12, the gates of every insecure send to a control plane of a bootstrapped cluster",
    "12/send-with-a-member-under-its-old-name": "section 12, the gates of every insecure send to a control plane of a bootstrapped cluster",
    "12/send-with-data-and-its-member": "section 12, the gates of every insecure send to a control plane of a bootstrapped cluster",
    "12/send-with-a-nameless-learner": "section 12, the gates of every insecure send to a control plane of a bootstrapped cluster",
    "8/a-link-that-is-there": "section 8, a link that the node does not have",
    "8/a-link-that-is-not-there": "section 8, a link that the node does not have",
    "8/a-legacy-link-that-is-not-there": "section 8, a link that the node does not have",
    "8/a-disk-that-is-there": "section 8, a disk that the node does not have",
    "8/a-disk-that-is-not-there": "section 8, a disk that the node does not have",
    "9/pending": "law 3",
    "9/record-twin-approved": "laws 3 and 4",
    "9/record-twin-of-another-cluster": "laws 3 and 4",
    "9/record-twin-rejected": "law 3",
    "9/record-twin-sent": "law 4",
    "9/record-twin-joined-by-its-macs": "law 4",
    "9/record-twin-by-its-serial": "laws 3 and 4",
    "9/record-twin-of-a-lost-answer": "law 4",
    "9/record-twin-and-stored": "law 4",
    "9/record-twin-pending": "section 6, the machine that was there first",
    "9/resolved-weak-identity": "section 6, a person resolves it",
    "9/serial-of-the-chassis": "section 6, equal means all three",
    "9/answers-to-another-record": "laws 3 and 4",
    "9/two-at-one-address": "law 3",
    "9/no-record-and-no-pin": "section 18, the store-less send requires uuid and fingerprint",
    "9/approved-by-nobody": "section 7, a hand-written approval counts as pending",
    "9/takes-no-certificate-of-ours": "section 5, UnknownAuthority",
    "9/talosconfig-of-another-cluster": "section 5, UnknownAuthority",
    "9/another-authority-and-not-asked-otherwise": "section 5, UnknownAuthority",
    "9/bootstrap-talosconfig-of-another-cluster": "section 5, UnknownAuthority",
    "9/no-certificate-to-show": "section 5, needs a client certificate",
    "9/no-credentials-and-not-asked-otherwise": "section 5, needs a client certificate",
    "9/no-credentials-and-nobody-listens": "section 5, nothing listens",
    "9/no-credentials-in-maintenance": "section 9, reads by people",
    "9/bootstrap-without-credentials": "section 5, needs a client certificate",
    "9/worker-without-a-record": "section 18, talos_stage without a store",
}

#: What stands in no quote: the opening, and headings.
REST: tuple[tuple[int, str], ...] = (
    (9, "Provisioning an approved machine"),
    (9, "Reading, following and drift reporting always run; "),
    (9, "For each approved machine, in this order:"),
)
