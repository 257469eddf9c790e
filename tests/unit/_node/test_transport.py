# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions over real sockets: pins, authorities, errors, and that nothing is left behind (design section 5)."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import os
import ssl
import threading

import pytest
from tests.unit._node.authority import CLIENT, SERVER, pem
from tests.unit._node.fake_node import FakeNode, Refusal, state

from ansible_collections.ichor.talos.plugins.module_utils._model.credentials import Credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import CheckModeWrite, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node import bridge, messages, tls
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes

LAB = (DialRules(allow_loopback=True),)
SERVICES = "/machine.MachineService/ServiceList"
SNAPSHOT = "/machine.MachineService/EtcdSnapshot"
RECOVER = "/machine.MachineService/EtcdRecover"
APPLY = "/machine.MachineService/ApplyConfiguration"
BOOTSTRAP = "/machine.MachineService/Bootstrap"


def nodes(**options):
    return TalosNodes(rules=LAB, **{"timing": Timing(call=5.0), **options})


def admin(ca, **options):
    certificate, key = ca.leaf(**{"usages": (CLIENT,), "organization": ("os:admin",), **options})
    return Credentials(ca=pem(ca.certificate), certificate=certificate, key=key, source="test")


def services(dummy):
    return messages.message_class("machine.ServiceListResponse")(messages=[{"services": [{"id": "apid", "state": "Running"}]}])


async def reason_of(session):
    with pytest.raises(TalosError) as raised:
        async with session:
            pass
    assert raised.value.message and raised.value.hint
    return raised.value.reason


def there(node):
    return Endpoint("127.0.0.1", node.port)


def test_the_calls_use_the_connection_whose_fingerprint_is_told(maintenance_leaf):
    async def run():
        async with FakeNode(*maintenance_leaf, {SERVICES: services}) as node, nodes().maintenance(there(node)) as session:
            assert len(session.certificate.fingerprint) == 44
            assert (await session.services())[0].id == "apid"
            assert session.maintenance
            assert node.connections == 1
    asyncio.run(run())


@pytest.mark.parametrize("form", ["base64", "hex", "HEX", "colons"])
def test_a_pin_in_either_form_is_accepted(maintenance_leaf, form):
    async def run():
        async with FakeNode(*maintenance_leaf, {SERVICES: services}) as node:
            found = (await nodes().probe(there(node), 5)).certificate
            pin = {
                "base64": found.fingerprint, "hex": found.sha256, "HEX": found.sha256.upper(),
                "colons": ":".join(found.sha256[at:at + 2] for at in range(0, 64, 2)),
            }[form]
            async with nodes().maintenance(there(node), pin) as session:
                assert await session.services()
    asyncio.run(run())


def test_another_pin_ends_the_connection_before_a_byte_of_http2(maintenance_leaf, in_memory_ca):
    async def run():
        async with FakeNode(*maintenance_leaf, {SERVICES: services}) as node:
            pin = (await nodes().probe(there(node), 5)).certificate.fingerprint
        async with FakeNode(*in_memory_ca.leaf(common="maintenance-service.talos.dev"), {SERVICES: services}) as twin:
            assert await reason_of(nodes().maintenance(there(twin), pin)) == "MaintenanceIdentityChanged"
            assert twin.bytes_in == 0
            assert twin.calls == []
    asyncio.run(run())


def test_a_session_never_changes_its_peer(maintenance_leaf):
    async def run():
        async with FakeNode(*maintenance_leaf, {SERVICES: services}) as node, nodes().maintenance(there(node)) as session:
            await session.services()
            node.drop()
            for dummy in range(3):
                with pytest.raises(TalosError) as raised:
                    await session.services()
                assert raised.value.reason == "ConnectionLost"
            assert raised.value.failure.code == "NOT_SENT"
            assert node.connections == 1
    asyncio.run(run())


