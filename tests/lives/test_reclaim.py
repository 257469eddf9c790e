# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines of other clusters that answer badly, have odd disks, or are reclaimed by runs that are killed or race (design section 16).

By module processes and with the lab's own etcd; with real members it is in tests/scenarios/test_reclaim.py.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.crash.boundaries import AFTER, CALL, INSIDE, Boundary, read_trace
from tests.lab.control import Lab
from tests.lives.running_cluster import LONGEST, QUICK, writes
from tests.nursery.client import Ended, Nursery
from tests.scenarios.foreign_cluster import Foreign
from tests.scenarios.playing import network_of, wait_for

NETWORK = network_of(__name__)
RESET = "Reset"
#: At how many boundaries more, evenly spread over all of them.
KILLS = int(os.environ.get("ICHOR_TEST_KILLS", "0"))
#: Between these a run has got further: a lease, the reset, what is written of the machine.
STEPS = re.compile(rf"write_atomically \.state/leases|machine\.MachineService/{RESET}$|write_atomically (\.state/)?machines|remove \.state/leases")
TIMING = {**QUICK, "call": 20.0, "discovery_after_reset": 0.5, "lock_wait": 60.0}


class Place:
    """A store with the cluster prod, and foreign clusters beside it."""

    def __init__(self, lab: Lab, nursery: Nursery, folder: Path) -> None:
        self.lab, self.nursery, self.folder, self.store = lab, nursery, folder, folder / "ichor"
        self._next = 1
        for module, given in (("talos_cluster", {
                "name": "prod", "endpoint": f"https://{NETWORK}.250:6443", "talos_version": "v1.13.9", "kubernetes_version": "v1.35.0", "bundle": "prod",
                "control_planes": 1, "discovery": {"ranges": [f"{NETWORK}.1-200"]}}), ("talos_secrets", {"cluster": "prod"})):
            assert not nursery.run(module, store_path=str(self.store), **given).result.get("failed")

    def foreign(self, name: str, planes: int = 1, workers: int = 1, **more: Any) -> Foreign:
        first, self._next = self._next, self._next + planes + workers
        made = Foreign(self.lab, name, NETWORK, planes, workers, first, **more).create()
        for host in made.numbers:
            self.lab.wait(node=host, stage="ready", seconds=60)
        return made

    def more(self, foreign: Foreign, host: str) -> str:
        """One more node of that cluster, which boots while something else is done."""
        foreign.numbers[host], self._next = self._next, self._next + 1
        foreign.add(host)
        return host

    def given(self, foreign: Foreign, host: str, **more: Any) -> dict[str, Any]:
        given = {"address": foreign.address(host), "confirm": foreign.uuid(host), "talosconfig": foreign.talosconfig(self.folder), **more}
        return {"cluster": "prod", "store_path": str(self.store), "allow_loopback": True, "timing": TIMING,
                **{key: value for key, value in given.items() if value is not None}}

    def reclaim(self, foreign: Foreign, host: str, *, check: bool = False, fails: bool = False, **more: Any) -> dict[str, Any]:
        ended = self.nursery.run("talos_reclaim", check=check, **self.given(foreign, host, **more))
        assert ended.result and bool(ended.result.get("failed")) == fails, f"{ended.output} {ended.errors}"
        return ended.result

    def records(self, state: str = "pending") -> dict[str, str]:
        """UUIDs of the store's machines in that state, by name."""
        found = {}
        for path in (self.store / "machines").glob("*.yaml"):
            spec = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]
            if spec["approvalState"] == state:
                found[path.stem] = spec["identity"]["uuid"]
        return found

    def waits(self, foreign: Foreign, host: str) -> None:
        """It is pending once, with the certificate that it shows."""
        names = [name for name, uuid in self.records().items() if uuid == foreign.uuid(host)]
        assert len(names) == 1, names
        status = json.loads((self.store / ".state" / "machines" / f"{names[0]}.json").read_text(encoding="utf-8"))["status"]
        assert status["maintenanceFingerprint"] == self.lab.state(node=host)["fingerprint"]

    def order(self, foreign: Foreign, host: str, name: str) -> Path:
        """A MachineReclaim, with the talosconfig beside the bundles."""
        secret = self.store / "secrets" / f"{foreign.name}.yaml"
        secret.touch(mode=0o600)
        secret.write_text(foreign.secrets.talosconfig([]), encoding="utf-8")
        path = self.store / "reclaims" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump({"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "MachineReclaim", "metadata": {"name": name}, "spec": {
            "address": foreign.address(host), "clusterRef": "prod", "talosconfigRef": {"name": foreign.name}, "confirmUUID": foreign.uuid(host),
            "notAfter": "2099-01-01T00:00:00Z"}}), encoding="utf-8")
        return path

    def outcome(self, name: str) -> str:
        path = self.store / ".state" / "reclaims" / f"{name}.json"
        return str(json.loads(path.read_text(encoding="utf-8"))["status"].get("outcome", "")) if path.exists() else ""

    def controller(self, nursery: Nursery) -> int:
        return nursery.start("talos_controller", cluster="prod", store_path=str(self.store), allow_loopback=True, timing=TIMING, discover=False,
                             until="settled", max_runtime=LONGEST)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with Lab.start({"nodes": {}}, speed=20.0) as lab, Nursery() as nursery:
        yield Place(lab, nursery, Path(tmp_path_factory.mktemp("reclaim")))


