# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node says is not trusted (design section 5): strings without control, bidi and escape characters, cut and capped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

#: Characters of one string, entries of one list, bytes of all answers of one insecure read.
STRING_LIMIT = 256
LIST_LIMIT = 1024
INSECURE_ANSWER_LIMIT = 4 * 1024 * 1024
ANSWER_LIMIT = 32 * 1024 * 1024

# Terminal sequences go as a whole, so that no "[31m" is left of them.
_SEQUENCES = re.compile("(?:\x1b[@-Z\\\\^_]|[\x9b]|\x1b\\[)[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?")
# C0, DEL and C1 controls; soft hyphen; Arabic letter mark; zero-width and direction marks; line and paragraph separators; embeddings,
# overrides and isolates; invisible operators; byte order mark; interlinear marks; variation selectors are harmless;
# surrogates and tags.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]")


def text(value: str, limit: int = STRING_LIMIT) -> str:
    """The string without what is not seen, at most `limit` characters, without spaces around it."""
    value = value[:16 * limit]
    if not value.isascii() or not value.isprintable():
        value = _UNSEEN.sub("", _SEQUENCES.sub("", value.replace("\t", " ").replace("\n", " ")))
    return value[:limit].strip()


def texts(values: Iterable[str], limit: int = 64) -> tuple[str, ...]:
    """At most `limit` cleaned strings, without empty ones."""
    return tuple(cleaned for value in islice(values, limit) if (cleaned := text(value)))


def capped(values: Sequence[T], limit: int = LIST_LIMIT) -> Sequence[T]:
    """The first `limit` entries."""
    return values[:limit]


def mac(value: bytes) -> str:
    """Six bytes as `aa:bb:cc:dd:ee:ff`; anything else, and all zeros, as ''."""
    return value.hex(":") if len(value) == 6 and any(value) else ""
