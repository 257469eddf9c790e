# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 6: every call to a node has its own deadline; a node that hangs costs one deadline, never a run."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import fields

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Session
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node import calls
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from ansible_collections.ichor.talos.plugins.module_utils._node.talosconfig import credentials_from_talosconfig
from tests.hostile.saying import World, world

#: A run that is over only by this has no deadline. No test waits for it when all goes well.
NEVER = 120.0
HANGS = ("connect-hang", "handshake-hang", "plain-drip", "call-hang", "call-half-open", "answer-hang", "answer-drip", "write-drip")


async def whole(session: Session) -> list[bytes]:
    return [piece async for piece in session.etcd_snapshot()]


CALLS: dict[str, Callable[[Session], Awaitable[object]]] = {
    "identity": lambda session: session.identity(), "stage": lambda session: session.stage(), "disks": lambda session: session.disks(),
    "links": lambda session: session.links(), "partitions": lambda session: session.partitions(),
    "hostname": lambda session: session.hostname(), "version": lambda session: session.version(),
    "machine_config": lambda session: session.machine_config(), "boot_id": lambda session: session.boot_id(),
    "services": lambda session: session.services(), "etcd_members": lambda session: session.etcd_members(True),
    "etcd_status": lambda session: session.etcd_status(), "apply": lambda session: session.apply(b"x", "AUTO"),
    "bootstrap": lambda session: session.bootstrap(), "reboot": lambda session: session.reboot(),
    "etcd_remove_member": lambda session: session.etcd_remove_member("00000000000000a1"), "etcd_alarms": lambda session: session.etcd_alarms(),
    "etcd_snapshot": whole, "etcd_recover": lambda session: session.etcd_recover([b"x"]),
    "etcd_leave": lambda session: session.etcd_leave(), "reset": lambda session: session.reset(("STATE",)),
}
SOON = Timing(call=0.2, apply=0.2, maintenance_probe=0.2, inspection=0.2, snapshot=0.2, leave_and_reset=0.2)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("deadlines")) as made:
        yield made


def test_every_call_of_the_table_has_a_deadline_that_ends() -> None:
    timing = Timing()
    deadlines = {call.rpc: getattr(timing, call.deadline) for call in calls.CALLS.values()}
    assert deadlines and all(0 < seconds < math.inf for seconds in deadlines.values())
    assert all(0 < getattr(timing, field.name) < math.inf for field in fields(timing))


def test_every_call_of_the_sessions_is_hung_here() -> None:
    """A call that is added to the port has to be added to `CALLS`."""
    named = {name for name in vars(Session) if not name.startswith("_")} - {"endpoint", "certificate", "maintenance", "facts"}
    assert named == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_hangs_costs_its_deadline(here: World, name: str) -> None:
    if not any(node["name"] == "hung" for node in here.lab.nodes()):
        address = here.node("hung", 1)
        assert here.applied("hung", address, config_content=here.secrets.config("controlplane", "cp-1")).status == 0
        here.lab.wait(node="hung", stage="booting")
        here.lab.wait(node="hung", stage="configured")
        here.lab.fault(node="hung", kind="call-hang")
    credentials = credentials_from_talosconfig(here.secrets.talosconfig([]), now=time.time())

    async def call() -> object:
        nodes = TalosNodes(rules=(DialRules(allow_loopback=True),), timing=SOON)
        try:
            async with asyncio.timeout(NEVER), nodes.authenticated(Endpoint(f"{here.network}.0.1"), credentials) as session:
                return await CALLS[name](session)
        finally:
            await nodes.close()

    try:
        found = asyncio.run(call())
    except TalosError as error:
        assert error.reason == "TimedOut" and error.hint
    else:
        assert getattr(found, "reason", "") == "TimedOut", found


def test_machines_that_hang_cost_one_deadline_and_the_others_go_on(here: World) -> None:
    """A fleet in which every second machine hangs, each in its own way: the run ends, and has read all others."""
    hung = {here.node(f"hangs-{kind}", 10 + number): kind for number, kind in enumerate(HANGS)}
    good = [here.node(f"good-{number}", 30 + number) for number in range(len(HANGS))]
    for kind in HANGS:
        here.lab.fault(node=f"hangs-{kind}", kind=kind)
    mark = here.lab.mark()
    found = here.run("talos_discover", addresses=[*hung, *good], register=False, timing={"connect": 5.0, "call": 5.0, "settle": 0.02}, seconds=NEVER)
    read = {entry["address"].partition(":")[0] for entry in found.result["found"] if entry.get("uuid")}
    assert read == set(good)
    for kind in HANGS:
        assert len(here.lab.log(since=mark, node=f"hangs-{kind}", event="connect")) <= 3, "a machine that hangs is not asked again and again"
