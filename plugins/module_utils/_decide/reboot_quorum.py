# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether etcd keeps its quorum while a control plane restarts (design law 5)."""

from __future__ import annotations

from .._model.observed import Observed, Present, Unknown
from .._model.records import Record
from .approved import is_approved, is_control_plane, is_followed
from .machine_edit_words import Etcd


def quorum_problem(etcd: Observed[Etcd] | None) -> tuple[str, str]:
    """(reason, message), or ('', ''). The only member of an etcd may restart: nobody could keep the quorum for it, and its data stays."""
    if not isinstance(etcd, Present):
        why = etcd.message or etcd.reason if isinstance(etcd, Unknown) else "nobody could be asked"
        return "QuorumUnknown", f"Whether etcd keeps its quorum while this control plane restarts cannot be told: {why.rstrip('.')}."
    members, others = etcd.value.members, etcd.value.healthy_others
    voters = sum(1 for member in members if not member.learner)
    needed = voters // 2 + 1
    if len(members) == 1 or others >= needed:
        return "", ""
    return "QuorumAtRisk", (f"etcd has {voters} voters and needs {needed}; while this control plane restarts only {others} "
                            f"would be known to answer.")


def members_change(etcd: Observed[Etcd] | None, siblings: tuple[Record, ...]) -> bool:
    """Whether a member is on its way, so that the quorum is another one soon: a control plane that joins, a learner, a member without a name."""
    joining = any(is_approved(one) and is_control_plane(one) and is_followed(one) for one in siblings)
    members = etcd.value.members if isinstance(etcd, Present) else ()
    return joining or any(member.learner or not member.name for member in members)