def test_mutual_tls(os_ca, node_leaf):
    async def run():
        async with FakeNode(*node_leaf, {SERVICES: services}, client_ca=pem(os_ca.certificate)) as node:
            async with nodes().authenticated(there(node), admin(os_ca)) as session:
                assert (await session.services())[0].state == "Running"
                assert not session.maintenance
                assert session.certificate.common_name == "cp1"
            assert node.connections == 1
    asyncio.run(run())


def test_the_maintenance_client_is_told_that_a_certificate_is_wanted(os_ca, node_leaf):
    async def run():
        async with FakeNode(*node_leaf, client_ca=pem(os_ca.certificate)) as node:
            assert await reason_of(nodes().maintenance(there(node))) == "ClientCertificateRequired"
            assert await reason_of(nodes().maintenance(there(node), "a pin of before")) == "ClientCertificateRequired"
            assert node.bytes_in == 0
    asyncio.run(run())


def test_a_server_without_talos_certificate_is_not_maintenance(os_ca):
    async def run():
        async with FakeNode(*os_ca.leaf(common="web")) as node:
            assert await reason_of(nodes().maintenance(there(node))) == "NotTalos"
            assert node.calls == []
    asyncio.run(run())


@pytest.mark.parametrize(("case", "reason"), [
    ("node of another cluster", "UnknownAuthority"),
    ("node in maintenance", "UnknownAuthority"),
    ("client of another cluster", "UnknownAuthority"),
    ("node expired", "ClockSkew"),
    ("node not yet valid", "ClockSkew"),
    ("client expired", "ClockSkew"),
    ("client certificate poses as node", "UnknownAuthority"),
])
def test_authenticated_failures(os_ca, other_ca, node_leaf, maintenance_leaf, case, reason):
    leaf, credentials, trusted = node_leaf, None, pem(os_ca.certificate)
    if case == "node of another cluster":
        leaf, trusted = other_ca.leaf(common="cp1"), pem(other_ca.certificate)
    elif case == "node in maintenance":
        leaf, trusted = maintenance_leaf, None
    elif case == "client of another cluster":
        certificate, key = other_ca.leaf(usages=(CLIENT,), organization=("os:admin",))
        credentials = Credentials(ca=pem(os_ca.certificate), certificate=certificate, key=key)
    elif case == "node expired":
        leaf = os_ca.leaf(common="cp1", begins=-7200, ends=-60)
    elif case == "node not yet valid":
        leaf = os_ca.leaf(common="cp1", begins=7200)
    elif case == "client expired":
        credentials = admin(os_ca, begins=-7200, ends=-60)
    elif case == "client certificate poses as node":
        leaf = os_ca.leaf(usages=(CLIENT,), common="cp1")

    async def run():
        async with FakeNode(*leaf, client_ca=trusted) as node:
            assert await reason_of(nodes().authenticated(there(node), credentials or admin(os_ca))) == reason
            assert node.calls == []
    asyncio.run(run())


def test_ecdsa_and_rsa_authorities_work():
    from tests.unit._node.authority import Authority

    async def run(kind):
        ca = Authority(kind=kind)
        async with FakeNode(*ca.leaf(common="cp1"), {SERVICES: services}, client_ca=pem(ca.certificate)) as node:
            async with nodes().authenticated(there(node), admin(ca)) as session:
                assert await session.services()
    for kind in ("ecdsa", "rsa"):
        asyncio.run(run(kind))


def test_a_key_that_is_not_the_certificates_is_told_before_dialling(os_ca):
    broken = dataclasses.replace(admin(os_ca), key=admin(os_ca).key)
    assert asyncio.run(reason_of(nodes().authenticated(Endpoint("127.0.0.1", 1), broken))) == "CredentialsInvalid"


@contextlib.asynccontextmanager
async def raw_server(talk):
    """A server that is no node: `talk(reader, writer)`."""
    tasks = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await talk(reader, writer)
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def closes_at_once(reader, writer):
    await reader.read(1)


async def speaks_http(reader, writer):
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()


