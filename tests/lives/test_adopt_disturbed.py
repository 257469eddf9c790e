# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An adoption in a world that is not kind: nodes that hang, talosconfigs that are none, signals, and two of them at once (design section 15)."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab

from tests.machinery.oddities import made
from tests.nursery.client import Nursery
from tests.scenarios.adopting import Running, named, talosconfig
from tests.scenarios.playing import QUICK, network_of

ROLES = {"cp-1": "controlplane", "w-1": "worker", "w-2": "worker"}
#: What a test waits for comes long before.
LONGEST = 60.0


@dataclass
class Place:
    """A cluster that runs and that nobody has adopted; each test has a store of its own."""

    running: Running
    nursery: Nursery

    def options(self, store: Path, **more: Any) -> dict[str, Any]:
        return {**self.running.options(), "store_path": str(store), "consent_class_b": True, **more}

    def adopt(self, store: Path, *, check: bool = False, **more: Any) -> dict[str, Any]:
        ended = self.nursery.run("talos_adopt", check=check, **self.options(store, **more))
        assert ended.result and "Traceback" not in ended.output + ended.errors, f"{ended.output} {ended.errors}"
        return ended.result

    def reasons(self, store: Path) -> dict[str, str]:
        """The reason of Ready of each record."""
        folder = store / ".state" / "machines"
        found = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))["status"] for path in folder.glob("*.json")} if folder.exists() else {}
        return {name: next((entry["reason"] for entry in status.get("conditions", []) if entry["type"] == "Ready"), "") for name, status in found.items()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with Lab.start({"nodes": {}}, speed=20.0) as lab, Nursery() as nursery:
        texts = {name: made("1.13", role, named(name)) for name, role in ROLES.items()}
        running = Running(lab, tmp_path_factory.mktemp("adopt"), network_of(__name__), texts).start()
        mark = lab.mark()
        yield Place(running, nursery)
        assert lab.writes(since=mark) == {}


@pytest.mark.parametrize("call", ["Get", "List"])
def test_a_node_whose_call_hangs_is_left_out_and_the_others_are_shown(place: Place, tmp_path: Path, call: str) -> None:
    place.running.lab.fault(node="w-2", kind="call-hang", rpc=call)
    try:
        found = place.adopt(tmp_path / "ichor", check=True, timing={**QUICK, "call": 6.0})
    finally:
        place.running.lab.clear(node="w-2")
    told = {one["machine"] for one in found["adoption"]}
    assert {place.running.record("cp-1"), place.running.record("w-1")} <= told, found
    assert call == "List" or found["unreachable_machines"] == [f"{place.running.addresses['w-2']}:50000"], found


def test_etcd_that_hangs_is_a_warning_and_no_end(place: Place, tmp_path: Path) -> None:
    place.running.lab.fault(node="cp-1", kind="call-hang", rpc="EtcdMemberList")
    try:
        found = place.adopt(tmp_path / "ichor", check=True, timing={**QUICK, "call": 6.0})
    finally:
        place.running.lab.clear(node="cp-1")
    assert not found.get("failed") and len(found["adoption"]) == len(ROLES) and "etcd" in str(found["warnings"]), found


def test_a_node_that_is_off_is_adopted_later(place: Place, tmp_path: Path) -> None:
    store, lab = tmp_path / "ichor", place.running.lab
    lab.power(node="w-2", state="off")
    try:
        found = place.adopt(store, timing={**QUICK, "connect": 2.0})
        assert Counter(place.reasons(store).values()) == {"Converged": 2}, found["msg"]
        assert found["unreachable_machines"] == [f"{place.running.addresses['w-2']}:50000"]
    finally:
        lab.power(node="w-2", state="on")
        lab.wait(node="w-2", stage="ready", seconds=LONGEST)
    place.adopt(store)
    assert Counter(place.reasons(store).values()) == {"Converged": 3}


def _of(place: Place) -> str:
    return place.running.path.read_text(encoding="utf-8")


def _other(place: Place) -> str:
    """A talosconfig of a cluster that is not this one."""
    return ClusterSecrets("other").talosconfig(list(place.running.addresses.values()))


def _of_omni(place: Place) -> str:
    """As Omni gives it out: it has no keys."""
    return yaml.safe_dump({"context": "prod", "contexts": {"prod": {
        "endpoints": ["https://omni.example.org"], "auth": {"siderov1": {"identity": "ada@example.org"}}, "cluster": "prod"}}})


def _expired(place: Place) -> str:
    return talosconfig(list(place.running.addresses.values()), now=datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc).timestamp())


