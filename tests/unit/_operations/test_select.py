# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which machines are acted on (design section 18, "Selecting"; law 12)."""

from __future__ import annotations

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._operations import select
from ansible_collections.ichor.talos.plugins.module_utils._operations.select import chosen
from tests.unit.machine_world import machine

RECORDS = (machine(3, clusterRef="dev"), machine(1, status={"stage": "running"}), machine(2, "rejected"))


@pytest.mark.parametrize(("names", "expression", "cluster", "wanted"), [
    ((), "", "", ("prod-1", "prod-2", "prod-3")),
    ((), "", "prod", ("prod-1", "prod-2")),
    (("prod-2", "prod-1", "prod-2"), "", "", ("prod-2", "prod-1")),
    (("nobody",), "", "prod", ("nobody",)),
    (("prod-3",), "", "prod", ()),
    ((), "[?status.stage=='running'].metadata.name", "", ("prod-1",)),
    ((), "[?status.stage=='running']", "", ("prod-1",)),
    ((), "[0].metadata.name", "", ("prod-1",)),
    ((), "[?spec.role=='controlplane'].metadata.name", "", ()),
    ((), "nothing.there", "", ()),
    (("prod-2", "prod-1"), "[?status.stage=='running'].metadata.name", "", ("prod-1",)),
    ((), "[*].metadata.name", "dev", ("prod-3",)),
])
def test_every_restriction_has_to_hold(names: tuple[str, ...], expression: str, cluster: str, wanted: tuple[str, ...]) -> None:
    assert chosen(RECORDS, names, expression, cluster) == wanted


@pytest.mark.parametrize("expression", ["[?", "[*].spec.endpoint", "length(@)", "[*].metadata", "unknown_function(@)", "['nobody']"])
def test_an_expression_that_gives_no_names_is_refused(expression: str) -> None:
    with pytest.raises(TalosError) as caught:
        chosen(RECORDS, (), expression)
    assert caught.value.reason == "InvalidInput" and caught.value.hint


def test_the_answer_does_not_depend_on_the_order_of_the_records() -> None:
    assert chosen(tuple(reversed(RECORDS)), (), "[*].metadata.name") == chosen(RECORDS, (), "[*].metadata.name")


def test_without_jmespath_the_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "jmespath", None)
    with pytest.raises(TalosError) as caught:
        chosen(RECORDS, (), "[*].metadata.name")
    assert caught.value.reason == "MissingLibrary"
