# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From records to bytes: every field goes where the table says, layers win in their order, and equal inputs give equal bytes."""
from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import compare, compatibility, hardware_check, patch_check, places, render, secrets
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import Config, load
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import VERSIONS
from tests.vectors_config import HERE

BUNDLE = secrets.read_bundle((HERE / "secrets.yaml").read_bytes())
OLD_BUNDLE = secrets.read_bundle((HERE / "secrets-aescbc.yaml").read_bytes())
FULL = {"1.12": "v1.12.11", "1.13": "v1.13.9", "1.14": "v1.14.0"}


def given(version: str, cluster: dict[str, Any] | None = None, machine: dict[str, Any] | None = None, patches: tuple[render.PatchRecord, ...] = (),
          bundle: secrets.Bundle = BUNDLE, secure_boot: bool | None = None) -> render.RenderInput:
    base: dict[str, Any] = {"talosVersion": FULL[version], "kubernetesVersion": "v1.35.0", "endpoint": "https://10.0.0.10:6443", "secretsRef": {"name": "s"}}
    return render.RenderInput(
        "home", {**base, **(cluster or {})}, "cp-1", {"role": "controlplane", "install": {"disk": "/dev/sda"}, **(machine or {})}, bundle, patches, secure_boot)


def changed(version: str, cluster: dict[str, Any] | None = None, machine: dict[str, Any] | None = None, role: str = "controlplane",
            secure_boot: bool | None = None) -> dict[str, Any]:
    """{where: value} of what the record's field changes, against a record without it."""
    before = render.render(given(version, None, {"role": role})).config
    after = render.render(given(version, cluster, {"role": role, **(machine or {})}, secure_boot=secure_boot)).config
    return {difference.where: difference.wanted for difference in compare.differences(after, before)}


OLD = ("1.12", "1.13")
INSTALL = {"1.12": "v1alpha1: machine.install.", "1.13": "v1alpha1: machine.install.", "1.14": "UnattendedInstallConfig: "}
REAL = 'disk.transport != "" && !disk.readonly && !disk.cdrom'


