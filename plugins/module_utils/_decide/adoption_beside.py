# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person has to know of nodes that are adopted and of the machines beside them: equal host names, equal addresses (design section 15).

Both are as they are already, and adoption changes no node; so they are told, and refuse nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._model.plan import Warn
from .._model.records import text_at
from .adoption_case import Case
from .adoption_words import Member
from .approved import is_approved
from .hostnames import addresses, host_of


def beside(case: Case, members: Sequence[Member]) -> Iterable[Warn]:
    """One warning a host name and one a record."""
    good = [member for member in members if not member.blocked]
    mine = {member.name for member in good}
    others = [record for record in case.siblings if is_approved(record) and record.name not in mine]
    named: dict[str, set[str]] = {}
    for name, hostname in (*((member.name, member.node.facts.hostname) for member in good),
                           *((record.name, text_at(record.spec, "hostname") or text_at(record.status, "nodeName")) for record in others)):
        if hostname:
            named.setdefault(hostname.lower(), set()).add(name)
    for hostname, names in named.items():
        if len(names) > 1 and names & mine:
            yield Warn(case.target, f"{', '.join(sorted(names))} have the same host name, {hostname}: Kubernetes and etcd know one of them only. Give each "
                       "its own.", "15/equal-host-names")
    at = {host_of(member.node.address): member for member in good}
    for record in others:
        for member in (at[host] for host in addresses(record) if host in at):
            yield Warn(case.at(member.node.address), f"{record.name} is recorded at {member.node.address} as well, and another machine answers there. If it "
                       "was replaced, take its record away (talos_machine_removal).", "15/address-taken")
