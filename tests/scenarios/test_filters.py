# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters on values as plays have them: texts and data of variables, files, registered results, vaulted variables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.scenarios.playing import Project

BASE = "machine:\n  sysctls:\n    a: '1'\n"
MORE = {"machine": {"sysctls": {"b": "2"}, "kubelet": {"extraArgs": {"v": "4"}}}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_values_of_a_play(project: Project) -> None:
    vault = Path(sys.executable).with_name("ansible-vault")
    password = project.folder / "password"
    password.write_text("words of the vault\n", encoding="utf-8")
    hidden = subprocess.run([str(vault), "encrypt_string", "--vault-password-file", str(password), "--name", "hidden", BASE], check=True,
                            capture_output=True, text=True, env=project.variables(), cwd=project.folder).stdout
    (project.folder / "hidden.yml").write_text(hidden, encoding="utf-8")
    (project.folder / "base.yaml").write_text(BASE, encoding="utf-8")
    expressions = {
        "text": "base", "data": "base_data", "vaulted": "hidden", "file": "lookup('ansible.builtin.file', 'base.yaml')", "registered": "read.stdout"}
    tasks = [{"name": "Read", "ansible.builtin.command": {"argv": ["cat", "base.yaml"]}, "register": "read"}]
    for name, expression in expressions.items():
        tasks.append({"name": f"Merge {name}", "ansible.builtin.debug": {
            "msg": f"{{{{ {expression} | ichor.talos.talos_config_merge(more, more_text, talos_version='v1.13.9') }}}}"}})
        tasks.append({"name": f"Diff {name}", "ansible.builtin.debug": {"msg": f"{{{{ {expression} | ichor.talos.talos_config_diff(more) | length }}}}"}})
        tasks.append({"name": f"Redact {name}", "ansible.builtin.debug": {"msg": f"{{{{ {expression} | ichor.talos.talos_config_redact }}}}"}})
    path = project.write("filters", tasks, vars={"base": BASE, "base_data": yaml.safe_load(BASE), "more": MORE, "more_text": yaml.safe_dump(MORE)},
                         vars_files=["hidden.yml"])
    run = project.run(path, "--vault-password-file", str(password))
    for name in expressions:
        merged = yaml.safe_load(run[f"Merge {name}"]["msg"])
        assert merged["machine"]["sysctls"] == {"a": "1", "b": "2"} and merged["machine"]["kubelet"]["extraArgs"] == {"v": "4"}, name
        assert int(run[f"Diff {name}"]["msg"]) == 3 and yaml.safe_load(run[f"Redact {name}"]["msg"])["machine"]["sysctls"] == {"a": "1"}, name