@pytest.mark.parametrize("version", VERSIONS)
class TestPlaces:
    """One test a row of places.py; the row is named in the first line."""

    def test_kubernetes_version(self, version: str) -> None:
        found = changed(version, {"kubernetesVersion": "1.35.1"})
        expected = {"v1alpha1: machine.kubelet.image", "v1alpha1: cluster.apiServer.image", "v1alpha1: cluster.controllerManager.image",
                    "v1alpha1: cluster.scheduler.image", "v1alpha1: cluster.proxy.image"} if version in OLD else {
            f"{kind}: image" for kind in ("KubeletConfig", "KubeAPIServerConfig", "KubeControllerManagerConfig", "KubeSchedulerConfig", "KubeProxyConfig")}
        assert set(found) == expected and all(value.endswith(":v1.35.1") for value in found.values())

    def test_endpoint(self, version: str) -> None:
        found = changed(version, {"endpoint": "https://other:6443"})
        assert found == dict.fromkeys(
            ["v1alpha1: cluster.controlPlane.endpoint"] if version in OLD else ["KubeClusterConfig: endpoint", "KubeServiceAccountConfig: issuer.issuerURL"],
            "https://other:6443")

    def test_network(self, version: str) -> None:
        found = changed(version, {"network": {"podSubnets": ["10.1.0.0/16"], "serviceSubnets": ["10.2.0.0/16"], "dnsDomain": "k8s.lan"}})
        head = "v1alpha1: cluster.network." if version in OLD else "KubeNetworkConfig: "
        assert found == {f"{head}podSubnets.0": "10.1.0.0/16", f"{head}serviceSubnets.0": "10.2.0.0/16", f"{head}dnsDomain": "k8s.lan"}

    def test_cni(self, version: str) -> None:
        assert changed(version, {"cni": {"preset": "unmanaged"}}) == {}
        for preset in ("none", "managed"):
            found = changed(version, {"cni": {"preset": preset}})
            assert found == ({"v1alpha1: cluster.network.cni.name": "none"} if version in OLD else {
                "KubeFlannelCNIConfig: backendType": None, "KubeFlannelCNIConfig: backendPort": None})

    def test_registries(self, version: str) -> None:
        found = changed(version, {"registries": {"mirrors": {"docker.io": {"endpoints": ["https://a", "https://b"], "overridePath": True,
                                                                           "skipFallback": True}}}})
        head = "RegistryMirrorConfig/docker.io: "
        assert found == {f"{head}name": "docker.io", f"{head}endpoints.0.url": "https://a", f"{head}endpoints.0.overridePath": True,
                         f"{head}endpoints.1.url": "https://b", f"{head}endpoints.1.overridePath": True, f"{head}skipFallback": True}

    def test_cert_sans(self, version: str) -> None:
        found = changed(version, {"certSANs": ["k8s.example.com"]})
        second = "v1alpha1: cluster.apiServer.certSANs.0" if version in OLD else "KubeAPIServerConfig: certExtraSANs.0"
        assert found == {"v1alpha1: machine.certSANs.0": "k8s.example.com", second: "k8s.example.com"}
        assert list(changed(version, {"certSANs": ["x"]}, role="worker")) == ["v1alpha1: machine.certSANs.0"]

    def test_scheduling(self, version: str) -> None:
        found = changed(version, {"allowSchedulingOnControlPlanes": True})
        assert found == ({"v1alpha1: cluster.allowSchedulingOnControlPlanes": True} if version in OLD else {
            "KubeNodeConfig: taints.[node-role.kubernetes.io/control-plane]": None})

    @pytest.mark.parametrize("field", [{"controlPlane": {"count": 3}}, {"discovery": {"addresses": ["10.0.0.5"]}}, {"driftPolicy": "report"},
                                       {"hold": "shutdown"}])
    def test_fields_of_a_cluster_that_change_nothing(self, version: str, field: dict[str, Any]) -> None:
        assert changed(version, field) == {}
        assert render.render(given(version, field)).inputs_hash == render.render(given(version)).inputs_hash

    @pytest.mark.parametrize(("wish", "booted", "secure"), [
        ("Required", None, True), ("Required", False, True), ("Preferred", True, True), ("Preferred", False, False), ("Preferred", None, False),
        ("Off", True, False),
    ])
    def test_secure_boot(self, version: str, wish: str, booted: bool | None, secure: bool) -> None:
        found = changed(version, {"secureBoot": wish}, secure_boot=booted)
        path = f"{INSTALL[version]}{'image' if version in OLD else 'installer.image'}"
        assert set(found) == ({path} if secure else set())
        assert not secure or found[path] == f"factory.talos.dev/metal-installer-secureboot/{compatibility.EMPTY_SCHEMATIC}:{FULL[version]}"

    def test_hostname(self, version: str) -> None:
        assert changed(version, None, {"hostname": "cp-1"}) == {"HostnameConfig: auto": "off", "HostnameConfig: hostname": "cp-1"}

    def test_labels_and_taints(self, version: str) -> None:
        found = changed(version, None, {"labels": {"a.b/c": "d", "e": ""},
                                        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "l", "effect": "NoExecute"}]})
        labels, taints = ("v1alpha1: machine.nodeLabels.", "v1alpha1: machine.nodeTaints.") if version in OLD else (
            "KubeNodeConfig: labels.", "KubeNodeConfig: taints.")
        assert found == {f"{labels}[a.b/c]": "d", f"{labels}e": '""', f"{taints}k": "v:NoSchedule", f"{taints}l": "NoExecute"}

    @pytest.mark.parametrize("holder", ["machine", "cluster"])
    def test_install(self, version: str, holder: str) -> None:
        install = {"install": {"disk": "/dev/nvme0n1", "image": "my.registry/installer:v1", "wipe": True}}
        found = changed(version, install if holder == "cluster" else None, install if holder == "machine" else {"install": {}})
        head = INSTALL[version]
        assert found == ({f"{head}disk": "/dev/nvme0n1", f"{head}image": "my.registry/installer:v1", f"{head}wipe": True} if version in OLD else {
            f"{head}provisioning.diskSelector.match": 'disk.dev_path == "/dev/nvme0n1"', f"{head}installer.image": "my.registry/installer:v1",
            f"{head}provisioning.wipe": None})

    def test_install_by_a_stable_name(self, version: str) -> None:
        rendered = render.render(given(version, None, {"install": {"disk": "/dev/disk/by-id/wwn-1"}}))
        assert rendered.brought().install_disk == "/dev/disk/by-id/wwn-1"

    @pytest.mark.parametrize("where", ["install", "disks"])
    def test_install_disk_selector(self, version: str, where: str) -> None:
        selector = {"type": "nvme", "size": ">= 100GB", "model": "SAM*"}
        machine = {"install": {"diskSelector": selector}} if where == "install" else {"install": {}, "disks": [{"selector": selector, "role": "system"}]}
        found = changed(version, None, machine)
        head = INSTALL[version]
        assert found == ({f"{head}disk": None, f"{head}diskSelector.type": "nvme", f"{head}diskSelector.size": ">= 100GB", f"{head}diskSelector.model": "SAM*"}
                         if version in OLD else {f"{head}provisioning.diskSelector.match":
                                                 f'disk.size >= 100u * GB && glob("SAM*", disk.model) && disk.transport == "nvme" && {REAL}'})
        fields = render.render(given(version, None, machine)).brought().install_fields
        assert {key: fields[key] for key in ("type", "model")} == {"type": "nvme", "model": "SAM*"}

    def test_install_disk_by_an_expression(self, version: str) -> None:
        machine = {"install": {"diskSelector": {"match": "disk.size > 5u"}}}
        if version in OLD:
            with pytest.raises(ConfigProblem, match="1.14"):
                render.render(given(version, None, machine))
        else:
            assert changed(version, None, machine) == {"UnattendedInstallConfig: provisioning.diskSelector.match": "disk.size > 5u"}

    def test_disks(self, version: str) -> None:
        disks = [{"selector": {"serial": one}, "role": role} for one, role in (
            ("A", "ephemeral"), ("B", "storage"), ("C", "storage"), ("D", "userVolume"), ("E", "unused"))]
        found = changed(version, None, {"disks": disks})
        by_document: dict[str, dict[str, Any]] = {}
        for where, value in found.items():
            document, path = where.split(": ")
            by_document.setdefault(document, {})[path] = value
        assert set(by_document) == {"VolumeConfig/EPHEMERAL", "RawVolumeConfig/storage", "RawVolumeConfig/storage-2", "UserVolumeConfig/data"}
        assert by_document["VolumeConfig/EPHEMERAL"]["provisioning.diskSelector.match"] == f'glob("A", disk.serial) && {REAL}'
        assert by_document["RawVolumeConfig/storage-2"]["provisioning.diskSelector.match"] == f'!system_disk && (glob("C", disk.serial) && {REAL})'
        assert by_document["UserVolumeConfig/data"]["provisioning.minSize"] == "1GiB"

    def test_primary_link_by_dhcp(self, version: str) -> None:
        for primary in ({"interface": "eth0", "dhcp": True}, {"interface": "eth0"}):
            assert changed(version, None, {"network": {"primary": primary}}) == {"DHCPv4Config/eth0: name": "eth0"}

    def test_primary_link_static(self, version: str) -> None:
        primary = {"interface": "eth0", "addresses": ["10.0.0.5/24", "FD00::5/64"], "gateway": "10.0.0.1", "nameservers": ["10.0.0.53"]}
        found = changed(version, None, {"network": {"primary": primary}})
        assert found == {"LinkConfig/eth0: name": "eth0", "LinkConfig/eth0: addresses.0.address": "10.0.0.5/24",
                         "LinkConfig/eth0: addresses.1.address": "fd00::5/64",
                         "LinkConfig/eth0: routes.0.gateway": "10.0.0.1", "ResolverConfig: nameservers.0.address": "10.0.0.53"}

    def test_primary_link_by_mac_with_a_vlan(self, version: str) -> None:
        primary = {"mac": "52-54-00-12-34-5A", "addresses": ["10.20.0.11/24"], "gateway": "10.20.0.1", "vlan": 20}
        found = changed(version, None, {"network": {"primary": primary}})
        assert found == {
            "LinkAliasConfig/net0: name": "net0", "LinkAliasConfig/net0: selector.match": 'mac(link.permanent_addr) == "52:54:00:12:34:5a"',
            "LinkConfig/net0: name": "net0", "VLANConfig/net0.20: name": "net0.20", "VLANConfig/net0.20: vlanID": 20, "VLANConfig/net0.20: parent": "net0",
            "VLANConfig/net0.20: addresses.0.address": "10.20.0.11/24", "VLANConfig/net0.20: routes.0.gateway": "10.20.0.1"}
        by_dhcp = changed(version, None, {"network": {"primary": {"interface": "eth0", "vlan": 7, "dhcp": True}}})
        assert {"DHCPv4Config/eth0.7: name", "VLANConfig/eth0.7: parent", "LinkConfig/eth0: name"} <= set(by_dhcp)

    def test_role(self, version: str) -> None:
        worker = render.render(given(version, None, {"role": "worker"})).config
        assert worker.documents[0].data["machine"]["type"] == "worker" and not any(document.kind.controlplane_only for document in worker.documents)

    @pytest.mark.parametrize("bundle", [BUNDLE, OLD_BUNDLE], ids=["new", "old"])
    def test_secrets(self, version: str, bundle: secrets.Bundle) -> None:
        """The bundle is all there: it can be rebuilt from what was rendered, a key of the old generation too."""
        config = render.render(given(version, bundle=bundle)).config
        assert secrets.bundle_of_config(load(config.text(), version)) == bundle


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("primary", [
    {"interface": "a", "mac": "00:11:22:33:44:55"}, {"addresses": ["10.0.0.5/24"]}, {"vlan": 5}, {"interface": "a", "dhcp": True, "addresses": ["10.0.0.5/24"]},
    {"interface": "a", "addresses": ["10.0.0.5"]}, {"interface": "a", "addresses": ["10.0.0.5/24"], "gateway": "x"},
    {"interface": "a", "nameservers": ["dns.example.com"]},
])
def test_a_primary_link_that_says_two_things_is_refused(version: str, primary: dict[str, Any]) -> None:
    with pytest.raises(ConfigProblem) as caught:
        render.render(given(version, None, {"network": {"primary": primary}}))
    assert caught.value.path.startswith("network.primary")