async def speaks_ssh(reader, writer):
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
    await writer.drain()
    await reader.read()


async def says_nothing(reader, writer):
    await asyncio.Event().wait()


@pytest.mark.parametrize(("talk", "reason"), [
    (closes_at_once, "ConnectionLost"), (speaks_http, "NotTls"), (speaks_ssh, "NotTls"), (says_nothing, "TimedOut"),
])
def test_what_is_not_a_node(os_ca, talk, reason):
    async def run():
        async with raw_server(talk) as endpoint:
            quick = nodes(timing=Timing(call=0.3))
            got = {await reason_of(quick.maintenance(endpoint)), await reason_of(quick.authenticated(endpoint, admin(os_ca)))}
            assert got <= {reason, "NotTls"} and (reason == "ConnectionLost" or got == {reason})
    asyncio.run(run())


def test_refused_and_unresolvable():
    async def run():
        async with raw_server(says_nothing) as endpoint:
            pass
        assert await reason_of(nodes().maintenance(endpoint)) == "ConnectionRefused"
        assert await reason_of(nodes().maintenance(Endpoint("no-such-host.invalid"))) == "NameNotResolved"
    asyncio.run(run())


def test_tls_1_2_and_a_web_server_are_not_talos(maintenance_leaf, os_ca):
    async def run():
        async with FakeNode(*maintenance_leaf, maximum=ssl.TLSVersion.TLSv1_2) as node:
            assert await reason_of(nodes().maintenance(there(node))) == "NotTls"
        async with FakeNode(*os_ca.leaf(common="web"), alpn=("http/1.1",)) as node:
            assert await reason_of(nodes().maintenance(there(node))) in ("NotTalos", "NotTls")
    asyncio.run(run())


def test_loopback_is_not_dialled_unless_the_lab_says_so(maintenance_leaf):
    async def run():
        async with FakeNode(*maintenance_leaf) as node:
            strict = TalosNodes(timing=Timing(call=5.0))
            assert await reason_of(strict.maintenance(there(node))) == "EndpointRefused"
            assert await reason_of(strict.maintenance(Endpoint("localhost", node.port))) == "EndpointRefused"
            assert (await strict.probe(there(node), 5)).reason == "EndpointRefused"
            assert [found.reason async for found in strict.scan([there(node)], rate=0, unresolved=0, timeout=5)] == ["EndpointRefused"]
            assert node.connections == 0
    asyncio.run(run())


@pytest.mark.parametrize(("code", "reason"), [
    ("PERMISSION_DENIED", "PermissionDenied"), ("UNIMPLEMENTED", "Unimplemented"), ("NOT_FOUND", "NotFound"),
    ("ALREADY_EXISTS", "AlreadyExists"), ("FAILED_PRECONDITION", "FailedPrecondition"), ("INVALID_ARGUMENT", "NodeRefused"),
    ("UNKNOWN", "NodeRefused"), ("UNAVAILABLE", "CallFailed"), ("INTERNAL", "CallFailed"), ("DEADLINE_EXCEEDED", "TimedOut"),
    ("RESOURCE_EXHAUSTED", "CallFailed"), ("DATA_LOSS", "CallFailed"), ("ABORTED", "FailedPrecondition"),
])
def test_what_a_node_answers(maintenance_leaf, code, reason):
    def refuse(dummy):
        raise Refusal(code, "the node's \x1b[31mtext")

    async def run():
        async with FakeNode(*maintenance_leaf, {SERVICES: refuse}) as node, nodes().maintenance(there(node)) as session:
            with pytest.raises(TalosError) as raised:
                await session.services()
            assert (raised.value.reason, raised.value.failure.code) == (reason, code)
            assert raised.value.detail == "the node's text"
            assert raised.value.failure.rpc == "MachineService/ServiceList"
            assert "text" not in raised.value.text
    asyncio.run(run())


