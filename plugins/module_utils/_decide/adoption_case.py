# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One adoption under decision: what was read, as the gates and the plan look at it (design section 15)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .._machineconfig.contract import contract_of, minor, schema_for
from .._machineconfig.documents import Config
from .._machineconfig.named import machine_authority
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.render import PatchRecord
from .._machineconfig.schema import VERSIONS
from .._machineconfig.secrets import Bundle, bundle_of_config
from .._model.approval import approval_state
from .._model.identity import canonical_uuid
from .._model.machine import cluster_of, identity_of, strong_name
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.plan import Target
from .._model.record_uid import spec_hash
from .._model.records import CAPTURED, CLUSTER, JsonMap, Record, list_at, text_at
from .adoption_classes import unreadable
from .adoption_reading import cluster_id, read_node, read_partly, role_of
from .adoption_records import Recorded
from .adoption_words import AdoptSeen, AdoptWish, Blocked, LiveNode
from .approved import has_converged, held_for_adoption
from .same_machine import other_machine

NEW, PENDING, REJECTED, HELD, ADOPTED, ELSEWHERE, TWIN = "new", "pending", "rejected", "held", "adopted", "elsewhere", "twin"
#: The end of the names of the patches that adoption writes.
SUFFIX = "adopted"


@dataclass(frozen=True)
class Unread:
    """A configuration that is not understood as a whole: the part that is, and what blocks."""

    config: Config | None
    blocked: tuple[Blocked, ...]


