# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passes over five hundred machines that run as they should, with their records in a real API server: what its audit log says of them."""

from __future__ import annotations

import asyncio
import collections
import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._controller.run import run
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import open_store
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.store import KubernetesStore
from ansible_collections.ichor.talos.tests.unit._operations import world as w

from tests.parts.apiserver import ApiServer
from tests.unit._controller.fleet import BUNDLE, Fleet

MACHINES = 500


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    made = Fleet(bootstrapped=True)
    made.runs("cp-1", 1, "controlplane")
    for number in range(2, MACHINES + 1):
        made.runs(f"w-{number}", number)
    return made


@pytest.fixture(scope="module")
def store(fleet: Fleet, apiserver: ApiServer) -> Iterator[KubernetesStore]:
    """The fleet's records in an API server."""
    opened = open_store(Access(kubeconfig=str(apiserver.kubeconfig)), f"t-{uuid.uuid4().hex[:12]}", clock=fleet.clock, create=True)
    opened.write_bundle("prod", Path(BUNDLE).read_bytes())
    for kind in (CLUSTER, MACHINE):
        for record in fleet.store.list(kind).records:
            opened.create(record)
    yield opened
    opened.close()


def passes(fleet: Fleet, store: KubernetesStore, count: int) -> Outcome:
    ports = replace(fleet.ports(), store=store)
    return asyncio.run(run(Request(passes=count, max_runtime=1e5), ports, w.OpenGate(False)))


def asked(server: ApiServer, namespace: str, since: int) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in server.audit.read_text().splitlines()[since:]]
    return [entry for entry in entries if entry.get("objectRef", {}).get("namespace") == namespace]


def test_converged_passes_write_nothing_and_list_each_kind_once(fleet: Fleet, store: KubernetesStore, apiserver: ApiServer) -> None:
    settled = passes(fleet, store, 2)
    assert {row.reason for row in settled.machines} == {"Converged"} and len(settled.machines) == MACHINES
    store.close()

    again = open_store(Access(kubeconfig=str(apiserver.kubeconfig)), store.namespace, clock=fleet.clock)
    since = len(apiserver.audit.read_text().splitlines())
    outcome = passes(fleet, again, 3)
    again.close()
    assert {row.reason for row in outcome.machines} == {"Converged"} and not outcome.executed
    verbs = collections.Counter((entry["verb"], entry["objectRef"]["resource"]) for entry in asked(apiserver, store.namespace, since))
    assert {verb for verb, dummy in verbs} <= {"get", "list", "watch"}, verbs
    lists = {resource: count for (verb, resource), count in verbs.items() if verb == "list"}
    assert lists and set(lists.values()) == {1}, verbs
