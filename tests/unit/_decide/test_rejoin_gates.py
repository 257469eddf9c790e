# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A control plane that is sent its first configuration, or one more that `trust` armed, while etcd lists it (design section 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide import provisioning
from ansible_collections.ichor.talos.plugins.module_utils._decide.etcd_words import EtcdView
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_row import Gate
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Need, Pin, Provisioning, Refused, Remove, Send, Verdict
from ansible_collections.ichor.talos.plugins.module_utils._decide.rejoin import GATES, decide_join
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present, Unknown
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._decide import reprovision_case as again
from ansible_collections.ichor.talos.tests.unit._decide.rows_provisioning import PROVISIONING

SECOND, GONE = "a second equal reading of the wiped disk", "its stale etcd member to be removed"


def joining(etcd: object = again.ALL, *, read: bool = True, seen_before: dict[str, object] | None = None) -> Provisioning:
    """A control plane with a pin and nothing sent, in a bootstrapped cluster of three; etcd lists what `etcd` says."""
    before = again.first_reading(fingerprint="FP-one") if seen_before is None else seen_before
    seen = case.case("controlplane", status=before, others=again.PLANES, cluster_status=case.BOOTSTRAPPED)
    members = etcd.members if isinstance(etcd, EtcdView) else again.ALL.members
    return replace(seen, members=Present(members), etcd=(Present(etcd) if isinstance(etcd, EtcdView) else etcd) if read else None)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Row:
    """An observation, and the rule or the steps that it comes to, with what the first step waits for."""

    id: str
    seen: Callable[[], Provisioning]
    says: str
    waits: tuple[str, ...] = ()


ROWS = (
    Row("listed", joining, "RemoveEtcdMember, ApplyConfig"),
    Row("listed-and-first-reading", lambda: joining(seen_before={}), "RemoveEtcdMember, ApplyConfig", (SECOND,)),
    Row("not-listed", lambda: joining(again.view(again.member(2), again.member(3)), read=False, seen_before={}), "ApplyConfig"),
    Row("not-asked-yet", lambda: joining(read=False), "needs etcd"),
    Row("keeps-its-data", lambda: case.shows(joining(read=False), partitions=case.labels("META", "EPHEMERAL")), "ApplyConfig"),
    Row("nameless-learner", lambda: joining(again.view(again.member(1, "-", learner=True), again.member(2), again.member(3)), read=False), "ApplyConfig"),
    Row("etcd-unreadable", lambda: joining(Unknown("ControlPlaneUnreachable", "they differ")), "12/etcd-unreadable"),
    Row("another-name", lambda: joining(again.view(again.member(1, "old"), again.member(2), again.member(3))), "12/member-renamed"),
    Row("twice", lambda: joining(again.view(again.member(1), replace(again.member(1), id=f"{17:016x}"), again.member(2), again.member(3))), "12/member-twice"),
    Row("answers", lambda: joining(again.view(again.member(1), again.member(2), again.member(3), healthy=(1, 2, 3))), "12/member-answers"),
    Row("quorum", lambda: joining(again.view(again.member(1), again.member(2), again.member(3), healthy=(2,))), "12/quorum"),
    Row("worker", lambda: case.worker(cluster_status=case.BOOTSTRAPPED), "ApplyConfig"),
    Row("before-the-bootstrap", case.controlplane, "ApplyConfig"),
    Row("state-is-there", lambda: case.shows(joining(), partitions=case.labels("STATE")), "12/send-state-present"),
)


def told(verdict: Verdict) -> tuple[str, tuple[str, ...]]:
    if isinstance(verdict, Remove):
        return f"{verdict.step.action}, {verdict.send.action}", tuple(wait.what for wait in verdict.step.waits_for)
    if isinstance(verdict, Send):
        return verdict.step.action, tuple(wait.what for wait in verdict.step.waits_for)
    if isinstance(verdict, Need):
        return f"needs {verdict.reading}", ()
    return verdict.refusal.rule if isinstance(verdict, Refused) else type(verdict).__name__, ()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    assert told(decide_join(row.seen(), case.NOW)) == (row.says, row.waits)


@pytest.mark.parametrize("gate", [gate for gate in GATES if gate not in provisioning.GATES], ids=lambda gate: gate.id)
def test_a_gate_that_is_taken_away_is_noticed(gate: Gate) -> None:
    rest = tuple(other for other in GATES if other is not gate)
    assert any(told(decide_join(seen, case.NOW, rest)) != told(decide_join(seen, case.NOW)) for seen in (row.seen() for row in ROWS))


def test_every_other_gate_is_that_of_provisioning() -> None:
    assert [gate for gate in provisioning.GATES if gate not in GATES] == [gate for gate in provisioning.GATES if gate.id == "12/send-stale-member"]


@pytest.mark.parametrize("row", [row for row in PROVISIONING if row.rule != "12/send-stale-member"], ids=lambda row: row.id)
def test_what_provisioning_says_of_everything_else_it_says_too(row: object) -> None:
    seen = row.seen()  # type: ignore[attr-defined]
    assert decide_join(seen, case.NOW) == provisioning.decide(seen, case.NOW)


def test_the_send_has_the_id_that_it_has_without_a_member() -> None:
    first, later = decide_join(joining(), case.NOW), decide_join(joining(again.view(again.member(2), again.member(3))), case.NOW)
    assert isinstance(first, Remove) and isinstance(later, Send) and first.send.id == later.step.id
    assert [wait.what for wait in first.send.waits_for] == [GONE] and first.step.locked and not isinstance(first, Pin)
