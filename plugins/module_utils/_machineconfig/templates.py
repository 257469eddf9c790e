# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Placeholders of other tools that were left unexpanded. Talos would take them as values and a node would never join."""
from __future__ import annotations

import re
from collections.abc import Iterable

from . import problem
from .problem import ConfigProblem
from .yaml_read import MAPPING, SCALAR, Node

# (what it is called, what to do, pattern in the text of one value)
_FORMS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("a Jinja expression `{{ … }}`", "Render the text first (the template lookup does it).", re.compile(r"\{\{.*?\}\}")),
    ("a Jinja statement `{% … %}`", "Render the text first (the template lookup does it).", re.compile(r"\{%.*?%\}")),
    ("a shell variable `${…}`", "Replace it first (envsubst does it).", re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?:[:?+-][^}]*)?\}")),
    ("an encrypted value `ENC[…]`", "Decrypt it first (sops --decrypt does it for SOPS).", re.compile(r"\bENC\[[A-Z0-9_]+[,\]]")),
    ("a 1Password reference `op://…`", "Read it first (op inject does it).", re.compile(r"(?:^|[\s\"'=])op://\S")),
    ("a vals reference `ref+…`", "Evaluate it first (vals eval does it).", re.compile(r"(?:^|[\s\"'=])ref\+[a-z0-9]+://")),
    ("a Vault reference `vault:…`", "Read the secret first.", re.compile(r"^vault:[\w/.-]+#\w+")),
)
_STATEMENT_LINE = re.compile(r"\s*\{%[-~+]?\s*\w+")


def refuse_in_nodes(nodes: Iterable[Node]) -> None:
    """Raises ConfigProblem (UnexpandedTemplate) with line and path of the first placeholder; the placeholder is not quoted.

    Texts of several lines are left alone: files and manifests may hold anything.
    """
    stack = [(node, "") for node in nodes][::-1]
    while stack:
        node, path = stack.pop()
        if node.kind == SCALAR:
            _refuse_value(node, path)
        elif node.kind == MAPPING:
            for key, value in reversed(node.value):
                below = f"{path}.{key.value}" if path else str(key.value)
                stack.append((value, below))
                stack.append((key, path))
                if key.value == "sops" and value.get("mac") is not None:
                    raise _refusal("a file that SOPS encrypted", "Decrypt it first (sops --decrypt does it).", key.line)
        else:
            stack.extend((inner, f"{path}.{index}") for index, inner in reversed(list(enumerate(node.value))))


def refuse_in_broken_text(text: str) -> None:
    """The same for a text that is no YAML: an unquoted placeholder is often why, and the better thing to say."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        if line.startswith("$ANSIBLE_VAULT;"):
            raise _refusal("a file that ansible-vault encrypted", "Let Ansible read it, or decrypt it first.", number)
        for name, hint, pattern in _FORMS[:4]:
            if pattern.search(line) or pattern is _FORMS[1][2] and _STATEMENT_LINE.match(line):
                raise _refusal(name, hint, number)


def refuse_encrypted_file(text: str) -> None:
    """A vaulted file is valid YAML (one scalar), so it is looked for before anything else."""
    if text.lstrip().startswith("$ANSIBLE_VAULT;"):
        raise _refusal("a file that ansible-vault encrypted", "Let Ansible read it, or decrypt it first.", 1)


def _refuse_value(node: Node, path: str) -> None:
    text = node.value
    if "\n" in text or not ("{" in text or "[" in text or ":" in text):
        return
    for name, hint, pattern in _FORMS:
        if pattern.search(text):
            raise _refusal(name, hint, node.line, path)


def _refusal(name: str, hint: str, line: int, path: str = "") -> ConfigProblem:
    return ConfigProblem(problem.UNEXPANDED_TEMPLATE, f"{name} was left unexpanded", hint=hint, line=line, path=path)
