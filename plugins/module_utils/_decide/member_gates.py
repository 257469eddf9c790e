# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What section 12 asks of every insecure send to a control plane of a bootstrapped cluster, also of one that `trust` re-armed."""

from __future__ import annotations

from .._model.observed import Present
from .hostnames import members_needed
from .provisioning_row import Gate, facts_of, refuse
from .provisioning_words import Provisioning
from .reprovision_sayings import STATE_HINT, STATE_THERE, UNCLEAR_HINT, UNCLEAR_LABELS
from .stale_member import left_behind, told
from .wipe_evidence import STATE_PRESENT, UNCLEAR, WIPED, evidence


def _evidence(seen: Provisioning) -> str:
    return evidence(facts_of(seen).partitions)


def _stale(seen: Provisioning) -> str:
    """The members that a wiped machine has left behind, in words, or ''."""
    if _evidence(seen) != WIPED or seen.machine is None or not isinstance(seen.members, Present):
        return ""
    left = left_behind(seen.machine, seen.members.value)
    return ", ".join(told(member) for member in (*left.own, *left.renamed))


MEMBER_GATES: tuple[Gate, ...] = (
    Gate("12/send-state-present", lambda seen, now: _evidence(seen) == STATE_PRESENT,
         lambda seen, now: refuse(seen, "12/send-state-present", "StateNotFound", STATE_THERE, STATE_HINT), applies=members_needed),
    Gate("12/send-labels-unclear", lambda seen, now: _evidence(seen) == UNCLEAR,
         lambda seen, now: refuse(seen, "12/send-labels-unclear", "ReprovisionBlocked", UNCLEAR_LABELS, UNCLEAR_HINT), applies=members_needed),
    Gate("12/send-stale-member", lambda seen, now: bool(_stale(seen)),
         lambda seen, now: refuse(seen, "12/send-stale-member", "StaleEtcdMember",
                                  f"The disk of the machine holds no data, and etcd still lists it as member {_stale(seen)}.",
                                  "Let talos_controller do both, or remove that member first with talos_machine_removal."),
         needs=("members",), applies=members_needed),
)
