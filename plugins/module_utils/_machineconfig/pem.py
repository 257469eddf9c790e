# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PEM texts as Talos reads them, checked as far as that goes without a library: blocks, labels, and that the inside is DER."""
from __future__ import annotations

import base64
import binascii
import re

CERTIFICATE = "CERTIFICATE"
_KEYS = ("RSA PRIVATE KEY", "EC PRIVATE KEY", "ED25519 PRIVATE KEY", "PRIVATE KEY")
_BLOCK = re.compile(r"(?:^|\n)-----BEGIN ([^\n]*?)-----[ \t\r]*\n(.*?)-----END \1-----[ \t\r]*(?=\n|\Z)", re.DOTALL)


def blocks(text: str) -> list[tuple[str, bytes]]:
    """(label, content) of every PEM block that can be decoded."""
    found = []
    for label, body in _BLOCK.findall(text):
        lines = [line for line in body.splitlines() if ":" not in line]
        try:
            found.append((label, base64.b64decode("".join("".join(lines).split()), validate=True)))
        except (binascii.Error, ValueError):
            continue
    return found


def is_der(content: bytes) -> bool:
    """Whether the content is one ASN.1 sequence that fills it."""
    if len(content) < 2 or content[0] != 0x30:
        return False
    length = content[1]
    start = 2
    if length & 0x80:
        count = length & 0x7F
        start += count
        if not 1 <= count <= 4 or len(content) < start:
            return False
        length = int.from_bytes(content[2:start], "big")
    return start + length == len(content)


def wrong_pem(text: str, *labels: str) -> str:
    """"" for a text with PEM blocks (of these labels), else Talos's words."""
    found = blocks(text)
    for label, dummy in found:
        if labels and label not in labels:
            listed = " ".join(f'"{expected}"' for expected in labels)
            return f'unexpected PEM block type "{label}", expected one of [{listed}]'
    return "" if found else "no PEM blocks found"


def wrong_pair(cert: str, key: str, load: bool) -> str:
    """"" for a certificate and a key in PEM, else Talos's words. load: they have to be readable as such, too."""
    if not cert:
        return "certificate is required"
    if not key:
        return "key is required"
    wrong = wrong_pem(cert, CERTIFICATE)
    if wrong:
        return f"certificate: {wrong}"
    wrong = wrong_pem(key)
    if wrong:
        return f"key: {wrong}"
    if load and not is_der(blocks(cert)[0][1]):
        return "certificate is invalid: failed to parse certificate: x509: malformed certificate"
    wrong = wrong_key(key) if load else ""
    return f"key is invalid: {wrong}" if wrong else ""


def wrong_key(key: str) -> str:
    """"" for a private key with a label that Talos reads, else its words."""
    found = blocks(key)
    if not found:
        return "failed to parse PEM block"
    label, content = found[0]
    if label not in _KEYS:
        return f'unsupported key type "{label}"'
    return "" if is_der(content) else "failed to parse private key"
