# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain data (of a record, or of a variable) as YAML nodes, so that it goes through the same decoding as text does."""
from __future__ import annotations

import math
import re
from typing import Any

from . import problem
from .problem import ConfigProblem
from .yaml_read import MAPPING, MAX_DEPTH, SCALAR, SEQUENCE, Node

_HALF = re.compile("[\ud800-\udfff]")


def node_of(data: Any, path: tuple[str, ...] = ()) -> Node:
    """A node tree without lines. Raises ConfigProblem (WrongType), with its path, for what YAML has no word for."""
    if len(path) > MAX_DEPTH:
        raise ConfigProblem(problem.INVALID_YAML, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(data, dict):
        entries = []
        for key, value in data.items():
            if not isinstance(key, str):
                raise ConfigProblem(problem.WRONG_TYPE, "a key has to be a text (quote it)", path=".".join(path))
            entries.append((Node(SCALAR, str(key), 0), node_of(value, (*path, key))))
        return Node(MAPPING, entries, 0)
    if isinstance(data, (list, tuple)):
        return Node(SEQUENCE, [node_of(value, (*path, str(index))) for index, value in enumerate(data)], 0)
    if data is None:
        return Node(SCALAR, "null", 0, plain=True)
    if isinstance(data, bool):
        return Node(SCALAR, "true" if data else "false", 0, plain=True)
    if isinstance(data, (int, float)):
        if isinstance(data, float) and not math.isfinite(data):
            raise ConfigProblem(problem.WRONG_TYPE, "a number has to be finite", path=".".join(path))
        return Node(SCALAR, repr(data), 0, plain=True)
    if isinstance(data, str):
        if _HALF.search(data):
            raise ConfigProblem(problem.INVALID_YAML, "a text holds half a character (a surrogate), which no file can hold", path=".".join(path))
        return Node(SCALAR, str(data), 0)
    raise ConfigProblem(problem.WRONG_TYPE, "a value is neither text, number, bool, list nor mapping (quote dates)", path=".".join(path))
