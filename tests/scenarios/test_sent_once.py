# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`status.sending` with real processes (design section 9, step 10): no second accepted configuration, by the log of the node."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import BEFORE, CALL, Boundary
from tests.lab.control import Lab
from tests.lives.records import Records
from tests.nursery.client import Ended, Nursery
from tests.scenarios.playing import QUICK, Project, lab_of, machine, network_of, wait_for
from tests.scenarios.sending import approved, generated, opened

NETWORK = network_of(__name__)
HEADS = ("5a1f0c3e", "7be2944d", "c09d61aa", "d1e2f3a4", "e0ddba11", "f00dcafe")
APPLY = "machine.MachineService/ApplyConfiguration"
HOOK = "tests.crash.boundaries:install"
#: Seconds after which the send of a run that is gone no longer counts as under way.
LATER = 200.0


@dataclass(frozen=True)
class Sent:
    """One approved machine, and the processes that send to it."""

    lab: Lab
    project: Project
    nurseries: tuple[Nursery, Nursery]
    name: str
    node: str

    def options(self, ahead: float = 0.0, kill: Boundary | None = None, config: str = "") -> dict[str, Any]:
        told = {"trace": str(self.project.folder / "trace"), "store": str(self.project.store), "ahead": ahead, "kill": vars(kill) if kill else None}
        return {"hook": HOOK, "told": told, "machine": self.name, **self.project.records.options, "allow_loopback": True,
                "timing": {**QUICK, "sending_fresh": 90.0, "lock_wait": 60.0}, "config_content": config or generated("worker")}

    def start(self, runner: int = 0, **options: Any) -> int:
        return self.nurseries[runner].start("talos_maintenance_apply", **self.options(**options))

    def run(self, runner: int = 0, **options: Any) -> Ended:
        self.start(runner, **options)
        return self.nurseries[runner].finish()

    def follow(self) -> Ended:
        options = self.options()
        del options["config_content"]
        return self.nurseries[0].run("talos_stage", follow=True, **options)

    @property
    def status(self) -> dict[str, Any]:
        return self.project.records.status("machines", self.name)

    @property
    def received(self) -> int:
        """How many configurations came to the node, answered or not."""
        return len(self.lab.log(node=self.node, event="call", rpc=f"/{APPLY}"))

    @property
    def accepted(self) -> int:
        done = self.lab.log(node=self.node, event="done", rpc=f"/{APPLY}")
        return sum(entry["code"] == "OK" and not entry.get("dry_run") for entry in done)

    def killed_in_mid_send(self, **options: Any) -> None:
        """A run that dies while the node has its configuration and has not answered."""
        self.lab.hold(node=self.node, phase="apply")
        before = self.received
        pid = self.start(**options)
        wait_for(lambda: self.received > before, "the configuration to reach the node")
        os.kill(pid, signal.SIGKILL)
        assert self.nurseries[0].finish().status == -signal.SIGKILL
        assert self.status["sending"]["attempt"] == 1


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of({f"node-{head}": machine(number, NETWORK, head) for number, head in enumerate(HEADS, 1)}, speed=20.0)


@pytest.fixture(scope="module")
def nurseries() -> Iterator[tuple[Nursery, Nursery]]:
    with Nursery() as first, Nursery() as second:
        yield first, second


@pytest.fixture
def sent(request: pytest.FixtureRequest, lab: Lab, nurseries: tuple[Nursery, Nursery], records: Records, tmp_path: Path) -> Sent:
    head, role = request.param
    project = Project(tmp_path / "project", kept_in=records.another(tmp_path / "project" / "ichor"))
    approved(project, NETWORK, ((f"prod-{head}", role),))
    return Sent(lab, project, nurseries, f"prod-{head}", f"node-{head}")


def machines(head: str, role: str = "worker") -> pytest.MarkDecorator:
    return pytest.mark.parametrize("sent", [(head, role)], indirect=True, ids=[role])


@machines(HEADS[0])
def test_two_runs_at_once(sent: Sent) -> None:
    sent.lab.hold(node=sent.node, phase="apply")
    sent.start(0)
    wait_for(lambda: sent.received == 1, "the configuration to reach the node")
    second = sent.run(1)
    assert (second.status, second.result["reason"]) == (1, "SendingUnconfirmed"), second.output
    sent.lab.hold(node=sent.node, phase="apply", held=False)
    first = sent.nurseries[0].finish()
    assert (first.status, first.result["changed"]) == (0, True), first.output
    third = sent.run(1)
    assert (third.status, third.result["changed"]) == (0, False), third.output
    assert (sent.received, sent.accepted) == (1, 1) and "sending" not in sent.status


