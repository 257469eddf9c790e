# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bundle that stands in a check run for one that does not exist yet (design section 20).

Everybody can compute it, so it protects nothing and is never written to a store or sent; the same name gives the same bundle, so
that plans of two check runs are equal.
"""
from __future__ import annotations

import base64
import datetime
import hashlib
from collections.abc import Callable

from . import problem
from .authorities import certificate_authority
from .problem import ConfigProblem
from .secrets import Bundle, Pair

try:
    from cryptography.hazmat.primitives.asymmetric import ed25519
    HAS_CRYPTOGRAPHY = True
except ImportError:
    HAS_CRYPTOGRAPHY = False


def placeholder_bundle(name: str, year: int) -> Bundle:
    """The placeholder for the bundle of that name. year: the present one, so that its certificates are valid."""
    if not HAS_CRYPTOGRAPHY:
        raise ConfigProblem(problem.MISSING_LIBRARY, "the Python library cryptography is missing", hint="Install cryptography.")
    draw = _draws(name)
    start = datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc)

    def authority(organization: str) -> Pair:
        return certificate_authority(organization, ed25519.Ed25519PrivateKey.from_private_bytes(draw(32)), start, draw)

    def packed() -> str:
        return base64.b64encode(draw(32)).decode("ascii")

    def token() -> str:
        return f"{draw(3).hex()}.{draw(8).hex()}"

    return Bundle(
        cluster_id=packed(), cluster_secret=packed(), bootstrap_token=token(), trustd_token=token(), secretbox=packed(), etcd=authority("etcd"),
        k8s=authority("kubernetes"), aggregator=authority(""), service_account=Pair(key=authority("").key), os=authority("talos"))


def _draws(name: str) -> Callable[[int], bytes]:
    """Bytes that look random and are the same for the same name."""
    count = 0

    def draw(length: int) -> bytes:
        nonlocal count
        count += 1
        return hashlib.shake_256(f"placeholder {name} {count}".encode()).digest(length)

    return draw
