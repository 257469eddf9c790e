# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 3 with real processes and nodes: at every boundary of a send the node's certificate is renewed, or another machine takes its place.

What the nodes logged says what each of them received, and over which connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.crash.boundaries import AFTER, BEFORE, CALL
from tests.crash.life import BOARD, NAMES, STEPS, WORKER_BOARD, Life, Place
from tests.lab.control import Lab
from tests.nursery.client import Nursery
from tests.nursery.network import Network

SEND = STEPS[NAMES.index("apply")]
APPLY = "/machine.MachineService/ApplyConfiguration"
RENEWED = {"MaintenanceIdentityChanged", "CurrentConfigUnavailable", "ConfigStored"}
STRANGER = "stranger"


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with Lab.start({"nodes": {}}, speed=50) as lab, Nursery() as nursery, closing(Network()) as network:
        life = Life(lab, nursery, tmp_path_factory.mktemp("life"), network.prefix)
        life.live()
        yield life


def test_a_certificate_that_is_renewed_at_any_boundary(life: Life, record_property: Callable[[str, object], None]) -> None:
    moments = life.traces[SEND.name]
    sent = 0
    for moment in moments:
        place = life.before(SEND)
        mark = life.lab.mark()
        ended = life.interrupt(place, SEND, moment, lambda place=place: life.lab.reissue(node=place.node))
        log = life.lab.log(since=mark, node=place.node)
        renewed = next((entry["n"] for entry in log if entry["event"] == "node" and entry["what"] == "reissued"), None)
        made = {entry["peer"]: entry["n"] for entry in log if entry["event"] == "tls"}
        received = [entry for entry in log if entry["event"] == "call" and entry["rpc"] == APPLY]
        assert renewed is None or all(made[entry["peer"]] < renewed for entry in received), f"{moment}: sent over a connection of the new certificate"
        assert len(received) <= 1 and ended.result["reason"] in RENEWED, (moment, ended.result)
        assert bool(received) or ended.status == 1, (moment, ended.result)
        sent += len(received)
        life.leave(place)
    assert 0 < sent < len(moments)
    record_property("told", f"law 3: a certificate renewed at {len(moments)} boundaries of a send; sent {sent} times, over the pinned connection each time")


@pytest.mark.parametrize("board", [WORKER_BOARD, {**BOARD, "serial": "ACME-9999"}], ids=["another", "of-the-same-uuid"])
def test_another_machine_that_takes_the_place_at_any_boundary(life: Life, board: dict[str, object], record_property: Callable[[str, object], None]) -> None:
    moments = [moment for moment in life.traces[SEND.name] if moment.kind == CALL and moment.side in (BEFORE, AFTER)]
    for moment in moments:
        place = life.before(SEND)
        ended = life.interrupt(place, SEND, moment, lambda place=place: take_its_place(life.lab, place, board))
        received = [entry for entry in life.lab.log(node=STRANGER, event="call") if entry.get("kind") == "write"]
        assert received == [] and not life.lab.log(node=STRANGER, event="config"), f"{moment}: {received}"
        assert ended.status in (0, 1) and not ended.late, moment
        for name in {node["name"] for node in life.lab.nodes()} & {STRANGER, place.node}:
            life.lab.remove(node=name)
    record_property("told", f"law 3: another machine in its place at {len(moments)} boundaries of a send; it received nothing")


def take_its_place(lab: Lab, place: Place, board: dict[str, object]) -> None:
    """The node is gone with its connections, and what answers at its address is another."""
    lab.remove(node=place.node)
    lab.add(name=STRANGER, description={"address": place.address, "machine": dict(board)})
    lab.wait(node=STRANGER, stage="maintenance")