@pytest.mark.parametrize(("code", "text", "reason"), [
    ("INVALID_ARGUMENT", "unknown keys found during decoding", "ConfigRejected"),
    ("UNKNOWN", "failed to parse config: x", "ConfigRejected"),
    ("UNKNOWN", "something else", "NodeRefused"),
    ("FAILED_PRECONDITION", "another apply configuration is already in progress", "FailedPrecondition"),
    ("PERMISSION_DENIED", "not authorized", "PermissionDenied"),
])
def test_refusals_of_an_apply(maintenance_leaf, code, text, reason):
    def refuse(dummy):
        raise Refusal(code, text)

    async def run():
        async with FakeNode(*maintenance_leaf, {APPLY: refuse}) as node, nodes().maintenance(there(node)) as session:
            with pytest.raises(TalosError) as raised:
                await session.apply(b"machine: {}", "AUTO")
            assert (raised.value.reason, raised.value.detail, raised.value.failure.code) == (reason, text, code)
    asyncio.run(run())


@pytest.mark.parametrize(("code", "reason"), [
    ("FAILED_PRECONDITION", "BootstrapNotAvailable"), ("ALREADY_EXISTS", "AlreadyExists"), ("UNIMPLEMENTED", "NotControlPlane"),
])
def test_refusals_of_a_bootstrap(maintenance_leaf, code, reason):
    def refuse(dummy):
        raise Refusal(code, "no")

    async def run():
        async with FakeNode(*maintenance_leaf, {BOOTSTRAP: refuse}) as node, nodes().maintenance(there(node)) as session:
            with pytest.raises(TalosError) as raised:
                await session.bootstrap()
            assert raised.value.reason == reason
    asyncio.run(run())


def test_apply_sends_the_bytes_as_they_are(maintenance_leaf):
    got = []

    def take(request):
        got.append((request.data, request.mode, request.dry_run))
        return messages.message_class("machine.ApplyConfigurationResponse")(messages=[{"mode": 2, "mode_details": "Applied", "warnings": ["w"]}])

    async def run():
        async with FakeNode(*maintenance_leaf, {APPLY: take}) as node, nodes().maintenance(there(node)) as session:
            reply = await session.apply(b"# comment\nmachine: {}\n", "AUTO")
            assert (reply.mode, reply.details, reply.warnings) == ("NO_REBOOT", "Applied", ("w",))
    asyncio.run(run())
    assert got == [(b"# comment\nmachine: {}\n", 1, False)]


def test_a_write_in_check_mode_is_a_bug_and_sends_nothing(maintenance_leaf):
    async def run():
        async with FakeNode(*maintenance_leaf, {APPLY: services, BOOTSTRAP: services}) as node:
            async with nodes(check=True).maintenance(there(node)) as session:
                with pytest.raises(CheckModeWrite):
                    await session.apply(b"x", "AUTO")
                with pytest.raises(CheckModeWrite):
                    await session.bootstrap()
            assert node.calls == []
    asyncio.run(run())


def test_a_node_that_hangs_costs_one_deadline(maintenance_leaf):
    async def hang(dummy):
        await asyncio.sleep(3600)

    async def run():
        async with FakeNode(*maintenance_leaf, {SERVICES: hang}) as node:
            async with nodes(timing=Timing(call=0.4)).maintenance(there(node)) as session:
                with pytest.raises(TalosError) as raised:
                    await session.services()
                assert raised.value.reason == "TimedOut"
    asyncio.run(run())


def test_the_answer_of_a_write_is_lost_with_the_connection(maintenance_leaf):
    async def run():
        async def take(dummy):
            node.drop()
            await asyncio.sleep(3600)

        async with FakeNode(*maintenance_leaf, {APPLY: take}) as node, nodes().maintenance(there(node)) as session:
            with pytest.raises(TalosError) as raised:
                await session.apply(b"x", "AUTO")
            assert raised.value.reason == "ConnectionLost"
            assert raised.value.failure.code != "NOT_SENT"
    asyncio.run(run())


