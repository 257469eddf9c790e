# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talos's own validation for lab nodes: the form that `python -m tests.lab --oracle` speaks, answered by the oracle of each contract."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from .oracle import Oracle

ROOT = Path(__file__).resolve().parents[2]
#: Kinds that v1.14.0-rc.1 has and the machinery of the v1.14 oracle has not: documents of these are left to the lab.
FIELDS = ROOT / "tests" / "vectors" / "fields-v1.14.0-rc.1.json"
_UNREGISTERED = re.compile(r'"(\w+)" "v1alpha1": not registered')


def program(folder: Path) -> Path:
    """An executable in `folder` that runs this module, for `--oracle`."""
    path = folder / "talos-oracle"
    text = f"#!/bin/sh\ncd {shlex.quote(str(ROOT))}\nexec {shlex.quote(sys.executable)} -m tests.parts.lab_oracle\n"
    path.write_text(text, encoding="utf-8")
    os.chmod(path, 0o700)
    return path


def without(config: str, kind: str) -> str:
    """The configuration without its documents of a kind."""
    documents = re.split(r"(?m)^---\s*$", config)
    return "---".join(text for text in documents if not re.search(rf"(?m)^kind:\s*{kind}\s*$", text))


class Judges:
    """One oracle a contract, started when first asked."""

    def __init__(self) -> None:
        self._oracles: dict[str, Oracle] = {}
        self._newer = {entry["kind"] for entry in json.loads(FIELDS.read_text(encoding="utf-8"))}

    def judge(self, request: dict[str, Any]) -> dict[str, Any]:
        """Error text and warnings for a lab node's question."""
        contract = ".".join(str(request["version"]).removeprefix("v").split(".")[:2])
        oracle = self._oracles.get(contract) or self._start(contract)
        config = base64.b64decode(request["config"]).decode("utf-8", "surrogateescape")
        # An installed node and, since v1.14, any node is validated without asking for install instructions.
        mode = "cloud" if request["installed"] or contract == "1.14" else str(request["mode"])
        while True:
            answer = oracle.ask(op="validate", config=config, mode=mode)
            unknown = _UNREGISTERED.search(str(answer.get("error", "")))
            if contract != "1.14" or unknown is None or unknown.group(1) not in self._newer:
                return {"error": answer.get("error", ""), "warnings": answer.get("warnings") or []}
            config = without(config, unknown.group(1))

    def _start(self, contract: str) -> Oracle:
        self._oracles[contract] = Oracle(contract)
        return self._oracles[contract]

    def close(self) -> None:
        for oracle in self._oracles.values():
            oracle.close()


def main() -> int:
    """Answer each line of standard input with one line."""
    judges = Judges()
    try:
        for line in sys.stdin:
            print(json.dumps(judges.judge(json.loads(line))), flush=True)
    finally:
        judges.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
