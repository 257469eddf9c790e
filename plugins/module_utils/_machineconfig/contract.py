# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions: which contract a configuration has, which Talos takes it, and what a contract changes.

A contract is the shape of a configuration, fixed for a cluster at its creation; it is never newer than the oldest node.
"""
from __future__ import annotations

import re

from . import problem
from .documents import Config
from .problem import ConfigProblem
from .schema import VERSIONS

_VERSION = re.compile(r"v?([0-9]+)\.([0-9]+)(?:\.|\Z)")


def minor(version: str) -> str:
    """`1.13` of `v1.13.9`. Raises ConfigProblem (ContractUnknown) for what is no version."""
    found = _VERSION.match(version.strip())
    if found is None or len(found.group(0)) > 12:
        raise ConfigProblem(
            problem.CONTRACT_UNKNOWN, "this is no Talos version", hint=f"Give a version such as v{VERSIONS[-1]}.0.",
        )
    return f"{int(found.group(1))}.{int(found.group(2))}"


def contract_of(version: str) -> str:
    """The contract for a Talos version: `1.12`, `1.13` or `1.14`. Raises ConfigProblem (ContractUnknown) for others."""
    contract = minor(version)
    if contract not in VERSIONS:
        raise ConfigProblem(
            problem.CONTRACT_UNKNOWN, f"Talos {contract} is not supported", hint=f"Supported are {', '.join(VERSIONS)}.",
        )
    return contract


def _order(version: str) -> tuple[int, int]:
    major, dummy, minor_part = version.partition(".")
    return int(major), int(minor_part)


def refuse_too_new(contract: str, node_version: str) -> None:
    """Raises ConfigProblem (ContractTooNew) when a node of that version does not know the contract."""
    node = minor(node_version)
    if _order(contract) > _order(node):
        raise ConfigProblem(
            problem.CONTRACT_TOO_NEW, f"the node runs Talos {node}, which does not know the configuration of contract {contract}",
            hint=f"Upgrade the node to Talos {contract}, or set the cluster's talosVersion to {node}.",
        )


def schema_for(node_version: str) -> str:
    """The schema by which a node of that version reads: its own, or the newest known for a newer node."""
    node = minor(node_version)
    return node if node in VERSIONS else VERSIONS[-1] if _order(node) > _order(VERSIONS[-1]) else VERSIONS[0]


def contract_in(config: Config) -> str:
    """The contract read off a configuration: documents for Kubernetes mean 1.14, else an empty network section or none tells.

    1.12 and 1.13 differ in one line and in where KubeSpan stands, so what has neither counts as 1.13.
    """
    kinds = {document.kind.name for document in config.documents}
    if kinds & {"KubeletConfig", "KubeClusterConfig", "KubeAPIServerConfig", "UnattendedInstallConfig", "DiscoveryIdentityConfig"}:
        return "1.14"
    machine = (config.legacy.data.get("machine") or {}) if config.legacy is not None else {}
    network = machine.get("network")
    if "KubeSpanConfig" not in kinds and isinstance(network, dict) and (not network or "kubespan" in network):
        return "1.12"
    return "1.13" if config.version != "1.12" else "1.12"
