# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 2: the controller never writes a spec; it writes status, events and leases only."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.laws.test_law_01_a_plan_is_what_runs import KINDS, fleet_of, joins
from tests.unit._controller.fleet import Fleet


def peoples(fleet: Fleet) -> dict[object, object]:
    """What people wrote: specs, labels, annotations."""
    return {ref: (record.spec, record.labels, record.annotations, record.uid) for ref, record in fleet.store.records.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("control_plane", [True, False], ids=["control plane", "worker"])
def test_whatever_happens_to_a_machine_its_spec_stays(kind: str, control_plane: bool) -> None:
    fleet = fleet_of([(kind, control_plane), ("runs", True)], bootstrapped=True)
    before = peoples(fleet)
    joins(fleet)
    # The store of this world has no way to write a spec, nor to delete a record: whoever calls one fails the test.
    outcome = fleet.reconcile(until_settled=True, max_runtime=2000.0)
    assert peoples(fleet) == before and not [row for row in outcome.machines if row.reason == "InternalError"]


def test_also_when_a_node_moves_answers_as_another_one_or_comes_and_goes() -> None:
    fleet = fleet_of([("waits", True), ("waits", False), ("runs", True), ("runs", False)], bootstrapped=True)
    before = peoples(fleet)
    places = [Endpoint(f"10.0.0.{number}") for number in (1, 2, 3, 4)]

    def unrest(count: int, what: str) -> None:
        if count % 7 == 0:
            nodes = [fleet.nodes.pop(place, None) for place in places]
            fleet.nodes.update({place: node for place, node in zip(places, nodes[1:] + nodes[:1]) if node is not None})
        if count % 11 == 0:
            for node in fleet.nodes.values():
                node.certificate = w.certificate(f"leaf-{count}")

    fleet.hook = unrest
    outcome = fleet.reconcile(max_runtime=900.0)
    assert peoples(fleet) == before and not [row for row in outcome.machines if row.reason == "InternalError"]
