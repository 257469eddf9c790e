# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a cluster, from the options to the store (design section 3)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.cluster_edit import ClusterEdit
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, Json, Ref
from ansible_collections.ichor.talos.plugins.module_utils._operations.cluster import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.spec_options import cluster_settings
from tests.unit.machine_world import Gate, Store, cluster, machine, ports


def edit(given: Ports, settings: dict[str, Json] | None = None, **said: object) -> Outcome:
    return asyncio.run(run(Request(ClusterEdit("prod", settings or {}, **said)), given, Gate(given.check)))  # type: ignore[arg-type]


def test_options_become_the_spelling_of_the_record() -> None:
    assert cluster_settings({
        "talos_version": "v1.13.9", "kubernetes_version": None, "bundle": "prod", "control_planes": 3, "cni": "managed", "cilium_values": {"a": 1},
        "network": {"pod_subnets": ["10.1.0.0/16"], "service_subnets": None, "dns_domain": None}, "hold": "none",
        "discovery": {"addresses": None, "ranges": ["10.0.0.0/24"]}, "cert_sans": ["a"], "install": {"disk": None, "disk_selector": {"size": 5}},
        "registry_mirrors": {"docker.io": {"endpoints": ["https://m"]}}, "allow_scheduling_on_control_planes": False,
    }) == {
        "talosVersion": "v1.13.9", "secretsRef": {"name": "prod"}, "controlPlane": {"count": 3}, "cni": {"preset": "managed", "cilium": {"values": {"a": 1}}},
        "network": {"podSubnets": ["10.1.0.0/16"]}, "hold": None, "discovery": {"ranges": ["10.0.0.0/24"]}, "certSANs": ["a"],
        "install": {"diskSelector": {"size": "5"}}, "registries": {"mirrors": {"docker.io": {"endpoints": ["https://m"]}}},
        "allowSchedulingOnControlPlanes": False,
    }


def test_a_cluster_is_created_once_and_then_changed() -> None:
    store = Store()
    settings: dict[str, Json] = {"endpoint": "https://10.9.0.1:6443", "controlPlane": {"count": 3}}
    assert [step.action for step in edit(ports(None, store), settings).plan.steps] == ["CreateCluster"]
    assert not edit(ports(None, store), settings).plan.changed
    outcome = edit(ports(None, store), {"controlPlane": {"count": 5}, "discovery": {"ranges": ["10.0.0.0/24"]}})
    record = store.get(CLUSTER, "prod")
    assert record is not None and outcome.extra["cluster"]["spec"] == record.spec
    assert record.spec == {"endpoint": "https://10.9.0.1:6443", "controlPlane": {"count": 5}, "discovery": {"ranges": ["10.0.0.0/24"]}}


def test_a_bundle_that_is_not_there_is_warned_of_until_it_is() -> None:
    store = Store(cluster(secretsRef={"name": "prod"}))
    (warning,) = edit(ports(None, store)).plan.warnings
    assert warning.rule == "3/bundle-missing" and "talos_secrets" in warning.message
    assert len(edit(ports(None, store), {"secretsRef": {"name": "other"}}).plan.warnings) == 1
    store.bundles.add("other")
    assert edit(ports(None, store)).plan.warnings == ()


def test_a_block_is_changed_key_by_key() -> None:
    store = Store(cluster(discovery={"ranges": ["10.0.0.0/24"], "addresses": ["10.0.0.1"]}))
    edit(ports(None, store), {"discovery": {"addresses": []}})
    record = store.get(CLUSTER, "prod")
    assert record is not None and record.spec["discovery"] == {"ranges": ["10.0.0.0/24"], "addresses": []}


def test_a_hold_goes_when_it_is_none() -> None:
    store = Store(cluster(hold="shutdown"))
    edit(ports(None, store), {"hold": None})
    record = store.get(CLUSTER, "prod")
    assert record is not None and "hold" not in record.spec


def test_what_is_over_is_cleared_by_name() -> None:
    store = Store(replace(cluster(), status={"disruption": {"machine": "prod-1", "step": "reset", "time": "2026-01-01T00:00:00Z"}, "bootstrappedAt": "x"}))
    edit(ports(None, store), clear_disruption="prod-1")
    record = store.get(CLUSTER, "prod")
    assert record is not None and dict(record.status) == {"bootstrappedAt": "x"}


def test_a_refusal_writes_nothing() -> None:
    store = Store(cluster(), machine(1))
    outcome = edit(ports(None, store), {"secretsRef": {"name": "other"}})
    assert (outcome.refused, outcome.reason, store.writes) == (True, "Immutable", [])


def test_check_mode_writes_nothing_and_shows_what_would_be() -> None:
    store = Store()
    outcome = edit(ports(None, store, check=True), {"endpoint": "https://10.9.0.1:6443"})
    (record,) = outcome.would_be
    assert store.writes == [] and record.uid and record.spec["endpoint"] == "https://10.9.0.1:6443"
    gone = edit(ports(None, Store(cluster()), check=True), absent=True, allow_delete=True)
    assert gone.would_delete == (Ref(CLUSTER, "prod"),)


def test_a_store_is_taken_over_once_and_only_when_it_cannot_be_locked() -> None:
    store = Store(cluster())
    store.leases.foreign = "The tree carries no store id."
    planned = edit(ports(None, store, check=True), take_over=True)
    assert [step.action for step in planned.plan.steps] == ["TakeOverStore"] and store.leases.foreign
    done = edit(ports(None, store), take_over=True)
    assert done.plan.id == planned.plan.id and done.executed and not store.leases.foreign
    assert not edit(ports(None, store), take_over=True).plan.steps
