# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action plugin: who acts, where relative paths lead, what is kept out of the arguments, and its end of the channel."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.action import talos_discover as plugin
from ansible_collections.ichor.talos.plugins.module_utils._ansible.channel import PLACEHOLDER
from ansible_collections.ichor.talos.plugins.module_utils._ansible.channel import Channel as ModuleSide
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError

WAIT = 10


def action(**arguments: Any) -> Any:
    made = plugin.ActionModule.__new__(plugin.ActionModule)
    made._task = SimpleNamespace(args=arguments, check_mode=False)
    made._templar = SimpleNamespace(template=lambda value: value)
    return made


LOGIN = plugin._login()


@pytest.mark.parametrize(("variables", "by", "schedule"), [
    pytest.param({}, LOGIN, False, id="laptop"),
    pytest.param({"awx_job_id": 41, "awx_job_launch_type": "manual", "awx_user_name": "ada"}, "ada", False, id="awx"),
    pytest.param({"tower_job_id": 41, "tower_user_name": "ada"}, "ada", False, id="tower"),
    pytest.param({"awx_job_id": 41, "awx_job_launch_type": "webhook"}, "", False, id="awx-without-a-user"),
    pytest.param({"awx_job_id": 41, "awx_job_launch_type": "scheduled"}, "", True, id="schedule-by-launch-type"),
    pytest.param({"awx_job_id": 41, "awx_schedule_id": 3, "awx_user_name": "forged"}, "forged", True, id="schedule-with-a-forged-user"),
    pytest.param({"awx_job_id": 41, "awx_workflow_job_launch_type": "scheduled", "awx_user_name": "x"}, "x", True, id="scheduled-workflow"),
])
def test_who_acts(variables: dict[str, object], by: str, schedule: bool) -> None:
    assert action()._actor(variables) == {"by": by, "via": LOGIN, "schedule": schedule}


def test_a_collections_own_playbook_stands_in_nobodys_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert plugin._project_folder({"playbook_dir": "/srv/talos"}) == "/srv/talos"
    assert plugin._project_folder({"playbook_dir": "/c/ansible_collections/ichor/talos/playbooks"}) == str(tmp_path)
    assert plugin._project_folder({}) == str(tmp_path)


def test_secrets_leave_the_arguments_and_paths_become_whole(tmp_path: Path) -> None:
    (tmp_path / "cp.yaml").write_text("x", encoding="utf-8")
    made = action(talosconfig_content="deep", config_content={"machine": {"token": "x"}}, config_file="cp.yaml", plan_file="~/plan.json",
                  store_path="/srv/ichor", machine="one", talosconfig=None)
    arguments, secrets = made._without_secrets(str(tmp_path))
    assert secrets == {"talosconfig_content": "deep", "config_content": '{"machine": {"token": "x"}}'}
    assert arguments == {"talosconfig_content": PLACEHOLDER, "config_content": PLACEHOLDER, "config_file": str(tmp_path / "cp.yaml"),
                         "plan_file": os.path.expanduser("~/plan.json"), "store_path": "/srv/ichor", "machine": "one", "talosconfig": None}
    assert made._task.args["talosconfig_content"] == "deep", "the task itself is left as it is"


def test_a_file_is_looked_for_where_ansible_keeps_files(tmp_path: Path) -> None:
    made = action(config_file="cp.yaml")
    made._find_needle = lambda folder, name: f"/role/{folder}/{name}"
    assert made._without_secrets(str(tmp_path))[0]["config_file"] == "/role/files/cp.yaml"

    def nowhere(folder: str, name: str) -> str:
        raise RuntimeError(name)
    made._find_needle = nowhere
    assert made._without_secrets(str(tmp_path))[0]["config_file"] == str(tmp_path / "cp.yaml")


class Shown:
    """Lines as Display would get them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.told = threading.Semaphore(0)

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.told.release()

    def wait(self) -> str:
        assert self.told.acquire(timeout=WAIT)
        return self.lines[-1]


def test_both_ends_speak_with_each_other() -> None:
    shown, broken = Shown(), threading.Event()
    with plugin.Channel({"secrets": {"a": "b"}, "by": "ada"}, lambda path: b"clear " + path.encode(), shown) as channel:
        assert stat.S_IMODE(os.stat(os.path.dirname(channel.path)).st_mode) == 0o700
        module = ModuleSide(channel.path, broken.set)
        assert module.hello.by == "ada" and module.hello.secrets == {"a": "b"}
        module.line("  1. create machine")
        assert shown.wait() == plugin.INDENT + "  1. create machine"
        assert module.clear_text("/b") == b"clear /b"
        module.close()
    assert not broken.is_set()
    assert not os.path.exists(channel.path)


def test_what_the_vault_says_is_handed_on_as_a_sentence() -> None:
    def refuse(path: str) -> bytes:
        raise RuntimeError("Decryption failed\n (no vault secrets would decrypt)")

    with plugin.Channel({}, refuse, Shown()) as channel:
        module = ModuleSide(channel.path, lambda: None)
        with pytest.raises(TalosError, match="no vault secrets would decrypt"):
            module.clear_text("/b")
        module.close()


def test_a_file_that_would_never_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    made = action()
    channel = plugin.Channel({}, made._clear_text, print)
    try:
        for path in (str(tmp_path / "pipe"), "/dev/zero"):
            assert channel._answer(path) == {"error": f"The file {path} is a device, a pipe or a socket"}
    finally:
        channel._listener.close()


def test_a_silent_module_is_spoken_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(plugin, "LOOK_SECONDS", 0.01)
    shown = Shown()
    with plugin.Channel({}, lambda path: b"", shown) as channel:
        module = ModuleSide(channel.path, lambda: None)
        module.line("following cp-1")
        shown.wait()
        assert "so far: following cp-1" in shown.wait()
        module.close()


def test_the_end_of_the_task_breaks_the_channel_of_a_module_that_goes_on() -> None:
    broken = threading.Event()
    with plugin.Channel({}, lambda path: b"", Shown()) as channel:
        module = ModuleSide(channel.path, broken.set)
    assert broken.wait(WAIT)
    module.close()


def test_the_end_of_ansible_playbook_breaks_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = threading.Event()
    with plugin.Channel({}, lambda path: b"", Shown()) as channel:
        module = ModuleSide(channel.path, broken.set)
        monkeypatch.setattr(plugin.os, "getppid", lambda: 1)
        assert broken.wait(WAIT)
        module.close()


def test_the_plugin_imports_nothing_of_taloss() -> None:
    program = ("import sys; import ansible_collections.ichor.talos.plugins.action.talos_discover; "
               "print([name for name in ('grpc', 'google.protobuf', 'cryptography.x509', 'kubernetes') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
