# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playing the recorded timelines: the same action on lab nodes, and the order of what a client can see afterwards.

Each recorded row is one node in one scenario. For every thing that was watched (port, TLS, certificate, stage, readiness, etcd, trustd,
install) the recorded values have to come in the recorded order; of port, TLS and stage the lab must not show anything else for longer
than the gaps between the recorded samples.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.vector_files import read
from tests.lab.vector_match import Mismatch
from tests.lab.vector_stage import Stage
from tests.lab.wire import message

_STRICT = ("tcp", "tls", "stage")
_SHORT = 1.0  # lab seconds that a sampled recording may have missed, beyond its own longest gap
_SPEED, _SLOW = 8.0, 3.0
_OPEN = 1e9  # a value that has not been left yet


def run(folder: Path, session: Any, wanted: Callable[[dict[str, Any]], bool]) -> None:
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in read(folder / "timelines.jsonl", session.report):
        if wanted(row):
            grouped.setdefault((row["talos"], row["scenario"]), []).append(row)
    old = session.lab.timings()
    for (talos, scenario), members in grouped.items():
        problems = _problems(session, talos, scenario, members, _SPEED)
        if problems:
            # On a busy machine the timers of the lab come late by its own clock; when it is slower, less so. What is really otherwise stays so.
            problems = _problems(session, talos, scenario, members, _SLOW)
        for row in members:
            if row["node"] in problems:
                session.report.fail(f"timelines {talos}", f"{scenario} / {row['node']}", problems[row["node"]])
            else:
                session.report.passed[f"timelines {talos}"] += 1
    session.lab.timings(**old)


def _problems(session: Any, talos: str, scenario: str, members: list[dict[str, Any]], speed: float) -> dict[str, str]:
    """What does not match when the scenario is played, by node."""
    found: dict[str, str] = {}
    session.lab.speed(speed=speed)
    stage = session.empty_stage(talos)
    stage.speed = speed
    quick = talos.startswith("v1.14") and scenario.startswith("second control plane")  # its install took 0.2 s in the recording
    session.lab.timings(install=0.7 if quick else 3.0, node_status=0.15 if quick else 0.3)
    try:
        start = play(stage, scenario, members)
        for row in members:
            try:
                compare(row, stage.lab.trace(node=stage.key(row["node"])), start)
            except Mismatch as mismatch:
                found[row["node"]] = str(mismatch)[:500]
    except Exception as error:
        found = {row["node"]: f"{type(error).__name__}: {error}" for row in members}
    finally:
        stage.close()
    return found


def play(stage: Stage, scenario: str, rows: list[dict[str, Any]]) -> float:
    """Sets the scene, does the action, waits for the end; gives the lab time of the action."""
    action = next((item for name, item in _SCENARIOS.items() if scenario.startswith(name)), None)
    if action is None:
        raise Mismatch("the runner does not know this scenario")
    return action(stage, rows)


def _now(stage: Stage) -> float:
    return float(stage.lab.clock_now())


def _power_maintenance(stage: Stage, rows: list[dict[str, Any]]) -> float:
    stage.add("n5")
    start = _now(stage)
    stage.lab.power(node=stage.key("n5"), state="cycle")
    stage.wait("n5", "maintenance")
    return start


def _partial(stage: Stage, rows: list[dict[str, Any]]) -> float:
    stage.add("n5")
    start = _now(stage)
    stage.apply("n5", "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: early\n")
    return start


def _worker_first(stage: Stage, rows: list[dict[str, Any]]) -> float:
    stage.add("w2")
    stage.add("cp1")
    start = _now(stage)
    stage.apply("w2", stage.config("w2"))
    time.sleep(4.0 / stage.speed)
    stage.apply("cp1", stage.config("cp1"))
    stage.until(lambda: [item["reason"] for item in stage.state("cp1")["unmet"]] == ["etcd not running"] and stage.state("cp1")["boots"] == 2)
    stage.wait("w2", "ready")
    return start


def _cluster(stage: Stage, workers: tuple[str, ...] = (), planes: int = 1) -> None:
    stage.booted("cp1")
    for name in workers:
        stage.joined(name)
    if planes:
        stage.bootstrapped()
    if planes > 1:
        stage.joined("cp2")
        stage.until(lambda: stage.has_member("cp2"), 60)


