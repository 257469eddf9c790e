# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords and tokens inside URLs. A URL may be a value, and a name as well: that of a registry's mirror, say."""
from __future__ import annotations

import re
from collections.abc import Iterator

_PATTERNS = (
    re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@"),
    re.compile(r"[?&][A-Za-z_]*(?:token|secret|key|password)=([^&\s#]+)", re.IGNORECASE),
)
_HIDDEN = "**********"


def url_passwords(text: str) -> Iterator[str]:
    """Those of the URLs in a text."""
    for pattern in _PATTERNS:
        yield from (found.group(1) for found in pattern.finditer(text))


def without_url_passwords(text: str) -> str:
    """A place in a configuration as it may be told: a name in it may be a URL with a password."""
    if "://" not in text:
        return text
    for found in tuple(url_passwords(text)):
        text = text.replace(found, _HIDDEN)
    return text
