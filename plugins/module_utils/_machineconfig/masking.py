# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hiding secrets by value in any outgoing text, whatever encoding they come in (design sections 2, 5, 20)."""
from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "**********"
SHORTEST = 6  # a shorter value would mask ordinary words


def fingerprint(value: str) -> str:
    """Tells two secrets apart without telling them: `sha256:` and 12 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def spellings(value: str) -> set[str]:
    """Every form in which a secret may turn up: itself, base64 of it, what it is base64 of, lines of a PEM, JSON, URL, hex."""
    plain = {value, value.strip()}
    decoded = _unbase64(value)
    if decoded is not None:
        plain.add(decoded)
        plain.add(decoded.strip())
    for text in tuple(plain):
        lines = [line.strip() for line in text.splitlines()]
        if len(lines) > 1:
            plain.update(line for line in lines if not line.startswith("-----"))
            body = "".join(line for line in lines if not line.startswith("-----"))
            plain.add(body)
    found: set[str] = set()
    for text in plain:
        if len(text) < SHORTEST:
            continue
        raw = text.encode("utf-8", "surrogatepass")
        found.add(text)
        found.add(json.dumps(text)[1:-1])
        found.add(json.dumps(text, ensure_ascii=False)[1:-1])
        found.add(repr(text)[1:-1])
        found.add(quote(text, safe="", errors="replace"))
        found.add(quote_plus(text, errors="replace"))
        found.add(raw.hex())
        for ending in (b"", b"\n"):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                encoded = encode(raw + ending).decode("ascii")
                found.add(encoded)
                found.add(encoded.rstrip("="))
    raw_bytes = _unbase64_bytes(value)
    if raw_bytes is not None and len(raw_bytes) >= SHORTEST:
        found.add(raw_bytes.hex())
        found.add(base64.urlsafe_b64encode(raw_bytes).decode("ascii").rstrip("="))
    return {text for text in found if len(text) >= SHORTEST}


def _unbase64_bytes(value: str) -> bytes | None:
    text = value.strip()
    if len(text) < 8 or not re.fullmatch(r"[A-Za-z0-9+/_-]+={0,2}", text):
        return None
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _unbase64(value: str) -> str | None:
    raw = _unbase64_bytes(value)
    try:
        text = raw.decode("utf-8") if raw is not None else None
    except UnicodeDecodeError:
        return None
    return text if text and text.isprintable() or text and "\n" in text else None


class Mask:
    """Replaces every spelling of the given secrets. Make it once for many texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._words: dict[str, str] = {}
        for secret in secrets:
            for word in spellings(secret):
                self._words.setdefault(word, MASK)
        # the longest first, so that no part of a secret stays beside a masked part of it
        ordered = sorted(self._words, key=lambda word: (-len(word), word))
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def __call__(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self._pattern is not None else text
