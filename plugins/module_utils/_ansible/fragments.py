# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of secrets in foreign text: a node, gRPC or TLS may quote the first characters of one and cut off the rest.

Every run of `LENGTH` characters of a secret is remembered, and a text is searched for them in one pass. Names, paths and
addresses that stand where secrets do are left out, since they are parts of ordinary sentences too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: So many characters of a secret are worth hiding, and do not occur in a sentence by chance.
LENGTH = 12

_WORD = re.compile(rf"\S{{{LENGTH},}}")
#: What a word of a longer text has to look like to be a secret: neither a name nor a setting.
_RANDOM = re.compile(r"(?=\S*[0-9])(?=\S*[a-z])(?=\S*[A-Z])[A-Za-z0-9+/=_-]{20,}|(?=\S*[0-9])(?=\S*[a-f])[0-9a-f]{24,}")
_ORDINARY = re.compile(r"/.*|\S*://\S*|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?:[:/]\S*)?|-----\S*|\S*-----")
#: How every PEM file in base64 begins, a certificate too.
_PEM = "LS0tLS1CRUdJTiB"


class Fragments:
    """Remembers the parts of secrets and masks them in a text."""

    def __init__(self) -> None:
        self._parts: set[str] = set()
        self._common = frozenset(_parts(_PEM))

    def add(self, texts: Iterable[str]) -> None:
        """Remember the parts of secrets, each given as the clear texts that it stands for."""
        for text in texts:
            words = text.split()
            if len(words) > 2:
                words = [word for word in words if _RANDOM.fullmatch(word)]
            for word in words:
                if not _ORDINARY.fullmatch(word):
                    self._parts.update(_parts(word))
        self._parts -= self._common

    def mask(self, text: str, mask: str) -> str:
        """The text with each part of a secret of at least `LENGTH` characters masked."""
        if not self._parts:
            return text
        return _WORD.sub(lambda found: self._masked(found.group(), mask), text)

    def _masked(self, word: str, mask: str) -> str:
        kept: list[str] = []
        done = at = 0
        last = len(word) - LENGTH
        while at <= last:
            if word[at:at + LENGTH] not in self._parts:
                at += 1
                continue
            kept += [word[done:at], mask]
            while at < last and word[at + 1:at + 1 + LENGTH] in self._parts:
                at += 1
            done = at = at + LENGTH
        return "".join([*kept, word[done:]])


def _parts(word: str) -> Iterable[str]:
    return (word[at:at + LENGTH] for at in range(len(word) - LENGTH + 1))
