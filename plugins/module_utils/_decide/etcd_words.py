# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of etcd's members: what the control planes tell of them, and the step that removes one (design sections 12 to 14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .._model.observations import EtcdMember
from .._model.plan import Step


@dataclass(frozen=True)
class EtcdView:
    """`members`: as every control plane that answered lists them. `healthy`: ids of members that answered themselves as voters that see
    a leader. `through`: the addresses at which these answered."""

    members: tuple[EtcdMember, ...] = ()
    healthy: frozenset[str] = frozenset()
    through: tuple[str, ...] = ()


@dataclass(frozen=True)
class RemoveEtcdMember(Step):
    """Remove the member of a machine that has lost its data. By its id (16 hexadecimal digits) and nothing else."""

    action: ClassVar[str] = "RemoveEtcdMember"
    reversible: ClassVar[bool] = False

    member: str = ""