@pytest.fixture(scope="module")
def etcd(place: Place) -> Foreign:
    """Three control planes that nobody reclaims."""
    return place.foreign("etcd", 3, 0)


@pytest.mark.parametrize(("call", "reason"), [
    ("EtcdStatus", "QuorumUnknown"), ("EtcdMemberList", "QuorumUnknown"), ("ServiceList", ""), ("Get", "CurrentConfigUnavailable"),
    ("List", "CurrentConfigUnavailable")])
def test_a_call_that_hangs_is_a_result(place: Place, etcd: Foreign, call: str, reason: str) -> None:
    place.lab.fault(node="etcd-cp-1", kind="call-hang", rpc=call)
    try:
        found = place.reclaim(etcd, "etcd-cp-1", check=True, fails=bool(reason), timing={**TIMING, "inspection": 4.0})
    finally:
        place.lab.clear(node="etcd-cp-1")
    assert found.get("reason", "") == reason, found["msg"]
    assert any("did not answer within 4 s" in text for text in found["inspections"][0]["unchecked"]), found["inspections"]


def test_disks_of_every_kind(place: Place) -> None:
    """Talos on two disks, and volumes of 1.14 on partitions of their own."""
    twice = place.foreign("twice", boards={"twice-w-1": {
        "disks": [{"name": "sda"}, {"name": "sdb"}], "volumes": [{"disk": "sdb", "label": "STATE", "number": 1}]}})
    found = place.reclaim(twice, "twice-w-1", check=True)
    assert "Volumes of Talos are there twice: STATE on " in str(found["warnings"])
    assert any("sdb" in entry for entry in found["inspections"][0]["stays"])
    apart = place.foreign("apart", 2, 0, version="v1.14.0-rc.1", more={"apart-cp-1": {"volumes": ["ETCD", "CRI", "KUBELET", "LOG"]}})
    before = set(place.lab.state(node="apart-cp-1")["partitions"])
    found = place.reclaim(apart, "apart-cp-1")
    assert f"This machine's own address is the endpoint https://{apart.address('apart-cp-1')}:6443 of cluster apart" in str(found["warnings"])
    assert set(found["inspections"][0]["wipes"]) == before - {"EFI", "META"} > {"STATE", "EPHEMERAL"}
    assert set(place.lab.state(node="apart-cp-1")["partitions"]) == {"EFI", "META"} and apart.members(but=["apart-cp-1"]) == {"apart-cp-2": True}
    place.waits(apart, "apart-cp-1")


def test_a_reset_that_is_answered_ok_and_fails_is_told(place: Place) -> None:
    """The other members go down when the reset has begun: leaving fails, and the node restarts with its data."""
    fails = place.foreign("fails", 3, 0)
    mark = place.lab.mark()
    place.lab.hold(node="fails-cp-1", phase="reset")
    place.nursery.start("talos_reclaim", **place.given(fails, "fails-cp-1"))
    wait_for(lambda: place.lab.writes(since=mark), "the reset")
    for host in ("fails-cp-2", "fails-cp-3"):
        place.lab.power(node=host, state="off")
    place.lab.hold(node="fails-cp-1", phase="reset", held=False)
    ended = place.nursery.finish()
    assert ended.result.get("reason") == "ResetFailed" and "restarted and kept its data" in ended.result["msg"], f"{ended.output} {ended.errors}"
    assert fails.uuid("fails-cp-1") not in place.records().values() and "STATE" in place.lab.state(node="fails-cp-1")["partitions"]


