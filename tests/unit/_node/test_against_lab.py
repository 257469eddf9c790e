# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The client of nodes against the emulated nodes of all three versions: reads, pins, a whole life, every fault."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from ansible_collections.ichor.talos.plugins.module_utils._node.session import _partitions
from ansible_collections.ichor.talos.plugins.module_utils._node.talosconfig import credentials_from_talosconfig
from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab

VERSIONS = {"v1.12.11": "127.61.12.1", "v1.13.9": "127.61.13.1", "v1.14.0-rc.1": "127.61.14.1"}
LIVES = {"v1.12.11": "127.61.12.2", "v1.13.9": "127.61.13.2", "v1.14.0-rc.1": "127.61.14.2"}
FAULTY = "127.61.99.1"
MACHINE = {
    "uuid": "4C4C4544-0042-3510-8051-C4C04F4E5A31", "serial": "\x1b[31mSN\u202e-1",
    "links": [{"name": "eth0", "mac": "00:11:22:33:44:55"}, {"name": "bond0", "kind": "bond"}],
    "disks": [{"name": "sda"}, {"name": "sdb", "usb": True}, {"name": "sr0", "cdrom": True}],
    "volumes": [{"disk": "sda", "label": "data", "number": 1}],
}


@pytest.fixture(scope="module")
def lab():
    world = {f"read-{version}": {"address": address, "version": version, "machine": MACHINE} for version, address in VERSIONS.items()}
    world |= {f"life-{version}": {"address": address, "version": version} for version, address in LIVES.items()}
    world["faulty"] = {"address": FAULTY}
    with Lab.start({"nodes": world}, speed=50) as running:
        yield running


def nodes(**options):
    return TalosNodes(rules=(DialRules(allow_loopback=True),), timing=Timing(call=options.pop("call", 10.0)), **options)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_read_in_maintenance_mode(lab, version):
    async def run():
        async with nodes().maintenance(Endpoint(VERSIONS[version])) as session:
            return await session.facts(), await session.identity(), await session.machine_config(), await session.boot_id()
    facts, identity, config, boot_id = asyncio.run(run())
    assert facts.identity == identity
    assert (identity.uuid, identity.serial, identity.macs) == ("4c4c4544-0042-3510-8051-c4c04f4e5a31", "SN-1", ("00:11:22:33:44:55",))
    assert facts.stage.value.stage == "maintenance" and facts.stage.value.unattended_install == ""
    assert facts.talos_version == version
    assert facts.secure_boot.value is False
    disks = {disk.name: disk for disk in facts.disks.value}
    assert disks["sdb"].usb and disks["sr0"].cdrom and not disks["sda"].usb
    assert disks["sda"].contents == ("data",) or disks["sda"].contents[0].startswith("data ")
    assert [part.label for part in facts.partitions.value] == ["data"]
    assert {link.name: link.physical for link in facts.links.value if link.name != "lo"} == {"bond0": False, "eth0": True}
    assert isinstance(config, Unknown) and config.reason == "PermissionDenied"
    assert isinstance(boot_id, Present if version.startswith("v1.14") else Absent)


def test_a_new_leaf_breaks_the_pin_and_nothing_is_sent(lab):
    async def run():
        endpoint = Endpoint(VERSIONS["v1.13.9"])
        old = (await nodes().probe(endpoint, 5)).certificate
        async with nodes().maintenance(endpoint, old.fingerprint) as session:
            assert await session.identity()
        lab.reissue(node="read-v1.13.9")
        mark = lab.mark()
        with pytest.raises(TalosError) as raised:
            async with nodes().maintenance(endpoint, old.fingerprint):
                pass
        assert raised.value.reason == "MaintenanceIdentityChanged"
        return mark
    mark = asyncio.run(run())
    closed = lab.log(since=mark, event="closed", node="read-v1.13.9")
    assert [entry["plaintext"] for entry in closed] == [0]
    assert lab.log(since=mark, event="call", node="read-v1.13.9") == []


