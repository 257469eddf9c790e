# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster that runs, kept by ansible-playbook with the role `reconcile` and held against the lab's log.

One process of ansible-playbook plays the role several times, in check mode and for real: most of its time is its start. What happened
before, in and after each of them is told apart by the time of the lab's log and by the hash of the store's files at each play's ends.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.control import Lab
from tests.lives.running_cluster import LONGEST, QUICK, Cluster, a_running_cluster
from tests.scenarios.playing import Project, Run

TASK = "ichor.talos.reconcile : Reconcile the machines"
REMOVAL, SEND = "EtcdRemoveMemberByID", "ApplyConfiguration"
#: The call that carries out a step.
CALLS = {"ApplyDrift": SEND, "Reboot": "Reboot", "Reinstall": SEND, "Resume": SEND, "ApplyConfig": SEND, "RemoveEtcdMember": REMOVAL}
CHECK, RUN = True, False


@dataclass(frozen=True)
class Played:
    """One play of the role. `files`: the store's files before and after. `calls`: (node, method) of what nodes accepted."""

    result: dict[str, Any]
    files: tuple[dict[str, str], dict[str, str]]
    calls: list[tuple[str, str]]
    #: Writing calls of any outcome.
    tried: int

    @property
    def steps(self) -> list[tuple[str, str]]:
        return [(step["action"], step["target"]) for step in self.result["plan"]]

    @property
    def later(self) -> list[tuple[str, str]]:
        """Steps of plans that only a later look called for."""
        return [(step["action"], step["target"]) for plan in self.result["later_plans"] for step in plan["plan"]]

    @property
    def ids(self) -> list[str]:
        return [step["id"] for step in self.result["plan"]]

    @property
    def written(self) -> list[str]:
        """What changed in the store's files, as differences of their lines."""
        before, after = self.files
        return [line for name in sorted({*before, *after}) if before.get(name) != after.get(name)
                for line in difflib.unified_diff(before.get(name, "").splitlines(), after.get(name, "").splitlines(), name, name, n=0, lineterm="")]

    @property
    def untouched(self) -> bool:
        """Neither a node nor a file was written to."""
        return not self.tried and not self.written

    def row(self, name: str) -> dict[str, Any]:
        return dict(next(row for row in self.result["machines"] if row["name"] == name))


@dataclass(frozen=True)
class Life:
    """A check, a run, a check and a run, by one process. `mark` is where the lab's log stood before."""

    check: Played
    run: Played
    again: tuple[Played, Played]
    mark: int
    output: str