@pytest.mark.parametrize(("cluster", "path"), [
    ({"endpoint": "http://10.0.0.1:6443"}, "endpoint"), ({"endpoint": ""}, "endpoint"), ({"endpoint": "https://"}, "endpoint"),
    ({"kubernetesVersion": "latest"}, "kubernetesVersion"),
    ({"registries": {"mirrors": {"a": {"endpoints": ["http://[::1"]}}}}, "registries.mirrors.a.endpoints"),
    ({"install": {"diskSelector": {"size": ""}}}, "install.diskSelector"),
])
def test_wrong_clusters_name_the_field(cluster: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        render.render(given("1.14", cluster, {"install": {}}))
    assert (caught.value.reason, caught.value.path) == ("InvalidInput", path)


@pytest.mark.parametrize("talos", ["v1.11.0", "v1.15.0", "nonsense", ""])
def test_unknown_talos_versions_are_refused(talos: str) -> None:
    with pytest.raises(ConfigProblem):
        render.render(given("1.14", {"talosVersion": talos}))


@pytest.mark.parametrize("version", VERSIONS)
def test_without_an_install_disk_it_renders_and_says_so(version: str) -> None:
    rendered = render.render(given(version, None, {"install": {}}))
    assert rendered.install_missing and not rendered.brought().install_disk
    assert not render.render(given(version)).install_missing


def record(name: str, documents: list[Any], layer: str = "cluster", priority: int = 0, **selector: Any) -> render.PatchRecord:
    return render.PatchRecord.of(name, {"layer": layer, "priority": priority, "documents": documents, "machineSelector": selector})


def sysctl(value: str) -> list[Any]:
    return [{"machine": {"sysctls": {"k": value}}}]


def test_patches_apply_by_layer_then_priority_then_name() -> None:
    patches = (record("b", sysctl("cluster-0-b")), record("a", sysctl("cluster-0-a")), record("z", sysctl("cluster-m1"), priority=-1),
               record("m", sysctl("machine-m5"), "machine", -5))
    assert [patch.name for patch in given("1.14", patches=patches).selected()] == ["z", "a", "b", "m"]
    rendered = render.render(given("1.14", patches=patches))
    assert rendered.config.documents[0].data["machine"]["sysctls"] == {"k": "machine-m5"}


@pytest.mark.parametrize(("selector", "selected"), [
    ({}, True), ({"names": ["cp-1"]}, True), ({"names": ["other"]}, False), ({"role": "controlplane"}, True), ({"role": "worker"}, False),
    ({"labels": {"rack": "a"}}, True), ({"labels": {"rack": "b"}}, False), ({"labels": {"no": "x"}}, False), ({"names": ["cp-1"], "role": "worker"}, False),
])
def test_whom_a_patch_selects(selector: dict[str, Any], selected: bool) -> None:
    found = given("1.14", None, {"labels": {"rack": "a"}}, (record("p", sysctl("x"), **selector),)).selected()
    assert bool(found) == selected


@pytest.mark.parametrize("version", VERSIONS)
def test_the_machines_record_wins_over_patches(version: str) -> None:
    documents: list[Any] = [
        {"apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off", "hostname": "from-patch"},
        {"apiVersion": "v1alpha1", "kind": "LinkConfig", "name": "eth0", "mtu": 9000, "addresses": [{"address": "10.9.9.9/24"}]},
        {"apiVersion": "v1alpha1", "kind": "ResolverConfig", "nameservers": [{"address": "9.9.9.9"}]},
    ]
    documents.append({"machine": {"install": {"disk": "/dev/patched", "image": "patched:v1"}}} if version in OLD else {
        "apiVersion": "v1alpha1", "kind": "UnattendedInstallConfig", "installer": {"image": "patched:v1"}, "provisioning": {"diskSelector": {"match": "true"}}})
    machine = {"hostname": "cp-1", "install": {"disk": "/dev/vda"},
               "network": {"primary": {"interface": "eth0", "addresses": ["10.0.0.5/24"], "nameservers": ["1.1.1.1"]}}}
    config = render.render(given(version, None, machine, (record("p", documents),))).config
    assert _data(config, "HostnameConfig")["hostname"] == "cp-1"
    assert _data(config, "LinkConfig", "eth0") == {"name": "eth0", "mtu": 9000, "addresses": [{"address": "10.0.0.5/24"}]}
    assert _data(config, "ResolverConfig")["nameservers"] == [{"address": "1.1.1.1"}]
    install = config.documents[0].data["machine"].get("install") or _data(config, "UnattendedInstallConfig")
    assert "/dev/vda" in json.dumps(install) and "patched:v1" in json.dumps(install), "a default image does not win over a patch"


def _data(config: Config, kind: str, name: str = "") -> dict[str, Any]:
    found = config.find(kind, name)
    assert found is not None
    return found.data


@pytest.mark.parametrize("version", VERSIONS)
def test_the_host_name_where_a_patch_removed_its_document(version: str) -> None:
    gone = [{"apiVersion": "v1alpha1", "kind": "HostnameConfig", "$patch": "delete"}]
    config = render.render(given(version, None, {"hostname": "cp-1"}, (record("p", gone),))).config
    assert config.find("HostnameConfig") is None and config.documents[0].data["machine"]["network"]["hostname"] == "cp-1"


@pytest.mark.parametrize(("version", "documents", "words"), [
    ("1.14", [{"machine": {"network": {"hostname": "a"}}}], "hostname is already set"),
    ("1.14", [{"cluster": {"apiServer": {"certSANs": ["a"]}}}], "already set"),
    ("1.13", [{"machine": {"foo": 1}}], "foo"), ("1.12", [{"apiVersion": "v1alpha1", "kind": "KubeletConfig"}], "1.14 on"),
    ("1.14", [{"machine": {"nodeLabels": {"x": {"$patch": "delete"}}}}], "nothing to delete"), ("1.14", [{"machine": {"$patch": "delete"}}], "machine"),
    ("1.13", [{"machine": {"type": ["x"]}}], "text"),
])
def test_a_patch_that_cannot_render_is_refused_with_its_name(version: str, documents: list[Any], words: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        render.render(given(version, None, {"hostname": "cp-1", "labels": {"a": "b"}}, (record("bad", documents),)))
    assert words in caught.value.text
    assert "bad" in caught.value.source or caught.value.cause in ("RefusedByValidation", "PatchFailed")


@pytest.mark.parametrize("version", VERSIONS)
def test_equal_inputs_give_equal_bytes_in_another_process_too(version: str) -> None:
    code = (
        "from tests.unit._machineconfig.test_render import given, record, render; import sys;"
        f"r = render.render(given({version!r}, None, {{'hostname': 'cp-1', 'labels': {{'b': 'x', 'a': 'y'}}}}, (record('p', "
        f"[{{'machine': {{'sysctls': {{'z': 1, 'a': 2}}}}}}]),)));"
        "print(r.sha256, r.inputs_hash)"
    )
    done = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                           env={**_environment(), "PYTHONHASHSEED": seed}).stdout for seed in "13"]
    machine = {"labels": {"a": "y", "b": "x"}, "hostname": "cp-1"}
    here = render.render(given(version, None, machine, (record("p", [{"machine": {"sysctls": {"a": 2, "z": 1}}}]),)))
    assert done[0] == done[1] == f"{here.sha256} {here.inputs_hash}\n"


