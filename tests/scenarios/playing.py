# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook as the scenarios run it: a project folder, a lab, results and output to look at."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ansible.release
import yaml

from tests.lab.control import Lab
from tests.lives.records import Folder, Records, chosen
from tests.workshop.environments import BUILD, ROOT

HERE = Path(__file__).parent
#: Generous, since the machine may be busy; nothing waits for it when all goes well.
SECONDS = 240
DAY = 86400
QUICK = {"settle": 0.3, "follow": 0.3, "lock_renewal": 1.0, "apply": 20.0, "sending_fresh": 20.0}


@functools.cache
def payloads() -> Path:
    """Where packed modules of exactly these sources, this ansible-core and this Python are kept for all runs."""
    digest = hashlib.sha256(f"{ansible.release.__version__} {sys.version}".encode())
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    place = BUILD / "payloads" / digest.hexdigest()[:16]
    if not place.exists():
        for old in place.parent.glob("*"):
            if time.time() - old.stat().st_mtime > DAY:
                shutil.rmtree(old, ignore_errors=True)
    return place


@dataclass(frozen=True)
class Task:
    """One result. `how` is ok, failed, skipped, item or item-failed, or play for the beginning of one.

    `at`: when it came, in seconds since the epoch. `files`: the store's files then by name, where RECORD_STORE names the store.
    """

    name: str
    how: str
    result: dict[str, Any]
    at: float = 0.0
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One ended run of ansible-playbook."""

    rc: int
    output: str
    tasks: tuple[Task, ...]

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The result of the task of that name."""
        found = [task for task in self.tasks if task.name == name and not task.how.startswith("item")]
        assert found, f"there is no task {name!r} in {[task.name for task in self.tasks]}\n{self.output}"
        return found[-1].result

    def items(self, name: str) -> list[dict[str, Any]]:
        return [task.result for task in self.tasks if task.name == name and task.how.startswith("item")]

    @property
    def steps(self) -> list[tuple[str, str]]:
        """(action, target) of every step of every plan, in order."""
        return [(step["action"], step["target"]) for task in self.tasks if task.how in ("ok", "failed", "item", "item-failed")
                for step in task.result.get("plan") or []]

    @property
    def changed(self) -> bool:
        return any(task.result.get("changed") for task in self.tasks)


