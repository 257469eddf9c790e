# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet's document as one HTML page that needs nothing but itself: no script, no network, dark and light.

What nodes and people wrote is escaped by the template engine, not by hand; the page's own policy forbids everything but its style.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from .._model.errors import TalosError
from .._model.records import Json
from . import report_parts, report_style, report_template

try:
    import jinja2
    HAS_JINJA2 = True
except ImportError:
    HAS_JINJA2 = False

#: What a page shows of long lists; the JSON has all.
LIMITS = {"drifted": 60, "paths": 40, "events": 200, "steps": 400, "who": 12, "rows_open": 60, "etcd": 9}


def page(document: Mapping[str, Json]) -> str:
    """The page of a document that `fleet_report` made."""
    if not HAS_JINJA2:
        raise TalosError("MissingLibrary", "The report needs the Python library Jinja2.", "Install Jinja2, which ansible-core brings, for this interpreter.")
    return str(_environment().get_template("page").render(**document, limits=LIMITS))


@cache
def _environment() -> Any:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, auto_reload=False,
                                     loader=jinja2.DictLoader({"page": report_template.PAGE, "parts": report_parts.PARTS, "style": report_style.STYLE}))
    environment.filters.update(day=_day, clock=_clock, words=_words, size=_size, grouped=_by_cluster)
    return environment


def _day(moment: str) -> str:
    return moment[:10]


def _clock(moment: str) -> str:
    """`2026-11-30 12:03`, as the page shows points in time; UTC, as its head says."""
    return moment[:16].replace("T", " ")


def _words(name: str) -> str:
    """`ApplyConfig` as `apply config`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower()


def _size(count: object) -> str:
    return f"{count / 1_000_000:.0f} MB" if isinstance(count, (int, float)) and not isinstance(count, bool) else ""


def _by_cluster(rows: Iterable[Mapping[str, Json]]) -> list[tuple[str, list[Mapping[str, Json]]]]:
    """Rows of one cluster together, in their order."""
    found: dict[str, list[Mapping[str, Json]]] = {}
    for row in rows:
        found.setdefault(str(row.get("cluster") or ""), []).append(row)
    return list(found.items())
