# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a look at a machine means by its past: never sent, followed, converged, or of unknown past (design sections 4, 9, 11)."""

from __future__ import annotations

from dataclasses import replace

from .._model.approval import approval_state, status_missing
from .._model.observed import Present, Unknown
from .._model.records import Record
from .approved import has_converged, is_stored
from .following import Following, Life, follow

#: What may be written after a look: all that following decides, the stage only, or nothing.
FOLLOWED, CONVERGED, NOTHING = "followed", "converged", "nothing"


def kind_of(machine: Record | None, answered: bool) -> str:
    """What a look may write. A left-over `sending` becomes followed by a good authenticated read, and only by that."""
    if machine is None or status_missing(machine) or approval_state(machine) != "approved":
        return NOTHING
    if has_converged(machine):
        return CONVERGED
    return FOLLOWED if is_stored(machine) or (answered and bool(machine.status.get("sending"))) else NOTHING


def asks_insecurely(machine: Record | None) -> bool:
    """Whether the maintenance API may be asked: never for a converged machine, one that is not approved, or one whose status is lost."""
    return machine is None or not (status_missing(machine) or has_converged(machine) or approval_state(machine) != "approved")


def life_of(seen: Following, now: float) -> Life:
    """The life of any machine, in the words of its past."""
    machine, life = seen.machine, follow(seen, now)
    if machine is None:
        return _without_record(seen, life)
    if approval_state(machine) != "approved":
        return _not_asked(machine, life)
    if status_missing(machine):
        return replace(life, rule="4/status-missing", reason="StatusMissing", wrong=True, settled=True, joined=False,
                       message="The machine is approved and its status is gone: it is read with authentication only, until "
                       "talos_machine with trust: true says that it is safe.")
    if life.unread:
        return life
    if has_converged(machine):
        if life.silent:
            return replace(life, rule="11/unreachable", stage=str(machine.status.get("stage") or "unknown"), reason="NodeUnreachable",
                           message="The machine has joined its cluster and does not answer.")
        return replace(life, reason="Converged", message="The machine runs.") if life.joined else life
    if is_stored(machine) or life.wrong or isinstance(seen.answer, Present):
        return life
    return _never_sent(seen, machine, life)


def _without_record(seen: Following, life: Life) -> Life:
    """Without a record nothing is known of its past, so nothing is inferred from silence."""
    if life.silent:
        why = seen.insecure if isinstance(seen.insecure, Unknown) else seen.answer
        told = f": {why.message.rstrip('.')}." if isinstance(why, Unknown) and why.message else "."
        return replace(life, rule="9/no-record-silent", stage="unknown", reason="NodeUnreachable",
                       message=f"Neither API of the node answers{told} Check its power, address and network.")
    if life.rule == "9/follow-awaiting" and isinstance(seen.insecure, Present):
        return replace(life, rule="9/no-record-maintenance", message="The node is in maintenance mode.")
    return life


def _not_asked(machine: Record, life: Life) -> Life:
    """A machine that nobody approved is not dialled: what is recorded is all there is to say."""
    rejected = approval_state(machine) == "rejected"
    told = "The machine was rejected and is not asked." if rejected else "The machine waits for talos_machine_approval and is not asked before that."
    return replace(life, rule="9/rejected" if rejected else "9/pending", stage=str(machine.status.get("stage") or "unknown"), observed=False,
                   reason="Rejected" if rejected else "PendingApproval", message=told, joined=False, settled=True, wrong=False, silent=False, unread=False)


def _never_sent(seen: Following, machine: Record, life: Life) -> Life:
    if machine.status.get("sending"):
        return replace(life, rule="9/sending", reason="SendingUnconfirmed", wrong=False, settled=False,
                       message="A configuration is on its way, or its answer was lost; talos_maintenance_apply finds out.")
    if isinstance(seen.insecure, Present):
        return replace(life, rule="9/never-sent", stage="maintenance", reason="AwaitingInstall", settled=True,
                       message="The machine is in maintenance mode. It was never sent a configuration: use talos_maintenance_apply.")
    return replace(life, rule="9/never-sent-silent", stage=str(machine.status.get("stage") or "unknown"), reason="CurrentConfigUnavailable",
                   settled=True, message="The machine does not answer, and was never sent a configuration.")
