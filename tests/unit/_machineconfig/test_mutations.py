# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutated configurations, patches and bundles: one sentence or a result, never a traceback or a hang.

ICHOR_MUTATIONS sets how many; the seed is printed by a failure.
"""
from __future__ import annotations

import os
import random
import resource
import time

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import (
    authorities, bring, compare, documents, patch, secrets, shown, validate, yaml_write,
)
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import VERSIONS
from tests.vectors_config import HERE, rows

from .inputs import Inputs

COUNT = int(os.environ.get("ICHOR_MUTATIONS", "2000"))
PIECES = ("", " ", "\n", "\t", ":", ": ", "- ", "#", "'", '"', "{", "}", "[", "]", "&a ", "*a", "!!int ", "!x ", "|\n", ">\n", "---\n", "...\n",
          "<<: ", "$patch: delete\n",
          "null", "~", "true", "1e999", "0x", "-", "\u2028", "\x00", "\ufeff", "é", "999999999999999999999", "2020-01-01", "a" * 300, "%", "@", "`",
          "? ", "\\", "\r\n", "key: ")
SOURCES = [row["output"] for row in list(rows(HERE, "generate.jsonl"))[::17]] + [text for row in list(rows(HERE,
                                                                                                           "patch.jsonl"))[::9] for text in row["patches"]]


def mutated(source: random.Random, text: str) -> str:
    for dummy in range(source.choice((1, 1, 2, 3, 8))):
        position, length = source.randrange(len(text) + 1), source.choice((0, 0, 1, 2, 10, 200))
        kind = source.randrange(4)
        if kind == 0:
            text = text[:position] + source.choice(PIECES) + text[position + length:]
        elif kind == 1:
            other = source.randrange(len(text) + 1)
            text = text[:position] + text[other:other + source.choice((5, 50, 500))] + text[position:]
        elif kind == 2:
            lines = text.splitlines(keepends=True)
            if lines:
                line = source.randrange(len(lines))
                lines[line] = source.choice((" ", "  ", "    ", "")) + lines[line].lstrip(" ") if source.random() < 0.5 else lines[line] * 2
                text = "".join(lines)
        else:
            text = text[:position] + text[position + length:]
    return text


def exercise(text: str, version: str) -> None:
    """Everything that takes a person's text, with that text."""
    try:
        bring.bring(text.encode("utf-8", "surrogatepass"))
    except ConfigProblem as error:
        one_sentence(error)
    try:
        shown.redact(text)
    except ConfigProblem as error:
        one_sentence(error)
    base = documents.load("machine: {type: worker, certSANs: [a]}\ncluster: {}\n", version)
    try:
        patched = patch.apply_patches(base, [patch.load_patch(text, version)])
        validate.validate(patched).text()
    except ConfigProblem as error:
        one_sentence(error)
    try:
        config = documents.load(text, version)
    except ConfigProblem as error:
        one_sentence(error)
        return
    validate.validate(config).text()
    validate.validate(config, "container")
    once = config.text()
    shown.masked_text(config)
    assert compare.differences(config, base) is not None
    if "Protocol(0)" not in once:
        again = documents.load(once, version)
        assert again.text() == once
        assert compare.differences(config, again) == ()


def one_sentence(error: ConfigProblem) -> None:
    assert error.message.endswith(".") and error.message.count("\n") <= 3 and error.reason
    assert len(error.message) < 1500


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("part", range(4))
def test_mutated_texts(version: str, part: int) -> None:
    started, count = time.process_time(), COUNT // 12
    for seed in range(part * count, (part + 1) * count):
        source = random.Random(f"{version}/{seed}")
        text = mutated(source, source.choice(SOURCES))
        try:
            exercise(text, version)
        except Exception as error:
            raise AssertionError(f"seed {version}/{seed}: {error!r}") from error
    assert time.process_time() - started < 10 + count * 0.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_500_000


@pytest.mark.parametrize("version", VERSIONS)
def test_random_wrong_values_everywhere(version: str) -> None:
    for seed in range(COUNT // 20):
        text = yaml_write.write_documents(Inputs(seed, version, wrong=0.15).config())
        try:
            exercise(text, version)
        except Exception as error:
            raise AssertionError(f"seed {version}/{seed}: {error!r}") from error


def test_mutated_bundles() -> None:
    text = (HERE / "secrets.yaml").read_text(encoding="utf-8")
    for seed in range(COUNT // 20):
        changed = mutated(random.Random(seed), text)
        try:
            bundle = secrets.read_bundle(changed)
            authorities.check_bundle(bundle)
            assert secrets.read_bundle(bundle.text()) == bundle
        except ConfigProblem as error:
            one_sentence(error)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
