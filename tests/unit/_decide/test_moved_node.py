# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where Kubernetes says that a machine is, and what that is worth (design section 10)."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.moved_node import is_looked_for, may_be_dialled, names_of, told_at
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import NodePlace
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from tests.unit._operations import world as w

STORED = {"configStoredAt": "2023-11-14T00:00:00Z"}


def machine(status: dict[str, object] | None = None, **spec: object) -> Record:
    return w.machine_record("m1", 1, status=STORED if status is None else status, **spec)


def told(record: Record, *addresses: str, uuid: str = "") -> list[str]:
    return [str(endpoint) for endpoint in told_at(record, Present(NodePlace("m1", addresses, uuid)))]


@pytest.mark.parametrize("record, names", [
    (machine(), ("m1",)),
    (machine({**STORED, "nodeName": "node-7"}), ("m1", "node-7")),
    (machine({**STORED, "nodeName": "node-7"}, hostname=None), ("node-7",)),
    (machine(hostname=None), ()),
    (machine({}), ()),
    (machine(approvalState="rejected"), ()),
], ids=["sent-and-named", "also-by-its-node-name", "by-its-node-name-alone", "nameless", "never-sent", "rejected"])
def test_who_is_looked_for(record: Record, names: tuple[str, ...]) -> None:
    assert names_of(record) == names


def test_a_machine_without_a_name_is_looked_for_by_its_uuid() -> None:
    assert is_looked_for(machine(hostname=None)) and not is_looked_for(machine({})) and not is_looked_for(machine(approvalState="rejected"))


def test_where_a_node_says_that_it_is() -> None:
    assert told(machine(), "10.0.0.1", "10.0.0.7", "10.0.0.7", "fd00::7") == ["10.0.0.7:50000", "[fd00::7]:50000"]
    assert told(machine(), "10.0.0.1") == []
    moved = machine({**STORED, "observedEndpoint": "10.0.0.7:50001", "observedEndpointFor": "10.0.0.1:50000"})
    assert told(moved, "10.0.0.7") == [] and told(moved, "10.0.0.1") == ["10.0.0.1:50001"]


def test_a_node_of_another_board_tells_nothing() -> None:
    assert told(machine(), "10.0.0.7", uuid=w.uuid(9)) == []
    assert told(machine(), "10.0.0.7", uuid=w.uuid(1).upper()) == ["10.0.0.7:50000"]


def test_only_the_name_of_the_spec_is_dialled() -> None:
    assert may_be_dialled(machine(), Present(NodePlace("m1", ("10.0.0.7",))))
    assert not may_be_dialled(machine(), Present(NodePlace("node-7", ("10.0.0.7",))))
    assert not may_be_dialled(machine(hostname=None), Present(NodePlace("", ("10.0.0.7",))))


def test_a_kubernetes_that_cannot_be_asked_tells_nothing() -> None:
    for place in (Unknown("TimedOut", "no answer"), Absent()):
        assert told_at(machine(), place) == () and not may_be_dialled(machine(), place)
