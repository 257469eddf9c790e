# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each node comes to beside the records, and which of it the machines share (design section 15).

A machine counts as adoptable only when the very patches that would be written were rendered, and the render equals what the node runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .._machineconfig.capture import Atom, capture, documents_of
from .._machineconfig.compare import differences
from .._machineconfig.documents import Config, load
from .._machineconfig.drift import Drift, drift
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.render import PatchRecord, RenderInput, render
from .._machineconfig.secrets import Bundle
from .._model.addresses import parse_endpoint
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.observed import Present
from .._model.records import Json, JsonMap
from .adoption_case import HELD, Case, Unread
from .adoption_classes import authority_apart, drifted_since, left_over, owned, registries_apart, secrets_beside, shape_apart, spilled, unreadable
from .adoption_reading import machine_spec, role_of
from .adoption_words import Blocked, LiveNode, Member


@dataclass(frozen=True)
class Sharing:
    """A patch that is for more than one machine. `role`: '' for all of the cluster."""

    name: str
    role: str
    atoms: tuple[Atom, ...]
    priority: int = 0

    @property
    def patch(self) -> PatchRecord:
        return PatchRecord(self.name, "cluster", self.priority, tuple(documents_of(self.atoms)), role=self.role)


def looked_at(case: Case, node: LiveNode, cluster: JsonMap, bundle: Bundle) -> Member:
    """One node against a render of what its record would say, and of the patches that are given."""
    name, config, record = case.names[node.address], case.configs[node.address], case.record_of(node)
    held = case.state(node) == HELD
    if not isinstance(config, Config):
        return _unread(case, node, config, cluster, bundle)
    spec = dict(record.spec) if held and record is not None else machine_spec(node, config, case.wish.cluster, name, node.address)
    member = Member(node, name, role_of(config), config, spec, record)
    stopped = (*_not_dialled(case, node, cluster), *_staged(node, config), *(() if held else shape_apart(config, case.contract)))
    if stopped:
        return replace(member, blocked=stopped)
    patches = _all_patches(case) if held else case.patches(name)
    try:
        base = render(_input(case, member, cluster, bundle, patches)).config
    except ConfigProblem as problem:
        return replace(member, blocked=(unreadable(problem),))
    found = drift(base, config)
    if held:
        return replace(member, blocked=(*authority_apart(found.authority), *drifted_since(found.apply)))
    secret, values = secrets_beside(config, base)
    apart = authority_apart(found.authority)
    blocked = (*apart, *(one for one in secret if one.path not in {other.path for other in apart}))
    if blocked:
        return replace(member, blocked=blocked)
    atoms = tuple(atom for atom in capture(base, config) if not _only_newer(atom, found))
    blocked = (*spilled(atoms, values | bundle.secrets()), *registries_apart(atoms, cluster))
    own = tuple(atom for atom in atoms if owned(atom))
    member = replace(member, atoms=tuple(atom for atom in atoms if atom not in own), owned=own, blocked=blocked)
    return member if blocked else replace(member, blocked=_differing(case, member, cluster, bundle, (*patches, *own_patch(case, member, atoms))))


def _unread(case: Case, node: LiveNode, config: Unread, cluster: JsonMap, bundle: Bundle) -> Member:
    """A node whose configuration is not understood as a whole. The secrets of the rest are named as well, so that nobody mends it twice."""
    name, loose = case.names[node.address], case.loose.get(node.address) or config.config
    member = Member(node, name, role_of(loose) if loose is not None else "", record=case.record_of(node), blocked=config.blocked)
    if config.config is None:
        return member
    spec = machine_spec(node, config.config, case.wish.cluster, name, node.address)
    try:
        base = render(_input(case, replace(member, spec=spec), cluster, bundle, case.patches(name))).config
    except ConfigProblem:
        return member
    return replace(member, blocked=(*config.blocked, *secrets_beside(config.config, base)[0]))


def _input(case: Case, member: Member, cluster: JsonMap, bundle: Bundle, patches: Iterable[PatchRecord]) -> RenderInput:
    secure = member.node.facts.secure_boot
    return RenderInput(case.wish.cluster, cluster, member.name, member.spec, bundle, tuple(patches), secure.value if isinstance(secure, Present) else None)


def _all_patches(case: Case) -> tuple[PatchRecord, ...]:
    return tuple(PatchRecord.of(record.name, record.spec) for record in case.seen.patches if record.spec.get("clusterRef") == case.wish.cluster)


