# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An adoption with its network, killed with SIGKILL at every boundary of its steps: each run does one step and dies, and the next goes on from there.
The end is that of one whole run (design law 8 and section 15)."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest
import yaml
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_values import for_render

from tests.lab.control import Lab
from tests.nursery.client import Ended, Nursery
from tests.parts.build import build
from tests.parts.network_chart import CHART, NAMESPACE, install, rendered
from tests.scenarios.adopting import Running, configuration, named
from tests.scenarios.playing import network_of
from tests.unit._operations.network_world import SYSTEM, Kubernetes, kubernetes

NO_FLANNEL = "cluster:\n  network:\n    cni:\n      name: none\n"
CONFIG, AGENT = f"{SYSTEM}/configmaps/cilium-config", f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/cilium"
#: What the API server makes of its own, and what a record says of when.
CHANCE = frozenset({"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "approvedAt", "adoptedAt", "clusterIP", "clusterIPs",
                    "deprecated.daemonset.template.generation"})


@dataclass
class World:
    """A control plane that somebody else made, the Kubernetes of its endpoint, and module processes."""

    running: Running
    kubernetes: Kubernetes
    nursery: Nursery

    def adopt(self, *, after: int = 0, **more: Any) -> Ended:
        """One run, which is killed once it has done `after` steps; 0 for a whole one."""
        dies = {"hook": "tests.crash.network_steps:install", "told": {"after": after}} if after else {}
        return self.nursery.run("talos_adopt", **dies, **{**self.running.options(
            cni="managed", cilium_chart=str(CHART), kubernetes_version="v1.36.3", consent_class_b=True), **more})

    def end(self) -> dict[str, Any]:
        """The network's objects and the records, without what is of chance."""
        objects = {str(one["kind"]) + "/" + str(one["metadata"]["name"]): self._object(one) for one in rendered(for_render({}))}
        store = self.running.folder / "ichor"
        records = {str(path.relative_to(store)): _plain(yaml.safe_load(path.read_text(encoding="utf-8")))
                   for kind in ("clusters", "machines", "patches") for path in sorted((store / kind).glob("*.yaml"))}
        return {**objects, **records, "ready": self.running.ready("cp-1")}

    def _object(self, wanted: dict[str, Any]) -> Any:
        objects = self.kubernetes.objects()
        now = objects.live((wanted,))[0].now
        found = cast("dict[str, Any]", _plain(getattr(now, "value", None)))
        return {**found, "data": sorted(found["data"])} if wanted["kind"] == "Secret" else found

    def forget(self) -> None:
        shutil.rmtree(self.running.folder / "ichor", ignore_errors=True)
        self.kubernetes.clear()


def _plain(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _plain(value) for key, value in found.items() if key not in CHANCE}
    return [_plain(value) for value in found] if isinstance(found, list) else found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with kubernetes() as found, Lab.start({"nodes": {}}, speed=20) as lab, Nursery(HELM_BIN=str(build("helm-3.22"))) as nursery:
        at = f"cluster:\n  controlPlane:\n    endpoint: {found.endpoint}\n"
        configs = {"cp-1": configuration("1.13", "controlplane", named("cp-1"), NO_FLANNEL, at)}
        yield World(Running(lab, tmp_path_factory.mktemp("killed-network"), network_of(__name__), configs).start(), found, nursery)


def _again(steps: list[dict[str, Any]], done: int) -> int:
    """How many of the steps that are done a run does once more: keys are made together, so those of one Secret are made anew beside the other's."""
    secrets = [number for number, step in enumerate(steps) if step["action"] == "CreateObject" and step["target"].startswith("Secret ")]
    made = [number for number in secrets if number < done]
    return len(made) if len(made) < len(secrets) else 0


def without_a_network(found: Kubernetes) -> dict[str, Any]:
    found.node("cp-1")
    return {"cilium_values": {"debug": True}}


def with_a_release(found: Kubernetes) -> dict[str, Any]:
    install(found.server.kubeconfig, for_render({"debug": True}))
    found.change(CONFIG, {"data": {"mine": "1"}})
    found.change(AGENT, {"spec": {"template": {"spec": {"hostPID": True}}}})
    found.api.request("DELETE", f"{SYSTEM}/services/hubble-peer", {"apiVersion": "v1", "kind": "DeleteOptions"})
    return {"accept_cilium_diff": True}


@pytest.mark.parametrize("begins", [without_a_network, with_a_release])
def test_an_adoption_that_is_killed_after_each_of_its_steps_comes_to_the_same_end(
        world: World, begins: Callable[[Kubernetes], dict[str, Any]], record_property: Callable[[str, object], None]) -> None:
    world.forget()
    options = begins(world.kubernetes)
    mark = world.kubernetes.mark()
    whole = world.adopt(**options)
    assert whole.status == 0, f"{whole.output} {whole.errors}"
    steps, wrote, wanted = whole.result["plan"], world.kubernetes.written(mark), world.end()
    world.forget()
    begins(world.kubernetes)
    mark = world.kubernetes.mark()
    for number in range(len(steps)):
        ended = world.adopt(after=_again(steps, number) + 1, **options)
        assert ended.killed, f"after {number} steps: {ended.output} {ended.errors}"
    mark_of_the_last = world.kubernetes.mark()
    last = world.adopt(**options)
    assert last.status == 0 and last.result["plan"] == [] and world.kubernetes.written(mark_of_the_last) == [], f"{last.output} {last.errors}"
    assert json.dumps(world.end(), sort_keys=True) == json.dumps(wanted, sort_keys=True)
    again = [line for line in world.kubernetes.written(mark) if not line.startswith("update secrets/")]
    assert Counter(again) == Counter(wrote)
    if begins is without_a_network:
        authority, served = (world.kubernetes.read(f"{SYSTEM}/secrets/{name}")["data"] for name in ("cilium-ca", "hubble-server-certs"))
        assert authority["ca.crt"] == served["ca.crt"]
    record_property("told", f"an adoption, {begins.__name__.replace('_', ' ')}: killed at each of {len(steps)} boundaries, each finished by the next run")
