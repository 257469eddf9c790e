# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever is wrong at once: what is sent is sent to an approved machine, itself, with its pin, in maintenance mode, never sent before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._decide.approved import is_approved
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning import decide
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Follow, Need, Pin, Provisioning, Refused, Send
from ansible_collections.ichor.talos.plugins.module_utils._decide.same_machine import difference
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._decide.rows_provisioning import JOINED, STORED, sending
from ansible_collections.ichor.talos.tests.unit._operations import world as w

BASES = (case.worker(), case.controlplane(), case.controlplane(bootstrapped=True))


def _spec(seen: Provisioning, **changed: object) -> Provisioning:
    assert seen.machine is not None
    return replace(seen, machine=replace(seen.machine, spec={**seen.machine.spec, **changed}))  # type: ignore[dict-item]


def _status(seen: Provisioning, changed: dict[str, object]) -> Provisioning:
    assert seen.machine is not None
    return replace(seen, machine=replace(seen.machine, status={**seen.machine.status, **changed}))  # type: ignore[dict-item]


SPOILS: tuple[Callable[[Provisioning], Provisioning], ...] = (
    lambda seen: _spec(seen, approvalState="pending"), lambda seen: _spec(seen, approvedBy=""), lambda seen: _status(seen, dict(STORED)),
    lambda seen: _status(seen, dict(JOINED)), lambda seen: _status(seen, sending()), lambda seen: _status(seen, sending(age=1)),
    lambda seen: _status(seen, sending(attempt=2)), case.running, lambda seen: case.running(seen, 9), case.silent,
    lambda seen: case.shows(seen, identity=w.identity(9)), lambda seen: case.shows(seen, certificate="two"), lambda seen: case.shows(seen, stage="booting"),
    lambda seen: case.shows(seen, version=""), lambda seen: case.shows(seen, disks=()), lambda seen: replace(seen, pin=""), case.settled,
    lambda seen: case.settled(seen, "two"), lambda seen: replace(seen, running=None), lambda seen: replace(seen, maintenance=None),
    lambda seen: replace(seen, members=Unknown("TimedOut", "no")), lambda seen: replace(seen, endpoint=Absent()),
    lambda seen: replace(seen, config=Unknown("ConfigInvalid", "no")),
    lambda seen: replace(seen, authority=Unknown("SecretsUnavailable", "no")), lambda seen: replace(seen, holder="run-0"),
)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(BASES), st.lists(st.sampled_from(SPOILS), max_size=5), st.floats(-1000, 100_000))
def test_what_is_sent_may_be_sent(base: Provisioning, spoils: list[Callable[[Provisioning], Provisioning]], later: float) -> None:
    seen = base
    for spoil in spoils:
        seen = spoil(seen)
    verdict = decide(seen, case.NOW + later)
    if isinstance(verdict, (Send, Pin)):
        step = verdict.step if isinstance(verdict, Send) else verdict.send
        assert seen.machine is not None and is_approved(seen.machine)
        assert not seen.machine.status.get("configStoredAt") and not seen.machine.status.get("appliedConfigHash")
        assert isinstance(seen.maintenance, Present) and not isinstance(seen.running, Present)
        facts = seen.maintenance.value
        assert not difference(seen.identity, facts.identity) and step.fingerprint == facts.certificate.fingerprint
        assert isinstance(facts.stage, Present) and facts.stage.value.stage == "maintenance"
        assert isinstance(seen.config, Present) and step.config == seen.config.value.sha256
        if isinstance(verdict, Send):
            assert seen.pin and facts.certificate.matches(seen.pin) and verdict.attempt <= 2
        else:
            assert not seen.pin and verdict.send.waits_for
    if isinstance(verdict, Need):
        assert getattr(seen, verdict.reading) is None
    if isinstance(verdict, Refused):
        assert verdict.refusal.message and verdict.refusal.rule
    if isinstance(verdict, Follow) and verdict.settle:
        assert seen.machine is not None and seen.machine.status.get("sending")