def _environment() -> dict[str, str]:
    import os
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), *sys.path])}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_hash_of_the_inputs_changes_with_each_of_them(version: str) -> None:
    base = given(version)
    seen = {render.inputs_hash(base)}
    others = [
        given(version, {"certSANs": ["x"]}), given(version, None, {"hostname": "x"}), given(version, bundle=OLD_BUNDLE),
        given(version, {"secureBoot": "Required"}),
        given(version, patches=(record("p", sysctl("1")),)), given(version, patches=(record("q", sysctl("1")),)),
        dataclasses.replace(base, cluster_name="other"),
        given(version, {"kubernetesVersion": "1.35.1"}),
    ]
    seen.update(render.inputs_hash(other) for other in others)
    assert len(seen) == len(others) + 1
    assert render.inputs_hash(given(version, patches=(record("p", sysctl("1"), names=["nobody"]),))) == render.inputs_hash(base)
    assert BUNDLE.cluster_secret not in repr(render.render(base)) + repr(base)


def test_patches_loaded_once_serve_many_machines() -> None:
    patches = (record("p", sysctl("1")), record("q", [{"machine": {"certSANs": ["a"]}}]))
    loaded = render.load_patches(patches, "v1.14.0")
    texts = {render.render(given("1.14", None, {"hostname": f"cp-{index}"}, patches), loaded).text.replace(f"cp-{index}", "cp") for index in range(5)}
    assert len(texts) == 1 and render.render(given("1.14", None, {"hostname": "cp-0"}, patches)).text.replace("cp-0", "cp") in texts