@pytest.mark.parametrize("version", LIVES)
def test_a_control_plane_from_maintenance_to_running(lab, version):
    secrets = ClusterSecrets(endpoint=f"https://{LIVES[version]}:6443")
    name, endpoint = f"life-{version}", Endpoint(LIVES[version])
    credentials = credentials_from_talosconfig(secrets.talosconfig([LIVES[version]]), now=time.time())
    foreign = credentials_from_talosconfig(ClusterSecrets().talosconfig([LIVES[version]]), now=time.time())
    reader = credentials_from_talosconfig(secrets.talosconfig([LIVES[version]], "os:reader"), now=time.time())
    config = secrets.config("controlplane", "cp1", version=version).encode()

    async def reason(session):
        with pytest.raises(TalosError) as raised:
            async with session:
                pass
        return raised.value.reason

    async def apply():
        assert await reason(nodes().authenticated(endpoint, credentials)) == "UnknownAuthority"
        async with nodes().maintenance(endpoint) as session:
            with pytest.raises(TalosError) as raised:
                await session.apply(config.replace(b"persist: true", b"persits: true"), "AUTO")
            assert raised.value.reason == "ConfigRejected"
            assert "persits" in raised.value.detail
            await session.apply(config, "AUTO")

    async def start():
        """Until it works: the node may still be on its way through the reboot that ends the installation."""
        try:
            async with nodes().authenticated(endpoint, credentials) as session:
                await session.bootstrap()
        except TalosError as error:
            # UnknownAuthority: the maintenance listener has not gone yet.
            assert error.reason in ("BootstrapNotAvailable", "ConnectionLost", "ConnectionRefused", "UnknownAuthority")
            return False
        return True

    async def live():
        async with nodes().authenticated(endpoint, credentials) as session:
            assert (await session.stage()).stage == "running"
            assert (await session.machine_config()).value == config
            assert [member.name for member in await session.etcd_members(local=True)] == ["cp1"]
            status = await session.etcd_status()
            assert status.leader == status.member_id
            assert (await session.boot_id()).value
            assert {"STATE", "META"} <= {part.label for part in (await session.partitions()).value}
            assert {one.id: one.state for one in await session.services()}["etcd"] == "Running"
            with pytest.raises(TalosError) as raised:
                await session.bootstrap()
            assert raised.value.reason == "AlreadyExists"
        async with nodes().authenticated(endpoint, reader) as session:
            assert (await session.machine_config()).reason == "PermissionDenied"
        assert await reason(nodes().authenticated(endpoint, foreign)) == "UnknownAuthority"
        assert await reason(nodes().maintenance(endpoint)) == "ClientCertificateRequired"
        probe = await nodes().probe(endpoint, 5)
        assert (probe.kind, probe.certificate.issuer) == ("AlreadyConfigured", "O=talos")

    mark = lab.mark()
    asyncio.run(apply())
    end = time.monotonic() + 60
    while not asyncio.run(start()):
        assert time.monotonic() < end
    lab.wait(node=name, stage="ready", seconds=60)
    asyncio.run(live())
    assert lab.writes(since=mark, accepted_only=True) == {"ApplyConfiguration": 1, "Bootstrap": 1}


@pytest.mark.parametrize(("kind", "value", "reasons"), [
    ("connect-hang", None, {"TimedOut"}),
    ("connect-reset", None, {"ConnectionLost", "NotTls"}),
    ("connect-close", None, {"ConnectionLost", "NotTls"}),
    ("connect-garbage", None, {"NotTls"}),
    ("plain-http", None, {"NotTls"}),
    ("plain-drip", 0.05, {"NotTls", "TimedOut"}),
    ("handshake-hang", None, {"TimedOut"}),
    ("handshake-reset", None, {"ConnectionLost"}),
    ("handshake-garbage", None, {"NotTalos"}),
    ("web-server", None, {"NotTalos"}),
    ("corrupt-record", None, {"ConnectionLost", "NotTls"}),
    ("call-hang", None, {"TimedOut"}),
    ("call-reset", None, {"ConnectionLost"}),
    ("call-status", "UNAVAILABLE: etcdserver: no leader", {"CallFailed"}),
    ("answer-lost", None, {"ConnectionLost"}),
    ("answer-hang", None, {"TimedOut"}),
    ("answer-endless", None, {"AnswerTooLarge", "TimedOut", "AnswerInvalid", "CallFailed"}),
    ("answer-huge", None, {"AnswerTooLarge", "TimedOut"}),
    ("answer-garbage", None, {"AnswerInvalid"}),
    ("answer-drip", None, {"TimedOut", "AnswerTooLarge"}),
    ("answer-claims-huge", None, {"AnswerTooLarge"}),
    ("write-drip", 0.2, {"TimedOut"}),
])
def test_every_fault_has_its_reason_within_its_deadline(lab, capfd, kind, value, reasons):
    async def run():
        begun = time.monotonic()
        with pytest.raises(TalosError) as raised:
            async with nodes(call=1.0).maintenance(Endpoint(FAULTY)) as session:
                await session.services()
        assert time.monotonic() - begun < 6
        return raised.value
    lab.fault(node="faulty", kind=kind, value=value)
    try:
        error = asyncio.run(run())
        probe = asyncio.run(nodes().probe(Endpoint(FAULTY), 1.0))
    finally:
        lab.clear(node="faulty")
    assert error.reason in reasons
    assert error.message.endswith(".") and error.hint.endswith(".")
    assert probe.kind in (("Maintenance",) if kind.startswith(("call", "answer")) else ("NotTalos", "Unreachable", "Maintenance"))
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(("kind", "outcome"), [
    ("expired", "Maintenance"), ("not-yet-valid", "Maintenance"), ("rsa", "Maintenance"), ("foreign", "NotTalos"), ("self-named", "NotTalos"),
])
def test_leaves_that_are_not_quite_right(lab, kind, outcome):
    lab.certificate(node="faulty", kind=kind)
    try:
        assert asyncio.run(nodes().probe(Endpoint(FAULTY), 5)).kind == outcome
    finally:
        lab.reissue(node="faulty")


def test_a_node_that_lists_no_block_device_has_not_looked_for_partitions():
    """Talos lists every block device, blank ones too: an empty list proves no wipe (design section 12)."""
    assert isinstance(_partitions(Absent("DiscoveredVolumes")), Unknown)
    disk = SimpleNamespace(dev_path="/dev/sda", parent_dev_path="", partition_index=0, partition_label="", name="", size=1)
    assert isinstance(_partitions(Present((("sda", disk),))), Absent)
