# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 4: once a node accepted a configuration over the insecure API, none is sent to it that way again for the same wipe."""

from __future__ import annotations

import asyncio

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.tests.laws.sending import ROLES, apply, at, boundaries, job, run_once, sent_to, world_with
from ansible_collections.ichor.talos.tests.unit._operations import world as w

LOST = ("TimedOut", "ConnectionLost", "CallFailed", "AnswerInvalid", "AnswerTooLarge")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("reason", LOST)
@pytest.mark.parametrize("then", ["closed", "running"])
def test_an_answer_that_is_lost_after_the_node_stored_is_never_followed_by_a_second_send(role: str, reason: str, then: str) -> None:
    world, node = world_with(role)
    node.lose, node.after_apply = [w.error(reason)], then
    outcome = run_once(world, role)
    assert world.accepted == ["m1"] and not outcome.refused
    status = world.machine("m1").status
    assert status["configStoredAt"] and status["storedConfigHash"] == world.received[0][3] and "sending" not in status
    for number in range(3):
        world.clock.time += 200
        run_once(world, role, f"run-{number + 2}")
    assert len(world.received) == 1


def test_a_request_that_was_lost_goes_once_more_with_the_same_bytes_to_the_same_certificate() -> None:
    world, node = world_with("worker")
    node.refuse = [w.error("TimedOut")]
    outcome = run_once(world, "worker")
    assert len(world.received) == 2 and world.received[0] == world.received[1] and world.accepted == ["m1"] and not outcome.refused


def test_a_request_that_was_lost_twice_counts_as_stored() -> None:
    world, node = world_with("worker")
    node.refuse = [w.error("TimedOut"), w.error("ConnectionLost")]
    run_once(world, "worker")
    assert len(world.received) == 2 and world.machine("m1").status["configStoredAt"]
    world.clock.time += 1000
    run_once(world, "worker", "run-2")
    assert len(world.received) == 2 and not world.accepted


def test_a_lost_answer_and_a_new_certificate_count_as_stored() -> None:
    world, node = world_with("worker")
    node.lose, node.after_apply = [w.error("TimedOut")], "maintenance"
    world.hook = lambda number, what: setattr(node, "certificate", w.certificate("two")) if what.startswith("maintenance") and world.accepted else None
    run_once(world, "worker")
    assert world.accepted == ["m1"] and world.machine("m1").status["configStoredAt"]


def test_other_bytes_are_not_sent_after_a_lost_answer() -> None:
    world, dummy = world_with("worker")
    record = world.machine("m1")
    sending = {"hash": "f" * 64, "fingerprint": "FP-one", "time": "2023-11-14T00:00:00Z", "attempt": 1, "by": "run-0"}
    world.store.put(w.machine_record("m1", 1, status={**record.status, "sending": sending}))
    run_once(world, "worker")
    assert not world.received and world.machine("m1").status["storedConfigHash"] == "f" * 64


@pytest.mark.parametrize("age, waits", [(0, True), (89, True), (91, False), (-500, True)])
def test_a_send_of_another_run_is_waited_for(age: int, waits: bool) -> None:
    world, dummy = world_with("worker")
    status = world.machine("m1").status
    digest = job("worker").config.value.sha256  # type: ignore[union-attr]
    sending = {"hash": digest, "fingerprint": "FP-one", "time": moment(world.clock.now() - age), "attempt": 1, "by": "run-0"}
    world.store.put(w.machine_record("m1", 1, status={**status, "sending": sending}))
    outcome = run_once(world, "worker")
    assert (outcome.reason == "SendingUnconfirmed") == waits and bool(world.received) != waits


@pytest.mark.parametrize("role", ROLES)
def test_two_runs_at_once_send_once(role: str) -> None:
    for late in range(len(boundaries(role)) + 1):
        world, dummy = world_with(role)

        async def both(world: w.World = world, late: int = late) -> None:
            async def second() -> None:
                while len(world.trace) < late:
                    await asyncio.sleep(0)
                await apply(world, role, "run-2")

            other = asyncio.ensure_future(second())
            await asyncio.gather(apply(world, role, "run-1"), asyncio.wait_for(other, 20))

        asyncio.run(both())
        assert world.accepted == ["m1"] and world.trace.count("apply m1") == 1, late
        assert world.machine("m1").status["configStoredAt"] and not world.store.leases.held


@pytest.mark.parametrize("reason", ["PermissionDenied", "FailedPrecondition", "ConfigRejected"])
def test_a_node_that_said_no_stored_nothing(reason: str) -> None:
    world, node = world_with("worker")
    node.refuse = [w.error(reason)]
    outcome = run_once(world, "worker")
    status = world.machine("m1").status
    assert outcome.reason == reason and "sending" not in status and "configStoredAt" not in status
    again = run_once(world, "worker", "run-2")
    assert again.reason == ("ConfigRejected" if reason == "ConfigRejected" else "ConfigStored")
    assert len(world.received) == (1 if reason == "ConfigRejected" else 2)


def test_rejected_bytes_are_tried_again_only_when_they_change() -> None:
    world, node = world_with("worker")
    node.refuse = [w.error("ConfigRejected")]
    run_once(world, "worker")
    asyncio.run(apply(world, "worker", "run-2", job("worker", hostname="")))
    assert world.accepted == ["m1"] and len(sent_to(world)) == 2


def test_a_machine_that_joined_is_never_sent_over_the_insecure_api() -> None:
    world, dummy = world_with("worker")
    world.store.put(w.machine_record("m1", 1, status={"stage": "running", "configStoredAt": "2023-11-14T00:00:00Z", "storedConfigHash": "a",
                                                      "appliedConfigHash": "a"}))
    outcome = run_once(world, "worker")
    assert outcome.reason == "ReprovisionBlocked" and not world.received


def test_a_rotation_while_the_lock_is_waited_for_leaves_nothing_behind() -> None:
    world, node = world_with("controlplane")
    ports = world.ports()
    assert ports.store is not None
    lease = ports.store.leases.acquire("prod", "somebody", "something", 60)

    async def free() -> None:
        await world.clock.sleep(20)
        node.certificate = w.certificate("two")
        world.store.leases.release(lease)

    async def both() -> None:
        await asyncio.gather(free(), apply(world, "controlplane"))

    asyncio.run(both())
    status = world.machine("m1").status
    assert not world.received and "sending" not in status and "configStoredAt" not in status
    assert world.lines and "waiting for the lock" in world.lines[0]


def test_the_hook_of_these_tests_hits_every_boundary() -> None:
    """A run has boundaries, and `at` acts at exactly one of them."""
    hits: list[int] = []
    moments = boundaries("worker")
    world, dummy = world_with("worker")
    world.hook = at(len(moments), lambda: hits.append(1))
    run_once(world, "worker")
    assert hits == [1] and len(moments) > 8