@dataclass
class Project:
    """A person's folder with playbooks and the store beside them."""

    folder: Path
    defaults: dict[str, Any] = field(default_factory=lambda: {"allow_loopback": True, "timing": dict(QUICK)})
    environment: dict[str, str] = field(default_factory=dict)
    #: A command that starts ansible-playbook in its turn.
    before: tuple[str, ...] = ()
    #: Where its records are; None is the store beside the playbooks.
    kept_in: Records | None = None

    def __post_init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self.started: subprocess.Popen[str] | None = None
        self.folder.mkdir(parents=True, exist_ok=True)
        # Short, since ansible-core binds a Unix socket below it, and the path of one has at most 107 bytes.
        self.temporary = Path(tempfile.mkdtemp(prefix="ich-"))
        weakref.finalize(self, shutil.rmtree, self.temporary, ignore_errors=True)

    @property
    def store(self) -> Path:
        return self.folder / "ichor"

    @property
    def records(self) -> Records:
        return self.kept_in or Folder(self.store)

    def write(self, name: str, tasks: Sequence[dict[str, Any]], **play: Any) -> str:
        """A playbook with these tasks; the common options of all modules stand in module_defaults."""
        content = [{"name": name, "hosts": "localhost", "gather_facts": False, "module_defaults": {"group/ichor.talos.talos": self.defaults},
                    **play, "tasks": list(tasks)}]
        path = self.folder / f"{name}.yml"
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        return str(path)

    def variables(self) -> dict[str, str]:
        return {
            **os.environ, "ANSIBLE_HOME": str(self.folder / ".ansible"), "ANSIBLE_LOCAL_TEMP": str(self.folder / ".ansible" / "tmp"),
            "ANSIBLE_REMOTE_TEMP": str(self.folder / ".ansible" / "tmp"), "TMPDIR": str(self.temporary), "ANSIBLE_LOCALHOST_WARNING": "0",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0", "ANSIBLE_CALLBACK_PLUGINS": str(HERE / "callbacks"), "ANSIBLE_CALLBACKS_ENABLED": "record,payloads",
            "PAYLOADS": str(payloads()), "RECORD_FILE": str(self.folder / "results.jsonl"), "SCENARIO_MARK": self.mark,
            **self.records.environment, **self.environment,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """ansible-playbook in a process group of its own; its output goes to a file."""
        (self.folder / "results.jsonl").unlink(missing_ok=True)
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        with (self.folder / "output").open("w", encoding="utf-8") as output:
            self.started = subprocess.Popen([*self.before, program, *arguments], cwd=self.folder, env=self.variables(), text=True, start_new_session=True,
                                            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        return self.started

    def over(self) -> bool:
        """Whether the run that was started last has ended, and everything of it. A process that is just becoming another program shows
        no environment for a moment, so what /proc tells is not enough."""
        return (self.started is None or self.started.poll() is not None) and not self.processes()

    def output(self) -> str:
        return (self.folder / "output").read_text(encoding="utf-8")

    def run(self, *arguments: str, rc: int | None = 0) -> Run:
        """Run to the end; `rc` is what it has to end with (None: whatever)."""
        return self.finish(self.start(*arguments), rc=rc)

    def finish(self, process: subprocess.Popen[str], rc: int | None = 0) -> Run:
        """Wait for the end of a run that was started."""
        try:
            process.wait(SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        path = self.folder / "results.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        tasks = tuple(Task(entry["task"], entry["how"], entry["result"], entry["at"], entry["files"]) for entry in map(json.loads, lines))
        run = Run(process.returncode, self.output(), tasks)
        assert rc is None or run.rc == rc, run.output
        assert "Traceback" not in run.output, run.output
        return run

    def play(self, name: str, tasks: Sequence[dict[str, Any]], *arguments: str, rc: int | None = 0) -> Run:
        return self.run(self.write(name, tasks), *arguments, rc=rc)

    def processes(self) -> dict[int, str]:
        """What still runs of this project's runs, by pid."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    if self.mark.encode() in (folder / "environ").read_bytes():
                        found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
        return found


@contextmanager
def a_project(folder: Path, **more: Any) -> Iterator[Project]:
    """One whose records are in the chosen store."""
    with chosen(folder / "ichor") as records:
        yield Project(folder, kept_in=records, **more)


def tree_hash(folder: Path) -> str:
    """Hash of every file below a folder, names, modes and contents."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(f"{path.relative_to(folder)}\0{path.lstat().st_mode:o}\0".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def wait_for(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Wait until something holds; fails with what was waited for."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited for: {what}"
        time.sleep(0.05)


def network_of(name: str) -> str:
    """The first three numbers of a network in 127.0.0.0/8 that belongs to one test."""
    digest = hashlib.sha256(f"{name} {os.environ.get('PYTEST_XDIST_WORKER', '')} {sys.version_info[:2]}".encode()).digest()
    return f"127.{100 + digest[0] % 100}.{digest[1]}"


def machine(number: int, network: str, uuid_head: str, **more: Any) -> dict[str, Any]:
    """A node of the lab: an address, a board of its own, one disk."""
    board = {"uuid": f"{uuid_head}-51c8-4f0e-8d39-3cecef0000{number:02x}", "serial": f"ACME-{number:04}",
             "links": [{"name": "enp1s0", "mac": f"3c:ec:ef:00:00:{number:02x}"}], "disks": [{"name": "sda"}]}
    return {"address": f"{network}.{number}", "machine": board, **more}


def writes(lab: Lab, since: int = 0) -> list[dict[str, Any]]:
    """Calls that write to a node, as the lab logged them."""
    return [entry for entry in lab.log(since=since) if entry.get("kind") == "write"]


def lab_of(nodes: dict[str, Any], speed: float = 4.0) -> Iterator[Lab]:
    lab = Lab.start({"nodes": nodes}, speed=speed)
    try:
        yield lab
    finally:
        lab.stop()
