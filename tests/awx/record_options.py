# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records what options the modules of awx.awx take: `python -m tests.awx.record_options WHEEL > tests/awx/options.json`.

WHEEL is that of the Python package `ansible`, which holds the collection (`pip download --no-deps ansible==11.13.0`). Each module is begun with
an AnsibleModule that tells what it was made with and ends there; what is kept are names, types, choices and what is required.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import ansible.module_utils.basic

MODULES = ("credential_type", "execution_environment", "inventory", "inventory_source", "job_template", "project", "schedule", "workflow_job_template",
           "workflow_job_template_node")
KEPT = ("type", "elements", "choices", "required", "aliases", "default")
PACKAGE = "ansible_collections/awx/awx/"


class Told(Exception):
    """The argument spec of a module that was begun."""


def record(wheel: Path) -> dict[str, Any]:
    """The table, with its source."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if name.startswith(PACKAGE)])
        sys.path.insert(0, folder)
        manifest = json.loads((Path(folder) / PACKAGE / "MANIFEST.json").read_text(encoding="utf-8"))["collection_info"]
        return {"source": f"{manifest['namespace']}.{manifest['name']} {manifest['version']}, from {wheel.name}",
                "modules": {name: _options(name) for name in MODULES}}


def _options(name: str) -> dict[str, Any]:
    def tell(module: object, argument_spec: dict[str, Any], **others: Any) -> None:
        raise Told(argument_spec)

    ansible.module_utils.basic.AnsibleModule.__init__ = tell
    module = importlib.import_module(f"ansible_collections.awx.awx.plugins.modules.{name}")
    try:
        module.main()
    except Told as told:
        spec: dict[str, Any] = told.args[0]
    return {option: {"type": "str", **{key: entry[key] for key in KEPT if entry.get(key) is not None}} for option, entry in sorted(spec.items())}


if __name__ == "__main__":
    print(json.dumps(record(Path(sys.argv[1])), indent=1, sort_keys=True, default=list))
