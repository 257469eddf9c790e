# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each field of cluster, machine and approval changes the configuration where the table says and nowhere else, and Talos takes the result."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.compare import differences
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.places import PLACES, Place
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.placeholder import placeholder_bundle
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.render import Rendered, RenderInput, render
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import VERSIONS
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from tests.machinery.random_rows import known
from tests.parts.lab_oracle import Judges
from tests.vectors_config import HERE


BUNDLE = read_bundle((HERE / "secrets.yaml").read_bytes())
CLUSTER: dict[str, Any] = {"kubernetesVersion": "v1.35.0", "endpoint": "https://10.0.0.10:6443", "secretsRef": {"name": "s"}}
MACHINE: dict[str, Any] = {"role": "controlplane", "install": {"disk": "/dev/sda"}}
SELECTOR = {"type": "nvme"}


@dataclass(frozen=True)
class Try:
    """The record with the field, and what it is compared with: specs that are laid over those above. foreign: with the keys of another bundle."""

    cluster: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    before_cluster: dict[str, Any] = field(default_factory=dict)
    before_machine: dict[str, Any] = field(default_factory=dict)
    foreign: bool = False


def disk(role: str) -> Try:
    return Try(machine={"disks": [{"selector": SELECTOR, "role": role}]})


def primary(before: dict[str, Any] | None = None, **settings: Any) -> Try:
    return Try(machine={"network": {"primary": settings}}, before_machine={"network": {"primary": before}} if before else {})


