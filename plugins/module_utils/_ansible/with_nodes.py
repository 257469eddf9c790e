# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens the nodes for a module that speaks to them: with it the module packs `_node`."""

from __future__ import annotations

from collections.abc import Iterator

from .._model.dialling import DialRules, dial_rules
from .._model.machine import cluster_of
from .._model.ports import Nodes, Store
from .._model.records import CLUSTER, MACHINE
from .run import Setting


def open_nodes(setting: Setting, store: Store | None) -> Nodes:
    """All nodes. What a name resolves to is held against the rules of every cluster that the task names."""
    from .._node.nodes import TalosNodes  # grpc is only imported once the arguments are known to be good

    timing = setting.options.timing() if "timing" in setting.options else None
    rules = (DialRules(setting.allow_loopback), *(_rules(setting, store) if store is not None else ()))
    return TalosNodes(check=setting.check, rules=rules, timing=timing) if timing else TalosNodes(check=setting.check, rules=rules)


def _rules(setting: Setting, store: Store) -> Iterator[DialRules]:
    options = setting.options
    names = {options.text("cluster")} if "cluster" in options else set()
    names |= set(options.texts("clusters")) if "clusters" in options else set()
    for name in options.machines():
        machine = store.get(MACHINE, name)
        if machine is not None:
            names.add(cluster_of(machine))
    for name in sorted(names - {""}):
        cluster = store.get(CLUSTER, name)
        if cluster is not None:
            yield dial_rules(cluster.spec, setting.allow_loopback)