def test_the_check_of_a_patch_before_it_is_written() -> None:
    good = record("p", [{"machine": {"files": [{"path": "/var/x", "content": "y", "permissions": 420, "op": "create"}]}}])
    found = patch_check.check_patch(good, [(given("1.13"), "v1.13.9"), (given("1.14"), "v1.14.0")])
    assert [effect.problem for effect in found] == [None, None]
    assert [bool(effect.effect and effect.effect.needs_reboot) for effect in found] == [True, False]
    flag = record("p", [{"cluster": {"apiServer": {"extraArgs": {"v": "4"}}}}])
    only = patch_check.check_patch(flag, [(given("1.13"), "v1.13.9")])[0]
    assert only.effect is not None and not only.effect.needs_reboot and [difference.path for difference in only.changes] == ["cluster.apiServer.extraArgs.v"]


def test_a_patch_is_blamed_only_for_what_it_breaks() -> None:
    bad, other = record("bad", [{"machine": {"foo": 1}}]), record("other", sysctl("1"))
    broken = patch_check.check_patch(bad, [(given("1.14"), "v1.14.0")])[0]
    assert broken.problem is not None and broken.broken_before is None
    innocent = patch_check.check_patch(other, [(given("1.14", patches=(bad,)), "v1.14.0")])[0]
    assert innocent.problem is None and innocent.broken_before is not None
    mended = patch_check.check_patch(record("bad", sysctl("1")), [(given("1.14", patches=(bad,)), "v1.14.0")])[0]
    assert mended.problem is None
    assert patch_check.check_patch(record("bad", [{"machine": {"foo": 1}}], names=["someone"]), [(given("1.14"), "v1.14.0")]) == ()


