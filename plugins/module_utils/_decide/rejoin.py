# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A control plane that was never sent a configuration, or is armed for one more send, where etcd lists it already (design section 12).

Provisioning's own table refuses that (`12/send-stale-member`); here the member is removed first, on the rows of re-provisioning. Who may
not be sure of the lock, `talos_maintenance_apply` above all, keeps to the refusal.
"""

from __future__ import annotations

from dataclasses import replace

from .._model.plan import Wait
from . import provisioning
from .etcd_words import RemoveEtcdMember
from .hostnames import members_needed
from .provisioning_row import Gate, walk
from .provisioning_words import Provisioning, Remove, Send, Verdict
from .reprovision import MEMBER_GONE, second_reading
from .reprovision_members import ETCD_GATES, evidence_of, left_in, stale
from .stale_member import told
from .wipe_evidence import WIPED

#: Rows about the member that was found. That the members can be read at all is asked before, for the host name.
_ROWS = ("12/etcd-unreadable", "12/member-renamed", "12/member-twice", "12/member-answers", "12/quorum")


def _is_listed(seen: Provisioning) -> bool:
    """etcd lists a machine whose disk holds nothing."""
    left = left_in(seen, seen.members)
    return members_needed(seen) and evidence_of(seen) == WIPED and bool(left.own or left.renamed)


GATES: tuple[Gate, ...] = tuple(
    row for gate in provisioning.GATES
    for row in (tuple(replace(one, applies=_is_listed) for one in ETCD_GATES if one.id in _ROWS) if gate.id == "12/send-stale-member" else (gate,)))


def decide_join(seen: Provisioning, now: float, gates: tuple[Gate, ...] | None = None) -> Verdict:
    """What the observation calls for; a send whose machine etcd lists already has the removal before it."""
    verdict = walk(GATES if gates is None else gates, seen, now) or provisioning.send_of(seen, now)
    member = stale(seen) if isinstance(verdict, Send) and _is_listed(seen) else None
    if member is None or not isinstance(verdict, Send):
        return verdict
    waits = second_reading(seen, now)
    step = RemoveEtcdMember(seen.target, f"its disk holds no data, and etcd lists it as member {told(member)}", waits_for=waits, locked=True,
                            member=member.id)
    gone = Wait(MEMBER_GONE, target=seen.target.name)
    return Remove(step, replace(verdict.step, waits_for=(*waits, gone, *verdict.step.waits_for)), verdict.warnings)
