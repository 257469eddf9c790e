# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a reclaim tells somebody who does not know the product whose machine it is, what becomes of its cluster and its disks, and what
nobody knows (design section 16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim import as_agreed, decide_all
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_page import LOST, lines, page
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_words import Managed, Reclaiming
from ansible_collections.ichor.talos.plugins.module_utils._decide.reset_partitions import SYSTEM_VOLUMES
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present, Unknown
from ansible_collections.ichor.talos.tests.unit._decide import reclaim_case as c
from ansible_collections.ichor.talos.tests.unit._operations import world as w


@dataclass(frozen=True)
class Question:
    """What a person wants to know of a machine, and the words that answer it."""

    what: str
    seen: Callable[[], Reclaiming]
    answers: tuple[str, ...]


def _unsure() -> Reclaiming:
    seen = c.worker()
    return replace(seen, managed=(Managed(c.store_of(seen), Unknown("BundleExposed", "others can read it")),))


def _unasked(seen: Reclaiming) -> Reclaiming:
    return c.wishing(seen, confirm="")


QUESTIONS = (
    Question("whose", c.worker, ("whose: a worker of cluster old, which this store does not manage (endpoint https://old.example:6443, id id-of-old)",)),
    Question("whose", c.plane, ("whose: a control plane of cluster old, which this store does not manage",)),
    Question("whose, of ours", lambda: c.managed(c.worker()), ("whose: a worker of cluster prod, which this store manages",)),
    Question("whose, where a bundle is unreadable", _unsure, ("whose: a worker of cluster old (endpoint", )),
    Question("whose, unread", lambda: c.looking(c.worker(), owner=c.LATE), ("whose: of unknown role, so taken for a control plane, of cluster without a name",
                                                                            "not known: machine configuration: it did not answer within 20 s")),
    Question("which machine", c.worker, (f"10.0.0.1:50000: the machine with UUID {w.uuid(1)} (n1, Talos v1.13.9)",)),
    Question("quorum", c.worker, ("etcd: a worker has no member of it, so no quorum changes",)),
    Question("quorum", c.plane, (
        "(cp1, 10.0.0.1), this node: answers", "(cp2, 10.0.0.2): answers",
        "this node leaves it before the reset; 2 voters answer then and 2 are needed, so it keeps its quorum, and none of them may fail")),
    Question("quorum of five", lambda: c.plane(5), ("4 voters answer then and 3 are needed, so it keeps its quorum, and 1 more of them may fail",)),
    Question("quorum of two", lambda: c.plane(2), ("1 voter answers then and 1 is needed, so it keeps its quorum",)),
    Question("quorum, one down", lambda: c.plane(dead=(3,)), ("(cp3, 10.0.0.3): does not answer", "1 voter answers then and 2 are needed, so that etcd would "
                                                              "lose its quorum")),
    Question("quorum, the last", lambda: c.plane(1), ("this node is the only voter: without it that etcd is gone",)),
    Question("quorum, unread", c.hanging, ("what the reset does to its quorum cannot be told (etcdProblem: it did not answer within 20 s)",)),
    Question("quorum, not a member", lambda: c.looking(c.plane(), etcd=c.status(9)), ("which member is this node's cannot be told",)),
    Question("wiped", c.worker, ("wiped: STATE (its configuration and keys)", "wiped: EPHEMERAL (images, logs and what pods keep on this disk)")),
    Question("wiped, of a control plane", c.plane, ("wiped: EPHEMERAL (images, logs and what pods keep on this disk and etcd's data)",)),
    Question("stays", c.worker, ("stays: EFI on /dev/sda1", "stays: /dev/sdb (4000 GB, serial DATA-1, carries ext4)")),
    Question("stays, nothing", lambda: c.looking(c.worker(), partitions=Present(c.SYSTEM[2:]), disks=Present(c.DISKS[:1])),
             ("stays: nothing else is on its disks",)),
    Question("not known", c.worker, ("not known: what its pods keep on its disks, which nobody looks at",)),
    Question("not known, what hangs", lambda: c.looking(c.worker(), disks=c.LATE), ("not known: disks: it did not answer within 20 s",)),
    Question("next, before anybody has agreed", lambda: _unasked(c.plane()), (
        "warning: The node is not drained", "next: nothing until somebody agrees, by its UUID in confirm",
        "next: it leaves etcd, and the volumes STATE, EPHEMERAL are wiped", "next: it restarts into maintenance mode",
        "next: it is written down as pending in cluster prod", "next: a person approves it with talos_machine_approval")),
    Question("next, where agreeing would not help", lambda: _unasked(c.plane(dead=(2,))), ("next: nothing: Without it the etcd of cluster old has 2 members",)),
)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: f"{question.what}: {question.answers[0][:30]}")
def test_it_answers(question: Question) -> None:
    seen = question.seen()
    verdict, foreseen = (decide_all([one])[0] for one in (seen, as_agreed(seen)))
    told = lines(seen, verdict, foreseen)
    for answer in question.answers:
        assert any(answer in line for line in told), told
    assert page(seen, verdict, foreseen)["next"]


def test_it_says_of_every_volume_what_is_lost_with_it() -> None:
    assert set(LOST) == set(SYSTEM_VOLUMES)


def test_what_goes_before_it_is_gone_on_its_page() -> None:
    first, second = c.plane(5, own=1), c.looking(c.plane(5, own=2), identity=Present(w.identity(2)))
    seen = [first, replace(c.wishing(second, confirm=w.uuid(2)), target=replace(second.target, uuid=w.uuid(2), address="10.0.0.2:50000"))]
    verdicts = decide_all(seen)
    told = lines(seen[1], verdicts[1], verdicts[1])
    assert any("have left by then" in line for line in told) and not any("(cp1," in line for line in told)
    assert any("3 voters answer then and 2 are needed" in line for line in told), told