def test_links_that_are_not_there() -> None:
    config = render.render(given("1.14", None, {"network": {"primary": {"interface": "eth7", "vlan": 5}}})).config
    assert [sentence.split(",")[0] for sentence in hardware_check.missing_links(config, ["eth0"], [])] == [
        "the node has no link eth7", "the node has no link eth7"]
    assert hardware_check.missing_links(config, ["eth7"], []) == [] and hardware_check.missing_links(config, [], []) == []
    by_mac = render.render(given("1.14", None, {"network": {"primary": {"mac": "00:11:22:33:44:55"}}})).config
    assert hardware_check.missing_links(by_mac, ["eth0"], ["00:11:22:33:44:55"]) == []
    assert "00:11:22:33:44:55" in hardware_check.missing_links(by_mac, ["eth0"], ["00:11:22:33:44:66"])[0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("image", "refused", "warned"), [
    ("example.org/kubelet:latest", True, False), ("example.org/kubelet@sha256:00", True, False), ("localhost:5000/kubelet", True, False),
    ("example.org/kubelet:v1.35.2@sha256:00", False, False), ("localhost:5000/kubelet:v1.34.1-rc.1", False, False),
    ("example.org/kubelet:v1.99.0", False, True),
    ("example.org/kubelet:v1.20.0", False, True), ("example.org/kubelet:v1.35", False, False),
])
def test_an_image_that_no_node_takes_is_refused_and_one_that_another_version_takes_is_a_warning(version: str, image: str, refused: bool, warned: bool) -> None:
    document = {"machine": {"kubelet": {"image": image}}} if version in OLD else {"apiVersion": "v1alpha1", "kind": "KubeletConfig", "image": image}
    wish = given(version, None, None, (render.PatchRecord("image", "cluster", 0, (document,)),))
    if refused:
        with pytest.raises(ConfigProblem, match="kubelet image is not valid") as caught:
            render.render(wish)
        assert caught.value.path.endswith("image")
    else:
        assert any("image is not valid: version of Kubernetes" in one.message for one in render.render(wish).warnings) is warned


