# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An address, what it shows in one TLS handshake, and the outcome of looking there (design sections 5 and 6).

Apart from the other observations, since a scan needs no more than these before it sends its first packet.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Endpoint:
    """Where to dial: a literal IP address or host name, and a port (50000 unless said)."""

    host: str
    port: int = 50000

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class Certificate:
    """A node's leaf certificate.

    `fingerprint` is talosctl's form (base64 of SHA-256 over the SubjectPublicKeyInfo), `sha256` the lower-case hex
    SHA-256 of the certificate itself; both are accepted as a pin.
    """

    fingerprint: str
    sha256: str
    not_before: float
    not_after: float
    common_name: str = ""
    issuer: str = ""

    def matches(self, pin: str) -> bool:
        """Whether `pin`, in either form, names this certificate."""
        pin = pin.strip()
        return pin == self.fingerprint or pin.replace(":", "").lower() == self.sha256


#: Outcomes of a probe (section 6).
PROBE_KINDS = ("NotListening", "NotTalos", "Maintenance", "AlreadyConfigured", "Unreachable")


@dataclass(frozen=True)
class Probe:
    """One address, one TLS handshake. `reason` and `message` explain NotTalos and Unreachable."""

    endpoint: Endpoint
    kind: str
    certificate: Certificate | None = None
    reason: str = ""
    message: str = ""
