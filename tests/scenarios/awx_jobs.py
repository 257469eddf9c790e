# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs as AWX runs them: ansible-runner with a private data folder, a project and a home of its own that are gone afterwards, AWX's callback, its
variables, and artifacts that go on by `set_stats`. A job is ended by AWX as a container is: everything in it is killed at once, and nobody is told."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.scenarios.playing import HERE, SECONDS, payloads, wait_for

PROJECT = Path(__file__).parents[2] / "roles" / "awx_setup" / "files" / "project"
#: Above this many characters the callback empties a result (ansible-runner's MAX_EVENT_RES, as AWX sets it).
LARGEST = 700_000
#: As AWX makes it in its first inventory; an execution environment has one Python, a developer's machine may have one that does not start.
LOCALHOST = "localhost ansible_connection=local ansible_python_interpreter={{ansible_playbook_python}}\n"
RUN = """
import json, sys
import ansible_runner
asked = json.load(sys.stdin)
events, seen = [], []
def keep(event):
    events.append(event)
    seen.append(event.get("stdout") or "")
def cancelled():
    return bool(asked["cancel_at"]) and any(asked["cancel_at"] in text for text in seen)
runner = ansible_runner.run(private_data_dir=asked["folder"], ident=asked["ident"], playbook=asked["playbook"], cmdline=asked["cmdline"], quiet=True,
                            envvars=asked["environment"], extravars=asked["variables"], event_handler=keep, cancel_callback=cancelled, fact_cache_type="",
                            timeout=asked["timeout"], settings={"suppress_env_files": True})
with open(asked["answer"], "w") as answer:
    json.dump({"status": runner.status, "rc": runner.rc, "events": events}, answer)
"""


@dataclass(frozen=True)
class Job:
    """One ended job. `status` is that of ansible-runner: successful, failed, canceled, timeout; or killed, with its container."""

    status: str
    events: list[dict[str, Any]]

    @property
    def output(self) -> str:
        return "\n".join(event.get("stdout") or "" for event in self.events)

    @property
    def artifacts(self) -> dict[str, Any]:
        """What later jobs of a workflow are given."""
        found = [event["event_data"].get("artifact_data") or {} for event in self.events if event["event"] == "playbook_on_stats"]
        return dict(found[-1]) if found else {}

    def results(self, task: str) -> list[dict[str, Any]]:
        """The results of a task, those of its items included."""
        return [event["event_data"]["res"] for event in self.events if event["event_data"].get("task") == task and event["event_data"].get("res")
                and event["event"].startswith(("runner_on_ok", "runner_on_failed", "runner_item_on"))]


def answered(survey: list[dict[str, Any]], **answers: str) -> dict[str, str]:
    """What AWX gives a job for the answers to a survey, by variable: what was left out is its default, and what does not fit is not launched."""
    asked = {question["variable"]: question for question in survey}
    assert answers.keys() <= asked.keys(), f"nobody asks for {answers.keys() - asked.keys()}"
    given = {name: answers.get(name, question["default"]) for name, question in asked.items()}
    for name, value in given.items():
        question = asked[name]
        assert value or not question["required"], f"{name} is required"
        assert value in question["choices"] if "choices" in question else question["min"] <= len(value) <= question["max"], f"{name}: {value}"
    return given


@dataclass
class Begun:
    """One job that runs. `container` marks its processes, as the container that AWX runs it in would hold them."""

    folder: Path
    process: subprocess.Popen[str]
    container: str

    def end(self) -> Job:
        """What came of it, when it has ended."""
        try:
            printed = self.process.communicate(timeout=SECONDS)[0]
            answer = self.folder / "answer.json"
            assert answer.exists(), printed
            told_back = json.loads(answer.read_text(encoding="utf-8"))
            # A line of output that is no event of Ansible's has no data.
            return Job(told_back["status"], [{"event_data": {}, **event} for event in told_back["events"]])
        finally:
            self._clear()

    def killed_at(self, moment: Callable[[], object], what: str) -> None:
        """Kill the container as soon as something holds; the job must not have ended before."""
        told = ""
        try:
            wait_for(lambda: moment() or self.process.poll() is not None, what)
            ended = self.process.poll() is not None
            if ended and (answer := self.folder / "answer.json").exists():
                told = "".join(str(event.get("stdout", "")) for event in json.loads(answer.read_text(encoding="utf-8"))["events"])
        finally:
            self._clear()
        assert not ended, f"the job ended before: {what}\n{told}"

    def _clear(self) -> None:
        end = time.monotonic() + SECONDS
        while self._kill():
            assert time.monotonic() < end, "processes of a job that cannot be killed"
        self.process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _kill(self) -> bool:
        """Kill each process that has the mark in its environment; whether there was one."""
        found = False
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):
                    if f"CONTAINER={self.container}".encode() in (folder / "environ").read_bytes():
                        os.kill(int(folder.name), signal.SIGKILL)
                        found = True
        return found