def _bootstrap(stage: Stage, rows: list[dict[str, Any]]) -> float:
    _cluster(stage, ("w2",), 0)
    start = _now(stage)
    stage.must("cp1", "Bootstrap")
    stage.wait("cp1", "ready")
    time.sleep(1.0 / stage.speed)
    return start


def _second(stage: Stage, rows: list[dict[str, Any]]) -> float:
    _cluster(stage, (), 0)
    stage.must("cp1", "Bootstrap")
    stage.add("cp2")
    stage.until(lambda: stage.state("cp1")["stage"] == "running")
    start = _now(stage)
    stage.apply("cp2", stage.config("cp2"))
    stage.until(lambda: stage.state("cp2")["boots"] == 2 and stage.state("cp2")["stage"] == "running" and stage.has_member("cp2"), 60)
    return start


def _power_running(stage: Stage, rows: list[dict[str, Any]]) -> float:
    _cluster(stage, (), 2)
    start = _now(stage)
    stage.lab.power(node=stage.key("cp1"), state="cycle")
    stage.until(lambda: stage.state("cp1")["stage"] == "running" and stage.has_member("cp1"), 30)
    return start


def _worker_joins(stage: Stage, rows: list[dict[str, Any]]) -> float:
    _cluster(stage)
    stage.add("w1")
    start = _now(stage)
    stage.apply("w1", stage.config("w1"))
    stage.until(lambda: stage.state("w1")["boots"] == 2 and stage.state("w1")["stage"] == "running")
    return start


def _reboot(stage: Stage, rows: list[dict[str, Any]]) -> float:
    name = rows[0]["node"]
    _cluster(stage, ("w1",) if name == "w1" else (), 1 if name == "w1" else 2)
    start = _now(stage)
    stage.must(name, "Reboot")
    stage.until(lambda: stage.state(name)["boots"] == 3 and stage.state(name)["stage"] == "running")
    if name != "w1":
        stage.until(lambda: stage.has_member(name), 30)
    return start


def _reset_ephemeral(stage: Stage, rows: list[dict[str, Any]]) -> float:
    _cluster(stage, (), 2)
    start = _now(stage)
    stage.reset("cp2", graceful=True, labels=("EPHEMERAL",))
    stage.until(lambda: stage.state("cp2")["boots"] == 3 and stage.state("cp2")["stage"] == "running" and stage.has_member("cp2"), 60)
    return start


def _reset_plane(stage: Stage, rows: list[dict[str, Any]]) -> float:
    _cluster(stage, (), 2)
    start = _now(stage)
    stage.must("cp2", "Reset", message("machine.ResetRequest")(graceful=True, reboot=True))
    stage.wait("cp2", "maintenance")
    return start


def _reset_worker(stage: Stage, rows: list[dict[str, Any]]) -> float:
    name = rows[0]["node"]
    _cluster(stage, (name,))
    start = _now(stage)
    stage.reset(name, graceful="graceful reset" in rows[0]["scenario"], labels=("STATE", "EPHEMERAL") if name == "w1" else ("STATE",))
    stage.wait(name, "maintenance")
    return start


def _installed(stage: Stage, rows: list[dict[str, Any]]) -> float:
    _cluster(stage, ("w1",))
    stage.reset("w1")
    stage.wait("w1", "maintenance")
    start = _now(stage)
    stage.apply("w1", stage.config("w1"))
    stage.wait("w1", "running")
    return start


def _shutdown(stage: Stage, rows: list[dict[str, Any]]) -> float:
    _cluster(stage, ("w1",))
    start = _now(stage)
    stage.must("w1", "Shutdown")
    stage.wait("w1", "off")
    return start


def _reset_last(stage: Stage, rows: list[dict[str, Any]]) -> float:
    _cluster(stage)
    start = _now(stage)
    stage.must("cp1", "Reset", message("machine.ResetRequest")(graceful=True, reboot=True))
    stage.until(lambda: stage.state("cp1")["boots"] == 3 and stage.state("cp1")["stage"] == "running" and stage.has_member("cp1"), 30)
    return start


