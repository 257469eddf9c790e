# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mutated protobuf answers and COSI specs: they are read and clean, or refused by the parser; nothing else is ever raised."""

from __future__ import annotations

import random

from google.protobuf.message import DecodeError

from ansible_collections.ichor.talos.plugins.module_utils._node import clean
from ansible_collections.ichor.talos.tests.unit._node.test_mutated_answers import CASES, mutated, strings


def many(chance: random.Random, count: int = 500) -> int:
    """So many mutations, over all kinds of answers."""
    for unused in range(count):
        message, read = CASES[chance.choice(sorted(CASES))]
        data = message.SerializeToString()
        for unused_again in range(chance.randint(1, 4)):
            data = mutated(data, chance)
        try:
            spec = type(message).FromString(data)
        except DecodeError:
            continue
        for text in strings(read(spec)):
            if len(text) > clean.STRING_LIMIT or clean.text(text) != text:
                raise AssertionError(f"not clean: {text!r} of {data.hex()}")
    return count
