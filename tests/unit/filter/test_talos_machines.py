# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finding the record of a machine that a person knows by what is printed on it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.ichor.talos.plugins.filter.talos_machines import talos_name_machines


def record(number: int) -> dict[str, Any]:
    return {"metadata": {"name": f"prod-{number}"}, "spec": {
        "endpoint": f"192.0.2.{number}:50000",
        "identity": {"uuid": f"4c4c4544-0044-4a10-8035-b4c04f3300{number:02x}", "macs": [f"3c:ec:ef:00:00:{number:02x}"]}}}


RECORDS = [record(1), record(2), {"metadata": {"name": "weak"}, "spec": {}}]


@pytest.mark.parametrize("known", [
    {"uuid": "4C4C4544-0044-4A10-8035-B4C04F330002"}, {"mac": "3C-EC-EF-00-00-02"}, {"address": "192.0.2.2"}, {"address": "192.0.2.2:50000"},
    {"machine": "prod-2"}, {"machine": "prod-2", "uuid": "another"},
])
def test_a_machine_is_found_by_each_of_its_names(known: dict[str, str]) -> None:
    assert talos_name_machines([{**known, "role": "worker"}], RECORDS) == [{"role": "worker", "machine": "prod-2"}]


@pytest.mark.parametrize(("entries", "says"), [
    ([{"uuid": "4c4c4544-0044-4a10-8035-b4c04f330009"}], "is not found yet"),
    ([{"uuid": ""}], "names no machine"), ([{"mac": "nonsense"}], "is not found yet"), ([{"address": "a b"}], "is not found yet"),
    ([{"role": "worker"}], "names no machine"), ("text", "lists of dictionaries"), (["text"], "lists of dictionaries"),
    ([{"machine": "prod-1"}, {"address": "192.0.2.1"}], "two entries mean machine prod-1"),
])
def test_what_is_wrong_is_one_sentence(entries: Any, says: str) -> None:
    with pytest.raises(AnsibleFilterError, match=says):
        talos_name_machines(entries, RECORDS)


def test_an_address_that_several_records_have_names_none() -> None:
    with pytest.raises(AnsibleFilterError, match="is several records"):
        talos_name_machines([{"address": "192.0.2.1"}], [record(1), {**record(1), "metadata": {"name": "other"}}])
