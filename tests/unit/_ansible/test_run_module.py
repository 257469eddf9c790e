# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module as a process of its own, without the action plugin: plain options in, one JSON document out, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._ansible.result import UNREACHABLE

KEYS = {"changed", "reason", "msg", "plan", "plan_id", "machines", "transitions", "events", "blocked", UNREACHABLE, "waiting_for", "requeue_after",
        "interrupted", "refusals"}
MODULES = "ansible_collections.ichor.talos.plugins.modules."
SILENT = "127.233.71.9"
SECONDS = 120


def start(module: str, options: dict[str, Any], **environment: str) -> subprocess.Popen[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("ICHOR_", "TALOSCONFIG"))}
    process = subprocess.Popen([sys.executable, "-m", MODULES + module], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**variables, **environment})
    assert process.stdin is not None
    process.stdin.write(json.dumps({"ANSIBLE_MODULE_ARGS": options}))
    process.stdin.close()
    process.stdin = None
    return process


def result(module: str, options: dict[str, Any], **environment: str) -> dict[str, Any]:
    output, errors = start(module, options, **environment).communicate(timeout=SECONDS)
    assert "Traceback" not in output + errors, errors
    return dict(json.loads(output.strip().splitlines()[-1]))


def test_plain_options_are_enough() -> None:
    found = result("talos_discover", {"addresses": [SILENT], "register": False, "allow_loopback": True})
    assert found.keys() >= KEYS and not found.get("failed") and found["silent"] == 1


def test_wrong_options_fail_with_the_same_keys() -> None:
    found = result("talos_stage", {"address": SILENT, "nonsense": 1})
    assert found["failed"] and found["reason"] == "InvalidInput" and found.keys() >= KEYS and "nonsense" in found["msg"]
    assert ". Correct the task; ansible-doc ichor.talos." in found["msg"] and found["refusals"][0]["hint"] in found["msg"]


@pytest.mark.parametrize(("module", "options", "reason"), [
    ("talos_stage", {"machine": "one"}, "InvalidInput"),
    ("talos_stage", {"machine": "one", "store": "none"}, "StoreMissing"),
    ("talos_stage", {"machine": "one", "store_path": "/nonexistent/ichor"}, "StoreMissing"),
    ("talos_stage", {"address": SILENT, "talosconfig": "/nonexistent/talosconfig"}, "InvalidInput"),
    ("talos_discover", {"addresses": [SILENT], "register": False, "timing": {"call": -1}}, "InvalidInput"),
    ("talos_discover", {"addresses": [SILENT], "register": False, "save_plan": "/dev/null"}, "InvalidInput"),
    ("talos_discover", {"addresses": [SILENT], "register": False, "plan_file": "/dev/zero"}, "InvalidInput"),
    ("talos_discover", {"addresses": [SILENT], "register": False, "expect_plan_id": " "}, "InvalidInput"),
    ("talos_discover", {"ranges": ["0.0.0.0/0"], "register": False}, "RangeTooLarge"),
])
def test_what_is_wrong_is_said_in_a_sentence(module: str, options: dict[str, Any], reason: str) -> None:
    found = result(module, options)
    assert found["failed"] and found["reason"] == reason and found["msg"].endswith(".") and found.keys() >= KEYS


def test_missing_libraries_are_named_together(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('grpc', 'cryptography'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Without())\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    found = result("talos_discover", {"addresses": [SILENT], "register": False}, PYTHONPATH=path)
    assert found["reason"] == "MissingLibrary" and "grpcio, cryptography" in found["msg"] and sys.executable in found["msg"]


def test_a_secret_option_does_not_come_back(tmp_path: Path) -> None:
    text = "context: c\ncontexts:\n  c:\n    ca: bm8=\n    crt: bm8=\n    key: c2VjcmV0IHZhbHVl\n"
    found = result("talos_stage", {"address": SILENT, "talosconfig_content": text, "_ansible_inject_invocation": True})
    assert found["failed"] and "c2VjcmV0IHZhbHVl" not in json.dumps(found) and "secret value" not in json.dumps(found)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_module_itself_is_told(number: signal.Signals) -> None:
    process = start("talos_stage", {"address": SILENT, "allow_loopback": True, "follow": True, "timing": {"follow": 0.2}})
    watched = time.monotonic() + SECONDS
    while not any("eventpoll" in name for name in _open_files(process.pid)):
        assert process.poll() is None and time.monotonic() < watched
        time.sleep(0.05)
    process.send_signal(number)
    begun = time.monotonic()
    output, errors = process.communicate(timeout=SECONDS)
    assert time.monotonic() - begun < 10 and "Traceback" not in errors
    found = json.loads(output.strip().splitlines()[-1])
    assert found["interrupted"] is True and found["reason"] == "Interrupted" and found.keys() >= KEYS


def _open_files(pid: int) -> list[str]:
    """What the process has open: an event poll tells that its work has begun."""
    names = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            names.append(os.readlink(path))
        except OSError:
            continue
    return names
