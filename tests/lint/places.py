# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables in docs/configuration.md follow from the data that rendering uses: `python -m tests.lint.places` checks, `--write` makes them."""

from __future__ import annotations

import sys
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.places import LAYERS, PLACES

PAGE = Path("docs/configuration.md")
BEGIN, END = "<!-- {name}: made from plugins/module_utils/_machineconfig/places.py -->", "<!-- end of {name} -->"


def tables() -> dict[str, str]:
    """The generated parts of the page by name."""
    rows = ["| record | field | on 1.12 and 1.13 | on 1.14 | meaning |", "| --- | --- | --- | --- | --- |"]
    rows += [f"| {place.record} | `{place.field}` | {_cell(place.before)} | {_cell(place.since)} | {_cell(place.meaning)} |" for place in PLACES]
    layers = [f"{number}. **{layer.name}**: {layer.what}" for number, layer in enumerate(LAYERS, 1)]
    return {"layers": "\n".join(layers), "places": "\n".join(rows)}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_tables(page: str) -> str:
    """The page with its generated parts as they have to be. Raises ValueError where a mark is missing."""
    for name, table in tables().items():
        begin, end = BEGIN.format(name=name), END.format(name=name)
        head, found, rest = page.partition(begin)
        dummy, closed, tail = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{PAGE} lacks the marks of {name}")
        page = f"{head}{begin}\n\n{table}\n\n{end}{tail}"
    return page


def main(arguments: list[str]) -> int:
    """Write the page, or say that it differs."""
    text = PAGE.read_text(encoding="utf-8")
    if "--write" in arguments:
        PAGE.write_text(with_tables(text), encoding="utf-8")
        return 0
    if with_tables(text) != text:
        print(f"{PAGE} does not follow from its data: python -m tests.lint.places --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
