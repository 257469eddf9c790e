# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of section 4 of docs/design.md, with the rows and tests that stand for them.

A row is named by its id: of a table of rows, of a gate of the move from store to store, or of a rule of an admission policy. A test is `file::name`.
"""

from __future__ import annotations

from tests.unit._decide.sentences_sending import Sentence

FOLDER, KUBE = "tests/unit/_store/test_directory.py", "tests/unit/_store/test_kubernetes.py"
ACCESS, LEASES = "tests/unit/_store/test_access.py", "tests/unit/_store/test_leases.py"
CRASHES, PROCESSES = "tests/unit/_store/test_crashes.py", "tests/unit/_store/test_processes.py"
BUNDLE, WATCH, EDIT = "tests/unit/_store/test_bundle.py", "tests/unit/_store/test_watch.py", "tests/unit/_store/test_yaml_edit.py"
COPY, SCHEMA = "tests/unit/_operations/test_store_copy.py", "tests/unit/_model/test_schema.py"
PAGES = "tests/unit/docs/test_stores_pages.py"
COPIED = "tests/scenarios/test_store_copy.py::test_the_playbook_moves_records_there_and_back"
TROUBLE = "tests/scenarios/test_store_in_trouble.py"
CHOSEN = "tests/scenarios/test_precedence.py"


def _s(quote: str, *shown: str) -> Sentence:
    return Sentence(4, quote, shown)


SENTENCES: tuple[Sentence, ...] = (
    _s("One interface, two stores, chosen by one option (`store: directory|kubernetes`), default the directory.", f"{FOLDER}::test_it_is_the_port",
       f"{KUBE}::test_it_is_the_port", f"{CHOSEN}"),
    _s("A store that does not exist is an error, created only by `talos_cluster` and by `talos_adopt` for a cluster.",
       f"{FOLDER}::test_a_store_that_does_not_exist_is_an_error", f"{FOLDER}::test_it_is_made_only_when_asked_for",
       f"{KUBE}::test_a_store_that_is_not_there_is_an_error"),
    _s("- **directory** (the embedded default): a tree of YAML files made for git, by default `ichor/` beside the playbook.",
       f"{FOLDER}::test_a_tree_that_a_person_wrote_is_a_store"),
    _s("Specs, one file per record, are the\n  people's; status, events (append-only, one JSON object a line) and leases live in a separate folder "
       "(`state_path`) that git "
       "can leave out.", f"{FOLDER}::test_all_kinds_have_a_folder_and_are_listed_by_name", f"{FOLDER}::test_the_state_may_stand_elsewhere",
       f"{FOLDER}::test_events_are_appended_and_never_rewritten", f"{FOLDER}::test_a_torn_line_of_the_log_costs_that_line_only"),
    _s("Every write is atomic and durable (temporary file, fsync, rename), writers are\n  serialised by a lock file, an update against an outdated read is "
       "refused (optimistic concurrency), a half-written\n  or hand-broken file is reported by name and line and never overwritten.",
       f"{CRASHES}::test_a_writer_killed_at_any_call_leaves_the_old_or_the_new", f"{CRASHES}::test_a_refusal_of_the_system_at_any_call_is_told_and_harmless",
       f"{PROCESSES}::test_no_write_of_several_processes_is_lost", f"{FOLDER}::test_an_update_over_an_outdated_read_is_refused",
       f"{FOLDER}::test_a_broken_file_is_told_by_name_and_line_and_left_alone", f"{CRASHES}::test_a_file_broken_in_mid_run_is_not_written_over",
       "4/cluster-broken", f"{TROUBLE}::test_a_store_that_fails_in_the_middle_of_a_send"),
    _s("The bytes outside an edited value stay identical (comments, order, anchors, CRLF).", f"{EDIT}::test_exactly_these_bytes_change",
       f"{FOLDER}::test_an_update_keeps_what_the_person_wrote", f"{FOLDER}::test_a_change_that_would_touch_other_bytes_is_refused"),
    _s("`generation` is kept in `state_path` and grows when the hash of the canonical spec differs; `resourceVersion` is the file's hash.",
       f"{FOLDER}::test_generation_grows_with_the_spec_and_with_nothing_else", f"{FOLDER}::test_versions_change_with_what_they_stand_for"),
    _s("**Lost status is not a licence to send** (both stores): approving always writes a status; an approved machine without one is `StatusMissing`:",
       f"{FOLDER}::test_approving_always_leaves_a_status", f"{KUBE}::test_approving_always_leaves_a_status",
       f"{FOLDER}::test_a_hand_written_approval_is_status_missing_and_half_of_one_is_pending", f"{KUBE}::test_a_status_of_another_record_is_set_aside",
       f"{SCHEMA}::test_lost_status_is_that_of_an_approved_machine"),
    _s("it is read with authentication only, nothing goes out insecurely and no etcd member is removed, until a person trusts it again (`talos_machine`, "
       "`trust: true`).", "tests/laws/test_law_09_never_downgrade.py", "tests/unit/_decide/test_following.py",
       f"{FOLDER}::test_a_lost_status_stays_missing_until_a_person_trusts", "4/trust-lost-status", "4/trust-lost-status-configured",
       "tests/lives/test_two_controllers.py::test_without_its_status_folder_nothing_is_sent_and_nobody_is_bootstrapped"),
    _s("The docs say that CI must keep `state_path`.", f"{PAGES}::test_ci_keeps_the_state_folder"),
    _s("A directory lease reaches as far as its file system: one host per directory store; a store id stands in the tree and in `state_path`, and where it is "
       "missing or different there is no lock (`NoLock`) until a person takes over, which changes the tree's.",
       f"{LEASES}::test_two_state_folders_of_one_tree", f"{LEASES}::test_a_clone_has_no_lock_until_a_person_takes_over",
       f"{LEASES}::test_a_copy_with_its_state_has_no_lock_beside_the_original_and_a_moved_one_has", f"{LEASES}::test_a_missing_or_broken_id_is_no_lock",
       f"{TROUBLE}::test_of_two_folders_of_one_tree_only_one_can_lock",
       "tests/unit/_operations/test_cluster.py::test_a_store_is_taken_over_once_and_only_when_it_cannot_be_locked"),
    _s("AWX jobs and slices run in containers of their own, so there the store is the Kubernetes one (a slice cannot be recognised by a job); the docs say so, "
       "and a store that does not exist stays an error.", f"{PAGES}::test_awx_has_the_kubernetes_store",
       f"{FOLDER}::test_a_store_that_does_not_exist_is_an_error"),
    _s("- **kubernetes**: the same records as custom resources (default namespace `ichor-system`) with a status subresource, `coordination.k8s.io` Leases for\n"
       "  locks, Kubernetes Events for events, a Secret for the bundle, through the official `kubernetes` client.",
       f"{KUBE}::test_a_record_comes_back_as_it_was_written", f"{KUBE}::test_specs_and_statuses_have_versions_of_their_own",
       f"{KUBE}::test_a_lock_is_one_holder_s", f"{KUBE}::test_the_same_event_again_is_counted_up", f"{KUBE}::test_the_bundle_is_a_secret"),
    _s("The CRDs carry\n  a full structural schema without `default:` (an API server's default would write a spec), printer columns, short names and CEL rules "
       "(immutable fields, approval fields set together);", f"{KUBE}::test_every_field_is_described_and_nothing_has_a_default",
       f"{KUBE}::test_kubectl_shows_what_an_operator_asks", f"{KUBE}::test_the_api_server_holds_what_may_not_change",
       f"{KUBE}::test_a_network_preset_stays_and_none_becomes_managed", f"{KUBE}::test_an_order_to_wipe_cannot_be_changed"),
    _s("cross-field rules stand once as a table from which both the CEL and the directory store's check come;",
       f"{KUBE}::test_each_rule_has_an_expression_or_needs_another_record", f"{KUBE}::test_the_api_server_refuses_what_the_directory_store_refuses",
       f"{KUBE}::test_bad_clusters_are_refused_by_the_api_server_too", f"{SCHEMA}::test_every_rule_has_a_record_that_breaks_it",
       f"{FOLDER}::test_an_invalid_record_is_not_written"),
    _s("a ValidatingAdmissionPolicy lets only holders of the verb `approve` on `talosmachines/approval` change the approval fields, on create and on "
       "update, and "
       "requires `approvedVia` to be the user who did (AWX's user name in `approvedBy` is told, not proven).", "4/policy-approval", "4/policy-approved-via",
       f"{ACCESS}::test_without_the_verb_nobody_approves", f"{ACCESS}::test_with_the_verb_it_is_the_user_who_approved",
       f"{ACCESS}::test_the_verb_may_be_given_for_one_machine"),
    _s("Guarded likewise: the trust annotation; `identity`, `role`, `endpoint` of an approved record; in status, for all but the runner's account and "
       "holders of the verb: pin, `observedEndpoint*`, `sending`, `configStoredAt`, hashes.", "4/policy-trust", "4/policy-approved-record", "4/policy-status",
       f"{ACCESS}::test_trust_is_a_person_s", f"{ACCESS}::test_what_was_approved_stays_without_the_verb",
       f"{ACCESS}::test_guarded_status_is_written_by_the_runner_and_holders_of_the_verb", f"{ACCESS}::test_a_status_that_comes_with_a_new_record_is_dropped"),
    _s("Status writes re-read and retry on conflict; spec writes are refused.", f"{KUBE}::test_a_status_is_decided_anew_when_something_came_between",
       f"{WATCH}::test_a_conflict_is_decided_anew", f"{PROCESSES}::test_of_several_updates_over_one_read_one_wins",
       f"{FOLDER}::test_an_update_over_an_outdated_read_is_refused"),
    _s("**The bundle** is `secretsRef.name` in both stores: `secrets/<name>.yaml` (0600, or ansible-vault; refused when others can read it, or in the "
       "clear and tracked by git) or the Secret of that name.", f"{BUNDLE}::test_one_that_others_can_reach_is_refused",
       f"{BUNDLE}::test_a_vaulted_one_is_decrypted_by_who_has_the_password", f"{BUNDLE}::test_one_in_clear_that_git_tracks_is_refused",
       f"{KUBE}::test_the_bundle_is_a_secret", f"{TROUBLE}::test_a_bundle_in_the_clear_that_git_tracks_is_refused"),
    _s("`ansible-playbook ichor.talos.store_copy` moves records, status and events from one store to the other unchanged, not leases;",
       f"{COPY}::test_there_and_back_gives_equal_records", COPIED, "4/copy-broken", "4/copy-status-lost", "4/copy-bundle-differs", "4/copy-same",
       "4/copy-target-foreign", "4/copy-target-in-use"),
    _s("it marks the source as moving first, in the tree, under all leases (checked at each status write), refuses while a lease is held by somebody else, "
       "and runs on that source then refuse;", f"{COPY}::test_killed_at_any_write_at_most_one_store_is_live",
       f"{COPY}::test_killed_on_the_way_to_an_api_server_and_back", "4/copy-lease-held", "4/copy-no-lock", "4/copy-moved-elsewhere",
       "4/copy-source-unfinished", f"{COPY}::test_no_move_while_somebody_holds_a_lock", f"{FOLDER}::test_a_store_that_moved_away_is_only_read", COPIED),
    _s("`approvedVia` becomes the one who copies.", "tests/unit/_decide/test_store_copy.py::test_who_copies_vouches_for_the_approval"),
    _s("**Deleting a record** never touches the node.", "tests/unit/_operations/test_machine.py::test_a_record_is_deleted_and_the_node_is_left_alone",
       "4/delete-twice"),
    _s("It needs `allow-delete`, is refused when etcd's quorum would fail (unknown: refused too; before a bootstrap there is no quorum to lose), and for "
       "pending, rejected and never-sent machines is all there is to removal.", "4/delete-needs-allow-delete", "4/delete-by-annotation", "4/policy-delete",
       "4/delete-cluster-not-meant", "4/delete-would-cost-quorum", "4/delete-last-control-plane", "4/delete-keeps-quorum", "4/delete-quorum-unknown",
       "4/delete-before-bootstrap", "4/delete-pending", "4/delete-rejected", "4/delete-never-sent", "4/delete-worker"),
    _s("A vanished file of an approved machine is reported, not acted upon.",
       "tests/unit/_operations/test_machine_info.py::test_a_vanished_record_is_reported"),
)

#: Rows of what other sections say of such a record: sends that nobody knows the end of, records that cannot be read, GitOps, orders and backups.
OTHERS: tuple[str, ...] = (
    "4/delete-while-sending", "4/delete-with-a-lost-answer", "4/delete-lost-status", "4/delete-cluster-broken", "4/delete-gitops", "4/policy-reclaim",
    "4/policy-backup",
)