def test_answers_that_are_too_large_or_garbage(maintenance_leaf, capfd):
    def large(dummy):
        return messages.message_class("machine.ServiceListResponse")(messages=[{"services": [{"id": "x" * (5 << 20)}]}])

    def endless(dummy):
        one = messages.message_class("cosi.resource.ListResponse")(resource={"metadata": {"id": "x" * 100_000}})
        return [one] * 100

    async def run():
        answers = {SERVICES: large, "/cosi.resource.State/List": endless, "/cosi.resource.State/Get": lambda dummy: b"\xff\xff\xff garbage"}
        async with FakeNode(*maintenance_leaf, answers) as node, nodes().maintenance(there(node)) as session:
            with pytest.raises(TalosError) as raised:
                await session.services()
            assert raised.value.reason == "AnswerTooLarge"
            assert (await session.links()).reason == "AnswerTooLarge"
            assert (await session.machine_config()).reason == "AnswerInvalid"
    asyncio.run(run())
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_snapshot_is_larger_than_all_that_a_connection_may_receive(maintenance_leaf, monkeypatch):
    monkeypatch.setattr(tls, "RECEIVE_LIMIT", 256 * 1024)
    # More than HTTP/2 lets a node send before its answers are taken.
    pieces = [bytes([number]) * 32 * 1024 for number in range(64)]

    async def run():
        answers = {SNAPSHOT: lambda dummy: [messages.message_class("common.Data")(bytes=piece) for piece in pieces]}
        async with FakeNode(*maintenance_leaf, answers) as node, nodes().maintenance(there(node)) as session:
            assert b"".join([piece async for piece in session.etcd_snapshot()]) == b"".join(pieces)
    asyncio.run(run())


def test_an_upload_whose_source_fails_says_why(os_ca, node_leaf):
    whole = []

    def pieces(failing):
        yield b"a" * 1024
        if failing:
            raise TalosError("ArchiveUnreachable", "The bucket does not answer.", "Wait.")
        yield b"b"

    def recover(sent):
        whole.append(b"".join(part.bytes for part in sent))
        return messages.message_class("machine.EtcdRecoverResponse")()

    async def run():
        async with FakeNode(*node_leaf, {RECOVER: recover}, client_ca=pem(os_ca.certificate)) as node:
            async with nodes().authenticated(there(node), admin(os_ca)) as session:
                with pytest.raises(TalosError) as raised:
                    await session.etcd_recover(pieces(True))
                assert raised.value.reason == "ArchiveUnreachable"
                await session.etcd_recover(pieces(False))
    asyncio.run(run())
    assert whole[-1] == b"a" * 1024 + b"b"


def test_absent_and_unknown_are_kept_apart(maintenance_leaf):
    config = "MachineConfigs.config.talos.dev"
    answers = state({"Disks.block.talos.dev": {}, config: Refusal("PERMISSION_DENIED", "not authorized")})

    async def run():
        async with FakeNode(*maintenance_leaf, answers) as node, nodes().maintenance(there(node)) as session:
            assert isinstance(await session.disks(), Absent)
            assert isinstance(await session.boot_id(), Absent)  # 1.13 has no such type, in maintenance mode no file either
            refused = await session.machine_config()
            assert isinstance(refused, Unknown) and refused.reason == "PermissionDenied"
            stage = await session.stage()
            assert stage.stage == "unknown"
    asyncio.run(run())


def test_machine_config_is_not_cleaned(os_ca, node_leaf):
    spec = messages.message_class("resource.config.MachineConfigSpec")(yaml_marshalled=b"machine:\n\ttoken: \x1b\n")
    answers = state({"MachineConfigs.config.talos.dev": {"persistent": spec}})

    async def run():
        async with FakeNode(*node_leaf, answers, client_ca=pem(os_ca.certificate)) as node:
            async with nodes().authenticated(there(node), admin(os_ca)) as session:
                assert await session.machine_config(persistent=True) == Present(b"machine:\n\ttoken: \x1b\n", "MachineConfigs.config.talos.dev/persistent")
                assert isinstance(await session.machine_config(), Absent)
    asyncio.run(run())


