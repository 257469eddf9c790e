# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each oddity that people have, on each contract: adopted with nothing left over, or blocked with every path named (design section 15)."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_words import AdoptMachine
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent
from tests.machinery.adoptions import adopted, hold, node
from tests.machinery.oddities import CONTRACTS, Oddity, made, of_contract, with_edits

#: Why an oddity may block: it is a secret, or nobody models it.
MAY_BLOCK = {"15/secret", "15/authority", "15/not-modelled"}


@pytest.mark.parametrize(("contract", "oddity"), [(contract, oddity) for contract in CONTRACTS for oddity in of_contract(contract)],
                         ids=lambda value: value if isinstance(value, str) else value.name)
def test_an_oddity(contract: str, oddity: Oddity) -> None:
    text = with_edits(made(contract, oddity.role, *oddity.patches, shape=oddity.shape), oddity)
    odd = node(text, oddity.role, contract, 2)
    # A control plane stands alone: its own configuration is what the bundle is rebuilt from.
    found = adopted([odd] if oddity.role == "controlplane" else [node(made(contract, "controlplane"), "controlplane", contract, 1), odd], imported=Absent())
    member = found.members[-1]
    assert tuple(one.path for one in member.blocked) == oddity.blocks, [one.sentence for one in member.blocked]
    assert all(one.hint for one in member.blocked) and {one.rule for one in member.blocked} <= (MAY_BLOCK if not oddity.shape else {"15/not-representable"})
    machines = {step.record.name: step.record for step in found.plan.steps if isinstance(step, AdoptMachine)}
    assert (member.name in machines) == (not oddity.blocks)
    if not oddity.blocks:
        hold(found, machines[member.name], text)
    assert not oddity.secret or oddity.secret not in str([step.describe() for step in found.plan.steps]) + str(found.plan) + str(found.cluster)
