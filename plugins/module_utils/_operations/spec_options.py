# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nested options of a module as parts of a record's spec: snake case becomes the record's camel case, what was not given goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._model.plan import plain
from .._model.records import Json


def said(options: Mapping[str, object]) -> dict[str, Json]:
    """What a person gave of a block of options; options that were left out are None in Ansible and are not in it."""
    return {key: plain(value) for key, value in options.items() if value is not None}


def said_list(blocks: Iterable[Mapping[str, object]]) -> tuple[Mapping[str, Json], ...]:
    """The same for a list of blocks."""
    return tuple(said(block) for block in blocks)


def camel(options: Mapping[str, object], names: Mapping[str, str]) -> dict[str, Json]:
    """The same, with the option names that the record spells otherwise."""
    return {names.get(key, key): value for key, value in said(options).items()}


def install_of(options: Mapping[str, object]) -> dict[str, Json]:
    """`spec.install` from the option `install`; empty when nothing was given."""
    block = camel(options, {"disk_selector": "diskSelector"})
    selector = block.get("diskSelector")
    if isinstance(selector, dict):
        block["diskSelector"] = {key: value if isinstance(value, str) else str(value) for key, value in selector.items()}
    return block


def text_map(options: Mapping[str, object]) -> dict[str, str]:
    """A mapping of texts, as labels are; true and false become the words that YAML has for them."""
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items() if value is not None}
