# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expressions of the language CEL that this product writes itself: selectors of disks and links, from fixed templates."""
from __future__ import annotations

import re


def quote(text: str) -> str:
    """A CEL string. Go's quoting: only what has to be escaped is."""
    return '"' + "".join(
        f"\\{character}" if character in '"\\' else character if character.isprintable() else f"\\u{ord(character):04x}" for character in text
    ) + '"'


def equals_path(path: str) -> str:
    """The disk with this device path, as Talos's generator writes it; a link such as /dev/disk/by-id/… is looked up in its symlinks."""
    if path.startswith("/dev/disk/"):
        return f"{quote(path)} in disk.symlinks"
    return f"disk.dev_path == {quote(path)}"


def permanent_mac(mac: str) -> str:
    """The link with this permanent hardware address."""
    return f"mac(link.permanent_addr) == {quote(mac.lower())}"


def balanced(expression: str) -> bool:
    """Whether quotes, brackets and braces close: all that is checked of an expression here; Talos checks the rest."""
    rest = re.sub(r"'''.*?'''|\"\"\".*?\"\"\"|[rR]?'(?:\\.|[^'\\\n])*'|[rR]?\"(?:\\.|[^\"\\\n])*\"", "''", expression, flags=re.DOTALL)
    if '"' in rest or rest.replace("''", "").count("'"):
        return False
    closing = {")": "(", "]": "[", "}": "{"}
    stack: list[str] = []
    for character in rest:
        if character in "([{":
            stack.append(character)
        elif character in closing and (not stack or stack.pop() != closing[character]):
            return False
    return not stack