BROKEN: dict[str, Callable[[Place], str]] = {
    "empty": lambda place: "", "no yaml": lambda place: "\t{:", "a list": lambda place: "- a\n", "nothing in it": lambda place: "context: prod\ncontexts: {}\n",
    "a context that is not there": lambda place: _of(place).replace("context: prod", "context: other"),
    "a key that is none": lambda place: yaml.safe_dump({"context": "prod", "contexts": {"prod": {
        **yaml.safe_load(_of(place))["contexts"]["prod"], "key": "bm9uZQ=="}}}),
    "base64 that is none": lambda place: yaml.safe_dump({"context": "prod", "contexts": {"prod": {
        **yaml.safe_load(_of(place))["contexts"]["prod"], "crt": "%%%"}}}),
    "of another cluster": _other, "expired": _expired, "of Omni": _of_omni}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_talosconfig_that_is_none_is_told_and_nothing_is_written(place: Place, tmp_path: Path, broken: str) -> None:
    path, store = tmp_path / "talosconfig", tmp_path / "ichor"
    path.write_text(BROKEN[broken](place), encoding="utf-8")
    found = place.adopt(store, talosconfig=str(path))
    assert found["failed"] and found["reason"] and not found["changed"] and not place.reasons(store), found
    assert yaml.safe_load(_of(place))["contexts"]["prod"]["key"] not in str(found)
    assert broken != "of Omni" or found["reason"] == "CredentialsInvalid" and "Omni" in found["msg"], found


def test_a_talosconfig_as_an_editor_on_windows_leaves_it(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "talosconfig"
    path.write_bytes(b"\xef\xbb\xbf" + _of(place).replace("\n", "\r\n").encode())
    assert len(place.adopt(tmp_path / "ichor", check=True, talosconfig=str(path))["adoption"]) == len(ROLES)
    found = place.adopt(tmp_path / "ichor", talosconfig=str(tmp_path))
    assert found["failed"] and found["reason"] and str(tmp_path) in found["msg"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_by_a_signal_in_the_middle_and_run_again(place: Place, tmp_path: Path, number: signal.Signals) -> None:
    store, lab = tmp_path / "ichor", place.running.lab
    pid = place.nursery.start("talos_adopt", **place.options(store))
    end = time.monotonic() + LONGEST
    while "Converged" not in place.reasons(store).values() and time.monotonic() < end:
        if "AdoptionHeld" in place.reasons(store).values():
            lab.fault(node="w-2", kind="call-hang", rpc="Get")
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):  # on a machine that stalls it may be over
        os.kill(pid, number)
    ended = place.nursery.finish()
    lab.clear(node="w-2")
    assert ended.result and not ended.late and "Traceback" not in ended.output + ended.errors, f"{ended.output} {ended.errors}"
    assert not list((store / ".state" / "leases").glob("*.json"))
    place.adopt(store)
    assert Counter(place.reasons(store).values()) == {"Converged": 3}


@pytest.mark.parametrize("stores", [1, 2])
def test_two_at_once_come_to_the_same_end(place: Place, tmp_path: Path, stores: int) -> None:
    folders = [tmp_path / f"ichor-{number % stores}" for number in range(2)]
    with Nursery() as other:
        for nursery, store in zip((place.nursery, other), folders):
            nursery.start("talos_adopt", **place.options(store))
        ended = [nursery.finish() for nursery in (place.nursery, other)]
    for one, store in zip(ended, folders):
        assert one.result and "Traceback" not in one.output + one.errors, f"{one.output} {one.errors}"
        if one.result.get("failed"):
            assert stores == 1 and one.result["reason"], one.result
            place.adopt(store)
        assert Counter(place.reasons(store).values()) == {"Converged": 3}, one.result
