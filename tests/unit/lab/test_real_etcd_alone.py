# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One lab node with a real etcd member: the last member, recovery from a snapshot, and that no process outlives the lab."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.control import Lab, LabError
from tests.lab.etcd_client import EtcdClient
from tests.lab.wire import message
from tests.unit.lab.lab_nodes import Nodes
from tests.unit.lab.real_etcd import ADMIN, Members, start, until


@pytest.fixture
def lab() -> Iterator[Lab]:
    with start() as lab:
        yield lab


@pytest.fixture
def members(lab: Lab) -> Members:
    nodes = Nodes(lab)
    nodes.control_plane("cp1")
    return Members(nodes)


def client(members: Members, name: str) -> EtcdClient:
    """A client with the node's own administrator's certificate."""
    return EtcdClient.of_admin(members.nodes.addresses[name], Path(members.nodes.lab.etcd(node=members.nodes.key(name))["pki"]))


def keys(members: Members, name: str) -> tuple[str, dict[bytes, bytes]]:
    """The revision, and everything that is stored."""
    everything = base64.b64encode(b"\0").decode()
    answer = asyncio.run(client(members, name).call("kv/range", {"key": everything, "range_end": everything}))
    return answer["header"]["revision"], {base64.b64decode(item["key"]): base64.b64decode(item["value"]) for item in answer.get("kvs", ())}


def put(members: Members, name: str, key: bytes, value: bytes) -> None:
    asyncio.run(client(members, name).call("kv/put", {"key": base64.b64encode(key).decode(), "value": base64.b64encode(value).decode()}))


def snapshot(members: Members, name: str) -> bytes:
    outcome = members.nodes.call(name, "EtcdSnapshot", role=ADMIN)
    assert outcome.code == "OK"
    return b"".join(message("common.Data").FromString(item).bytes for item in outcome.messages)


def upload(members: Members, name: str, content: bytes) -> None:
    pieces = [message("common.Data")(bytes=content[offset:offset + 1024]).SerializeToString() for offset in range(0, len(content), 1024)]
    with members.nodes.connect(name, members.nodes.leaf(ADMIN)) as wire:
        assert wire.call("/machine.MachineService/EtcdRecover", pieces).code == "OK"


def bootstrap(members: Members, name: str, **fields: Any) -> str:
    code: str = members.nodes.call(name, "Bootstrap", message("machine.BootstrapRequest")(**fields), ADMIN).code
    return code


def test_a_second_bootstrap_is_refused_and_the_last_member_stays(members: Members) -> None:
    assert bootstrap(members, "cp1") == "ALREADY_EXISTS"
    own = members.identifier("cp1")
    outcome = members.nodes.call("cp1", "EtcdRemoveMemberByID", message("machine.EtcdRemoveMemberByIDRequest")(member_id=own), ADMIN)
    refusal = "etcdserver: re-configuration failed due to not enough started members"
    assert (outcome.code, outcome.details) == ("UNKNOWN", f"failed to remove member: failed to remove member {own}: {refusal}")
    outcome = members.nodes.call("cp1", "EtcdLeaveCluster", role=ADMIN)
    assert outcome.code == "UNKNOWN" and outcome.details.endswith(refusal)
    outcome = members.nodes.call("cp1", "EtcdForfeitLeadership", role=ADMIN)
    assert (outcome.code, outcome.details) == ("UNKNOWN", "failed to forfeit leadership: cannot forfeit leadership, only one member")


def test_a_graceful_reset_of_the_last_control_plane_answers_ok_and_wipes_nothing(members: Members) -> None:
    put(members, "cp1", b"a", b"1")
    boots = members.nodes.state("cp1")["boots"]
    request = message("machine.ResetRequest")(graceful=True, reboot=True)
    assert members.nodes.call("cp1", "Reset", request, ADMIN).code == "OK"
    until(lambda: members.nodes.state("cp1")["boots"] > boots, "the node reboots")
    members.whole("cp1")
    assert keys(members, "cp1")[1] == {b"a": b"1"}


def test_a_wiped_control_plane_comes_back_from_a_snapshot(members: Members) -> None:
    nodes = members.nodes
    for number in range(20):
        put(members, "cp1", b"key-%d" % number, b"value-%d" % number)
    saved, before = snapshot(members, "cp1"), keys(members, "cp1")
    nodes.lab.wipe(node=nodes.key("cp1"))
    nodes.wait("cp1", "maintenance")
    members.provision("cp1")
    upload(members, "cp1", saved[:-1] + bytes((saved[-1] ^ 1,)))
    assert bootstrap(members, "cp1", recover_etcd=True) == "OK"
    key = nodes.key("cp1")
    until(lambda: "etcd not running" in str(nodes.lab.state(node=key)["unmet"]) and nodes.lab.state(node=key)["stage"] == "running", "the recovery fails")
    upload(members, "cp1", saved)
    assert bootstrap(members, "cp1", recover_etcd=True) == "OK"
    members.whole("cp1")
    assert keys(members, "cp1") == before


def test_a_learner_whose_node_restarts_before_the_promotion_stays_one(members: Members) -> None:
    nodes = members.nodes
    nodes.lab.timings(promotion_first=400.0)
    nodes.add("cp2")
    assert nodes.apply("cp2", nodes.config("controlplane", "cp2")).code == "OK"
    until(lambda: "cp2" in members.list("cp1"), "the learner has its name")
    nodes.lab.power(node=nodes.key("cp2"), state="cycle")
    until(lambda: "etcd not healthy" in str(nodes.state("cp2")["unmet"]), "a learner is not healthy")
    assert members.list("cp1")["cp2"].is_learner
    outcome = nodes.call("cp2", "EtcdMemberList", message("machine.EtcdMemberListRequest")(query_local=True), ADMIN)
    assert (outcome.code, outcome.details) == ("UNKNOWN", "etcdserver: rpc not supported for learner")


def test_a_frozen_member_hangs_every_call_until_the_deadline(members: Members) -> None:
    nodes = members.nodes
    nodes.lab.etcd(node=nodes.key("cp1"), frozen=True)
    outcome = nodes.call("cp1", "EtcdStatus", role=ADMIN, deadline=0.3)
    assert outcome.code in ("DEADLINE_EXCEEDED", "RST_STREAM 8")
    nodes.lab.etcd(node=nodes.key("cp1"), frozen=False)
    members.whole("cp1")


def test_an_emulated_member_cannot_be_frozen() -> None:
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab)
        nodes.add("cp1")
        with pytest.raises(LabError, match="only a real etcd"):
            lab.etcd(node=nodes.key("cp1"), frozen=True)
        assert lab.etcd(node=nodes.key("cp1")) is None


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("way", ["stop", "SIGKILL"])
def test_no_process_is_left(way: str) -> None:
    """Not after a power cut, nor after the lab's end, however it ends and whatever the member does."""
    lab = start()
    try:
        nodes = Nodes(lab)
        nodes.control_plane("cp1")
        key = nodes.key("cp1")
        first = lab.etcd(node=key)["pid"]
        assert alive(first) and lab.process is not None
        lab.power(node=key, state="off")
        assert not alive(first)
        lab.power(node=key, state="on")
        second = int((until(lambda: lab.etcd(node=key), "the member starts"))["pid"])
        lab.etcd(node=key, frozen=True)
        if way == "stop":
            lab.stop()
            assert lab.process.wait(timeout=10) == 0
        else:
            os.kill(lab.process.pid, signal.SIGKILL)
        until(lambda: not alive(second), "the member is gone", 5)
    finally:
        lab.close()
