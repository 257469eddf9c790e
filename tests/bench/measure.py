# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a process and measures it: what it prints of itself, and what the operating system counts for it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Figure:
    """One line of the benchmark. `unit` is that of both figures; a goal is a bound on the ratio, or on the figure alone."""

    name: str
    value: float
    baseline: float
    goal: float
    unit: str = "s"

    @property
    def ratio(self) -> float:
        return self.value / self.baseline if self.baseline else float("inf")

    @property
    def ok(self) -> bool:
        return self.ratio <= self.goal

    def line(self) -> str:
        verdict = "ok" if self.ok else "FALLS SHORT"
        return (f"{self.name:<46} {self.value:9.3f} {self.unit:<3} baseline {self.baseline:9.3f} {self.unit:<3} "
                f"ratio {self.ratio:6.2f}  goal {self.goal:5.2f}  {verdict}")


def run(script: str, *arguments: str, stdin: str = "", prefix: tuple[str, ...] = (), module: bool = False) -> dict[str, Any]:
    """What a script of this folder printed as JSON, with `process_cpu` and `process_wall` of the whole process beside it."""
    command = [*prefix, sys.executable, *(["-m", script] if module else [str(HERE / script)]), *arguments]
    before = os.times()
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=3600, check=False, cwd=ROOT, env=environment())
    after = os.times()
    if done.returncode:
        raise RuntimeError(f"{script} failed: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    told["process_cpu"] = after.children_user + after.children_system - before.children_user - before.children_system
    told["process_wall"] = after.elapsed - before.elapsed
    return told


def environment() -> Mapping[str, str]:
    """The environment of the measured processes: this one's, with the tree itself importable."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))}


def paired(subject: Callable[[], float], baseline: Callable[[], float], rounds: int = 5) -> tuple[float, float]:
    """Medians of both, run in turn after one warm-up each, so that a machine whose speed drifts is fair to both."""
    subject()
    baseline()
    pairs = [(subject(), baseline()) for unused in range(rounds)]
    return statistics.median(first for first, second in pairs), statistics.median(second for first, second in pairs)
