# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Repeated passes over a network, the limits of a scan, and names that try to be templates (design sections 5, 6), by the lab's log."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab
from tests.lab.wire import message
from tests.lab.wireclient import WireClient, context
from tests.scenarios.playing import Project, lab_of, machine, network_of
from tests.scenarios.sending import cluster

NETWORK = network_of(__name__)
STRANGER, SPEAKER = machine(1, NETWORK, "5a1f0c3e"), machine(2, NETWORK, "7be2944d")
#: So many nodes are asked, so many a second.
COUNT, RATE = 40, 20
EVIL = "{{ lookup('ansible.builtin.pipe', 'touch evaluated') }}"
DISCOVER = "ichor.talos.talos_discover"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    speaker = {**SPEAKER, "machine": {**SPEAKER["machine"], "serial": EVIL}}
    yield from lab_of({"stranger": STRANGER, "speaker": speaker}, speed=20.0)


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("scans") / "project")


def configure(lab: Lab, node: str, address: str) -> None:
    """Another cluster gives the node its configuration."""
    config = ClusterSecrets(name="other").config("controlplane", "cp-of-others")
    with WireClient(address, 50000, context()) as client:
        request = message("machine.ApplyConfigurationRequest")(data=config.encode()).SerializeToString()
        assert client.unary("/machine.MachineService/ApplyConfiguration", request).code == "OK"
    lab.wait(node=node, stage="configured")


def looks(names: str, address: str) -> list[dict[str, Any]]:
    return [{"name": f"Look {name}", DISCOVER: {"cluster": "prod", "addresses": [address]}} for name in names]


def noted(project: Project) -> list[str]:
    lines = (project.store / ".state" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry["message"] for entry in map(json.loads, lines) if entry["reason"] == "AlreadyConfigured"]


def test_a_configured_node_is_noted_once_a_change_and_not_each_pass(lab: Lab, project: Project) -> None:
    address = STRANGER["address"]
    configure(lab, "stranger", address)
    first = project.play("first", [cluster(NETWORK), *looks("ab", address)])
    assert [len(first[f"Look {name}"]["events"]) for name in "ab"] == [1, 0] and len(noted(project)) == 1
    assert not first["Look a"]["changed"] and not list((project.store / "machines").glob("*"))
    lab.wipe(node="stranger")
    lab.wait(node="stranger", stage="maintenance")
    assert project.play("wiped", looks("c", address))["Look c"]["events"] == []
    configure(lab, "stranger", address)
    second = project.play("second", looks("de", address))
    assert [len(second[f"Look {name}"]["events"]) for name in "de"] == [1, 0] and len(noted(project)) == 2


def test_a_serial_that_is_a_template_is_text_wherever_a_play_uses_it_later(lab: Lab, project: Project) -> None:
    run = project.play("serial", [
        cluster(NETWORK), {"name": "Look", DISCOVER: {"cluster": "prod", "addresses": [SPEAKER["address"]]}, "register": "looked"},
        {"name": "From the result", "ansible.builtin.set_fact": {"told": "{{ looked.found[0].serial }}"}},
        {"name": "Again", "ansible.builtin.debug": {"msg": "{{ told }}"}},
        {"name": "Records", "ichor.talos.talos_machine_info": {"cluster": "prod", "read_nodes": False}, "register": "records"},
        {"name": "From the record", "ansible.builtin.debug": {"msg": "{{ records.records[0].spec.identity.serial }}"}},
        {"name": "From the file", "ansible.builtin.debug": {
            "msg": "{{ (lookup('ansible.builtin.file', 'ichor/machines/' ~ records.records[0].metadata.name ~ '.yaml') | from_yaml).spec.identity.serial }}"}},
        {"name": "Into a file", "ansible.builtin.copy": {"content": "{{ told }}", "dest": "told.txt", "mode": "0600"}}])
    assert [run[name]["msg"] for name in ("Again", "From the record", "From the file")] == [EVIL] * 3
    assert (project.folder / "told.txt").read_text(encoding="utf-8") == EVIL
    assert not list(project.folder.rglob("evaluated"))


def test_the_rate_is_kept_by_the_log_of_the_nodes(project: Project) -> None:
    nodes = {f"n{number}": machine(number, NETWORK, "c09d61aa") for number in range(20, 20 + COUNT)}
    for made in lab_of(nodes):
        project.play("slow", [{"name": "Look", DISCOVER: {"ranges": [f"{NETWORK}.20-{NETWORK}.{19 + COUNT}"], "register": False, "rate": RATE}}])
        begun = {entry["node"]: entry["time"] for entry in reversed(made.log(event="connect"))}
        assert len(begun) == COUNT
        # The nodes may notice late, which cannot make the whole scan shorter than half of what the rate allows.
        assert max(begun.values()) - min(begun.values()) >= (COUNT - 1) / RATE / 2


@contextmanager
def neighbours() -> Iterator[tuple[str, str]]:
    """Two network namespaces on one link: the second has the first and the last address of 10.78.0.0/23, and nobody the others."""
    names, tag = (f"ichor-n-{os.getpid()}", f"ichor-m-{os.getpid()}"), os.getpid()
    commands = [
        *(f"ip netns add {name}" for name in names), f"ip link add na{tag} netns {names[0]} type veth peer name nb{tag} netns {names[1]}",
        f"ip -n {names[0]} addr add 10.78.0.2/23 dev na{tag}", f"ip -n {names[0]} link set na{tag} up",
        *(f"ip -n {names[1]} addr add {address}/23 dev nb{tag}" for address in ("10.78.0.1", "10.78.1.254")), f"ip -n {names[1]} link set nb{tag} up",
    ]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True, capture_output=True, timeout=20)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=20)


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_under_256_neighbours_are_unresolved_at_once(project: Project) -> None:
    """The last address of a silent link has to wait until the kernel has given up those before it, which takes 3 s for each 255."""
    with neighbours() as (scanner, nodes):
        described = {name: {"address": address} for name, address in (("first", "10.78.0.1"), ("last", "10.78.1.254"))}
        lab = Lab.start({"nodes": described}, before=("ip", "netns", "exec", nodes))
        try:
            project.before = ("ip", "netns", "exec", scanner)
            run = project.play("link", [{"name": "Look", DISCOVER: {"ranges": ["10.78.0.0/23"], "register": False}}])
            assert [entry["kind"] for entry in run["Look"]["found"]] == ["Maintenance"] * 2
            begun = {entry["node"]: entry["time"] for entry in reversed(lab.log(event="connect"))}
            assert begun["last"] - begun["first"] >= 3.0
        finally:
            lab.close()
