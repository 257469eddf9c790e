# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Partition labels as evidence, and two readings that have to agree (design section 12)."""

from __future__ import annotations

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.wipe_evidence import (
    DATA_PRESENT, PAIRS_WITHIN, STATE_PRESENT, UNCLEAR, WIPED, WipeReading, agrees, evidence, has_meta, labels_of, with_reading,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Unknown
from ansible_collections.ichor.talos.tests.unit._decide.provisioning_case import labels

NOW = 1_700_000_000.0
ONE = WipeReading("FP-one", ("EFI", "META"))


@pytest.mark.parametrize("found, says", [
    (Absent(), WIPED), (labels(), WIPED), (labels("EFI", "BOOT", "META"), WIPED), (labels("data"), WIPED),
    (labels("META", "STATE"), STATE_PRESENT), (labels("STATE", "EPHEMERAL"), STATE_PRESENT),
    (labels("META", "EPHEMERAL"), DATA_PRESENT), (labels("ETCD"), DATA_PRESENT), (labels("EPHEMERAL", "ETCD", "CRI"), DATA_PRESENT),
    (labels("STATE", state=""), UNCLEAR), (labels("STATE", "EPHEMERAL", state="luks"), UNCLEAR), (labels("STATE", state="crypto_LUKS"), UNCLEAR),
    (Unknown("TimedOut"), UNCLEAR),
])
def test_what_labels_tell(found: object, says: str) -> None:
    assert evidence(found) == says  # type: ignore[arg-type]


def test_labels_are_a_set_and_meta_is_looked_for() -> None:
    assert labels_of(labels("META", "EFI", "META")) == ("EFI", "META") and labels_of(Absent()) == () == labels_of(Unknown("TimedOut"))
    assert has_meta(labels("META")) and not has_meta(labels("EFI")) and not has_meta(Absent())


@pytest.mark.parametrize("age, second", [(0, False), (14, False), (15, True), (3600, True), (PAIRS_WITHIN, True), (PAIRS_WITHIN + 1, False), (-1, False)])
def test_a_second_reading_counts_a_follow_interval_after_the_first_and_not_long_after(age: float, second: bool) -> None:
    status = with_reading({}, ONE, NOW)
    assert agrees(status, ONE, NOW + age, 15) == second  # type: ignore[arg-type]


def test_a_first_reading_stays_while_it_can_pair_and_is_replaced_otherwise() -> None:
    status = with_reading({"stage": "running"}, ONE, NOW)
    assert with_reading(status, ONE, NOW + 100) is status
    for other, later in ((WipeReading("FP-two", ONE.labels), 100), (WipeReading("FP-one", ()), 100), (ONE, PAIRS_WITHIN + 100), (ONE, -100)):
        after = with_reading(status, other, NOW + later)
        assert after["wipeSeen"] != status["wipeSeen"] and not agrees(after, other, NOW + later, 15)  # type: ignore[arg-type]


def test_anything_else_takes_the_first_reading_away() -> None:
    assert with_reading(with_reading({"stage": "running"}, ONE, NOW), None, NOW) == {"stage": "running"}
    status: dict[str, object] = {"stage": "running"}
    assert with_reading(status, None, NOW) is status


@pytest.mark.parametrize("broken", [{"time": "x", "fingerprint": "FP-one", "labels": ["EFI", "META"]}, "yes", None, {}])
def test_a_broken_first_reading_counts_for_nothing(broken: object) -> None:
    assert not agrees({"wipeSeen": broken}, ONE, NOW, 15)  # type: ignore[dict-item]
    assert agrees(with_reading({"wipeSeen": broken}, ONE, NOW), ONE, NOW + 15, 15)  # type: ignore[arg-type]