@dataclass(frozen=True)
class Case:
    """What is wanted and what was read, with what follows from both."""

    wish: AdoptWish
    seen: AdoptSeen

    @property
    def target(self) -> Target:
        return Target(CLUSTER, self.wish.cluster, self.wish.cluster)

    def at(self, address: str) -> Target:
        """What a step or a refusal about the node at an address names. Its UUID alone stands for it: a run that goes on finds records that the
        one before made, and its plan is to be the same."""
        node = self._by_address.get(address)
        uuid = canonical_uuid(node.facts.identity.uuid) if node is not None else ""
        return Target(name=self.names.get(address, ""), cluster=self.wish.cluster, uuid=uuid, address=address)

    @cached_property
    def live(self) -> tuple[LiveNode, ...]:
        """The nodes that answered, in the order in which they were named; the same one at two addresses once."""
        found: dict[str, LiveNode] = {}
        for address, node in self.seen.nodes:
            if isinstance(node, Present):
                found.setdefault(canonical_uuid(node.value.facts.identity.uuid) or address, node.value)
        return tuple(found.values())

    @cached_property
    def _by_address(self) -> dict[str, LiveNode]:
        return {node.address: node for node in self.live}

    @cached_property
    def silent(self) -> tuple[tuple[str, Unknown], ...]:
        return tuple((address, node) for address, node in self.seen.nodes if isinstance(node, Unknown))

    @cached_property
    def known(self) -> tuple[LiveNode, ...]:
        """The nodes of a Talos version that is supported."""
        return tuple(node for node in self.live if self.version_fault(node) == "")

    @staticmethod
    def version_fault(node: LiveNode) -> str:
        """'', `old` or `unknown`."""
        try:
            found = minor(node.facts.talos_version)
        except ConfigProblem:
            return "unknown"
        if found in VERSIONS:
            return ""
        return "old" if schema_for(node.facts.talos_version) == VERSIONS[0] else "unknown"

    @cached_property
    def contract(self) -> str:
        """The cluster's: that of its record, else what a control plane's configuration has, which no node may be too old for."""
        if self.seen.cluster is not None and (version := text_at(self.seen.cluster.spec, "talosVersion")):
            try:
                return contract_of(version)
            except ConfigProblem:
                return ""
        found = []
        for node in self.known:
            try:
                config, contract = read_node(node)
            except ConfigProblem:
                continue
            found.append((0 if role_of(config) == "controlplane" else 1, contract))
        oldest = min((schema_for(node.facts.talos_version) for node in self.known), default="", key=VERSIONS.index)
        return min(min(found)[1], oldest, key=VERSIONS.index) if found else oldest

    @cached_property
    def configs(self) -> dict[str, Config | Unread]:
        """What each node runs, by address, or why this is not understood."""
        found: dict[str, Config | Unread] = {}
        for node in self.known:
            try:
                found[node.address] = read_node(node, self.contract)[0]
            except ConfigProblem as problem:
                partly, faults = read_partly(node, self.contract)
                found[node.address] = Unread(partly, tuple(unreadable(one) for one in faults or (problem,)))
        return found

    def config(self, node: LiveNode) -> Config | None:
        found = self.configs.get(node.address)
        return found if isinstance(found, Config) else None

    @cached_property
    def loose(self) -> dict[str, Config]:
        """The same by the newest schema that the node knows, or what of it is understood, for what has to be told of a node whose configuration
        blocks it.
        """
        found: dict[str, Config] = {}
        for node in self.known:
            config = self.config(node)
            try:
                found[node.address] = config if config is not None else read_node(node)[0]
            except ConfigProblem:
                unread = self.configs[node.address]
                if isinstance(unread, Unread) and unread.config is not None and unread.config.legacy is not None:
                    found[node.address] = unread.config
        return found

    @cached_property
    def unread(self) -> tuple[tuple[LiveNode, Unread], ...]:
        """The nodes whose configurations are not understood."""
        return tuple((node, config) for node in self.known if isinstance(config := self.configs[node.address], Unread))

    @cached_property
    def planes(self) -> tuple[tuple[LiveNode, Config], ...]:
        """The control planes whose configurations are understood."""
        return tuple((node, config) for node in self.known if (config := self.config(node)) is not None and role_of(config) == "controlplane")

    @cached_property
    def bundle(self) -> Observed[Bundle]:
        """The one that is brought, else the one of the store, else rebuilt from a control plane's configuration."""
        if not isinstance(self.wish.imported, Absent):
            return self.wish.imported
        if not isinstance(self.seen.bundle, Absent):
            return self.seen.bundle
        for dummy, config in self.planes:
            try:
                return Present(bundle_of_config(config), "a control plane's configuration")
            except ConfigProblem as problem:
                return Unknown(problem.reason, problem.message, problem.hint)
        return Absent()

    @cached_property
    def bundle_name(self) -> str:
        own = text_at(self.seen.cluster.spec, "secretsRef", "name") if self.seen.cluster is not None else ""
        return self.wish.bundle or own or self.wish.cluster

    def foreign(self, node: LiveNode) -> str:
        """The id of the node's own cluster, where that is not the bundle's; '?' where only its CA is another one."""
        config, bundle = self.loose.get(node.address), self.bundle
        if config is None or not isinstance(bundle, Present):
            return ""
        own, authority = cluster_id(config), machine_authority(config)
        if own and own != bundle.value.cluster_id:
            return own
        return "?" if _bare(authority) != _bare(bundle.value.os.crt) else ""

    @cached_property
    def _records(self) -> dict[str, Record | None]:
        recorded = Recorded(self.wish.cluster, self.seen.machines)
        return {node.address: recorded.of(node.facts.identity) for node in self.live}

    def record_of(self, node: LiveNode) -> Record | None:
        """The record of the machine, whatever it is known by."""
        return self._records.get(node.address)

    def unlike(self, node: LiveNode) -> str:
        """What tells the machine from the record that is found for it, '' where it is as recorded."""
        record = self.record_of(node)
        return other_machine(identity_of(record), node.facts.identity) if record is not None else ""

    def state(self, node: LiveNode) -> str:
        """What the store says of the machine."""
        record = self.record_of(node)
        if record is None:
            return NEW
        approval = approval_state(record)
        if cluster_of(record) != self.wish.cluster:
            return ELSEWHERE
        if approval == "rejected":
            return REJECTED
        if self.unlike(node):
            return TWIN
        if approval == "pending":
            return PENDING
        return HELD if held_for_adoption(record) and not has_converged(record) else ADOPTED

    @cached_property
    def siblings(self) -> tuple[Record, ...]:
        return tuple(record for record in self.seen.machines if cluster_of(record) == self.wish.cluster)

    @cached_property
    def fresh(self) -> bool:
        """No machine of the cluster is approved yet: what is shared by the nodes is still to be found out."""
        return not any(approval_state(record) == "approved" for record in self.siblings)

    @cached_property
    def names(self) -> dict[str, str]:
        """The record's name of each node, by address (section 3)."""
        taken = {record.name for record in self.seen.machines} | {one.name for one in self.seen.broken}
        found: dict[str, str] = {}
        for node in self.live:
            record = self.record_of(node)
            found[node.address] = record.name if record is not None else strong_name(self.wish.cluster, node.facts.identity.uuid, taken)
            taken.add(found[node.address])
        return found

    def patches(self, name: str) -> tuple[PatchRecord, ...]:
        """The patches that are given: not those of adoption's own for the machine, or for all while none is approved. A patch of such a name
        that a person wrote, or edited, is given."""
        own = {self.own_patch(name), *((self.shared_patch(role) for role in ("", "controlplane", "worker")) if self.fresh else ())}
        return tuple(PatchRecord.of(record.name, record.spec) for record in self.seen.patches
                     if text_at(record.spec, "clusterRef") == self.wish.cluster and not (record.name in own and is_captured(record)))

    def shared_patch(self, role: str) -> str:
        """The name of the patch of all machines, or of those of a role."""
        return "-".join(part for part in (self.wish.cluster, SUFFIX, role) if part)

    def own_patch(self, name: str) -> str:
        """The name of a machine's patch; a machine may have the name of its cluster."""
        return f"{name}-{SUFFIX}" if name != self.wish.cluster else f"{name}-{SUFFIX}-machine"


def capture_mark(spec: JsonMap) -> str:
    """What a patch that adoption writes is marked with."""
    return spec_hash({"documents": list(list_at(spec, "documents"))})


def is_captured(patch: Record) -> bool:
    """Whether adoption wrote it, and nobody has edited it since."""
    return patch.annotations.get(CAPTURED) == capture_mark(patch.spec)


def _bare(pem: str) -> str:
    return "".join(pem.split())
