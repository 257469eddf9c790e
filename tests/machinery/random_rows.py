# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random inputs and what Talos's machinery says of them, as rows of the form of tests/vectors; and how versions differ.

The machinery that can be built here is v1.12.6, v1.13.9 and v1.14.0-alpha.2, the rows in tests/vectors come from v1.12.11, v1.13.9 and
v1.14.0-rc.1. Those win: what differs between the two stands in VERSIONS, with its reason.
"""

from __future__ import annotations

import functools
import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.yaml_write import write_documents
from tests.parts.oracle import MACHINERY, Oracle
from tests.unit._machineconfig.inputs import Inputs
from tests.vectors_config import CHECKS, HERE, Row

SECRETS = (HERE / "secrets.yaml").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Difference:
    """Something in which the machinery here differs from the one of the vectors. `says`: found in what the oracle or the check says."""

    contract: str
    says: str
    reason: str


VERSIONS: tuple[Difference, ...] = (
    Difference("1.12", r"strictCgroupClassOrdering", "OOMConfig.strictCgroupClassOrdering came after v1.12.6"),
    Difference("1.12", r"expression output type", "Talos compiles the expression; this product leaves that to the node"),
    Difference("1.13", r"expression output type", "Talos compiles the expression; this product leaves that to the node"),
    Difference("1.14", r"expression output type", "Talos compiles the expression; this product leaves that to the node"),
    Difference("1.12", r"(address|prefix length|expression|size|colons)[^.]* is expected here, not a (mapping|list)",
               "an empty mapping in the place of a text is nothing to v1.12; later Talos refuses it, as this product does"),
    *(Difference(contract, r"failed to unmarshal base runtime spec", "what the OCI runtime calls its own fields is left to the node")
      for contract in MACHINERY),
    *(Difference(contract, r"element \d+ is null\)", "a null in a list of objects, at which a node's validation panics, is refused here")
      for contract in MACHINERY),
    Difference("1.14", r"not registered", "the kind came after v1.14.0-alpha.2"),
    Difference("1.14", r"unknown keys found", "the key came after v1.14.0-alpha.2"),
    Difference("1.14", r"meta\.ArgValue", "arguments take lists since after v1.14.0-alpha.2"),
    Difference("1.14", r"failed to parse PEM block|at least one subnets|\"IMAGECACHE\"\] volumes|DiscoveryIdentityConfig",
               "texts and checks changed after v1.14.0-alpha.2"),
    Difference("1.12", r"either 'auto' or 'hostname' must be set", "'auto: off' alone is refused by v1.12.6 and taken by the later machinery"),
    Difference("1.14", r"duplicate document", "a document that a patch has twice is merged twice since after v1.14.0-alpha.2"),
    Difference("1.14", r"merge not possible, left", "addresses in documents are merged since after v1.14.0-alpha.2"),
    Difference("1.14", r"KubeSpan requires cluster discovery", "checked since after v1.14.0-alpha.2"),
    Difference("1.14", r"install instructions are required|only allowed on control plane machines|is deprecated; use|controlplane endpoint is required",
               "validation changed after v1.14.0-alpha.2"),
)


def known(contract: str, said: str) -> str:
    """The reason why this is no fault, or ""."""
    return next((entry.reason for entry in VERSIONS if entry.contract == contract and re.search(entry.says, said)), "")


@functools.cache
def base(contract: str, role: str) -> str:
    """What Talos's generator gives for that contract, from the vectors."""
    for line in (HERE / "generate.jsonl").read_text(encoding="utf-8").splitlines():
        row: Row = json.loads(line)
        if row["id"].endswith(f"/v{contract}/{role}/base") and row["machinery"].startswith(f"v{contract}."):
            return str(row["output"])
    raise AssertionError(f"there is no {role} of {contract}")