@pytest.mark.parametrize(("talos", "kubernetes", "words"), [
    ("v1.12.0", "1.36.0", "too new"), ("v1.12.0", "1.35.9", ""), ("v1.13.9", "1.30.0", "too old"), ("v1.14.0", "v1.37.0-rc.0", ""),
    ("v1.14.0", "1.38.0", "too new"),
    ("v1.15.0", "1.99.0", ""), ("v1.14.0", "latest", ""),
])
def test_which_kubernetes_goes_with_which_talos(talos: str, kubernetes: str, words: str) -> None:
    found = compatibility.kubernetes_problem(talos, kubernetes)
    assert words in found and bool(found) == bool(words)


@pytest.mark.parametrize(("image", "secure", "expected"), [
    ("factory.talos.dev/metal-installer/" + "a" * 64 + ":v1", True, "factory.talos.dev/metal-installer-secureboot/" + "a" * 64 + ":v1"),
    ("factory.talos.dev/installer-secureboot/" + "a" * 64 + ":v1", False, "factory.talos.dev/installer/" + "a" * 64 + ":v1"),
    ("my.factory/nocloud-installer/" + "a" * 64 + "@sha256:0", True, "my.factory/nocloud-installer-secureboot/" + "a" * 64 + "@sha256:0"),
    ("ghcr.io/siderolabs/installer:v1.13.0", True, "ghcr.io/siderolabs/installer:v1.13.0"),
])
def test_installer_images(image: str, secure: bool, expected: str) -> None:
    assert compatibility.secure_boot_installer(image, secure) == expected


