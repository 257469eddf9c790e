# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs rows of real Talos code against this product: `python -m tests.vectors_config DIR` (default: tests/vectors).

Kinds of rows, by file: generate.jsonl, patch.jsonl, validate.jsonl, scalars.jsonl; a file that is not there is passed over.
A line per failing row, then one line of counts a file; the exit code is 0 only when all rows pass, and 2 where there is no row at all or
a file cannot be read. A line that is no JSON object, or lacks what its kind of row needs, is a failing row.

What counts as equal: the bytes, for scalars (but for the indentation told before a block, which Talos's encoder tells wrongly in lists and
so cannot read). For configurations the bytes too, in the quoting of the row's Talos version and with that one exception, and where these
differ (rows with comments, which another encoder of Talos's writes) no difference by the semantic comparison that the product uses for
drift. For refusals the kind of the refusal. For validation the very text of Talos's errors and warnings, with a mask where Talos quotes a secret.

Three kinds of rows differ on purpose: an empty patch changes nothing here (talosctl looks for a file of an empty name); deleting a
document that is not there changes nothing (1.12 and 1.13 add an empty document that they then refuse to read); a JSON patch is
refused with a merge patch in its place.
"""
from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import contract, documents, generate, patch, problem, secrets
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.compare import differences
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.masking import MASK
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.validate import validate

HERE = Path(__file__).resolve().parent / "vectors"
Row = dict[str, Any]

# How Talos's refusals begin, and what they are called here.
_REFUSALS = (
    (r"unknown keys found", problem.UNKNOWN_KEY),
    (r"not registered|missing kind|missing apiVersion", problem.UNKNOWN_KIND),
    (r"duplicate document|duplicate v1alpha1", problem.DUPLICATE_DOCUMENT),
    (r"conflicting (documents|link configurations)", problem.CONFLICTING_DOCUMENTS),
    (r"JSON6902", problem.JSON_PATCH),
    (r"config not found", problem.NO_DOCUMENT),
    (r"lookup failed|merge (field|map|type|not)|cannot delete|no key:val found|patch delete|kind and apiVersion must be|missing \w+ in document for which"
     r"|searching for", problem.PATCH_FAILED),
    (r"already defined|yaml: line|found (character|undefined|unexpected)|did not find|mapping values|decode error: yaml", problem.INVALID_YAML),
)


def rows(directory: Path, name: str) -> Iterator[Row]:
    """The rows of one file, each with an id. A line that is no row is one with `broken`. Raises OSError and UnicodeDecodeError."""
    path = directory / name
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                row = {"id": f"line {number}", "broken": f"it is not valid JSON: {error}"}
            if not isinstance(row, dict):
                row = {"id": f"line {number}", "broken": "it is not a JSON object"}
            row.setdefault("id", f"{row.get('machinery', '')}/{number}/{row.get('value', '')!r}")
            yield row


@functools.lru_cache(maxsize=None)
def bundle(directory: Path, name: str) -> secrets.Bundle:
    """The bundle beside the rows, or the one of that name here."""
    path = directory / name
    return secrets.read_bundle((path if path.exists() else HERE / name).read_bytes())


def version_of(row: Row) -> str:
    return contract.contract_of(row["machinery"])


def same_refusal(expected: str, error: problem.ConfigProblem) -> str:
    """"" when the refusal is of the same kind, else what differs."""
    for pattern, cause in _REFUSALS:
        if re.search(pattern, expected):
            return "" if error.cause == cause else f"refused as {error.cause}, expected {cause}"
    return "" if error.cause in (problem.WRONG_TYPE, problem.INVALID_INPUT, problem.PATCH_FAILED) else f"refused as {error.cause}"


def same_config(expected: str, got: documents.Config) -> str:
    """"" when equal to the byte or in meaning."""
    text = got.text(got.version)
    if text == expected or _hint_alone(expected, text, got.version):
        return ""
    # 1.12 and 1.13 write an empty document for a delete of a document that is not there
    cleaned = "---\n".join(part for part in expected.split("---\n") if part != "{}\n")
    found = differences(got, documents.load(cleaned, got.version))
    return "; ".join(f"{difference.path}" for difference in found)


def check_generate(row: Row, directory: Path) -> str:
    given = row["input"]
    try:
        got = generate.generate(
            generate.GenerateInput(
                cluster_name=given["name"], endpoint=given["endpoint"], kubernetes_version=given["k8s"], install_image=given["image"],
                bundle=bundle(directory, given["secrets"]), install_disk=given.get("disk", "/dev/sda"), additional_sans=tuple(given.get("sans") or ()),
                dns_domain=given.get("dns") or "cluster.local", discovery=given.get("discovery", True), kubespan=bool(given.get("kubespan")),
                registry_mirrors={host: tuple(urls.split(",")) for host, urls in (given.get("mirrors") or {}).items()},
                custom_cni_url=given.get("cniurl") or "", allow_scheduling_on_control_planes=bool(given.get("allowsched")),
                sysctls=given.get("sysctls") or {},
            ),
            given["role"], contract.contract_of(given["contract"]), version_of(row),
        )
    except problem.ConfigProblem as error:
        return "" if row.get("error") else f"refused: {error}"
    return same_config(row["output"], got) if not row.get("error") else "accepted, Talos refuses"


def patched(row: Row) -> documents.Config:
    version = version_of(row)
    config = documents.load(row["config"], version)
    return patch.apply_patches(config, [patch.load_patch(text, version) for text in row.get("patches") or ()])


def check_patch(row: Row, directory: Path) -> str:
    expected = (row.get("error") or "").removeprefix("ERROR: ")
    empty_patch = expected.startswith("open : no such file")
    try:
        got = patched(row)
    except problem.ConfigProblem as error:
        return same_refusal(expected, error) if expected and not empty_patch else f"refused: {error}"
    if empty_patch:
        return "" if got.text() == documents.load(row["config"], got.version).text() else "an empty patch changed something"
    if expected:
        return "accepted, Talos refuses"
    return same_config(row["output"], got) or (same_verdict(row["validate"], got, "metal") if row.get("validate") else "")


def same_verdict(expected: str, config: documents.Config, mode: str) -> str:
    got, wanted = _lines(validate(config, mode).text()), _lines(expected)
    return "" if got == wanted or _unmasked(got).fullmatch("\n".join(wanted)) else f"says {got!r}, expected {wanted!r}"


def _unmasked(lines: list[str]) -> re.Pattern[str]:
    """What the lines would be with a secret, which may have lines of its own, in the place of each mask."""
    return re.compile("[^*]+?".join(re.escape(part) for part in "\n".join(lines).split(MASK)))


def _lines(text: str) -> list[str]:
    """Talos's text without its indentation and empty lines; the mode's name is an abbreviation in some rows."""
    return [line.strip() for line in text.replace('required in "m" mode', 'required in "metal" mode').splitlines() if line.strip()]


def check_validate(row: Row, directory: Path) -> str:
    expected = row.get("patch_error") or row.get("result") or ""
    try:
        got = patched(row)
    except problem.ConfigProblem as error:
        return same_refusal(expected, error) if "ERR" in expected or row.get("patch_error") else f"refused: {error}"
    if row.get("patch_error") or expected.startswith("ERROR:"):
        return "accepted, Talos refuses"
    return same_verdict(expected, got, row["mode"])


def check_scalar(row: Row, directory: Path) -> str:
    version = version_of(row)
    try:
        got = documents.load(row["config"], version).text(version)
    except problem.ConfigProblem as error:
        return "" if row.get("error") else f"refused: {error}"
    if row.get("error"):
        return "accepted, Talos refuses"
    return "" if got == row["output"] or _hint_alone(row["output"], got, version) else f"wrote {got!r}, expected {row['output']!r}"


def _hint_alone(expected: str, got: str, version: str) -> bool:
    """Whether the two differ by nothing but the indentation that is told before a block, and `got` is the one that reads back."""
    blocks = re.compile(r"(?m)\|\d?(?=[-+]?$)")
    return blocks.sub("|", expected) == blocks.sub("|", got) and documents.load(got, version).text(version) == got


CHECKS: dict[str, Callable[[Row, Path], str]] = {
    "generate.jsonl": check_generate, "patch.jsonl": check_patch, "validate.jsonl": check_validate, "scalars.jsonl": check_scalar,
}


def trouble(check: Callable[[Row, Path], str], row: Row, directory: Path) -> str:
    """"" or why the row fails; an error that is no refusal fails it too."""
    if "broken" in row:
        return str(row["broken"])
    try:
        return check(row, directory)
    except KeyError as error:
        return f"the row has no {error.args[0]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(arguments: list[str]) -> int:
    directory = Path(arguments[0]) if arguments else HERE
    seen = failed = 0
    for name, check in CHECKS.items():
        count, bad = 0, 0
        try:
            for row in rows(directory, name):
                count += 1
                wrong = trouble(check, row, directory)
                if wrong:
                    bad += 1
                    print(f"FAIL {name} {row['id']}: {wrong}")
        except (OSError, UnicodeDecodeError) as error:
            print(f"{directory / name}: it cannot be read: {error}", file=sys.stderr)
            return 2
        if count:
            print(f"{name}: {count - bad} of {count} rows pass")
        seen, failed = seen + count, failed + bad
    if not directory.is_dir():
        print(f"{directory}: there is no such folder", file=sys.stderr)
        return 2
    if not seen:
        print(f"{directory}: there is no row in any of {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
