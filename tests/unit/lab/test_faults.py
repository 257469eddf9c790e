# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults on command: what a client sees of each, and what the log proves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from tests.lab.control import Lab, LabError
from tests.lab.faults import KINDS
from tests.lab.wire import message
from tests.lab.wireclient import WireClient, WireError, context
from tests.unit.lab.lab_nodes import PORT, Nodes, address


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with Lab.start(speed=40) as lab:
        made = Nodes(lab)
        made.add("m")
        yield made


@pytest.fixture(autouse=True)
def no_faults_after(nodes: Nodes) -> Iterator[None]:
    yield
    nodes.lab.clear(node=nodes.key("m"))


def strike(nodes: Nodes, kind: str, **fields: object) -> None:
    nodes.lab.fault(node=nodes.key("m"), kind=kind, **fields)


@pytest.mark.parametrize(("kind", "seen"), [
    ("connect-reset", "TCP"), ("connect-close", "TLS"), ("connect-garbage", "TLS"), ("plain-http", "TLS"), ("plain-drip", "TLS"), ("connect-hang", "TCP"),
])
def test_connections(nodes: Nodes, kind: str, seen: str) -> None:
    """Nothing of TLS is seen, and nothing but TLS's own first bytes is taken."""
    strike(nodes, kind, times=1)
    with pytest.raises(WireError) as error:
        WireClient(nodes.addresses["m"], PORT, context(), seconds=0.3)
    assert error.value.kind == seen or error.value.kind == "TCP"
    assert nodes.call("m", "Version").code == "OK"


@pytest.mark.parametrize("kind", ["handshake-hang", "handshake-reset", "handshake-garbage", "web-server", "corrupt-record"])
def test_after_the_handshake(nodes: Nodes, kind: str) -> None:
    strike(nodes, kind, times=1)
    mark = nodes.lab.mark()
    assert nodes.call("m", "Version", read_for=0.3).code in ("OPEN", "TCP", "TLS", "HTTP2")
    assert not nodes.lab.log(since=mark, event="call")


@pytest.mark.parametrize(("kind", "codes"),
                         [("call-hang", ("OPEN",)), ("call-reset", ("TCP", "TLS")), ("answer-lost", ("TCP", "TLS")), ("answer-hang", ("OPEN",))])
def test_calls(nodes: Nodes, kind: str, codes: tuple[str, ...]) -> None:
    """Only the named call is struck, and only as often as was said."""
    strike(nodes, kind, rpc="Version", times=1)
    assert nodes.call("m", "Hostname").code == "OK"
    assert nodes.call("m", "Version", read_for=0.3).code in codes
    assert nodes.call("m", "Version").code == "OK"
    assert kind in nodes.lab.struck(node=nodes.key("m"))


def test_a_status_of_ones_own(nodes: Nodes) -> None:
    strike(nodes, "call-status", rpc="Version", value="UNAVAILABLE: gone for lunch")
    outcome = nodes.call("m", "Version")
    assert (outcome.code, outcome.details) == ("UNAVAILABLE", "gone for lunch")


def test_a_delay(nodes: Nodes) -> None:
    strike(nodes, "call-delay", rpc="Version", value=0.2)
    assert nodes.call("m", "Version").seconds >= 0.2


def test_answers_of_hostile_size(nodes: Nodes) -> None:
    strike(nodes, "answer-huge", rpc="Version", times=1, value=2_000_000)
    assert len(nodes.call("m", "Version", read_for=10.0).messages[0]) > 2_000_000
    strike(nodes, "answer-claims-huge", rpc="Version", times=1)
    assert nodes.call("m", "Version", read_for=0.3).messages == []
    strike(nodes, "answer-endless", rpc="Version", times=1)
    assert len(nodes.call("m", "Version", read_for=0.5).messages) > 3
    strike(nodes, "answer-garbage", rpc="Version", times=1)
    assert nodes.call("m", "Version").code == "OK"
    strike(nodes, "answer-drip", rpc="Version", times=1, value=0.02)
    assert nodes.call("m", "Version", read_for=0.3).code == "OPEN"


def test_a_slow_drip_of_everything(nodes: Nodes) -> None:
    strike(nodes, "write-drip", value=0.001)
    assert nodes.call("m", "Version", read_for=20.0).code == "OK"


def test_every_kind_is_known_by_name(nodes: Nodes) -> None:
    assert nodes.lab.faults() == list(KINDS)
    with pytest.raises(LabError, match="unknown fault"):
        strike(nodes, "nonsense")


