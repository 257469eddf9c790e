# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that have another address now, found by their Kubernetes Node in a real API server, through ansible-playbook (design section 10)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.managed import Managed, managed
from tests.scenarios.running import CHECK, RUN, Played

FIRST, SECOND, PLANE = "w-1", "w-2", "cp-1"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    # The tests of this file go on from one another: one life of a cluster.
    with managed(tmp_path_factory.mktemp("moved") / "project", __name__, planes=1, workers=2) as found:
        yield found


def reason(world: Managed, played: Played, host: str) -> str:
    return str(played.row(world.cluster.names[host])["reason"])


def looks(world: Managed, *checks: bool) -> list[Played]:
    """Two looks at each machine a play."""
    return world.kept.play(*checks, passes=2, until="time")


def test_a_machine_that_moved_is_ready_at_its_new_address(world: Managed) -> None:
    address = f"{world.cluster.network}.101"
    world.lab.move(node=FIRST, address=address)
    world.register(FIRST)
    mark = world.lab.mark()
    check, run, *again = looks(world, CHECK, RUN, CHECK, RUN)
    assert reason(world, check, FIRST) == reason(world, run, FIRST) == "Converged"
    assert world.cluster.status(FIRST)["observedEndpoint"] == f"{address}:50000" and check.steps == run.steps == []
    assert all(reason(world, one, FIRST) == "Converged" and one.untouched for one in again)
    assert world.sent(mark) == []


def test_another_machine_takes_the_old_address(world: Managed) -> None:
    """The first worker is elsewhere and the second where it was, and their kubelets have not told yet."""
    mark = world.lab.mark()
    world.lab.move(node=FIRST, address=f"{world.cluster.network}.111")
    world.lab.move(node=SECOND, address=f"{world.cluster.network}.101")
    for played in looks(world, CHECK, RUN):
        assert reason(world, played, FIRST) == "EndpointIdentityMismatch" and reason(world, played, SECOND) != "Converged" and played.steps == []
        assert "Edit spec.endpoint" in str(played.result["refusals"])
    for host in (FIRST, SECOND):
        world.register(host)
    found, again = looks(world, RUN, RUN)
    assert {reason(world, found, host) for host in (FIRST, SECOND)} == {"Converged"} and not again.written
    assert world.sent(mark) == []


def test_without_a_host_name_there_is_a_hint(world: Managed) -> None:
    name, address = world.cluster.names[SECOND], f"{world.cluster.network}.102"
    world.kept.edit_record(name, "  hostname: w-2\n", "")
    world.lab.move(node=SECOND, address=address)
    world.register(SECOND)
    mark = world.lab.mark()
    run = looks(world, RUN)[0]
    told = str(run.row(name)["message"])
    assert f"spec.endpoint may need updating to {address}:50000" in told and reason(world, run, SECOND) in ("CurrentConfigUnavailable", "NodeUnreachable")
    assert [entry for entry in world.lab.log(since=mark, event="call", node=SECOND)] == [], "an address that only a Node tells is not dialled"
    world.kept.edit_record(name, "spec:\n", "spec:\n  hostname: w-2\n")
    assert reason(world, looks(world, RUN)[0], SECOND) == "Converged"


def test_all_control_planes_moved_at_once(world: Managed) -> None:
    name, address = world.cluster.names[PLANE], f"{world.cluster.network}.103"
    world.server.stop()
    world.lab.move(node=PLANE, address=address)
    run = looks(world, RUN)[0]
    run = looks(world, RUN)[0] if reason(world, run, PLANE) == "CurrentConfigUnavailable" else run
    assert reason(world, run, PLANE) == "NodeUnreachable" and "edit spec.endpoint of each with talos_machine" in str(run.row(name)["message"])
    world.cluster.module("talos_machine", machine=name, endpoint=address)
    assert reason(world, looks(world, RUN)[0], PLANE) == "Converged"
    world.server.start()
