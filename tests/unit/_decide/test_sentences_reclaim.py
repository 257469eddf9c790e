# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Section 16 of the design, sentence by sentence, with the rows and tests that stand for each."""

from __future__ import annotations

import re

from tests.unit._decide.proofs import below_heading, is_there, without
from tests.unit._decide.rows_reclaim import CASES
from tests.unit._decide.sentences_sending import Sentence

LIFE = "tests/unit/_operations/test_reclaim.py"
RECORDS = "tests/unit/_controller/test_reclaiming.py"
LAB = "tests/scenarios/test_reclaim.py"
PAGE = "tests/unit/docs/test_reclaiming_page.py"


def _s(quote: str, *shown: str) -> Sentence:
    return Sentence(16, quote, shown)


SENTENCES: tuple[Sentence, ...] = (
    _s("For a machine that another cluster configured.", "16/worker", "16/plane-of-three", LAB),
    _s("Never automatic, and a node with other secrets is never joined without a reset;", "16/nothing-typed",
       f"{RECORDS}::test_what_lost_its_status_or_is_late_is_no_new_order"),
    _s("without its credential there is no way over the API (reinstall, or wipe by kernel argument), and the docs say so.", "16/another-authority",
       "16/no-credential", "16/not-dialled", "16/clocks-apart", "16/reader-s-credential", PAGE),
    _s("Inspect (configuration, identity, hostname, version, etcd members and status, volumes; each call gives up after 20 s and says so),",
       "16/configuration-hangs", "16/identity-hangs", "16/host-name-hangs", "16/version-hangs", "16/stage-hangs", "16/disks-hang", "16/services-hang",
       "16/boot-id-hangs", "16/volumes-hang", "16/members-hang", "16/etcd-of-a-worker-hangs", f"{LIFE}::test_each_call_that_hangs_costs_its_deadline_alone"),
    _s("assess, consent (the node's UUID typed),", "16/nothing-typed", "16/nothing-typed-and-waiting",
       "16/blanks-typed", "16/a-file-typed", "16/typed-in-upper-case",
       "16/typed-with-braces", "16/typed-with-a-prefix", "16/typed-with-no-dashes", "16/typed-with-a-template", "16/typed-with-another-script",
       "16/typed-with-the-other-byte-order", "16/another-uuid-typed", "16/no-uuid-typed", "16/without-a-uuid",
       "16/another-waits-there"),
    _s("reset STATE, EPHEMERAL and every other Talos system volume that is there (v1.14 can keep ETCD, CRI, KUBELET and LOG apart), with reboot,",
       "16/volumes-apart", "16/two-disks", "16/bare", "16/rebooting", "16/upgrading", "16/resetting"),
    _s("wait for maintenance,", f"{LIFE}::test_a_reset_that_is_answered_ok_and_fails_is_told", f"{LIFE}::test_a_machine_with_another_address_is_followed",
       "16/silent", "16/resetting"),
    _s("register (under the lease of the node's own cluster, for a foreign one a lease named by its cluster id, and of `clusterRef`, taken in order of "
       "name):", f"{LIFE}::test_both_leases_are_taken_in_the_order_of_their_names", "16/managed-and-shutting-down", "16/managed-and-rotating",
       "16/managed-and-restored", "16/managed-and-disrupted", "16/own-disruption-before-the-lease", "16/own-disruption-is-this-one"),
    _s("that one address is discovered at once, `spec.discovery` is not edited, and a warning says when it is not listed there.", "16/not-listed",
       "16/waits-unlisted", "16/waits-unrecorded", "16/waits-with-another-certificate", "16/waits-already",
       f"{LIFE}::test_check_is_run_and_a_second_run_is_none"),
    _s("The plan lists what stays on the other disks.", "16/worker"),
    _s("Refused: UUID differs; an approved machine of a managed cluster has it; the reset would break its own cluster's quorum or be its last control plane.",
       "16/another-uuid-typed", "16/approved", "16/approved-of-another-cluster", "16/approved-in-the-other-byte-order", "16/approved-and-waiting",
       "16/records-unreadable", "16/last", "16/last-that-is-forced", "16/last-beside-a-learner", "16/one-of-three-down", "16/one-of-three-down-and-forced",
       "16/other-of-two-down", "16/three-of-four-with-one-before", "16/plane-of-five-one-down", "16/plane-of-two", "16/learner", "16/unlisted",
       "16/forced-and-members-hang", "16/forced-and-the-others-need-it", "16/forced-and-it-is-the-only-one", "16/owner-without-a-role-is-a-plane",
       "tests/unit/_decide/test_reclaim.py::test_no_plan_costs_an_answering_etcd_its_quorum"),
    _s("`force_ungraceful` is refused for a managed cluster's id.", "16/force-on-a-managed-worker", "16/force-on-a-managed-plane", "16/bundle-unreadable"),
    _s("A machine of a managed cluster without an approved record of this UUID is a warning (add-machine would keep it without a reset).",
       "16/managed-worker", "16/managed-plane", "16/managed-by-its-endpoint"),
    _s("etcd not running or not answering is a result (`etcdProblem`): a graceful reset is then refused naming it,", "16/etcd-stopped", "16/etcd-hanging",
       "16/etcd-without-a-leader", "16/members-hang"),
    _s("`force_ungraceful` proceeds with the warning that the cluster \"is treated as not existing, so its quorum cannot be checked and the reset is not "
       "graceful\".", "16/stopped-and-forced", "16/hanging-and-forced", "16/no-leader-and-forced", "16/only-its-own-is-stopped", "16/force-on-a-worker",
       "16/force-on-an-etcd-that-answers"),
    _s("Where the endpoint of its cluster is the machine's own address a warning says that the API there goes with it.", "16/at-the-endpoint",
       "16/at-the-endpoint-of-a-managed-cluster", "16/at-an-endpoint-of-ipv6", "16/beside-an-endpoint-next-to-it", "16/beside-an-endpoint-of-a-name",
       "16/beside-an-endpoint-that-is-none", "16/beside-an-endpoint-that-is-broken"),
    _s("A pending or rejected record of the UUID is no obstacle and stays: discovery refreshes the pending one; a rejected one stays rejected, and the plan "
       "says so.", "16/pending", "16/pending-elsewhere", "16/rejected", "16/waits-rejected", "16/waits-elsewhere"),
)
#: Rows that no sentence of the section asks for.
ELSEWHERE = ("16/no-cluster-record",)
ROWS = {case.id for case in CASES}


def section() -> str:
    """The text of the section, its lines joined."""
    return " ".join(below_heading(16).split())


def rest_of(sentences: tuple[Sentence, ...]) -> str:
    """What of the section stands in no quote."""
    return without(section(), (entry.quote for entry in sentences)).strip()


def test_no_sentence_is_left_out() -> None:
    assert re.sub(r"\s+", " ", rest_of(SENTENCES)) == ""


def test_a_sentence_that_is_taken_out_is_missed() -> None:
    assert [entry.quote for entry in SENTENCES if not rest_of(tuple(other for other in SENTENCES if other is not entry))] == []


def test_everything_that_is_named_is_there() -> None:
    assert [(entry.quote[:40], shown) for entry in SENTENCES for shown in entry.shown if not is_there(shown, ROWS)] == []


def test_every_row_stands_for_a_sentence() -> None:
    assert ROWS - {shown for entry in SENTENCES for shown in entry.shown} == set(ELSEWHERE)
