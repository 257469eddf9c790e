# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of an API server, page after page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._model.records import JsonMap, text_at
from .api import Api, ApiSilent

#: Objects of one answer; an API server is not asked for a thousand at once.
PAGE = 500


def pages(api: Api, path: str, query: Mapping[str, str] | None = None, page: int = PAGE) -> Iterator[JsonMap]:
    """The answers that make up a list. Raises ApiRefused (410 where the rest of it is too old to be had) and ApiSilent, also where an answer is no list:
    that is never an empty one."""
    token: str | None = ""
    while token is not None:
        answer = api.request("GET", path, query={"limit": str(page), **(query or {}), **({"continue": token} if token else {})})
        if not text_at(answer, "kind").endswith("List"):
            raise ApiSilent("its answer is no list", True)
        yield answer
        token = text_at(answer, "metadata", "continue") or None