def _not_dialled(case: Case, node: LiveNode, cluster: JsonMap) -> tuple[Blocked, ...]:
    """The address is one that nobody dials once the cluster has its record: its endpoint, or inside its own ranges (section 3)."""
    try:
        dial_rules(cluster, case.wish.allow_loopback).check(parse_endpoint(node.address).host)
    except TalosError as error:
        return (Blocked("", error.message.rstrip("."), "Name the node by another of its addresses.", "15/address", "EndpointRefused"),)
    return ()


def _staged(node: LiveNode, config: Config) -> tuple[Blocked, ...]:
    """What it keeps for its next boot is another configuration."""
    if node.kept is None or node.kept == node.text:
        return ()
    try:
        found = differences(load(node.kept, config.version), config)
    except ConfigProblem as problem:
        return (unreadable(problem),)
    return tuple(Blocked(one.where, "the node keeps another value for its next boot", "Reboot it, or stage what it runs, so that both are the same.",
                         "15/staged") for one in found)


def _only_newer(atom: Atom, found: Drift) -> bool:
    """Images that are newer on the node are not captured: they stay anyway, and are to follow the record again later."""
    return any(atom.covers(one.document, one.path) for one in found.newer_images)


def own_patch(case: Case, member: Member, atoms: Sequence[Atom]) -> tuple[PatchRecord, ...]:
    """The patch of one machine, () where it needs none. It comes after every patch for machines that there is."""
    if not atoms:
        return ()
    others = [patch.priority for patch in case.patches(member.name) if patch.layer == "machine"]
    return (PatchRecord(case.own_patch(member.name), "machine", max(others, default=-1) + 1, tuple(documents_of(atoms)), (member.name,)),)


def _differing(case: Case, member: Member, cluster: JsonMap, bundle: Bundle, patches: Iterable[PatchRecord]) -> tuple[Blocked, ...]:
    """What is different from the node's configuration when rendered with these patches."""
    if member.config is None:
        return ()
    try:
        found = drift(render(_input(case, member, cluster, bundle, patches)).config, member.config)
    except ConfigProblem as problem:
        return (unreadable(problem),)
    return (*authority_apart(found.authority), *left_over(found.apply))


def shared(case: Case, members: Sequence[Member], cluster: JsonMap, bundle: Bundle) -> tuple[Sharing, ...]:
    """What is equal on all machines of the cluster, then of a role, where there are several; () unless each still renders what it runs."""
    if not case.fresh:
        return ()
    priority, everybody = _priority(case), _common(members)
    found = [Sharing(case.shared_patch(""), "", everybody, priority)] if everybody else []
    for role in ("controlplane", "worker"):
        same = tuple(atom for atom in _common([member for member in members if member.role == role]) if atom not in everybody)
        if same:
            found.append(Sharing(case.shared_patch(role), role, same, priority))
    if not found:
        return ()
    patches = tuple(sharing.patch for sharing in found)
    for member in members:
        mine = own_patch(case, member, remainder(member, found))
        if _differing(case, member, cluster, bundle, (*case.patches(member.name), *patches, *mine)):
            return ()
    return tuple(found)


def _priority(case: Case) -> int:
    others = [patch.priority for patch in case.patches("") if patch.layer == "cluster"]
    return max(others, default=-1) + 1


def _common(members: Sequence[Member]) -> tuple[Atom, ...]:
    if len(members) < 2:
        return ()
    kept = [frozenset(member.kept) for member in members[1:]]
    return tuple(atom for atom in members[0].kept if all(atom in other for other in kept))


def remainder(member: Member, sharings: Iterable[Sharing]) -> tuple[Atom, ...]:
    """What only the machine's own patch can hold."""
    elsewhere = {atom for sharing in sharings if sharing.role in ("", member.role) for atom in sharing.atoms}
    return tuple(atom for atom in member.kept if atom not in elsewhere)


def patch_spec(patch: PatchRecord, cluster: str) -> dict[str, Json]:
    """The spec of its record."""
    selector: dict[str, Json] = {}
    if patch.names:
        selector["names"] = list(patch.names)
    if patch.role:
        selector["role"] = patch.role
    return {"clusterRef": cluster, **({"machineSelector": selector} if selector else {}), "layer": patch.layer,
            **({"priority": patch.priority} if patch.priority else {}), "documents": list(patch.documents)}
