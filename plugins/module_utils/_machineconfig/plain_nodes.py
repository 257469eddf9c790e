# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain data (of a record, or of a variable) as YAML nodes, so that it goes through the same decoding as text does."""
from __future__ import annotations

from typing import Any

from . import problem
from .problem import ConfigProblem
from .yaml_read import MAPPING, MAX_DEPTH, SCALAR, SEQUENCE, Node


def node_of(data: Any, depth: int = 0) -> Node:
    """A node tree without lines. Raises ConfigProblem (WrongType) for what YAML has no word for."""
    if depth > MAX_DEPTH:
        raise ConfigProblem(problem.INVALID_YAML, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(data, dict):
        entries = []
        for key, value in data.items():
            if not isinstance(key, str):
                raise ConfigProblem(problem.WRONG_TYPE, "a key has to be a text (quote it)")
            entries.append((Node(SCALAR, str(key), 0), node_of(value, depth + 1)))
        return Node(MAPPING, entries, 0)
    if isinstance(data, (list, tuple)):
        return Node(SEQUENCE, [node_of(value, depth + 1) for value in data], 0)
    if data is None:
        return Node(SCALAR, "null", 0, plain=True)
    if isinstance(data, bool):
        return Node(SCALAR, "true" if data else "false", 0, plain=True)
    if isinstance(data, (int, float)):
        return Node(SCALAR, repr(data), 0, plain=True)
    if isinstance(data, str):
        return Node(SCALAR, str(data), 0)
    raise ConfigProblem(problem.WRONG_TYPE, "a value is neither text, number, bool, list nor mapping (quote dates)")
