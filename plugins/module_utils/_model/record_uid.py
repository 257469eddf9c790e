# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes a record this record and no other, where no API server gives it a uid (design sections 3, 4)."""

from __future__ import annotations

import hashlib
import json

from .identity import canonical_mac, canonical_uuid
from .records import BACKUP, CONFIG_PATCH, MACHINE, RECLAIM, Json, JsonMap, dig


def record_uid(kind: str, name: str, spec: JsonMap) -> str:
    """The uid of a record of a directory store: the same for the same record in every clone and in a check run.

    A machine is its identity, so that a status never passes to other hardware of the same name (one without an identity
    is its name). An order to wipe is all that it says. A patch and a backup belong to their cluster. A cluster is its
    name: whatever else it says may change in its life, and must not cost it `bootstrappedAt`.
    """
    own: Json = None
    if kind == MACHINE:
        uuid, serial, macs = canonical_identity(dig(spec, "identity"))
        if uuid or serial or macs:
            return _digest([kind, uuid, serial, list(macs)])
    elif kind == RECLAIM:
        own = dict(spec)
    elif kind in (CONFIG_PATCH, BACKUP):
        own = dig(spec, "clusterRef")
    return _digest([kind, name, own])


def canonical_identity(identity: Json) -> tuple[str, str, tuple[str, ...]]:
    """UUID, serial and MACs of a record's `spec.identity` in canonical form, for comparing (section 6)."""
    if not isinstance(identity, dict):
        return "", "", ()
    uuid, serial, macs = identity.get("uuid"), identity.get("serial"), identity.get("macs")
    listed = macs if isinstance(macs, list) else []
    return (
        canonical_uuid(uuid) if isinstance(uuid, str) else "",
        serial.strip() if isinstance(serial, str) else "",
        tuple(sorted({canonical_mac(mac) or mac for mac in listed if isinstance(mac, str)})),
    )


def unresolved_uid(kind: str, name: str) -> str:
    """The uid that a machine has before anybody said which hardware it is: one of weak identity, until a person does (section 6)."""
    return _digest([kind, name, None])


def spec_hash(spec: JsonMap) -> str:
    """The hash of the canonical spec, by which `generation` grows."""
    return _digest(dict(spec))


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()[:40]
