# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters over the list of machines that a person writes for a new cluster: what is wrong with it, and where its etcd begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansible.errors import AnsibleFilterError

from ansible_collections.ichor.talos.plugins.filter.talos_machines import KEYS

CONTROL_PLANE = "controlplane"
WORKER = "worker"
#: How many control planes a cluster may have (design section 3).
COUNTS = (1, 3, 5, 7)
#: What talos_machine_approval takes of an entry, beside what names the machine.
OPTIONS = ("role", "hostname", "labels", "taints", "install", "disks", "network", "fingerprint", "accept_weak_identity")


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {"talos_nodes_problem": talos_nodes_problem, "talos_bootstrap_node": talos_bootstrap_node}


def talos_nodes_problem(nodes: object) -> str:
    """What is wrong with the list, in one sentence of what and one of what to do; empty when nothing is."""
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, Mapping) for node in nodes):
        return 'It has to be a list of machines. Write each as an entry such as {mac: "3c:ec:ef:00:00:01", role: controlplane, hostname: cp-1}.'
    for number, node in enumerate(nodes, 1):
        problem = _entry_problem(node)
        if problem:
            return f"Entry {number} ({_told(node)}) {problem}"
    for key in (*KEYS, "hostname"):
        values = [str(node[key]).strip().lower() for node in nodes if node.get(key)]
        twice = next((value for value in values if values.count(value) > 1), "")
        if twice:
            return f"Two entries have {key} {twice}. Give each machine once, with a {key} of its own."
    count = sum(1 for node in nodes if node["role"] == CONTROL_PLANE)
    if count not in COUNTS:
        return (f"{f'{count} entries have' if count else 'No entry has'} the role controlplane. "
                f"Give {', '.join(map(str, COUNTS[:-1]))} or {COUNTS[-1]} machines that role.")
    return ""


def talos_bootstrap_node(nodes: Sequence[Mapping[str, object]], named: object = "") -> dict[str, object]:
    """The entry on which etcd begins: the one that is named by any of its names, else the first control plane."""
    wanted = str(named or "").strip().lower()
    if wanted:
        found = next((node for node in nodes if any(str(node.get(key) or "").strip().lower() == wanted for key in (*KEYS, "hostname"))), None)
        return dict(found) if found is not None else {"machine": str(named).strip()}
    first = next((node for node in nodes if node.get("role") == CONTROL_PLANE), None)
    if first is None:
        raise AnsibleFilterError("talos_bootstrap_node: no entry has the role controlplane. Give one that role.")
    return dict(first)


def _entry_problem(node: Mapping[str, object]) -> str:
    unknown = sorted(str(key) for key in node if key not in (*KEYS, *OPTIONS))
    if unknown:
        return f"has the unknown key {unknown[0]}. It takes {', '.join((*KEYS, *OPTIONS))}."
    if not any(str(node.get(key) or "").strip() for key in KEYS):
        return "names no machine. Give its uuid, mac, address, or machine, which is the name of its record."
    if node.get("role") not in (CONTROL_PLANE, WORKER):
        given = f"has the role {node['role']}" if node.get("role") else "has no role"
        return f"{given}. Give it role: {CONTROL_PLANE} or role: {WORKER}."
    return ""


def _told(node: Mapping[str, object]) -> str:
    key = next((key for key in ("hostname", *KEYS) if node.get(key)), "")
    return f"{key} {node[key]}" if key else "without a name"
