# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison by meaning: what is no drift, what is, what is only shown, and what needs a reboot."""
from __future__ import annotations

import random
import re
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import compare, documents, drift, generate, reboot, secrets, yaml_write
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import VERSIONS
from tests.vectors_config import HERE

BUNDLE = secrets.read_bundle((HERE / "secrets.yaml").read_bytes())
OTHER = secrets.read_bundle((HERE / "secrets-aescbc.yaml").read_bytes())


def config(version: str, role: str = "controlplane", kubernetes: str = "1.35.0") -> documents.Config:
    return generate.generate(generate.GenerateInput("c", "https://10.0.0.1:6443", kubernetes, "i:v1", BUNDLE, registry_mirrors={"docker.io": ("https://m",)}),
                             role, version)


def shuffled(text: str, seed: int) -> str:
    """The same with documents and keys in another order, comments and another way of quoting."""
    source = random.Random(seed)

    def mix(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            source.shuffle(keys)
            return {key: mix(value[key]) for key in keys}
        return [mix(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    parts = [mix(document) for document in documents.load(text, "1.14").plain()]
    source.shuffle(parts)
    return "# a comment\n" + yaml_write.write_documents(parts, "1.12").replace("\n---\n", "\n---\n# another\n")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("role", ["controlplane", "worker"])
def test_order_comments_and_quoting_are_no_drift(version: str, role: str) -> None:
    wanted = config(version, role)
    for seed in range(5):
        running = documents.load(shuffled(wanted.text(), seed), "1.14")
        assert compare.differences(wanted, running) == ()


@pytest.mark.parametrize(("one", "other"), [
    ("machine: {type: worker}", "version: v1alpha1\ndebug: false\npersist: true\nmachine: {type: worker, certSANs: [], registries: {}, install: null}\n"
                                "cluster: {extraManifests: [], inlineManifests: []}"),
    ("machine: {kubelet: {extraConfig: {a: 3.0, b: [1e6, 0.5], c: -0.0}}}", "machine: {kubelet: {extraConfig: {a: 3, b: [1000000, 5e-1], c: 0}}}"),
    ("machine: {time: {bootTimeout: 90s}}", "machine: {time: {bootTimeout: 1m30s, disabled: false}}"),
    ("machine: {install: {disk: /a}}", "machine: {install: {disk: /a, wipe: false, legacyBIOSSupport: false}}"),
    ("machine: {features: {diskQuotaSupport: true}}", "machine: {features: {diskQuotaSupport: true, rbac: true, apidCheckExtKeyUsage: true}}"),
    ("machine: {features: {kubePrism: {enabled: true}}}", "machine: {features: {kubePrism: {enabled: true, port: 7445}}}"),
    ("cluster: {apiServer: {extraArgs: {a: x}}}", "cluster: {apiServer: {extraArgs: {a: [x]}, disablePodSecurityPolicy: true}}"),
    ("cluster: {controlPlane: {endpoint: 'HTTPS://a:6443'}}", "cluster: {controlPlane: {endpoint: 'https://a:6443'}}"),
    ("machine: {files: [{path: /a, permissions: 0o644, op: create, content: x}]}", "machine: {files: [{path: /a, permissions: 420, op: create, content: x}]}"),
    ("machine: {sysctls: {a: '1'}}", "machine: {sysctls: {a: 1}}"), ("machine: {kubelet: {registerWithFQDN: true}}", "machine: {kubelet: "
                                                                                                                     "{registerWithFQDN: 'yes'}}"),
    ("apiVersion: v1alpha1\nkind: LinkConfig\nname: a\naddresses: [{address: 'FD00::1/64'}]", "apiVersion: v1alpha1\nkind: LinkConfig\nname: a\nup: "
                                                                                              "true\naddresses: [{address: 'fd00:0::1/64'}]"),
    ("apiVersion: v1alpha1\nkind: UnattendedInstallConfig\n", "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\nprovisioning: {wipe: true}\n"),
    ("apiVersion: v1alpha1\nkind: KubeProxyConfig\nimage: i\n", "apiVersion: v1alpha1\nkind: KubeProxyConfig\nimage: i\nenabled: true\nconfig: {}\n"),
])
def test_the_same_in_meaning(one: str, other: str) -> None:
    left, right = documents.load(one, "1.14"), documents.load(other, "1.14")
    assert [difference.where for difference in compare.differences(left, right)] == []
    assert compare.equal(right, left)


@pytest.mark.parametrize(("one", "other", "where"), [
    ("machine: {certSANs: [a, b]}", "machine: {certSANs: [b, a]}", ["v1alpha1: machine.certSANs.0", "v1alpha1: machine.certSANs.1"]),
    ("machine: {nodeLabels: {a.b/c: ''}}", "machine: {nodeLabels: {}}", ["v1alpha1: machine.nodeLabels.[a.b/c]"]),
    ("machine: {install: {wipe: true}}", "machine: {install: {}}", ["v1alpha1: machine.install.wipe"]),
    ("apiVersion: v1alpha1\nkind: UnattendedInstallConfig\nprovisioning: {wipe: false}\n", "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\n",
     ["UnattendedInstallConfig: provisioning.wipe"]),
    ("apiVersion: v1alpha1\nkind: KubeNodeConfig\n", "apiVersion: v1alpha1\nkind: ZswapConfig\nmaxPoolPercent: "
                                                     "5\n", ["KubeNodeConfig", "ZswapConfig: maxPoolPercent"]),
    ("cluster: {apiServer: {extraArgs: {a: "
     "''}}}", "cluster: {apiServer: {image: i}}", ["v1alpha1: cluster.apiServer.extraArgs.a", "v1alpha1: cluster.apiServer.image"]),
    ("machine: {kubelet: {extraConfig: {a: 1}}}", "machine: {kubelet: {extraConfig: {a: '1'}}}", ["v1alpha1: machine.kubelet.extraConfig.a"]),
    ("machine: {kubelet: {extraConfig: {a: true}}}", "machine: {kubelet: {extraConfig: {a: 1}}}", ["v1alpha1: machine.kubelet.extraConfig.a"]),
])
def test_exactly_the_changed_paths(one: str, other: str, where: list[str]) -> None:
    left, right = documents.load(one, "1.14"), documents.load(other, "1.14")
    assert [difference.where for difference in compare.differences(left, right)] == where
    assert sorted(difference.where for difference in compare.differences(right, left)) == sorted(where)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_leaf_changed_by_hand_is_found(version: str) -> None:
    wanted = config(version)
    for document in wanted.documents:
        for path in (path for path in compare.flat(document) if path != "name"):
            running = wanted.copy()
            target = next(other for other in running.documents if other.id == document.id)
            _change(target.data, re.findall(r"\[[^]]*\]|[^.]+", path))
            found = compare.differences(wanted, running)
            assert [difference.where for difference in found] == [f"{document.id}: {path}"], path


def _change(data: Any, path: list[str]) -> None:
    *sections, last = [step.strip("[]") for step in path]
    for section in sections:
        data = data[int(section)] if isinstance(data, list) else data[section]
    key: Any = int(last) if isinstance(data, list) else last
    value = data[key]
    if isinstance(value, bool):
        data[key] = not value
    elif isinstance(value, int):
        data[key] = value + 1
    elif isinstance(value, str):
        data[key] = f"{value}x"
    else:
        data[key] = type(value)(**{**value.__dict__, "host": "changed"})


def test_secrets_are_shown_as_fingerprints() -> None:
    wanted, running = config("1.14"), config("1.14")
    running.documents[0].data["machine"]["token"] = "other.0123456789abcdef"
    found = compare.differences(wanted, running)
    assert [difference.path for difference in found] == ["machine.token"] and found[0].secret
    assert BUNDLE.trustd_token not in found[0].sentence and "other" not in found[0].sentence and found[0].sentence.count("sha256:") == 2
    assert BUNDLE.trustd_token not in repr(found)


@pytest.mark.parametrize("version", VERSIONS)
def test_newer_images_are_kept_and_only_shown(version: str) -> None:
    wanted, running = config(version, kubernetes="1.35.0"), config(version, kubernetes="1.35.2")
    found = drift.drift(wanted, running)
    assert found.none and len(found.newer_images) == 5 and all(difference.path.endswith("image") for difference in found.newer_images)
    assert compare.equal(drift.with_newer_images(wanted, running), running)
    newer, older = running, wanted
    backwards = drift.drift(newer, older)
    assert not backwards.none and len(backwards.apply) == 5 and not backwards.newer_images


@pytest.mark.parametrize(("running", "newer"), [
    ("r/kubelet:v1.35.1", True), ("r/kubelet:v1.35.0", False), ("r/kubelet:v1.34.9", False), ("other/kubelet:v1.36.0", False), ("r/kubelet:latest", False),
    ("r/kubelet:v1.36.0-rc.0", True), ("r/kubelet:v1.35.0-rc.1", False), ("r/kubelet:v1.35.10", True), ("r/kubelet:v1.35.1@sha256:" + "0" * 64, True),
])
def test_what_counts_as_newer(running: str, newer: bool) -> None:
    left = documents.load("machine: {kubelet: {image: 'r/kubelet:v1.35.0'}}", "1.13")
    right = documents.load(f"machine: {{kubelet: {{image: '{running}'}}}}", "1.13")
    assert bool(drift.drift(left, right).newer_images) == newer


@pytest.mark.parametrize("version", VERSIONS)
def test_any_key_that_differs_is_an_authority_that_differs(version: str) -> None:
    wanted = config(version)
    for secret in BUNDLE.secrets():
        running = documents.load(wanted.text(), version)
        replaced = _replace(running, secret)
        if replaced:
            found = drift.drift(wanted, running)
            assert found.authority and not found.apply, secret[:20]


def _replace(config_: documents.Config, secret: str) -> bool:
    encoded = secrets.encode(secret)
    done = False

    def walk(value: Any) -> Any:
        nonlocal done
        if isinstance(value, dict):
            return {key: walk(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner) for inner in value]
        if value in (secret, encoded):
            done = True
            return "b3RoZXI="
        return value

    for document in config_.documents:
        document.data = walk(document.data)
    return done


IMMEDIATE = ["machine.certSANs", "machine.kubelet", "machine.network.nameservers", "machine.nodeLabels", "machine.sysctls", "machine.time", "machine.install",
             "machine.features.kubePrism", "cluster.apiServer", "cluster.extraManifests", "debug"]
REBOOT = ["machine.type", "machine.token", "machine.files", "machine.env", "machine.udev", "machine.disks", "machine.features.diskQuotaSupport",
          "machine.baseRuntimeSpecOverrides", "machine.systemDiskEncryption", "persist", "machine.network.hostname", "machine.features.stableHostname"]
VALUES = {
    "machine.certSANs": ["x"], "machine.kubelet": {"image": "x"}, "machine.network.nameservers": ["1.1.1.1"], "machine.nodeLabels": {"a": "b"},
    "machine.sysctls": {"a": "b"}, "machine.time": {"servers": ["x"]}, "machine.install": {"disk": "x"}, "machine.features.kubePrism": {"port": 1},
    "cluster.apiServer": {"image": "x"}, "cluster.extraManifests": ["x"], "debug": True, "machine.type": "worker", "machine.token": "x",
    "machine.files": [{"path": "x", "content": "y", "permissions": 420, "op": "create"}], "machine.env": {"a": "b"}, "machine.udev": {"rules": ["x"]},
    "machine.disks": [{"device": "x"}], "machine.features.diskQuotaSupport": True, "machine.baseRuntimeSpecOverrides": {"a": "b"},
    "machine.systemDiskEncryption": {"state": {"provider": "luks2", "keys": []}}, "persist": False, "machine.network.hostname": "x",
    "machine.features.stableHostname": True,
}


def _with(path: str) -> documents.Config:
    data: Any = VALUES[path]
    for step in reversed(path.split(".")):
        data = {step: data}
    data.setdefault("machine", {})
    return documents.load(yaml_write.write(data), "1.12")


@pytest.mark.parametrize("path", [*IMMEDIATE, *REBOOT])
@pytest.mark.parametrize("node", ["v1.12.11", "v1.13.9", "v1.14.0"])
def test_what_needs_a_reboot(path: str, node: str) -> None:
    found = reboot.effect(documents.load("machine: {}", "1.12"), _with(path), node)
    expected = path == "machine.network.hostname" or path in REBOOT and not node.startswith("v1.14")
    assert found.needs_reboot == expected


def test_documents_never_need_one_but_for_the_host_name() -> None:
    before = documents.load("apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n", "1.13")
    after = documents.load("apiVersion: v1alpha1\nkind: HostnameConfig\nauto: 'off'\nhostname: a\n---\napiVersion: v1alpha1\nkind: "
                           "ZswapConfig\nmaxPoolPercent: 5\n", "1.13")
    for node in ("v1.12.0", "v1.13.0", "v1.14.0"):
        found = reboot.effect(before, after, node)
        assert {difference.where for difference in found.reboot} == {"HostnameConfig: auto", "HostnameConfig: hostname"}


def test_what_has_effect_later_or_never() -> None:
    before, after = documents.load("machine: {}", "1.14"), documents.load("machine: {install: {disk: x}}\ncluster: {etcd: {extraArgs: {a: b}}}", "1.14")
    found = reboot.effect(before, after, "v1.14.0")
    assert ([difference.path for difference in found.later], [difference.path for difference in found.never]) == (["cluster.etcd.extraArgs.a"],
                                                                                                                  ["machine.install.disk"])
