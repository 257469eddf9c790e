# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs the field lists of the Talos versions into Python modules. See README.md beside this file."""
from __future__ import annotations

import argparse
import base64
import json
import sys
import zlib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tests" / "vectors"
TARGETS = ROOT / "plugins" / "module_utils" / "_machineconfig"
VERSIONS = {"1.12": "v1.12.11", "1.13": "v1.13.9", "1.14": "v1.14.0-rc.1"}

HEADER = """\
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
\"\"\"The document kinds and fields of Talos {version}, packed by schemas/pack.py from the field list of {release}.\"\"\"
from __future__ import annotations

PACKED = (
{lines}
)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail when a module is out of date")
    check = parser.parse_args().check
    stale = []
    for version, release in VERSIONS.items():
        target = TARGETS / f"_schema_{version.replace('.', '_')}.py"
        text = module_text(version, release)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            stale.append(target.name)
            if not check:
                target.write_text(text, encoding="utf-8")
    if stale and check:
        print("out of date, run python schemas/pack.py: " + ", ".join(stale))
    return 1 if stale and check else 0


def module_text(version: str, release: str) -> str:
    with (SOURCES / f"fields-{release}.json").open(encoding="utf-8") as file:
        packed = base64.b85encode(zlib.compress(json.dumps(tables(json.load(file)), separators=(",", ":"), sort_keys=True).encode(), 9)).decode()
    lines = "\n".join(f'    "{packed[start:start + 140]}"' for start in range(0, len(packed), 140))
    return HEADER.format(version=version, release=release, lines=lines)


def tables(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """The two members that the README describes."""
    types: dict[str, Any] = {}
    packed = {}
    for kind in kinds:
        flags = "".join(letter for letter, key in (("n", "named"), ("c", "cponly"), ("s", "secret"), ("l", "link")) if kind.get(key))
        packed[kind["kind"]] = {"g": flags, "k": kind.get("conflicts", []), "f": fields(kind["fields"], types)}
    return {"kinds": packed, "types": types}


def fields(entries: list[dict[str, Any]], types: dict[str, Any]) -> list[list[str]]:
    result: list[list[str]] = []
    for entry in entries:
        if entry["t"] == "meta.Meta":
            continue  # apiVersion and kind, the same everywhere
        if entry.get("inline") and not entry["t"].startswith("map["):
            result.extend(fields(entry["f"], types))
            continue
        flags = ("o" if "omitempty" in entry.get("tags", []) else "") + ("r" if entry.get("merge") == "replace" else "")
        result.append([entry["n"], entry["t"], flags])
        if "f" in entry:
            name = entry["t"].split("]")[-1].lstrip("*")
            inner = fields(entry["f"], types)
            if types.setdefault(name, inner) != inner:
                raise ValueError(f"the type {name} has two different lists of fields")
    return result


if __name__ == "__main__":
    sys.exit(main())
