# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m tests.lab.vectors DIR`: runs recorded rows against the lab.

DIR has the form of tests/vectors/protocol; files may be missing. A line for each row that fails, counts at the end; exit 0 only
when all pass. `--only TEXT` runs the rows whose id has the text in it, `--talos VERSION` those of one version.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab import vector_timelines, vector_tls
from tests.lab.control import Lab
from tests.lab.vector_configs import Configs
from tests.lab.vector_files import read
from tests.lab.vector_match import Mismatch
from tests.lab.vector_rows import Runner, is_mutating, left_out, reason_to_leave_out
from tests.lab.vector_stage import Stage
from tests.lab.vector_states import STATES, apid_unchecked, with_second

OWN = Path(__file__).resolve().parents[1] / "vectors" / "protocol"
SPEED = 40.0


def addresses() -> Callable[[], str]:
    """Fresh loopback addresses, from a part of 127/8 of this process's own."""
    second = random.SystemRandom().randint(100, 250)
    counter = itertools.count(1)

    def following() -> str:
        number = next(counter)
        return f"127.{second}.{number // 250}.{number % 250 + 1}"

    return following


class Report:
    """Counts and failures."""

    def __init__(self) -> None:
        self.passed: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.left: Counter[str] = Counter()

    def fail(self, kind: str, row: str, why: str) -> None:
        self.failed[kind] += 1
        print(f"FAIL {kind} {row}: {why}", flush=True)

    def print(self) -> None:
        for kind in sorted(set(self.passed) | set(self.failed)):
            print(f"{kind}: {self.passed[kind]} passed, {self.failed[kind]} failed")
        total = sum(self.left.values())
        print(f"left out: {total}")
        for reason, count in self.left.most_common():
            print(f"  {count:4} {reason}")


class Session:
    """Stages are kept and shared by rows that change nothing."""

    def __init__(self, lab: Lab, configs: Configs, report: Report) -> None:
        self.lab = lab
        self.configs = configs
        self.report = report
        self.address = addresses()
        self._kept: dict[tuple[str, ...], Stage] = {}
        self._count = itertools.count(1)

    def stage(self, row: dict[str, Any]) -> Stage:
        stage = self.empty_stage(row["talos"])
        try:
            STATES[row["state"]](stage, row)
        except BaseException:
            stage.close()
            raise
        return stage

    def empty_stage(self, talos: str) -> Stage:
        return Stage(self.lab, f"s{next(self._count)}", talos, self.configs, self.address)

    def variant(self, row: dict[str, Any]) -> tuple[str, ...] | None:
        """What rows have to have in common to share a stage; None for a stage of its own."""
        if is_mutating(row) or row["state"] in ("bootstrapping", "after-apply-worker", "after-apply", "after-other-machine-ca"):
            return None
        group = row["id"].split("/")[2]
        if group in ("apply-effect", "etcd-two-members") and "forfeit" in row["id"] or group == "apply-effect" or "/after-try" in row["id"]:
            return None
        if group in ("recover",) or row["id"].endswith(("cp2-second-time", "etcdmemberlist")) and row["state"].startswith("bootstrapped"):
            return None
        text = row["details"] + json.dumps(row["responses"])
        based = row["rpc"].endswith("ApplyConfiguration") and ("@@" in text or "No changes." in text) and row["state"].startswith("running")
        two = with_second(row)
        clean = group == "apply" and "-0,0 +" in str(row["responses"])
        flags = (two, apid_unchecked(row), based, "partial-2" in text, group == "apply" and row["state"] == "maintenance", clean, "took-over" in row["id"])
        return (row["talos"], row["state"], *(str(flag) for flag in flags))

    def run(self, row: dict[str, Any]) -> None:
        variant = self.variant(row)
        stage = self._kept.get(variant) if variant is not None else None
        if stage is None:
            stage = self.stage(row)
            if variant is not None:
                self._kept[variant] = stage
        subject = stage.subject
        try:
            Runner(stage).run(row)
        finally:
            stage.subject = subject
            if variant is None:
                stage.close()


def protocol(folder: Path, session: Session, wanted: Callable[[dict[str, Any]], bool]) -> None:
    unknown = left_out()
    for path in sorted(folder.glob("v*.jsonl")):
        for row in read(path, session.report):
            if not wanted(row):
                continue
            reason = reason_to_leave_out(row, unknown)
            if reason is not None:
                session.report.left[f"{row['rpc']}: {reason}"] += 1
                continue
            kind = f"protocol {row['talos']}"
            if row["state"] not in STATES:
                session.report.fail(kind, row["id"], f"unknown state {row['state']}")
                continue
            try:
                session.run(row)
                session.report.passed[kind] += 1
            except Mismatch as mismatch:
                session.report.fail(kind, row["id"], str(mismatch)[:600])
            except Exception as error:
                session.report.fail(kind, row["id"], f"{type(error).__name__}: {error}")
                if os.environ.get("ICHOR_LAB_TRACEBACK"):
                    traceback.print_exc()


def connections(folder: Path, session: Session, wanted: Callable[[dict[str, Any]], bool]) -> None:
    session.lab.silence(seconds=vector_tls.SILENCE)
    kept: dict[tuple[str, str], Stage] = {}
    for row in read(folder / "tls.jsonl", session.report):
        if not wanted(row):
            continue
        kind = f"tls {row['talos']}"
        try:
            key = (row["talos"], row["state"])
            if key not in kept:
                kept[key] = session.stage({**row, "responses": [], "metadata": [], "request": {}, "messages": 0})
            vector_tls.run(kept[key], row)
            session.report.passed[kind] += 1
        except Mismatch as mismatch:
            session.report.fail(kind, row["id"], str(mismatch)[:600])
        except Exception as error:
            session.report.fail(kind, row["id"], f"{type(error).__name__}: {error}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.vectors", description=__doc__)
    parser.add_argument("folder", nargs="?", default=str(OWN))
    parser.add_argument("--only", default="", help="rows whose id contains this")
    parser.add_argument("--talos", default="", help="rows of one version")
    parser.add_argument("--kind", choices=("protocol", "tls", "timelines"), action="append", help="kinds of rows; all without it")
    parser.add_argument("--speed", type=float, default=SPEED)
    options = parser.parse_args()
    folder = Path(options.folder)
    configs = Configs(folder if (folder / "configs.jsonl").exists() else OWN)
    kinds = options.kind or ["protocol", "tls", "timelines"]

    def wanted(row: dict[str, Any]) -> bool:
        name = row.get("id") or row.get("scenario", "")
        return options.only in name and options.talos in ("", row["talos"])

    report = Report()
    with Lab.start(speed=options.speed, timings={"join_retry": 1.0, "member_resource": 180 * options.speed}) as lab:
        session = Session(lab, configs, report)
        if "protocol" in kinds:
            protocol(folder, session, wanted)
        if "tls" in kinds:
            connections(folder, session, wanted)
        if "timelines" in kinds:
            vector_timelines.run(folder, session, wanted)
        report_errors(lab, report)
    report.print()
    return 1 if report.failed else 0


def report_errors(lab: Lab, report: Report) -> None:
    for entry in [*lab.log(event="lab-error"), *lab.log(event="node", what="lab-error")]:
        report.fail("lab", str(entry.get("rpc") or entry["node"]), str(entry["error"]))


if __name__ == "__main__":
    sys.exit(main())