def test_a_lost_answer_comes_after_the_node_has_stored() -> None:
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab)
        nodes.add("w")
        lab.fault(node=nodes.key("w"), kind="answer-lost", rpc="ApplyConfiguration", times=1)
        text = nodes.config("worker", "w")
        assert nodes.apply("w", text).code in ("TCP", "TLS")
        assert lab.config(node=nodes.key("w"), which="active") == text
        (entry,) = lab.log(node=nodes.key("w"), event="config")
        assert (entry["sha256"], entry["length"]) == (hashlib.sha256(text.encode()).hexdigest(), len(text.encode()))
        assert lab.writes() == {"ApplyConfiguration": 1} and lab.writes(accepted_only=True) == {}


@pytest.mark.parametrize("kind", ["expired", "not-yet-valid", "rsa", "foreign", "self-named"])
def test_wrong_certificates(nodes: Nodes, kind: str) -> None:
    before = nodes.state("m")["fingerprint"]
    after = nodes.lab.certificate(node=nodes.key("m"), kind=kind)["fingerprint"]
    assert after != before
    assert nodes.call("m", "Version").code == "OK"
    assert nodes.lab.reissue(node=nodes.key("m"))["fingerprint"] not in (before, after)


def test_a_clock_change_issues_a_new_leaf(nodes: Nodes) -> None:
    before = nodes.state("m")["fingerprint"]
    nodes.lab.clock(node=nodes.key("m"), offset=3600.0)
    assert nodes.state("m")["fingerprint"] != before
    nodes.lab.clock(node=nodes.key("m"), offset=0.0)


def uuid_at(where: str) -> str:
    request = message("cosi.resource.GetRequest")(namespace="hardware", type="SystemInformations.hardware.talos.dev", id="systeminformation")
    with WireClient(where, PORT, context()) as client:
        answer = message("cosi.resource.GetResponse").FromString(client.unary("/cosi.resource.State/Get", request.SerializeToString()).messages[0])
    text: str = answer.resource.spec.yaml_spec
    return next(line for line in text.splitlines() if line.startswith("uuid: "))[6:]


def test_twin_move_and_swap() -> None:
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab)
        first, second = nodes.add("a"), nodes.add("b")
        elsewhere, third = address(), address()
        twin = lab.twin(node=nodes.key("a"), name="twin", address=elsewhere)
        assert twin["uuid"] == first["uuid"] and twin["fingerprint"] != first["fingerprint"]
        assert uuid_at(elsewhere) == uuid_at(first["address"])
        lab.swap(first=nodes.key("a"), second=nodes.key("b"))
        assert (uuid_at(first["address"]), uuid_at(second["address"])) == (second["uuid"], first["uuid"])
        moved = lab.move(node=nodes.key("a"), address=third)
        assert uuid_at(third) == first["uuid"] and moved["fingerprint"] != first["fingerprint"]


def test_power_and_wipes() -> None:
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab)
        nodes.control_plane("cp1")
        nodes.join("w1", "worker")
        key = nodes.key("w1")
        lab.power(node=key, state="off")
        assert nodes.call("w1", "Version").code == "TCP"
        lab.power(node=key, state="on")
        nodes.wait("w1", "ready")
        lab.hide_state(node=key)
        lab.power(node=key, state="cycle")
        assert nodes.wait("w1", "maintenance")["installed"]
        lab.power(node=key, state="cycle")
        nodes.wait("w1", "ready")
        lab.wipe(node=key, what="STATE")
        state = nodes.wait("w1", "maintenance")
        assert state["installed"] and "STATE" not in state["partitions"]
        lab.wipe(node=key)
        assert not nodes.wait("w1", "maintenance")["installed"]


def test_the_log_proves_what_was_sent_and_what_was_not(nodes: Nodes) -> None:
    """A connection that carried no call, and one whose configuration was refused."""
    mark = nodes.lab.mark()
    with nodes.connect("m"):
        pass
    assert nodes.apply("m", "nonsense: 1").code == "INVALID_ARGUMENT"
    entries = nodes.lab.log(since=mark, node=nodes.key("m"))
    assert [entry["event"] for entry in entries if entry["event"] in ("connect", "tls")] == ["connect", "tls", "connect", "tls"]
    (config,) = [entry for entry in entries if entry["event"] == "config"]
    assert config["sha256"] == hashlib.sha256(b"nonsense: 1").hexdigest() and config["credentials"] == "none"
    (done,) = [entry for entry in entries if entry["event"] == "done"]
    assert (done["code"], done["kind"], done["rpc"]) == ("INVALID_ARGUMENT", "write", "/machine.MachineService/ApplyConfiguration")
