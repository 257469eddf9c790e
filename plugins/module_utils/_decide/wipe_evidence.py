# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a machine's disk was wiped: what its partition labels tell, and the two readings that have to agree (design section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .._model.moments import moment, seconds_of
from .._model.observations import Partition
from .._model.observed import Observed, Present, Unknown
from .._model.records import Json, list_at, text_at
from .conditions import Status

#: What the labels tell: STATE is there, etcd's data is, neither is, or nobody can say.
STATE_PRESENT, DATA_PRESENT, WIPED, UNCLEAR = "state", "data", "wiped", "unclear"

#: Where Talos keeps its configuration, and where etcd's data is (v1.14 can keep ETCD apart).
_STATE, _DATA = "STATE", frozenset({"EPHEMERAL", "ETCD"})
#: What the block prober calls an encrypted volume.
_ENCRYPTED = frozenset({"luks", "crypto_luks"})

#: A first reading older than this, in seconds, does not pair: an hourly pass finds its partner, a daily one does not. A certificate
#: lasts for at most 12 h and is a new one at each boot, so that equal certificates always mean one boot.
PAIRS_WITHIN = 7200.0


def evidence(partitions: Observed[tuple[Partition, ...]]) -> str:
    """What the partitions of a node in maintenance mode tell."""
    if isinstance(partitions, Unknown):
        return UNCLEAR
    found = partitions.value if isinstance(partitions, Present) else ()
    states = [one.filesystem.strip().lower() for one in found if one.label == _STATE]
    if any(filesystem and filesystem not in _ENCRYPTED for filesystem in states):
        return STATE_PRESENT
    if states:
        return UNCLEAR
    return DATA_PRESENT if any(one.label in _DATA for one in found) else WIPED


def has_meta(partitions: Observed[tuple[Partition, ...]]) -> bool:
    """Whether META is there: then Talos does not install, whatever the install settings say."""
    return isinstance(partitions, Present) and any(one.label == "META" for one in partitions.value)


def labels_of(partitions: Observed[tuple[Partition, ...]]) -> tuple[str, ...]:
    """The labels that are there, sorted."""
    return tuple(sorted({one.label for one in partitions.value if one.label})) if isinstance(partitions, Present) else ()


@dataclass(frozen=True)
class WipeReading:
    """One reading of a wiped disk: the node's certificate and the labels that are left."""

    fingerprint: str
    labels: tuple[str, ...]


def agrees(status: Mapping[str, Json], reading: WipeReading, now: float, interval: float) -> bool:
    """Whether this is the second of two equal readings, at least `interval` seconds after the first and not long after it."""
    age = _age(status, reading, now)
    return age is not None and age >= interval


def with_reading(status: Status, reading: WipeReading | None, now: float) -> Status:
    """The status after a look. A first reading stays while this one can still pair with it; anything else replaces it, and whatever
    is no reading of a wiped disk (None) takes it away."""
    if reading is None:
        return {key: value for key, value in status.items() if key != "wipeSeen"} if "wipeSeen" in status else status
    found = status.get("wipeSeen")
    if isinstance(found, dict) and _age({"wipeSeen": found}, reading, now) is not None:
        return status
    return {**status, "wipeSeen": {"time": moment(now), "fingerprint": reading.fingerprint, "labels": list(reading.labels)}}


def _age(status: Mapping[str, Json], reading: WipeReading, now: float) -> float | None:
    """Seconds since an equal first reading that still counts, or None. One in the future counts for nothing."""
    began = seconds_of(text_at(status, "wipeSeen", "time"))
    if began is None or text_at(status, "wipeSeen", "fingerprint") != reading.fingerprint:
        return None
    if tuple(list_at(status, "wipeSeen", "labels")) != reading.labels:
        return None
    return now - began if 0 <= now - began <= PAIRS_WITHIN else None
