# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RFC 6902 patches, which Talos cannot apply to a configuration of several documents: refused, with what to write instead."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from . import problem
from .problem import ConfigProblem
from .scalars import resolve
from .shown import shown_document
from .yaml_read import MAPPING, SCALAR, SEQUENCE, Node

_ELSE = "Write it as a strategic merge patch: the documents with only what changes, and '$patch: delete' for what goes."


def refuse_json_patch(nodes: Sequence[Node]) -> None:
    """Raises ConfigProblem (JSONPatchRefused) when the text is a list of operations; the hint has the same as a merge patch.

    The form is offered for plain `add` and `replace` below the legacy document; values are quoted back only as far as they
    are the person's own words in the patch, and no secret is.
    """
    if len(nodes) != 1 or nodes[0].kind != SEQUENCE or not nodes[0].value:
        return
    operations = nodes[0].value
    if not all(operation.kind == MAPPING and operation.get("op") is not None for operation in operations):
        return
    merged: dict[str, Any] = {}
    plain = all(_add(merged, operation) for operation in operations)
    hint = f"The strategic merge patch that says the same:\n{shown_document('', merged)}" if plain and merged else _ELSE
    raise ConfigProblem(
        problem.JSON_PATCH, "JSON patches (RFC 6902) are not supported for a machine configuration of several documents", hint=hint, line=operations[0].line,
    )


def _add(merged: dict[str, Any], operation: Node) -> bool:
    """One operation into the merge patch; False when it has no such form."""
    name, path, value = (operation.get(key) for key in ("op", "path", "value"))
    if name is None or name.value not in ("add", "replace") or path is None or path.kind != SCALAR or value is None:
        return False
    steps = [step.replace("~1", "/").replace("~0", "~") for step in str(path.value).split("/")[1:]]
    if not steps or not re.match(r"(machine|cluster|debug|persist)\Z", steps[0]):
        return False
    appending = steps[-1] == "-"
    if appending:
        steps.pop()
    if any(re.fullmatch(r"-|[0-9]+", step) for step in steps) or appending and name.value != "add":
        return False
    data = _plain(value)
    if isinstance(data, list) and not appending:
        return False  # a merge appends to a list, it does not replace it
    here = merged
    for step in steps[:-1]:
        inner = here.setdefault(step, {})
        if not isinstance(inner, dict):
            return False
        here = inner
    if appending:
        items = here.setdefault(steps[-1], [])
        if not isinstance(items, list):
            return False
        items.append(data)
    else:
        here[steps[-1]] = data
    return True


def _plain(node: Node) -> Any:
    if node.kind == SCALAR:
        return resolve(node)
    if node.kind == MAPPING:
        return {key.value: _plain(inner) for key, inner in node.value}
    return [_plain(inner) for inner in node.value]
