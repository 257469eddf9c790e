# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each module runs from the built archive, and ansible-doc shows it completely."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.artefact.conftest import MODULES, Installed

# What each module is asked for, and the reason in its answer. No node is there and no store either: the answer has to be the
# module's own, not Ansible's.
# Nothing listens on the address: port 9 of a loopback address that nobody uses.
SILENT = "127.93.17.5:9"
CONFIG = """\
version: v1alpha1
machine:
  type: worker
  token: 328hom.uqjzh6jnn2eie9oi
  ca: {crt: LS0t, key: ""}
  install: {disk: /dev/sda}
cluster:
  controlPlane: {endpoint: "https://192.0.2.1:6443"}
"""

CALLS: dict[str, tuple[Mapping[str, object], str]] = {
    "etcd_backup": ({"cluster": "prod", "path": "backups"}, "StoreMissing"),
    "etcd_member": ({"cluster": "prod", "member": "8e9e05c52164694d"}, "StoreMissing"),
    "etcd_member_info": ({"cluster": "prod"}, "StoreMissing"),
    "etcd_restore": ({"cluster": "prod", "machine": "cp1", "confirm": "prod", "path": "backups"}, "StoreMissing"),
    "talos_adopt": ({"cluster": "prod", "addresses": [SILENT], "add_machine": True, "allow_loopback": True}, "StoreMissing"),
    "talos_bootstrap": ({"machine": "cp1"}, "StoreMissing"),
    "talos_cluster": ({"name": "prod", "talos_version": "v1.13.9", "endpoint": "https://192.0.2.1:6443"}, ""),
    "talos_cluster_info": ({"cluster": "prod"}, "StoreMissing"),
    "talos_cni": ({"cluster": "prod"}, "StoreMissing"),
    "talos_config_info": ({"store": "none", "config_content": CONFIG, "talos_version": "v1.13.9"}, ""),
    "talos_config_patch": ({"name": "inotify", "cluster": "prod", "documents": [{"machine": {"sysctls": {"a": "1"}}}]}, "StoreMissing"),
    "talos_controller": ({"passes": 1}, "StoreMissing"),
    "talos_credentials": ({"kind": "talosconfig", "cluster": "prod", "path": "talosconfig"}, "StoreMissing"),
    "talos_discover": ({"store": "none", "addresses": [SILENT], "register": False, "allow_loopback": True}, ""),
    "talos_machine": ({"machine": "cp1", "hostname": "cp1"}, "StoreMissing"),
    "talos_machine_approval": ({"machine": "cp1", "role": "controlplane"}, "StoreMissing"),
    "talos_machine_info": ({"machine": "cp1"}, "StoreMissing"),
    "talos_machine_removal": ({"machine": "cp1", "confirm": "cp1"}, "StoreMissing"),
    "talos_maintenance_apply": (
        {
            "store": "none",
            "address": SILENT,
            "allow_loopback": True,
            "uuid": "6e6f6465-0000-4000-8000-000000000001",
            "fingerprint": "MnBgVbKhQRJZsHJTqkDsQMrQRAGOGHOxkxaeGq8mUKk=",
            "config_content": CONFIG,
        },
        "ConnectionRefused",
    ),
    "talos_reclaim": ({"cluster": "prod", "address": SILENT, "allow_loopback": True}, "StoreMissing"),
    "talos_report": ({"path": "fleet.html"}, "StoreMissing"),
    "talos_reset": ({"machine": "cp1", "confirm": "cp1"}, "StoreMissing"),
    "talos_runner": ({"store": "none", "image": "images.example.org/runner:1", "manifests": "/dev/null/runner"}, "InvalidInput"),
    "talos_secrets": ({"name": "prod"}, "StoreMissing"),
    "talos_stage": ({"store": "none", "address": SILENT, "allow_loopback": True}, "NodeUnreachable"),
    "talos_store_copy": ({"to": "directory", "to_path": "other"}, "StoreMissing"),
}

RESULT = {"changed", "reason", "msg", "refusals", "plan", "plan_id", "machines", "transitions", "events", "blocked", "waiting_for", "requeue_after"}


def test_every_module_has_a_call() -> None:
    assert sorted(CALLS) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_a_module_runs_from_the_archive(installed: Installed, name: str, tmp_path: Path) -> None:
    options, reason = CALLS[name]
    result = installed.module(name, {"store_path": str(tmp_path / "ichor"), **options})
    assert "module_stdout" not in result and "exception" not in result, result
    assert result["reason"] == reason, result
    assert not RESULT - set(result)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", MODULES)
def test_the_documentation_is_complete(documentation: Callable[[str], dict[str, Any]], name: str) -> None:
    answer = documentation(name)
    doc = answer["doc"]
    assert doc["short_description"] and doc["description"] and doc["author"]
    assert {"check_mode", "diff_mode", "action_group"} <= set(doc["attributes"])
    for path, option in _options(doc["options"]):
        assert option["description"] and option["type"], path
    assert {"reason", "msg", "machines"} <= set(answer["return"])
    assert name.endswith("_info") or {"plan", "plan_id"} <= set(answer["return"])
    examples = yaml.safe_load(answer["examples"])
    assert any(f"ichor.talos.{name}" in task for task in examples)
    for task in examples:
        assert task["name"] and any(key.count(".") == 2 for key in task), task


def _options(options: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, option in options.items():
        yield before + name, option
        yield from _options(option.get("suboptions") or {}, f"{before}{name}.")


def test_the_archive_holds_what_runs_and_no_tests(installed: Installed) -> None:
    with tarfile.open(installed.archive) as archive:
        names = set(archive.getnames())
    assert {f"plugins/modules/{name}.py" for name in MODULES} <= names
    assert {"README.md", "COPYING", "LICENSES/GPL-3.0-or-later.txt", "LICENSES/MPL-2.0.txt", "CHANGELOG.md", "meta/runtime.yml"} <= names
    assert not [name for name in names if name.partition("/")[0] in ("tests", ".build", ".ci", ".git")]