@dataclass
class Awx:
    """An AWX that knows one store. `user` is who starts jobs; none for a schedule."""

    environment: dict[str, str]
    common: dict[str, Any] = field(default_factory=dict)
    number: int = 40

    def job(self, playbook: str, *, user: str = "anna", check: bool = False, cancel_at: str = "", limit: str = "", inventory: str = "",
            timeout: int = 0, **variables: Any) -> Job:
        """Run one job to its end; `cancel_at`: it is cancelled when that has appeared in its output; `timeout` in seconds."""
        return self.begin(playbook, user=user, check=check, cancel_at=cancel_at, limit=limit, inventory=inventory, timeout=timeout, **variables).end()

    def begin(self, playbook: str, *, user: str = "anna", check: bool = False, cancel_at: str = "", limit: str = "", inventory: str = "",
              timeout: int = 0, **variables: Any) -> Begun:
        """A job that runs."""
        self.number += 1
        told = {"job_id": self.number, "job_launch_type": "manual" if user else "scheduled", "inventory_id": 2,
                **({"user_id": 7, "user_name": user, "user_email": f"{user}@example.com"} if user else {"schedule_id": 3, "schedule_name": "nightly"})}
        known = {f"{head}_{name}": value for name, value in told.items() for head in ("awx", "tower")}
        folder = Path(tempfile.mkdtemp(prefix="awx-"))
        shutil.copytree(PROJECT, folder / "project")
        (folder / "home").mkdir()
        (folder / "inventory").mkdir()
        (folder / "inventory" / "hosts").write_text(inventory or LOCALHOST, encoding="utf-8")
        environment = self._variables(folder)
        asked = {
            "folder": str(folder), "ident": str(self.number), "playbook": playbook, "cancel_at": cancel_at, "answer": str(folder / "answer.json"),
            "cmdline": " ".join(["--diff", *(["--check"] if check else []), *(["-l", limit] if limit else [])]),
            "timeout": timeout or None, "variables": {**self.common, **variables, **known}, "environment": environment}
        # Its process group is its own, so that what a killed one leaves is not the test's.
        process = subprocess.Popen([sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=environment, start_new_session=True)
        assert process.stdin is not None
        process.stdin.write(json.dumps(asked))
        process.stdin.close()
        process.stdin = None
        return Begun(folder, process, environment["CONTAINER"])

    def _variables(self, folder: Path) -> dict[str, str]:
        python = str(Path(sys.executable).parent)
        return {
            **os.environ, "PATH": os.pathsep.join([python, os.environ["PATH"]]), "HOME": str(folder / "home"), "JOB_ID": str(self.number),
            "MAX_EVENT_RES": str(LARGEST), "ANSIBLE_FORCE_COLOR": "True", "ANSIBLE_HOST_KEY_CHECKING": "False", "ANSIBLE_LOCALHOST_WARNING": "0",
            "ANSIBLE_HOME": str(folder / "home" / ".ansible"), "PROJECT_REVISION": "0", "INVENTORY_ID": "2",
            "ANSIBLE_CALLBACK_PLUGINS": str(HERE / "callbacks"), "ANSIBLE_CALLBACKS_ENABLED": "payloads", "PAYLOADS": str(payloads()),
            "CONTAINER": uuid.uuid4().hex,
            **self.environment}