STATIC = {"interface": "eth0", "addresses": ["10.0.0.5/24"]}
TRIES: dict[str, Try] = {
    "talosVersion": Try({"talosVersion": "later"}), "kubernetesVersion": Try({"kubernetesVersion": "v1.35.1"}), "endpoint": Try({"endpoint": "https://o:6443"}),
    "secretsRef.name": Try(foreign=True), "network.podSubnets": Try({"network": {"podSubnets": ["10.1.0.0/16"]}}),
    "network.serviceSubnets": Try({"network": {"serviceSubnets": ["10.2.0.0/16"]}}), "network.dnsDomain": Try({"network": {"dnsDomain": "k8s.lan"}}),
    "cni.preset: unmanaged": Try({"cni": {"preset": "unmanaged"}}), "cni.preset: none": Try({"cni": {"preset": "none"}}),
    "cni.preset: managed": Try({"cni": {"preset": "managed"}}),
    "registries.mirrors": Try({"registries": {"mirrors": {"docker.io": {"endpoints": ["https://m.lan"], "overridePath": True}}}}),
    "certSANs": Try({"certSANs": ["k8s.lan"]}), "install": Try({"install": {"disk": "/dev/sdb"}}, {"install": {}}),
    "secureBoot": Try({"secureBoot": "Required"}),
    "allowSchedulingOnControlPlanes": Try({"allowSchedulingOnControlPlanes": True}), "controlPlane.count": Try({"controlPlane": {"count": 5}}),
    "discovery": Try({"discovery": {"addresses": ["10.0.0.9"]}}), "driftPolicy": Try({"driftPolicy": "report"}), "hold": Try({"hold": "shutdown"}),
    "role": Try(machine={"role": "worker"}), "hostname": Try(machine={"hostname": "cp-1"}), "labels": Try(machine={"labels": {"site": "north"}}),
    "taints": Try(machine={"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}), "install.disk": Try(machine={"install": {"disk": "/dev/sdb"}}),
    "install.diskSelector": Try(machine={"install": {"diskSelector": SELECTOR}}, before_machine={"install": {"diskSelector": {"type": "ssd"}}}),
    "install.image": Try(machine={"install": {"disk": "/dev/sda", "image": "example.org/installer:v1"}}),
    "install.wipe": Try(machine={"install": {"disk": "/dev/sda", "wipe": True}}),
    "disks[].role: system": Try(machine={"install": {}, "disks": [{"selector": SELECTOR, "role": "system"}]},
                                before_machine={"install": {"diskSelector": {"type": "ssd"}}}),
    "disks[].role: ephemeral": disk("ephemeral"), "disks[].role: storage": disk("storage"), "disks[].role: userVolume": disk("userVolume"),
    "disks[].role: unused": disk("unused"), "network.primary.interface": primary(interface="eth0"),
    "network.primary.mac": primary({**STATIC, "interface": "net0"}, mac="52:54:00:12:34:5a", addresses=STATIC["addresses"]),
    "network.primary.dhcp": primary(interface="eth0", dhcp=True), "network.primary.addresses": primary(**STATIC),
    "network.primary.gateway": primary(STATIC, **STATIC, gateway="10.0.0.1"),
    "network.primary.nameservers": primary(STATIC, **STATIC, nameservers=["10.0.0.53"]), "network.primary.vlan": primary(**STATIC, vlan=20),
    "identity, endpoint, approval fields": Try(machine={"identity": {"uuid": "u"}, "endpoint": "10.0.0.7", "approvalState": "approved", "approvedBy": "anna"}),
}
#: Of these the table names the first place, and says that more follows from them.
MORE = {"talosVersion", "role"}


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    talos = Judges()
    yield talos
    talos.close()


def rendered(version: str, cluster: dict[str, Any], machine: dict[str, Any], foreign: bool = False) -> Rendered:
    patch = "1" if cluster.get("talosVersion") == "later" else "0"
    bundle = replace(placeholder_bundle("other", 2026)) if foreign else BUNDLE
    return render(RenderInput("home", {**CLUSTER, **cluster, "talosVersion": f"v{version}.{patch}"}, "cp-1", {**MACHINE, **machine}, bundle))


def tables(place: Place, version: str) -> list[str]:
    """The cells of the table that say where the field goes."""
    cell = place.since if version == "1.14" else place.before
    if cell == "as install of the machine":
        return tables(next(one for one in PLACES if one.field == "install.disk"), version)
    if cell == "as install.diskSelector":
        return tables(next(one for one in PLACES if one.field == "install.diskSelector"), version)
    if cell == "the name of the documents below":
        return ["DHCPv4Config/LINK"]
    if cell == "-":
        return []
    found = []
    for part in cell.split("; "):
        document, colon, paths = part.removeprefix("no ").partition(": ")
        found += [f"{document}: {path}" for path in paths.split(", ")] if colon else [document]
    return [one for one in found if one != "every document"]


def pattern(place: str) -> re.Pattern[str]:
    """What a difference looks like that lies there; a document's name comes and goes with the document."""
    text = re.escape(place).replace("HOST", "docker\\.io").replace("LINK\\.ID", "eth0\\.20").replace("LINK", "(eth0|net0)")
    return re.compile(text + (r"(\..*)?$" if ": " in place else ": .*$"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place.record}.{place.field}")
def test_a_field_changes_what_the_table_says_and_talos_takes_it(place: Place, version: str, judges: Judges) -> None:
    trial = TRIES[place.field]
    if place.field == "cni.preset: unmanaged" and version == "1.14":
        trial = replace(trial, before_cluster={"cni": {"preset": "none"}})
    before = rendered(version, trial.before_cluster, trial.before_machine if trial.before_machine or "install" not in trial.machine or trial.machine["install"]
                      else {"install": {"disk": "/dev/sda"}})
    after = rendered(version, trial.cluster, trial.machine, trial.foreign)
    changes = {found.where for found in differences(after.config, before.config)}
    wanted = [pattern(one) for one in tables(place, version)]
    assert (after.text != before.text) is bool(wanted)
    assert [one.pattern for one in wanted if not any(one.match(change) for change in changes)] == []
    if place.field not in MORE:
        elsewhere = {change for change in changes if not any(one.match(change) for one in wanted)}
        assert {change for change in elsewhere if not change.endswith(": name")} == set()
    said = judges.judge({"version": f"v{version}.0", "config": base64.b64encode(after.text.encode()).decode(), "mode": "metal", "installed": False})
    lines = [line.strip() for line in str(said["error"]).splitlines() if line.strip() and not line.strip().endswith("occurred:")]
    assert [line for line in lines if not known(version, line)] == []


def test_every_row_of_the_table_is_tried() -> None:
    assert set(TRIES) == {place.field for place in PLACES}


def test_a_wrong_cell_is_seen(judges: Judges) -> None:
    wrong = Place("TalosMachine", "hostname", "v1alpha1: machine.network.hostname", "HostnameConfig: nothing", "")
    for version in VERSIONS:
        with pytest.raises(AssertionError):
            test_a_field_changes_what_the_table_says_and_talos_takes_it(wrong, version, judges)
