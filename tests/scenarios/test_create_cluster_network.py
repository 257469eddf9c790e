# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A new cluster whose network is managed: the one command installs Cilium after the bootstrap, and once (design section 15)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.lab.control import Lab
from tests.parts.build import build
from tests.parts.network_chart import CHART
from tests.scenarios.playing import Project, Run, a_project, machine, network_of
from tests.scenarios.sending import opened
from tests.unit._operations.managed_world import BUNDLE
from tests.unit._operations.network_world import SYSTEM, Kubernetes, kubernetes

NETWORK = network_of(__name__)
NODE = machine(1, NETWORK, "5a1f0c3e")


def create(project: Project, found: Kubernetes, *arguments: str, **more: Any) -> Run:
    return project.run("ichor.talos.create_cluster", "-e", json.dumps({
        "ichor_cluster": "prod", "ichor_endpoint": found.endpoint, "ichor_talos_version": "v1.13.9", "ichor_kubernetes_version": "v1.36.3",
        "ichor_addresses": [NODE["address"]], "ichor_allow_loopback": True, **project.records.variables,
        "ichor_timing": project.defaults["timing"], "ichor_cni": "managed", "ichor_cilium_values": {"debug": True}, "ichor_cilium_chart": str(CHART),
        "ichor_nodes": [{"address": NODE["address"], "role": "controlplane", "hostname": "cp-1", "install": {"disk": "/dev/sda"}}], **more}), *arguments)


def test_its_network_is_installed_after_the_bootstrap_and_once(tmp_path: Path) -> None:
    helm = {"HELM_BIN": str(build("helm-3.22"))}
    with a_project(tmp_path / "project", environment=helm) as project, kubernetes() as found, Lab.start({"nodes": {"cp-1": NODE}}, speed=20.0):
        opened(project.records, create=True).write_bundle("prod", BUNDLE.read_bytes())
        mark = found.mark()
        check = create(project, found, "--check")
        assert found.written(mark) == []
        created = create(project, found, confirm="prod")
        assert [step for step in check.steps if step[0] != "GenerateSecrets"] == [step for step in created.steps if step[0] != "GenerateSecrets"]
        actions = [action for action, dummy in created.steps]
        assert actions.index("Bootstrap") < actions.index("CreateObject") and actions.count("CreateObject") == 13 == len(found.written(mark))
        assert found.read(f"{SYSTEM}/configmaps/cilium-config")["data"] == {
            "ipam": "kubernetes", "debug": "true", "kube-proxy-replacement": "false", "enable-hubble": "true", "cgroup-root": "/sys/fs/cgroup"}
        mark = found.mark()
        again = create(project, found, confirm="prod")
        assert again.steps == [] and not again.changed and found.written(mark) == []
