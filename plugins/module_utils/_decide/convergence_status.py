# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a look at a converged machine, and an accepted apply, leave in its status (design sections 3 and 11)."""

from __future__ import annotations

from .._machineconfig.render import Rendered
from .._model.machine import identity_of
from .._model.observed import Present
from .._model.records import Condition, text_at
from .comparison import Compared
from .conditions import Status, with_condition, without_conditions
from .convergence_words import Converging, Found
from .fallen_back import with_good_read
from .same_machine import other_machine

#: Rows that say nothing of the machine: it is not one that has converged.
_UNWRITTEN = frozenset({"11/not-approved", "11/not-converged"})


def with_found(status: Status, seen: Converging, found: Found, now: float) -> Status:
    """The status after this look. The same status, where nothing is new."""
    if found.rule in _UNWRITTEN:
        return status
    generation = seen.machine.generation
    node = seen.node.value if isinstance(seen.node, Present) else None
    if node is not None and not other_machine(identity_of(seen.machine), node.identity):
        status = without_conditions({**status, "stage": node.stage.stage, "stageObserved": True}, ("NodeReachable",))
        if isinstance(seen.endpoint, Present) and node.at != seen.endpoint.value:
            status = {**status, "observedEndpoint": node.at, "observedEndpointFor": text_at(seen.machine.spec, "endpoint")}
        status = _with_seen_apply(status, seen)
        status = with_good_read(status, generation, now)
    elif found.silent:
        if found.reason == "NodeRebooting":
            status = {**status, "stage": "rebooting", "stageObserved": False}
        status = with_condition(status, Condition("NodeReachable", "False", "NodeUnreachable", found.message, generation), now)
    ready = "True" if found.ready else "False"
    return with_condition(status, Condition("Ready", ready, found.reason, found.message, generation), now)


def _with_seen_apply(status: Status, seen: Converging) -> Status:
    """A node that runs the very bytes of the render has accepted them, also where the answer to the apply was lost."""
    if not isinstance(seen.compared, Present) or not isinstance(seen.wanted, Present) or not seen.compared.value.same_bytes:
        return status
    return with_applied(status, seen.compared.value, seen.wanted.value)


def with_applied(status: Status, compared: Compared, wanted: Rendered) -> Status:
    """The node accepted the bytes, at once or for its next boot. Bytes that keep its newer images do not follow from the inputs alone."""
    kept = {key: value for key, value in status.items() if key not in ("rejectedInputsHash", "observedInputsHash")}
    after: Status = {**kept, "appliedConfigHash": compared.sha256}
    return {**after, "observedInputsHash": wanted.inputs_hash} if compared.sha256 == wanted.sha256 else after