def test_the_table_of_places_names_every_field_of_the_records() -> None:
    from ansible_collections.ichor.talos.plugins.module_utils._model import schema_cluster, schema_machine
    told = {(place.record, place.field.split(".")[0].split("[")[0].split(":")[0]) for place in places.PLACES}
    missing = {("TalosCluster", name) for name in schema_cluster.CLUSTER_SPEC.fields} - told
    missing |= {("TalosMachine", name) for name in schema_machine.MACHINE_SPEC.fields} - told - {
        ("TalosMachine", name) for name in ("clusterRef", "identity", "endpoint", "approvalState", "approvedBy", "approvedVia", "approvedAt",
                                            "acceptedFingerprint",
                                            "approvedDisk")}
    assert missing == set()


@pytest.mark.parametrize(("interfaces", "missing"), [
    ("[{interface: eth0}, {interface: lo, addresses: [10.0.0.1/32]}, {interface: eth0.10}]", []),
    ("[{interface: eth7, ignore: true}]", []),
    ("[{interface: eth7}]", ["the node has no link eth7, which v1alpha1: machine.network.interfaces.0 names"]),
    ("[{interface: bond0, bond: {mode: 802.3ad, interfaces: [eth0, eth8]}}, {interface: bond0.5}]",
     ["the node has no link eth8, a member of v1alpha1: machine.network.interfaces.0"]),
    ("[{interface: br0, bridge: {interfaces: [eth9]}}, {interface: wg0, wireguard: {privateKey: a}}, {interface: dummy0, dummy: true}]",
     ["the node has no link eth9, a member of v1alpha1: machine.network.interfaces.0"]),
    ("[{deviceSelector: {permanentAddr: '00:11:22:33:44:55'}}, {deviceSelector: {permanentAddr: '00:11:*'}}, {deviceSelector: {driver: virtio}}]", []),
    ("[{deviceSelector: {permanentAddr: '00:11:22:33:44:66'}}]",
     ["no link of the node has the permanent MAC 00:11:22:33:44:66, which v1alpha1: machine.network.interfaces.0 names"]),
])
def test_links_of_the_legacy_document_that_are_not_there(interfaces: str, missing: list[str]) -> None:
    config = load(f"machine: {{network: {{interfaces: {interfaces}}}}}\n", "1.13")
    assert hardware_check.missing_links(config, ["eth0"], ["00:11:22:33:44:55"]) == missing


def test_disks_that_are_not_there() -> None:
    config = load("machine: {disks: [{device: /dev/sdb}, {device: /dev/sdz}, {device: /dev/disk/by-id/x}]}\n", "1.13")
    assert hardware_check.missing_disks(config, ["/dev/sda", "/dev/sdb"]) == ["the node has no disk /dev/sdz, which v1alpha1: machine.disks.1 names"]
    assert hardware_check.missing_disks(config, []) == [] == hardware_check.missing_disks(load("debug: true\n", "1.13"), ["/dev/sda"])
