# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind and field of Talos's field lists occurs in an input that Talos takes and in one that it refuses, and this product agrees."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.machinery.coverage import Coverage, cover
from tests.parts.oracle import MACHINERY, Oracle


@pytest.mark.parametrize("contract", sorted(MACHINERY))
def test_every_kind_and_field(contract: str, record_property: Callable[[str, object], None]) -> None:
    with Oracle(contract) as oracle:
        seen = cover(contract, oracle)
    record_property("told", seen.line())
    assert seen.wrong == []
    assert seen.gaps() == []


def test_a_gap_is_seen() -> None:
    seen = Coverage("1.13", [("HostnameConfig", ("auto",)), ("HostnameConfig", ("hostname",))], {("HostnameConfig", ("auto",))}, set())
    assert seen.gaps() == ["1.13 HostnameConfig hostname: never accepted", "1.13 HostnameConfig auto: never refused",
                           "1.13 HostnameConfig hostname: never refused"]
    assert seen.line().endswith("3 gaps")