def test_etcd_and_boot_id(os_ca, node_leaf):
    members = messages.message_class("machine.EtcdMemberListResponse")(messages=[{"members": [
        {"id": 0xABC, "hostname": "cp1", "peer_urls": ["https://10.0.0.1:2380"], "is_learner": True}]}])
    status = messages.message_class("machine.EtcdStatusResponse")(messages=[{"member_status": {"member_id": 0xABC, "leader": 0, "raft_index": 7}}])
    content = messages.message_class("common.Data")(bytes=b"0b2e\n")
    answers = {
        **state({}), "/machine.MachineService/EtcdMemberList": lambda dummy: members, "/machine.MachineService/EtcdStatus": lambda dummy: status,
        "/machine.MachineService/Read": lambda dummy: [content],
    }

    async def run():
        async with FakeNode(*node_leaf, answers, client_ca=pem(os_ca.certificate)) as node:
            async with nodes().authenticated(there(node), admin(os_ca)) as session:
                (member,) = await session.etcd_members(local=True)
                assert (member.id, member.name, member.learner) == ("0000000000000abc", "cp1", True)
                found = await session.etcd_status()
                assert (found.member_id, found.leader, found.raft_index) == ("0000000000000abc", "", 7)
                assert (await session.boot_id()).value == "0b2e"
    asyncio.run(run())


def open_files():
    return {name: os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


@pytest.mark.parametrize("memory", [True, False])
def test_nothing_is_left_behind(maintenance_leaf, tmp_path, monkeypatch, memory):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(bridge, "MEMORY", str(tmp_path) if memory else str(tmp_path / "none"))

    async def run():
        async with FakeNode(*maintenance_leaf, {SERVICES: services}) as node:
            async def use(product, fail):
                async with product.maintenance(there(node)) as session:
                    await session.services()
                    assert not [name for name in os.listdir(tmp_path) if name.startswith("ichor-")]
                    if fail:
                        raise RuntimeError("in the middle")

            product = nodes()
            await use(product, False)  # whatever grpcio keeps for the process is there now
            before, tasks, threads = open_files(), len(asyncio.all_tasks()), threading.active_count()
            for fail in (False, True) * 5:
                with contextlib.suppress(RuntimeError):
                    await use(product, fail)
            cancelled = asyncio.ensure_future(use(product, False))
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            await reason_of(product.maintenance(there(node), "another pin"))
            async with product.maintenance(there(node)):
                pass  # no call at all
            await product.close()
            gc.collect()
            await asyncio.wait_for(settled(lambda: len(node.tasks) == 0 and len(asyncio.all_tasks()) <= tasks), 10)
            assert len(open_files()) <= len(before), (before, open_files())
            assert threading.active_count() <= threads
            assert not [name for name in os.listdir(tmp_path) if name.startswith("ichor-")]
    asyncio.run(run())


async def settled(condition):
    while not condition():
        await asyncio.sleep(0.01)


def test_usages_of_the_server_are_checked(os_ca):
    async def run():
        async with FakeNode(*os_ca.leaf(usages=(SERVER, CLIENT), common="cp1"), {SERVICES: services}, client_ca=pem(os_ca.certificate)) as node:
            async with nodes().authenticated(there(node), admin(os_ca)) as session:
                assert await session.services()
    asyncio.run(run())


def test_a_long_path_of_temporary_files_is_no_obstacle(maintenance_leaf, tmp_path, monkeypatch):
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    monkeypatch.setattr(bridge, "MEMORY", str(tmp_path / "none"))

    async def run():
        async with FakeNode(*maintenance_leaf, {SERVICES: services}) as node, nodes().maintenance(there(node)) as session:
            assert await session.services()
    monkeypatch.setattr("tests.unit._node.fake_node.FOLDERS", "/tmp")
    asyncio.run(run())