def test_records_of_the_machine_are_no_obstacle(place: Place) -> None:
    """A pending one is refreshed, a rejected one stays rejected."""
    again = place.foreign("again", 1, 2)
    for host in ("again-w-1", "again-w-2"):
        place.reclaim(again, host)
    names = {uuid: name for name, uuid in place.records().items()}
    first, second = names[again.uuid("again-w-1")], names[again.uuid("again-w-2")]
    assert not place.nursery.run("talos_machine_approval", machine=second, state="rejected", store_path=str(place.store)).result.get("failed")
    for host in ("again-w-1", "again-w-2"):
        place.lab.remove(node=host)
        again.add(host)
        place.lab.wait(node=host, stage="ready", seconds=60)
    found = place.reclaim(again, "again-w-1")
    assert [step["action"] for step in found["plan"]] == ["ReclaimMachine", "RegisterMachine"] and found["registered"][0]["machine"] == first
    place.waits(again, "again-w-1")
    found = place.reclaim(again, "again-w-2")
    assert [step["action"] for step in found["plan"]] == ["ReclaimMachine"] and found["registered"] == [] and second in place.records("rejected")


def test_a_machine_with_another_address_is_followed(place: Place) -> None:
    moves = place.foreign("moves")
    mark = place.lab.mark()
    place.lab.hold(node="moves-w-1", phase="wipe")
    place.nursery.start("talos_reclaim", **place.given(moves, "moves-w-1"))
    wait_for(lambda: place.lab.writes(since=mark), "the reset")
    place.lab.move(node="moves-w-1", address=f"{NETWORK}.190")
    place.lab.hold(node="moves-w-1", phase="wipe", held=False)
    ended = place.nursery.finish()
    assert not ended.result.get("failed"), f"{ended.output} {ended.errors}"
    name = ended.result["registered"][0]["machine"]
    assert f"{NETWORK}.190" in (place.store / "machines" / f"{name}.yaml").read_text(encoding="utf-8")
    place.waits(moves, "moves-w-1")


def steps_of(trace: list[Boundary]) -> list[Boundary]:
    """After each step and before the reset, for the first time; in the middle of what is written of the machine too."""
    return [one for one in trace if one.occurrence == 1 and STEPS.match(one.what)
            and (one.side == AFTER or one.what.endswith(RESET) or one.side == INSIDE and "machines" in one.what)]


