# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Certificates and keys as talosconfig files and secrets bundles carry them: base64 of PEM, with Talos's own labels."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
except ImportError:
    x509 = serialization = None  # type: ignore[assignment]

#: Talos writes a PKCS#8 key under this label, which neither OpenSSL nor Python's libraries read.
_TALOS_LABEL = "ED25519 PRIVATE KEY"


class Unreadable(ValueError):
    """Says what is wrong with one value, as the end of a sentence; never the value itself."""


def decode(value: object, what: str) -> str:
    """The PEM text of a base64 value. Line breaks inside are ignored, as Talos ignores them; spaces are not base64."""
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(f"has no {what}")
    text = value.strip()
    if text.startswith("ENC["):
        raise Unreadable(f"has an encrypted {what} (SOPS)")
    if text.startswith("-----BEGIN"):
        raise Unreadable(f"has a {what} in PEM where base64 of PEM is wanted")
    bare = text.replace("\n", "").replace("\r", "")
    if re.search(r"\s", bare):
        raise Unreadable(f"has a {what} in base64 that is broken over several lines and was joined with spaces (write it on one line, or as a block with |)")
    try:
        pem = base64.b64decode(bare, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise Unreadable(f"has a {what} that is not base64 or is cut off") from None
    if not re.fullmatch(r"\s*(?:-----BEGIN ([A-Z0-9 ]+)-----\s.*?-----END \1-----\s*)+", pem, re.DOTALL):
        raise Unreadable(f"has a {what} that is not PEM or is cut off")
    return pem


def standard_key(pem: str) -> str:
    """The same key under the label that OpenSSL reads."""
    return pem.replace(f"-----BEGIN {_TALOS_LABEL}-----", "-----BEGIN PRIVATE KEY-----").replace(
        f"-----END {_TALOS_LABEL}-----", "-----END PRIVATE KEY-----")


def load_certificate(pem: str, what: str) -> Any:
    """The first certificate of a PEM text."""
    try:
        return x509.load_pem_x509_certificate(pem.encode("ascii"))
    except Exception:
        # The parser's errors are many, and quote what they were given.
        raise Unreadable(f"has a {what} that cannot be read as a certificate") from None


def load_key(pem: str, what: str) -> Any:
    """The private key of a PEM text, in any of the labels that Talos uses."""
    try:
        return serialization.load_pem_private_key(standard_key(pem).encode("ascii"), None)
    except Exception:
        raise Unreadable(f"has a {what} that cannot be read as a private key") from None


def belongs(key: Any, certificate: Any) -> bool:
    """Whether the key is that of the certificate."""
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return bool(key.public_key().public_bytes(*form) == certificate.public_key().public_bytes(*form))