@machines(HEADS[1], "controlplane")
def test_a_certificate_that_rotates_while_the_lock_is_waited_for(sent: Sent) -> None:
    leases = opened(sent.project.records).leases
    lease = leases.acquire("prod", "somebody", "something", 60)
    mark = sent.lab.mark()
    config = generated("controlplane")
    sent.start(config=config)
    wait_for(lambda: sent.lab.log(since=mark, node=sent.node, event="done"), "the first reading of the node")
    sent.lab.reissue(node=sent.node)
    leases.release(lease)
    ended = sent.nurseries[0].finish()
    assert (ended.status, ended.result["reason"]) == (1, "MaintenanceIdentityChanged"), ended.output
    assert sent.received == 0 and not {"sending", "configStoredAt"} & sent.status.keys()
    followed = sent.follow()
    assert followed.result["machines"][0]["stage"] in ("maintenance", "unknown") and not {"sending", "configStoredAt"} & sent.status.keys()


@machines(HEADS[2])
def test_a_run_that_is_killed_in_mid_apply_and_started_again(sent: Sent) -> None:
    sent.killed_in_mid_send()
    at_once = sent.run()
    assert (at_once.status, at_once.result["reason"]) == (1, "SendingUnconfirmed"), at_once.output
    sent.lab.hold(node=sent.node, phase="apply", held=False)
    assert sent.run(ahead=LATER).status == 0
    assert sent.accepted == 1 and sent.received <= 2
    assert sent.status["configStoredAt"] and "sending" not in sent.status
    assert (sent.run(ahead=2 * LATER).status, sent.accepted) == (0, 1)


@machines(HEADS[3])
def test_a_second_attempt_is_the_last(sent: Sent) -> None:
    """The node never saw what was sent, twice: that counts as stored, and no third goes out, whoever runs."""
    sent.lab.fault(node=sent.node, kind="call-reset", rpc="ApplyConfiguration", times=2)
    sent.run()
    sent.run(ahead=LATER)
    assert (sent.received, sent.accepted) == (2, 0)
    assert sent.status["configStoredAt"] and "sending" not in sent.status
    sent.run(ahead=2 * LATER)
    assert (sent.received, sent.accepted) == (2, 0)


@machines(HEADS[4])
def test_other_bytes_do_not_follow_a_send_without_an_answer(sent: Sent) -> None:
    sent.killed_in_mid_send()
    first = sent.status["sending"]["hash"]
    sent.lab.hold(node=sent.node, phase="apply", held=False)
    sent.run(ahead=LATER, config=generated("worker").replace("debug: false", "debug: true"))
    assert sent.received == 1
    assert sent.status["storedConfigHash"] == first and "sending" not in sent.status


@machines(HEADS[5], "controlplane")
def test_what_was_left_over_is_ended_by_a_good_read_and_what_never_left_is_sent(sent: Sent) -> None:
    config = generated("controlplane")
    killed = sent.run(config=config, kill=Boundary(CALL, APPLY, BEFORE, 1))
    assert killed.killed and sent.received == 0 and "configStoredAt" not in sent.status
    # The node gets it and answers nobody; the run that sent it dies. Nothing but the node's own word ends that.
    sent.lab.fault(node=sent.node, kind="answer-hang", rpc="ApplyConfiguration")
    pid = sent.start(config=config, ahead=LATER)
    wait_for(lambda: "answer-hang" in sent.lab.struck(node=sent.node), "the node to store its configuration")
    os.kill(pid, signal.SIGKILL)
    sent.nurseries[0].finish()
    left = sent.status["sending"]
    assert left["attempt"] == 2 and "configStoredAt" not in sent.status
    sent.lab.clear(node=sent.node)
    sent.lab.wait(node=sent.node, stage="booting")
    read = sent.follow()
    assert read.result["machines"][0]["stage"] == "booting", read.output
    assert sent.status["storedConfigHash"] == left["hash"] and sent.status["configStoredAt"] and "sending" not in sent.status
    assert sent.received == 1
