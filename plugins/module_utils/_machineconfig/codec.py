# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and merging typed values: what every kind of field has in common, and the reading that one document is under."""
from __future__ import annotations

from typing import Any

from . import problem
from .problem import ConfigProblem
from .yaml_read import MAPPING, SCALAR, Node


class Reading:
    """What is known while one document is decoded: where we are, and which keys nobody knows."""

    __slots__ = ("path", "unknown")

    def __init__(self) -> None:
        self.path: list[str] = []
        self.unknown: list[tuple[str, Node]] = []

    def wrong(self, node: Node, expected: str) -> ConfigProblem:
        """The error for a value of the wrong type or form. The value itself is not quoted, it may be a secret."""
        found = "a mapping" if node.kind == MAPPING else "a scalar" if node.kind == SCALAR else "a list"
        what = f"{expected} is expected here, not {found}" if found not in expected else f"{expected} is expected here"
        return ConfigProblem(problem.WRONG_TYPE, what, path=".".join(self.path), line=node.line)


class Codec:
    """One type of field. A decoded value of None means Go's zero value: nothing there.

    read: the value of a node. merge: what a patch makes of left and right; raises ConfigProblem (PatchFailed).
    empty: whether the field is left out when it may be. zero: what stands there when it may not be left out.
    """

    __slots__ = ()
    zero: Any = None
    #: Whether a pointer to it is what Go has, so that a present zero is something else than nothing.
    pointer = False
    #: Whether a document that has this field cannot be patched at all.
    unmergeable = False

    @property
    def element(self) -> Any:
        """What stands for a zero value in a list, where nothing can be left out."""
        return self.zero

    def read(self, node: Node, reading: Reading) -> Any:
        raise NotImplementedError

    def merge(self, left: Any, right: Any) -> Any:
        return left if right is None else right

    def empty(self, value: Any) -> bool:
        return value is None

    def output(self, value: Any) -> Any:
        """The value as data for the YAML writer."""
        return self.zero if value is None else value

    def copy(self, value: Any) -> Any:
        return value


def patch_failed(what: str, path: str = "", talos: str = "") -> ConfigProblem:
    """A patch that Talos refuses. talos: how Talos says it, for comparing."""
    return ConfigProblem(problem.PATCH_FAILED, talos or what, path=path)
