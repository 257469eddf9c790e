# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node's leaf certificate as a value, with both fingerprints (design section 5)."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime, timezone
from typing import Any

from .._model.endpoint import Certificate
from .clean import text

try:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from cryptography.x509.oid import NameOID
except ImportError:
    x509 = None  # type: ignore[assignment]

#: Common name of the leaf in maintenance mode; its issuer is empty (Talos constants).
MAINTENANCE_NAME = "maintenance-service.talos.dev"


def read_certificate(der: bytes) -> Certificate | None:
    """The certificate, or None when it cannot be read as X.509."""
    try:
        parsed = x509.load_der_x509_certificate(der)
        key = parsed.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return Certificate(
            fingerprint=base64.b64encode(hashlib.sha256(key).digest()).decode("ascii"),
            sha256=hashlib.sha256(der).hexdigest(),
            not_before=moment(parsed, "not_valid_before"),
            not_after=moment(parsed, "not_valid_after"),
            common_name=text(_common_name(parsed.subject)),
            issuer=text(parsed.issuer.rfc4514_string()),
        )
    except Exception:
        # What the parser raises for a hostile certificate is not a closed set, and none of it is worth a traceback.
        return None


def moment(parsed: Any, name: str) -> float:
    """`not_valid_before` or `not_valid_after` in UTC seconds; the libraries before 42 have only the naive attribute."""
    value: datetime = getattr(parsed, f"{name}_utc", None) or getattr(parsed, name).replace(tzinfo=timezone.utc)
    return value.timestamp()


def is_maintenance(certificate: Certificate) -> bool:
    """Whether the leaf looks like that of a node in maintenance mode: the name is Talos's, the issuer empty."""
    return certificate.common_name == MAINTENANCE_NAME and not certificate.issuer


def is_talos_issued(certificate: Certificate) -> bool:
    """Whether the issuer is what Talos calls the OS CA of every cluster, `O=talos`."""
    return certificate.issuer == "O=talos"


def _common_name(name: Any) -> str:
    for attribute in name.get_attributes_for_oid(NameOID.COMMON_NAME):
        value = attribute.value
        return value if isinstance(value, str) else value.decode("utf-8", "replace")
    return ""