@dataclass
class Kept:
    """A cluster and the project folder from which it is kept."""

    cluster: Cluster
    project: Project

    @property
    def lab(self) -> Lab:
        return self.cluster.lab

    def playbook(self, *checks: bool | None, **options: Any) -> str:
        """The role once for each entry: in check mode, for real, or (None) as the command line says."""
        variables = {"allow_loopback": True, "timing": QUICK, "clusters": ["prod"], "discover": False, "max_runtime": LONGEST, "drain": False, **options}
        role = {"role": "ichor.talos.reconcile", "vars": {f"reconcile_{name}": value for name, value in variables.items()}}
        plays = [{"name": "Reconcile", "hosts": "localhost", "gather_facts": False, "roles": [role], **({} if check is None else {"check_mode": check})}
                 for check in checks]
        path = self.project.folder / "reconcile.yml"
        path.write_text(json.dumps(plays), encoding="utf-8")
        return str(path)

    def play(self, *checks: bool, rc: int = 0, **options: Any) -> list[Played]:
        """The role once for each entry. A check run writes nothing, neither to a node nor to a file."""
        return self._read(self.lab.mark(), checks, self.project.run(self.playbook(*checks, **options), rc=rc))

    def run(self, **options: Any) -> Played:
        return self.play(RUN, **options)[0]

    def _read(self, mark: int, checks: tuple[bool, ...], run: Run) -> list[Played]:
        begun = [task for task in run.tasks if task.how == "play"]
        ended = [task for task in run.tasks if task.name == TASK]
        assert len(begun) == len(ended) == len(checks), run.output
        entries, found = self._writes(mark), []
        ends = [*(task.at for task in begun[1:]), float("inf")]
        for start, end, until, check in zip(begun, ended, ends, checks):
            tried = [entry for entry in entries if start.at <= entry["time"] < until]
            calls = [(entry["node"], str(entry["rpc"]).rpartition("/")[2]) for entry in tried if entry.get("code") == "OK"]
            found.append(Played(end.result, (start.files, end.files), calls, len(tried)))
            assert not check or found[-1].untouched, f"a check run wrote {tried} {found[-1].written} {run.output}"
        return found

    def _writes(self, mark: int) -> list[dict[str, Any]]:
        return [entry for entry in self.lab.log(since=mark, event="done", kind="write") if not entry.get("dry_run")]

    def named(self, *wanted: tuple[str, str]) -> list[tuple[str, str]]:
        """Steps (action, host) as plans have them (action, record)."""
        return [(action, self.cluster.names[host]) for action, host in wanted]

    def life(self, *wanted: tuple[str, str], **options: Any) -> Life:
        """Exactly these steps (action, host), in this order of the plan: shown by a check, done by a run as the lab has seen it, and then
        there is nothing to do and nothing is written."""
        mark = self.lab.mark()
        check, run, *again = self.play(CHECK, RUN, CHECK, RUN, **options)
        output = self.project.output()
        assert check.steps == self.named(*wanted), f"{check.steps} {output}"
        assert run.ids == check.ids and not run.later, output
        self.carried_out(run.calls, *wanted)
        for one in again:
            assert (one.steps, one.later, one.result["changed"], one.untouched) == ([], [], False, True), f"{one.written} {output}"
        return Life(check, run, (again[0], again[1]), mark, output)

    def carried_out(self, calls: list[tuple[str, str]], *wanted: tuple[str, str]) -> None:
        """Each step was one accepted call, each machine's in the order of the plan. A member is removed through another control plane."""
        removed = [host for action, host in wanted if action == "RemoveEtcdMember"]
        found: dict[str, list[str]] = {}
        for node, method in calls:
            assert method != REMOVAL or removed and node not in removed[:1], calls
            found.setdefault(removed.pop(0) if method == REMOVAL else node, []).append(method)
        expected: dict[str, list[str]] = {}
        for action, host in wanted:
            expected.setdefault(host, []).append(CALLS[action])
        assert found == expected, f"{calls} {self.project.output()}"

    def gave_evidence(self, mark: int, method: str) -> None:
        """Between two of these calls the first node's etcd was read twice, a follow interval apart (design section 13)."""
        done = [entry for entry in self._writes(mark) if str(entry["rpc"]).endswith(f"/{method}") and entry.get("code") == "OK"]
        for this, after in zip(done, done[1:]):
            looks = [entry["time"] for entry in self.lab.log(since=this["n"], event="call", node=this["node"])
                     if str(entry["rpc"]).endswith("/EtcdStatus") and entry["time"] < after["time"]]
            assert len(looks) >= 2 and looks[-1] - looks[0] >= QUICK["follow"], f"{this['node']} was not waited for"

    def converged(self) -> None:
        """Every machine, and etcd with all its voters."""
        assert set(self.cluster.reasons().values()) == {"Converged"}, self.cluster.reasons()
        assert self.cluster.members() == {host: True for host in self.cluster.names if "cp-" in host}

    def edit_record(self, name: str, old: str, new: str, kind: str = "machines") -> None:
        """As a person with an editor."""
        def change(text: str) -> str:
            assert old in text, text
            return text.replace(old, new)

        self.cluster.records.edit(kind, name, change)


def kept(folder: Path, name: str, planes: int = 3, workers: int = 2) -> Iterator[Kept]:
    """A running cluster in an address range of its own; made by module processes, since that is shown elsewhere."""
    with a_running_cluster(folder, name, planes, workers, etcd=True) as cluster:
        yield Kept(cluster, Project(folder, environment=cluster.records.recorded, kept_in=cluster.records))