def _held_watch(stage: Stage, rows: list[dict[str, Any]]) -> float:
    """An open Watch keeps the old listener for the whole grace time. Where etcd comes up without a bootstrap there was another cluster member."""
    joins = any(change["what"] == "etcd" and str(change["to"]).startswith("Running") for change in rows[0]["changes"])
    if joins:
        stage.booted("cp2")
        stage.must("cp2", "Bootstrap")
        stage.wait("cp2", "ready")
    stage.add("cp1")
    request = message("cosi.resource.WatchRequest")(namespace="runtime", type="MachineStatuses.runtime.talos.dev", api_version=1)
    with stage.connect("cp1", "none") as client:
        client.call("/cosi.resource.State/Watch", [request.SerializeToString()], read_for=0.1)
        start = _now(stage)
        stage.apply("cp1", stage.config("cp1").replace("hostname: cp1", "hostname: solo"))
        last = "etcd not healthy" if joins else "etcd not running"
        stage.until(lambda: stage.state("cp1")["boots"] == 2 and [item["reason"] for item in stage.state("cp1")["unmet"]] == [last])
    return start


_SCENARIOS: dict[str, Callable[[Stage, list[dict[str, Any]]], float]] = {
    "power-cycle in maintenance": _power_maintenance, "partial configuration": _partial, "worker before any control plane": _worker_first,
    "bootstrap of the first": _bootstrap, "second control plane joins": _second, "power cycle of a running": _power_running, "worker joins": _worker_joins,
    "reboot of a": _reboot, "reset of EPHEMERAL only": _reset_ephemeral, "graceful reset of a control plane": _reset_plane,
    "graceful reset of a worker": _reset_worker, "reset of STATE only": _reset_worker, "apply on a node that is already installed": _installed,
    "shutdown of a worker": _shutdown, "graceful reset of the last control plane": _reset_last, "apply in maintenance while a client holds": _held_watch,
}


def _recorded(row: dict[str, Any]) -> dict[str, list[Any]]:
    """The recorded values of each thing, in order. A recording that never reached its end is cut where etcd lost its quorum."""
    out: dict[str, list[Any]] = {}
    for change in row["changes"]:
        value = change["to"]
        if row["reached_end"] is False and change["t"] > 7.0:
            break
        if change["what"] == "call" or (isinstance(value, str) and re.match(r"^(handshake:|DEADLINE|RST_STREAM|UNKNOWN|UNAVAILABLE|TLS:|TCP:)", value)):
            continue
        if change["what"] == "unattended-install" and isinstance(value, str):
            value = value.rpartition("phase: ")[2] or value
        if change["what"] == "leaf" and value is not None:
            value = str(value).partition(" ")[2]
        values = out.setdefault(change["what"], [])
        if not values or values[-1] != value or change["what"] == "leaf":
            values.append(value)
    return out


def _traced(trace: list[Any], what: str, start: float) -> list[tuple[Any, float]]:
    """The lab's values of one thing with how long each lasted, from the one that held when the action came."""
    out: list[tuple[Any, float]] = []
    times: list[float] = []
    for when, seen in trace:
        value = seen.get(what)
        hidden = seen["tcp"] != "accepted" and what not in ("tcp", "tls", "leaf")
        if out and out[-1][0] == value and not hidden:
            continue
        if out and out[-1][1] == _OPEN:
            out[-1] = (out[-1][0], when - times[-1])
        if not hidden and (not out or out[-1][0] != value):
            out.append((value, _OPEN))
            times.append(when)
    first = max((index for index, when in enumerate(times) if when <= start), default=0)
    return out[first:]


def compare(row: dict[str, Any], trace: list[Any], start: float) -> None:
    for what, values in _recorded(row).items():
        seen = _traced(trace, what, start)
        plain = [str(value).partition(" ")[2] if what == "leaf" and value is not None else value for value, unused in seen]
        position = 0
        for value in values:
            while position < len(plain) and plain[position] != value:
                position += 1
            if position == len(plain):
                raise Mismatch(f"{what}: {value!r} does not come where it was recorded; recorded {values}, seen {plain}")
            position += 1
        if what in _STRICT:
            extra = _longer(seen, values, row["longest_gap"] + _SHORT)
            if extra:
                raise Mismatch(f"{what}: {extra!r} was not recorded; recorded {values}, seen {plain}")


def _longer(seen: list[tuple[Any, float]], values: list[Any], gap: float) -> list[Any]:
    """Values that lasted longer than the recording could miss and yet are not in it."""
    position, extra = 0, []
    for value, seconds in seen:
        if position < len(values) and values[position] == value:
            position += 1
        elif seconds > gap and value is not None and value not in values:
            extra.append(value)
    return extra
