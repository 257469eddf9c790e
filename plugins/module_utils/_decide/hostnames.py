# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No two machines of a cluster share a host name: Talos evicts the member of the same name (design law 5, section 9 step 8)."""

from __future__ import annotations

from .._model.observations import EtcdMember
from .._model.observed import Observed, Present, Unknown
from .._model.records import Record, text_at
from .approved import is_approved, is_bootstrapped
from .provisioning_words import Provisioning


def members_needed(seen: Provisioning) -> bool:
    """Whether etcd's member list has to be read: a control plane that joins a bootstrapped cluster."""
    if seen.machine is None or seen.cluster is None or not isinstance(seen.config, Present):
        return False
    return seen.config.value.role == "controlplane" and is_bootstrapped(seen.cluster)


def hostname_conflict(seen: Provisioning) -> str:
    """The conflict in one sentence, or ''. A member list that cannot be read is one, where it is needed."""
    if seen.machine is None:
        return ""
    return name_conflict(seen.machine, _wanted(seen), seen.siblings, seen.beside, seen.members, members_needed(seen))


def namesake(seen: Provisioning) -> str:
    """The other machine that a patch gives the same host name, or ''."""
    wanted = _wanted(seen).lower()
    return next((name for name, hostname in seen.named if wanted and hostname.lower() == wanted), "")


def namesake_conflict(seen: Provisioning) -> str:
    """The same in one sentence."""
    return f"The host name {_wanted(seen)} is that of machine {namesake(seen)} too, as a patch has it."


def _wanted(seen: Provisioning) -> str:
    if not isinstance(seen.config, Present) or seen.machine is None:
        return ""
    return seen.config.value.hostname or text_at(seen.machine.spec, "hostname")


def name_conflict(machine: Record, wanted: str, siblings: tuple[Record, ...], beside: tuple[tuple[str, str], ...] = (),
                  members: Observed[tuple[EtcdMember, ...]] | None = None, among_members: bool = False) -> str:
    """Who has that host name already, in one sentence, or ''. `among_members`: etcd's members count too."""
    for other in siblings:
        if wanted and other.name != machine.name and is_approved(other) and wanted.lower() in _names(other):
            return f"The host name {wanted} is that of machine {other.name} already."
    for name, hostname in beside:
        if wanted and hostname.lower() == wanted.lower():
            return f"The configuration of machine {name}, given in the same task, has the host name {wanted} too."
    if not among_members:
        return ""
    if not isinstance(members, Present):
        why = members.message if isinstance(members, Unknown) else "no other control plane could be asked"
        return f"The etcd members of the cluster cannot be read, so a conflict of host names cannot be ruled out: {why}."
    own = addresses(machine)
    for member in members.value:
        mine = any(host_of(url) in own for url in member.peer_urls)
        if wanted and member.name.lower() == wanted.lower() and not mine:
            return f"The etcd member {member.id} has the host name {wanted} already, and another address."
    return ""


def _names(machine: Record) -> set[str]:
    names = (text_at(machine.spec, "hostname"), text_at(machine.status, "nodeName"))
    return {name.lower() for name in names if name}


def addresses(machine: Record) -> set[str]:
    """The hosts that the machine is known at."""
    found = {host_of(text_at(machine.spec, "endpoint")), host_of(text_at(machine.status, "observedEndpoint"))}
    primary = machine.spec.get("network")
    network = primary.get("primary") if isinstance(primary, dict) else None
    listed = network.get("addresses") if isinstance(network, dict) else None
    if isinstance(listed, list):
        found |= {str(entry).partition("/")[0] for entry in listed}
    return {host for host in found if host}


def host_of(text: str) -> str:
    """The host of `https://10.0.0.1:2380`, `10.0.0.1:50000`, `[::1]:50000`, `10.0.0.1` or `::1`."""
    text = text.partition("://")[2] or text
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text if text.count(":") > 1 else text.partition(":")[0]
