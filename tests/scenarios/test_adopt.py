# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster that talosctl made is adopted through the playbook: with what people really have in their configurations, for each contract,
without one write to a node (design section 15)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.nursery.client import Nursery
from tests.scenarios.adopting import Running, configuration, named
from tests.scenarios.playing import Project, Run, network_of

SYSCTLS = "machine:\n  sysctls:\n    net.core.somaxconn: 4096\n    vm.overcommit_memory: 1\n"
MANIFESTS = "cluster:\n  extraManifests: [https://example.org/metallb.yaml]\n  inlineManifests:\n    - name: ns\n      contents: |\n        kind: Namespace\n"
LEGACY_NETWORK = (
    "machine:\n  network:\n    nameservers: [192.0.2.53]\n    interfaces:\n      - interface: bond0\n        bond: {mode: 802.3ad, interfaces: [eth0, eth1]}\n"
    "        vlans:\n          - vlanId: 100\n            addresses: [192.0.2.11/24]\n            vip: {ip: 192.0.2.10}\n"
    "  install:\n    grubUseUKICmdline: false\n    extraKernelArgs: [net.ifnames=0]\n")
BY_ID = "machine:\n  install:\n    disk: /dev/disk/by-id/wwn-0x5000c500a0b1c2d3\n"
BY_SELECTOR = "machine:\n  install:\n    diskSelector: {size: '>= 100GB', type: ssd}\n"
DOCUMENTS = (
    "apiVersion: v1alpha1\nkind: LinkAliasConfig\nname: net0\nselector:\n  match: mac(link.permanent_addr) == \"3c:ec:ef:00:00:03\"\n",
    "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning:\n  diskSelector:\n    match: disk.transport == \"nvme\"\n  minSize: 10GiB\n"
    "encryption:\n  provider: luks2\n  keys:\n    - slot: 0\n      nodeID: {}\n",
    "apiVersion: v1alpha1\nkind: RegistryMirrorConfig\nname: docker.io\nendpoints:\n  - url: https://mirror.example.org\n")
SECRET_VALUES = {"w-login": "s3cr3t-of-the-registry", "w-tunnel": "2KAWbX5i3eUzIrGnP5DGRK4YBgY7mRqfJGZS5CgM3n4=", "w-proxy": "pr0xy-passw0rd"}
BLOCKED = {
    "w-login": "apiVersion: v1alpha1\nkind: RegistryAuthConfig\nname: registry.example.org\nusername: ci\npassword: s3cr3t-of-the-registry\n",
    "w-tunnel": "apiVersion: v1alpha1\nkind: WireguardConfig\nname: wg0\nprivateKey: 2KAWbX5i3eUzIrGnP5DGRK4YBgY7mRqfJGZS5CgM3n4=\naddresses: []\n"
                "peers:\n  - publicKey: 7KAWbX5i3eUzIrGnP5DGRK4YBgY7mRqfJGZS5CgM3n4=\n    allowedIPs: [10.9.0.0/24]\n",
    "w-proxy": "machine:\n  env:\n    HTTPS_PROXY: http://ci:pr0xy-passw0rd@proxy.example.org:3128\n",
}
PATHS = {"w-login": "RegistryAuthConfig/registry.example.org: password", "w-tunnel": "WireguardConfig/wg0: privateKey",
         "w-proxy": "v1alpha1: machine.env.HTTPS_PROXY"}


def found(contract: str) -> dict[str, str]:
    """A control plane, workers with oddities, and workers that hold what no record may."""
    legacy = contract != "1.14"
    install = (lambda text: text) if legacy else (lambda text: "machine:\n  sysfs:\n    a: b\n")
    commented = configuration(contract, "worker", named("w-2"), install(BY_SELECTOR), *DOCUMENTS)
    return {
        "cp-1": configuration(contract, "controlplane", named("cp-1"), SYSCTLS, MANIFESTS, LEGACY_NETWORK if legacy else SYSCTLS),
        "w-1": configuration(contract, "worker", named("w-1"), SYSCTLS, install(BY_ID)),
        "w-2": f"# kept by hand\n{commented}".replace("\n", "\r\n"),
        **{name: configuration(contract, "worker", named(name), patch) for name, patch in BLOCKED.items()},
    }


@pytest.fixture(params=["1.12", "1.13", "1.14"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    contract = str(request.param)
    with Lab.start({"nodes": {}}, speed=20) as lab:
        yield Running(lab, tmp_path / "project", network_of(f"{__name__} {contract}"), found(contract), contract).start()


def play(project: Project, running: Running, *more: str, rc: int | None = 0, **variables: Any) -> Run:
    options = {"ichor_cluster": "prod", "ichor_addresses": list(running.addresses.values()), "ichor_talosconfig": str(running.path),
               "ichor_store_path": str(project.store), "ichor_allow_loopback": True, "ichor_consent_class_b": True, **variables}
    return project.run("ichor.talos.adopt", "-e", json.dumps(options), *more, rc=rc)


def test_what_people_have_is_adopted_and_what_no_record_holds_is_named(running: Running) -> None:
    project, lab = Project(running.folder), running.lab
    mark = lab.mark()
    names = {name: running.record(name) for name in running.configs}
    good = [names[name] for name in ("cp-1", "w-1", "w-2")]

    check = play(project, running, "--check", "--diff")["Adopt"]
    assert check["changed"] and set(check["blocked"]) == set(names.values()) - set(good), check["adoption"]
    # What a check opens may be made; records, bundle and events are not.
    assert not any(text.startswith((b"apiVersion", b"cluster:")) for text in running.files().values())
    told = {one["machine"]: one for one in check["adoption"]}
    for name, path in PATHS.items():
        assert [one["path"] for one in told[names[name]]["class_c"]] == [path] and all(one["hint"] for one in told[names[name]]["class_c"])
    assert told[names["w-1"]]["role"] == "worker" and told[names["cp-1"]]["install"]

    run = play(project, running)["Adopt"]
    assert [(step["action"], step["target"]) for step in run["plan"]] == [(step["action"], step["target"]) for step in check["plan"]]
    assert run["plan_id"] == check["plan_id"] and {str(record["spec"].get("documents")) for record in run["records"]} == {
        str(record["spec"].get("documents")) for record in check["records"]}
    assert [running.ready(name) for name in ("cp-1", "w-1", "w-2")] == ["Converged"] * 3
    assert running.status("prod", "clusters")["bootstrappedAt"]
    for again in (play(project, running, "--check"), play(project, running)):
        assert not again["Adopt"]["changed"] and "Nothing to adopt" in again["Adopt"]["msg"]

    loop = Nursery()
    try:
        ended = loop.run("talos_controller", cluster="prod", until="settled", max_runtime=60, store_path=str(project.store), discover=False,
                         **{key: value for key, value in running.options().items() if key in ("allow_loopback", "timing")})
    finally:
        loop.close()
    assert ended.result["plan"] == [] and {one["reason"] for one in ended.result["machines"]} == {"Converged"}, ended.result
    assert lab.writes(since=mark) == {}
    bundle = (project.store / "secrets" / "prod.yaml")
    assert bundle.stat().st_mode & 0o777 == 0o600
    for value in SECRET_VALUES.values():
        assert not any(value.encode() in text for text in running.files().values()) and value not in str(check) + str(run)