def generate_row(seed: int, oracle: Oracle) -> tuple[str, Row, str]:
    """(file, row, what Talos said) of one random generation, for the contracts that this machinery writes as the vectors' does."""
    pick = random.Random(seed)
    contract = pick.choice(["1.12"] if oracle.contract == "1.12" else ["1.12", "1.13"])
    given: dict[str, Any] = {
        "name": pick.choice(["c1", "home", "a-b", "UPPER", "x" * 70]), "endpoint": pick.choice(
            ["https://10.0.0.10:6443", "https://k8s.lan:6443/x/", "https://[fd00::1]:6443", "https://k8s.lan"]),  # others are refused by talosctl alone
        "k8s": pick.choice(["1.35.0", "1.34.2", "1.33.10"]), "contract": f"v{contract}", "image": pick.choice(["", "example.org/installer:v1"]),
        "role": pick.choice(["controlplane", "worker"]), "secrets": "secrets.yaml"}
    if not given["image"]:
        given["image"] = "example.org/default:v1"
    for key, values in (("sans", [[], ["a.lan"], ["10.0.0.1", "b.lan", "fd00::5"]]), ("disk", ["/dev/sda", "/dev/nvme0n1", ""]), ("discovery", [True, False]),
                        ("kubespan", [True, False]), ("mirrors", [
                            {}, {"docker.io": "https://m.lan"}, {"ghcr.io": "https://a/x,https://b", "quay.io": "http://c:5000"}]),
                        ("allowsched", [True, False]), ("sysctls", [{}, {"a.b": "1", "c": ""}]), ("dns", ["", "k8s.lan", "cluster.local"]),
                        ("cniurl", ["", "https://cni.lan/x.yaml"])):
        if pick.random() < 0.4:
            given[key] = pick.choice(values)
    said = oracle.ask(op="generate", input={**{key: value for key, value in given.items() if key != "secrets"}, "secrets_text": SECRETS})
    row: Row = {"id": f"seed {seed}", "machinery": MACHINERY[oracle.contract], "input": given, "output": said.get("output", ""), "error": said.get("error")}
    return "generate.jsonl", row, str(said.get("error") or "")


def _text(source: Inputs, most: int, legacy: float) -> str:
    documents = [source.document("v1alpha1")] if source.random.random() < legacy else []
    documents += [source.document() for dummy in range(source.random.randint(1, most))]
    return write_documents(documents)


def patch_row(seed: int, oracle: Oracle) -> tuple[str, Row, str]:
    """One random patch of a generated configuration."""
    source = Inputs(seed, oracle.contract, wrong=0.01)
    contract = "1.13" if oracle.contract == "1.14" else oracle.contract  # the alpha does not know the documents of contract 1.14
    config = base(contract, source.random.choice(["controlplane", "worker"]))
    patches = [_text(source, 2, 0.6) for dummy in range(source.random.choice((1, 1, 2)))]
    if source.random.random() < 0.2:
        patches.append(source.random.choice(("machine:\n  sysctls:\n    $patch: delete\n", "cluster:\n  discovery:\n    $patch: delete\n",
                                             "apiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete\n")))
    said = oracle.ask(op="patch", config=config, patches=patches)
    row: Row = {"id": f"seed {seed}", "machinery": MACHINERY[oracle.contract], "config": config, "patches": patches, "output": said.get("output", ""),
                "error": said.get("error")}
    return "patch.jsonl", row, str(said.get("error") or "")


def validate_row(seed: int, oracle: Oracle) -> tuple[str, Row, str]:
    """One random configuration, read and validated."""
    source = Inputs(seed, oracle.contract)
    mode = source.random.choice(("metal", "metal", "cloud", "container"))
    text = _text(source, 3, 0.4)
    return judged(f"seed {seed}", text, mode, oracle)


def judged(name: str, text: str, mode: str, oracle: Oracle) -> tuple[str, Row, str]:
    """A configuration and what Talos says of it. Go walks a map in any order, so it may say the same in several ways: it is asked
    again until its words are those of this product, ten times at most."""
    for dummy in range(10):
        said = oracle.ask(op="validate", config=text, mode=mode, local=True)
        error = said.get("error") or ""
        told = "".join(f"WARN: {warning}\n" for warning in said.get("warnings") or [])
        refused = said.get("stage") == "load"
        result = f"ERROR: {error}" if refused else told + (f"ERR: {error}\n" if error else "OK\n")
        row: Row = {"id": name, "machinery": MACHINERY[oracle.contract], "mode": mode, "config": text, "patches": [], "patch_error": None,
                    "result": result}
        if not trouble("validate.jsonl", row):
            break
    return "validate.jsonl", row, result


def trouble(name: str, row: Row) -> str:
    """"" where this product says the same. An input with several faults may be refused for another one of them."""
    said = CHECKS[name](row, Path(HERE))
    return "" if re.fullmatch(r"refused as \w+(, expected \w+)?", said) else said
