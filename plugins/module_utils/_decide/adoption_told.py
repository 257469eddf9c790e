# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An adoption as a person reads it: what each node comes to, and the records that would be written (design section 15)."""

from __future__ import annotations

from .._machineconfig.capture import Atom
from .._model.plan import Step
from .._model.records import Json, new_document
from .adoption_words import AdoptCluster, Adoption, AdoptMachine, AdoptPatch, Member
from .disk_words import install_words


def told(found: Adoption, released: set[str]) -> list[Json]:
    """One entry a node, by address. No value of a configuration is in it, only paths."""
    entries: list[Json] = [_member(member, found, released) for member in found.members]
    entries += [_entry(address, name, "adopted") for address, name in found.skipped]
    entries += [_entry(address, "", "unreachable") for address, dummy in found.silent]
    return entries


def _entry(address: str, name: str, state: str) -> dict[str, Json]:
    return {"address": address, "machine": name, "state": state, "role": "", "install": "", "class_a": [], "class_b": [], "class_c": []}


def _member(member: Member, found: Adoption, released: set[str]) -> Json:
    state = "blocked" if member.blocked else "adopted" if member.name in released else "held"
    return {**_entry(member.node.address, member.name, state), "role": member.role, "install": install_words(member.spec.get("install")),
            "class_a": _paths(member.atoms), "class_b": _paths(member.owned),
            "class_c": [{"path": one.path, "what": one.what, "hint": one.hint} for one in member.blocked]}


def _paths(atoms: tuple[Atom, ...]) -> list[Json]:
    return [atom.where for atom in atoms]


def document_of(step: Step) -> Json:
    """The record of a step, as it would be written."""
    return new_document(step.record) if isinstance(step, (AdoptCluster, AdoptPatch, AdoptMachine)) else None