def test_killed_at_every_step_and_run_again(place: Place, tmp_path: Path) -> None:
    victims = place.foreign("killed", 1, 1)

    def traced(host: str, kill: Boundary | None = None) -> Ended:
        trace = tmp_path / "trace"
        trace.unlink(missing_ok=True)
        told = {"trace": str(trace), "store": str(place.store), "kill": vars(kill) if kill else None}
        return place.nursery.run("talos_reclaim", hook="tests.crash.boundaries:install", told=told, **place.given(victims, host))

    assert traced("killed-w-1").status == 0
    trace, head = read_trace(tmp_path / "trace"), victims.uuid("killed-w-1")[:8]
    kills = steps_of(trace) + [trace[len(trace) * number // (KILLS + 1)] for number in range(1, KILLS + 1)]
    assert len(steps_of(trace)) == 10, steps_of(trace)
    hosts = [place.more(victims, f"killed-w-{number}") for number in range(2, len(kills) + 2)]
    for host, kill in zip(hosts, kills):
        place.lab.wait(node=host, stage="ready", seconds=60)
        mark, kill = place.lab.mark(), replace(kill, what=kill.what.replace(head, victims.uuid(host)[:8]))
        ended = traced(host, kill)
        assert ended.killed or kill not in steps_of(trace) and ended.status == 0, f"{kill}: {ended.output} {ended.errors}"
        wait_for(lambda host=host: place.lab.state(node=host)["mode"] in ("maintenance", "configured"), "an answer", 60)  # type: ignore[misc]
        if writes(place.lab, mark):
            place.lab.wait(node=host, stage="maintenance", seconds=60)
        place.reclaim(victims, host)
        again = place.reclaim(victims, host)
        assert not again["changed"] and writes(place.lab, mark) == {RESET: 1}, f"killed {kill}"
        place.waits(victims, host)


def test_stopped_by_a_signal_in_the_middle_and_run_again(place: Place) -> None:
    victims = place.foreign("stopped", 1, 2)
    for host, number in (("stopped-w-1", signal.SIGTERM), ("stopped-w-2", signal.SIGINT)):
        mark = place.lab.mark()
        place.lab.hold(node=host, phase="reset")
        pid = place.nursery.start("talos_reclaim", **place.given(victims, host))
        wait_for(lambda mark=mark: writes(place.lab, mark, accepted=False), "the reset")  # type: ignore[misc]
        os.kill(pid, number)
        ended = place.nursery.finish()
        assert ended.result["interrupted"] and ended.result["reason"] == "Interrupted" and not ended.late, f"{ended.output} {ended.errors}"
        assert not list((place.store / ".state" / "leases").glob("*.json"))
        place.lab.hold(node=host, phase="reset", held=False)
        # While it reboots nobody can be asked; the next run says so and is for later.
        place.lab.wait(node=host, stage="maintenance", seconds=60)
        place.reclaim(victims, host)
        assert writes(place.lab, mark) == {RESET: 1}
        place.waits(victims, host)


def test_killed_while_the_node_goes_down_or_is_down_and_run_again(place: Place, tmp_path: Path) -> None:
    """One that goes down is waited for. Where nobody answers the next run says so, sends nothing, and is for later."""
    gone, kill = place.foreign("gone", 1, 2), {"kind": CALL, "what": f"machine.MachineService/{RESET}", "side": AFTER, "occurrence": 1}

    def leases() -> list[str]:
        """What the killed run held; the next one takes it when it has looked."""
        with contextlib.suppress(FileNotFoundError):
            return [path.read_text(encoding="utf-8") for path in sorted((place.store / ".state" / "leases").glob("*.json"))]
        return []

    for host, phase in (("gone-w-1", "wipe"), ("gone-w-2", "")):
        mark, given = place.lab.mark(), place.given(gone, host, timing={**TIMING, "connect": 2.0})
        if phase:
            place.lab.hold(node=host, phase=phase)
        killed = place.nursery.run("talos_reclaim", hook="tests.crash.boundaries:install",
                                   told={"trace": str(tmp_path / "trace"), "store": str(place.store), "kill": kill}, **given)
        assert killed.killed, f"{killed.output} {killed.errors}"
        if phase:
            before = leases()
            place.nursery.start("talos_reclaim", **given)
            wait_for(lambda before=before: leases() != before, "its look")  # type: ignore[misc]
            place.lab.hold(node=host, phase=phase, held=False)
            done = place.nursery.finish().result
        else:
            place.lab.wait(node=host, stage="maintenance", seconds=60)
            place.lab.power(node=host, state="off")
            for check in (True, False):
                silent = place.reclaim(gone, host, check=check, fails=True, timing={**TIMING, "connect": 2.0})
                assert silent["reason"] == "NodeUnreachable" and "run this again then" in silent["msg"] and silent["plan"] == [], silent
            assert gone.uuid(host) not in place.records().values()
            place.lab.power(node=host, state="on")
            place.lab.wait(node=host, stage="maintenance", seconds=60)
            done = place.reclaim(gone, host)
        assert not done.get("failed") and [step["action"] for step in done["plan"]] == ["RegisterMachine"], done
        assert writes(place.lab, mark, accepted=False) == {RESET: 1}
        place.waits(gone, host)


def test_two_runs_at_once_reset_a_machine_once(place: Place) -> None:
    both = place.foreign("both", 1, 1)
    mark = place.lab.mark()
    with Nursery() as other:
        for nursery in (place.nursery, other):
            nursery.start("talos_reclaim", **place.given(both, "both-w-1"))
        ended = [nursery.finish() for nursery in (place.nursery, other)]
    assert writes(place.lab, mark) == {RESET: 1}
    for one in ended:
        assert one.result and not one.result.get("failed") and one.result["registered"][0]["uuid"] == both.uuid("both-w-1"), f"{one.output} {one.errors}"
    place.waits(both, "both-w-1")


def test_answers_that_lie_or_hang_are_not_used(place: Place) -> None:
    """What cannot be made out of an answer is a result of the inspection, and one that hangs costs its own time alone."""
    odd = place.foreign("odd", 3, 0)
    mark = place.lab.mark()
    for kind, call in (("call-hang", "Read"), ("call-hang", "ServiceList"), ("answer-garbage", "EtcdMemberList")):
        place.lab.fault(node="odd-cp-1", kind=kind, rpc=call)
    try:
        found = place.reclaim(odd, "odd-cp-1", check=True, fails=True, timing={**TIMING, "inspection": 4.0})
    finally:
        place.lab.clear(node="odd-cp-1")
    unchecked = found["inspections"][0]["unchecked"]
    assert found["reason"] == "QuorumUnknown" and writes(place.lab, mark) == {}, found["msg"]
    assert sum("did not answer within 4 s" in text for text in unchecked) == 2 and any("etcd member list" in text for text in unchecked), unchecked


def test_two_racing_controllers_carry_an_order_out_once(place: Place) -> None:
    race = place.foreign("race")
    with Nursery() as other:
        mark = place.lab.mark()
        place.order(race, "race-w-1", "race")
        place.controller(place.nursery)
        place.controller(other)
        for nursery in (place.nursery, other):
            ended = nursery.finish()
            assert not ended.result.get("failed"), f"{ended.output} {ended.errors}"
    assert writes(place.lab, mark) == {RESET: 1} and place.outcome("race").startswith("Pending as ")
    place.waits(race, "race-w-1")

    # Its status is lost: it is no new order, whatever answers there now.
    (place.store / ".state" / "reclaims" / "race.json").unlink()
    place.lab.remove(node="race-w-1")
    race.add("race-w-1")
    place.lab.wait(node="race-w-1", stage="ready", seconds=60)
    mark = place.lab.mark()
    place.controller(place.nursery)
    ended = place.nursery.finish()
    assert writes(place.lab, mark) == {} and "StatusMissing" in ended.output, f"{ended.output} {ended.errors}"
    (place.store / "reclaims" / "race.yaml").unlink()


#: What a person who has only read the page makes of an order: the edit, and what the file is told for, or the reason that holds it.
MISTYPED = {
    "a-day": ({"notAfter": "2099-01-01"}, "has to be a time such as"), "no-end": ({"notAfter": None}, "notAfter is missing"),
    "misspelled": ({"uuid": "x"}, "uuid"), "a-name": ({"talosconfigRef": "clumsy"}, "talosconfigRef"), "no-uuid": ({"confirmUUID": "yes"}, "confirmUUID"),
    "over": ({"notAfter": "2020-01-01T00:00:00Z"}, "StatusMissing"), "nobody": ({"talosconfigRef": {"name": "nobody"}}, "SecretsUnavailable"),
    "keyless": ({"talosconfigRef": None}, "UnknownAuthority"), "another": ({"confirmUUID": "f00000ff-51c8-4f0e-8d39-3cecef0000ff"}, "IdentityMismatch"),
}


def test_a_mistyped_order_is_told_and_sends_nothing(place: Place) -> None:
    """And the right one, under another name, is carried out: with the UUID in capitals, and the time without quotes."""
    clumsy, host, mark = place.foreign("clumsy", 1, 1), "clumsy-w-1", place.lab.mark()
    for name, (edit, dummy) in MISTYPED.items():
        path = place.order(clumsy, host, name)
        order = yaml.safe_load(path.read_text(encoding="utf-8"))
        order["spec"] = {key: value for key, value in {**order["spec"], **edit}.items() if value is not None}
        path.write_text(yaml.safe_dump(order), encoding="utf-8")
    try:
        place.controller(place.nursery)
        result = place.nursery.finish().result
        told = {one["name"]: one["message"] for one in result["broken"]} | {
            path.stem: path.read_text(encoding="utf-8") for path in (place.store / ".state" / "reclaims").glob("*.json") if path.stem in MISTYPED}
        assert {name: text for name, (dummy, text) in MISTYPED.items() if text not in told.get(name, "")} == {}, told
        assert writes(place.lab, mark, accepted=False) == {} and not any(place.outcome(name) for name in MISTYPED)
    finally:
        for name in MISTYPED:
            (place.store / "reclaims" / f"{name}.yaml").unlink()
    for name in ("another", "right"):
        path = place.order(clumsy, host, name)
        text = path.read_text(encoding="utf-8").replace(clumsy.uuid(host), clumsy.uuid(host).upper())
        path.write_text(text.replace("'2099-01-01T00:00:00Z'", "2099-01-01T00:00:00Z"), encoding="utf-8")
        place.controller(place.nursery)
        ended = place.nursery.finish()
        assert place.outcome("right").startswith("Pending as ") == (name == "right"), f"{ended.output} {ended.errors}"
    assert "under another name" in (place.store / ".state" / "reclaims" / "another.json").read_text(encoding="utf-8")
    assert writes(place.lab, mark, accepted=False) == {RESET: 1}
    for name in ("another", "right"):
        (place.store / "reclaims" / f"{name}.yaml").unlink()
    place.waits(clumsy, host)


def test_ten_machines_of_three_clusters(place: Place) -> None:
    clusters = [place.foreign(name, 3, 2) for name in ("ten-a", "ten-b", "ten-c")]
    chosen = [(clusters[0], ("cp-1", "cp-2", "w-1", "w-2")), (clusters[1], ("cp-1", "w-1", "w-2")), (clusters[2], ("cp-2", "w-1", "w-2"))]
    merged: dict[str, Any] = {"context": "ten-a", "contexts": {}}
    for foreign in clusters:
        merged["contexts"].update(yaml.safe_load(foreign.secrets.talosconfig([]))["contexts"])
    entries = [{"address": foreign.address(f"{foreign.name}-{host}"), "confirm": foreign.uuid(f"{foreign.name}-{host}"), "context": foreign.name}
               for foreign, hosts in chosen for host in hosts]
    given = {"cluster": "prod", "store_path": str(place.store), "allow_loopback": True, "timing": TIMING, "nodes": entries,
             "talosconfig_content": yaml.safe_dump(merged)}
    mark = place.lab.mark()
    planned = place.nursery.run("talos_reclaim", check=True, **given).result
    assert not planned.get("failed") and len(planned["plan"]) == 20 and writes(place.lab, mark) == {}, planned.get("msg")
    hosts = {f"{foreign.address(f'{foreign.name}-{host}')}:50000": f"{foreign.name}-{host}" for foreign, chosen_hosts in chosen for host in chosen_hosts}
    resets = [step for step in planned["plan"] if step["action"] == "ReclaimMachine"]
    # Cluster by cluster, in each the workers first, and each waits for the one before it.
    order = [(name, "".join(host[len("ten-a-")] for host in some)) for name, some in itertools.groupby(
        (hosts[step["target"]] for step in resets), key=lambda host: host[:len("ten-a")])]
    assert sorted(order) == [("ten-a", "wwcc"), ("ten-b", "wwc"), ("ten-c", "wwc")]
    for before, step in zip(resets, resets[1:]):
        same = hosts[before["target"]][:len("ten-a")] == hosts[step["target"]][:len("ten-a")]
        assert (f"{before['target']} in maintenance mode: of one cluster one machine at a time" in str(step["waits_for"])) == same, step
    ended = place.nursery.run("talos_reclaim", **given)
    assert not ended.result.get("failed"), f"{ended.output} {ended.errors}"
    assert ended.result["plan_id"] == planned["plan_id"] and writes(place.lab, mark) == {RESET: 10} and len(ended.result["registered"]) == 10
    # One is in maintenance mode before the next of its cluster is reset.
    for foreign in clusters:
        entries = [entry for entry in place.lab.log(since=mark, event="node") if entry["node"] in foreign.numbers
                   and (entry.get("what") == "reset" or entry.get("stage") == "maintenance")]
        assert [entry.get("what") for entry in entries if entry.get("what") == "reset"]
        down: set[str] = set()
        for entry in entries:
            if entry.get("what") == "reset":
                assert not down, entries
                down.add(entry["node"])
            else:
                down.discard(entry["node"])
    for foreign, hosts in chosen:
        left = [f"{foreign.name}-cp-{number}" for number in (1, 2, 3) if f"cp-{number}" not in hosts]
        assert foreign.members(but=[f"{foreign.name}-{host}" for host in hosts]) == {host: True for host in left}
