# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Probe, scan and look-up (design sections 5 and 6)."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
import subprocess
import sys
import threading

import pytest
from tests.unit._node.authority import pem
from tests.unit._node.fake_node import FakeNode
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import PROBE_KINDS, Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node import neighbours, poller, resolve
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from ansible_collections.ichor.talos.plugins.module_utils._node.screen import Screen

LAB = (DialRules(allow_loopback=True),)


def nodes():
    return TalosNodes(rules=LAB, timing=Timing(call=5.0))


@contextlib.asynccontextmanager
async def silent_listener():
    """Takes connections into its backlog and says nothing."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(16)
    try:
        yield Endpoint("127.0.0.1", sock.getsockname()[1])
    finally:
        sock.close()


@contextlib.contextmanager
def full_backlog():
    """An address at which a connect is never answered: the backlog is full, so the kernel drops the SYN."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(0)
    fillers = []
    for dummy in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(sock.getsockname())
        fillers.append(filler)
    try:
        yield Endpoint("127.0.0.1", sock.getsockname()[1])
    finally:
        for one in (*fillers, sock):
            one.close()


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def test_the_outcomes_of_a_probe(maintenance_leaf, node_leaf, os_ca, in_memory_ca):
    async def run():
        async with (
            FakeNode(*maintenance_leaf) as fresh, FakeNode(*node_leaf, client_ca=pem(os_ca.certificate)) as configured,
            FakeNode(*in_memory_ca.leaf(common="web")) as web, silent_listener() as silent,
        ):
            where = {
                "fresh": Endpoint("127.0.0.1", fresh.port), "configured": Endpoint("127.0.0.1", configured.port),
                "web": Endpoint("127.0.0.1", web.port), "silent": silent, "closed": Endpoint("127.0.0.1", free_port()),
                "name": Endpoint("no-such-host.invalid"), "multicast": Endpoint("224.0.0.1"),
            }
            product = nodes()
            one_by_one = {name: await product.probe(endpoint, 1.0) for name, endpoint in where.items()}
            found = [probe async for probe in product.scan(list(where.values()), rate=0, unresolved=0, timeout=1.0)]
            scanned = {probe.endpoint: probe for probe in found}
            assert len(found) == len(where)
            for outcome in (one_by_one, {name: scanned[endpoint] for name, endpoint in where.items()}):
                assert {name: (probe.kind, probe.reason) for name, probe in outcome.items()} == {
                    "fresh": ("Maintenance", ""), "configured": ("AlreadyConfigured", "ClientCertificateRequired"),
                    "web": ("NotTalos", "NotTalos"), "silent": ("Unreachable", "TimedOut"),
                    "closed": ("NotListening", "ConnectionRefused"), "name": ("Unreachable", "NameNotResolved"),
                    "multicast": ("Unreachable", "EndpointRefused"),
                }
                assert {probe.kind for probe in outcome.values()} <= set(PROBE_KINDS)
                assert outcome["fresh"].certificate.common_name == "maintenance-service.talos.dev"
                assert outcome["configured"].certificate.issuer == "O=talos"
            assert fresh.bytes_in == configured.bytes_in == web.bytes_in == 0
    asyncio.run(run())


def test_a_scan_yields_each_address_once_and_leaves_no_socket(maintenance_leaf):
    async def run():
        async with FakeNode(*maintenance_leaf) as node:
            port = free_port()
            targets = [Endpoint(f"127.0.{n // 250}.{n % 250 + 1}", port) for n in range(2000)] + [Endpoint("127.0.0.1", node.port)]
            before = len(os.listdir("/proc/self/fd"))
            found = [probe async for probe in nodes().scan(targets, rate=0, unresolved=0, timeout=5)]
            assert {probe.endpoint for probe in found} == set(targets) and len(found) == len(targets)
            assert sum(probe.kind == "Maintenance" for probe in found) == 1
            # Left early, in the middle of handshakes.
            async with contextlib.aclosing(nodes().scan(targets, rate=0, unresolved=0, timeout=5)) as early:
                async for dummy in early:
                    break
            await asyncio.sleep(0)
            assert len(os.listdir("/proc/self/fd")) <= before + 2  # the fake node's own ends may go a moment later
    asyncio.run(run())


def test_an_answer_that_never_comes_costs_the_time_of_one_connect():
    with full_backlog() as endpoint:
        async def run():
            targets = [endpoint] * 40
            begun = asyncio.get_running_loop().time()
            found = [probe async for probe in nodes().scan(targets, rate=0, unresolved=255, timeout=0.5)]
            assert {(probe.kind, probe.reason) for probe in found} == {("NotListening", "TimedOut")}
            assert len(found) == 40
            return asyncio.get_running_loop().time() - begun
        assert asyncio.run(run()) < 5


def test_unresolved_is_a_limit(monkeypatch):
    most = 0

    def count(self, waiting, tried, begun, started):
        nonlocal most
        most = max(most, len(self._near) + len(self._lingering))
        return pause(self, waiting, tried, begun, started)

    from ansible_collections.ichor.talos.plugins.module_utils._node import scan
    pause = scan._Scan._pause
    monkeypatch.setattr(scan._Scan, "_pause", count)
    monkeypatch.setattr(scan, "NEIGHBOUR_WAIT", 0.2)
    monkeypatch.setattr(scan, "read_neighbours", lambda: neighbours.Neighbours(None))
    with full_backlog() as endpoint:
        async def run():
            return [probe async for probe in nodes().scan([endpoint] * 20, rate=0, unresolved=8, timeout=0.1)]
        assert len(asyncio.run(run())) == 20
    assert most == 7


def test_only_neighbours_are_held_back(tmp_path):
    table = tmp_path / "route"
    table.write_text(
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
        "eth0\t8001A8C0\t0501A8C0\t0003\t0\t0\t0\t80FFFFFF\t0\t0\t0\n"
        "eth1\t0000000A\t00000000\t0000\t0\t0\t0\t000000FF\t0\t0\t0\n", encoding="ascii")
    found = neighbours.read_neighbours(str(table))
    assert [host for host in ("192.168.1.7", "192.168.1.200", "192.168.2.1", "10.1.1.1", "fe80::1") if found.has(host)] == ["192.168.1.7", "fe80::1"]
    assert neighbours.read_neighbours(str(tmp_path / "none")).has("10.1.1.1")
    table.write_text("garbage\nx y z 1 0 0 0 zz\n", encoding="ascii")
    assert neighbours.read_neighbours(str(table)).has("10.1.1.1")


def test_the_rate_is_a_limit():
    async def run():
        port = free_port()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        found = [probe async for probe in nodes().scan([Endpoint("127.0.0.9", port)] * 50, rate=100, unresolved=0, timeout=1)]
        assert len(found) == 50
        return loop.time() - begun
    assert asyncio.run(run()) >= 0.45


def test_a_hung_resolver_holds_nobody(monkeypatch):
    release = threading.Event()

    def hang(*dummy, **more):
        release.wait(30)
        raise OSError("late")

    async def run():
        monkeypatch.setattr(resolve.socket, "getaddrinfo", hang)
        with pytest.raises(TalosError) as raised:
            await resolve.Resolver(LAB).resolve(Endpoint("slow.example"), 0.1)
        return raised.value
    error = asyncio.run(run())
    assert (error.reason, error.failure.retryable) == ("NameNotResolved", True)
    assert not release.is_set()  # the loop ended although the look-up still hangs
    release.set()


def test_what_a_name_resolves_to_is_checked_and_dialled_without_asking_again(monkeypatch, maintenance_leaf):
    asked = []
    real = socket.getaddrinfo
    answers = [["127.0.0.1"], ["10.96.0.1"]]

    def answer(host, port, *more, **options):
        if host != "changing.example":
            return real(host, port, *more, **options)
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answers[min(len(asked), 2) - 1]]

    monkeypatch.setattr(socket, "getaddrinfo", answer)

    async def run():
        async with FakeNode(*maintenance_leaf) as node:
            product = TalosNodes(rules=[DialRules(allow_loopback=True, inside=("10.96.0.0/12",))], timing=Timing(call=5.0))
            async with product.maintenance(Endpoint("changing.example", node.port)):
                assert asked == ["changing.example"]
            with pytest.raises(TalosError) as raised:
                async with product.maintenance(Endpoint("changing.example", node.port)):
                    pass
            assert raised.value.reason == "EndpointRefused"
            assert node.connections == 1
    asyncio.run(run())


ADDRESSES = st.integers(0, 2**32 - 1).map(lambda number: str(ipaddress.IPv4Address(number)))
RANGES = st.tuples(ADDRESSES, st.integers(0, 32)).map(lambda pair: f"{pair[0]}/{pair[1]}")
RULES = st.builds(DialRules, allow_loopback=st.booleans(), reserved=st.lists(ADDRESSES | st.just("vip.example"), max_size=3).map(tuple),
                  inside=st.lists(RANGES | st.just("fd00::/8"), max_size=3).map(tuple))


@given(st.lists(RULES, min_size=1, max_size=3), ADDRESSES, st.integers(0, 3))
def test_the_screen_lets_nothing_pass_that_a_rule_refuses(rules, address, near):
    candidates = [address, "0.0.0.0", "127.0.0.1", "127.255.255.255", "224.0.0.1", "255.255.255.255"]
    for rule in rules:
        candidates += [text for text in rule.reserved if text[0].isdigit()]
        for cidr in rule.inside:
            network = ipaddress.ip_network(cidr, strict=False)
            if network.version == 4:
                candidates.append(str(network[min(near, network.num_addresses - 1)]))
    screen = Screen(rules)
    for candidate in candidates:
        if any(rule.problem(candidate) for rule in rules):
            assert not screen.passes(candidate)


def test_the_screen_passes_what_is_ordinary():
    screen = Screen([DialRules(inside=("10.244.0.0/16", "10.96.0.0/12"), reserved=("192.168.1.9",))])
    assert [host for host in ("192.168.1.8", "192.168.1.9", "10.1.2.3", "10.97.0.1", "127.0.0.1", "host.example", "::1", "10.1", "1.2.3.4\x00")
            if screen.passes(host)] == ["192.168.1.8", "10.1.2.3"]


def test_the_other_poller_does_the_same():
    made = poller._Selector()
    here, there = socket.socketpair()
    made.register(here.fileno())
    assert made.ready() == [here.fileno()] and made.fileno() >= 0
    made.unregister(here.fileno())
    assert made.ready() == []
    made.close()
    here.close()
    there.close()


SILENT = """
import asyncio, socket, sys
from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes

async def scan(port):
    nodes = TalosNodes(rules=(DialRules(allow_loopback=True),))
    found = [probe async for probe in nodes.scan([Endpoint("127.0.0.1", port)], rate=0, unresolved=0, timeout=5)]
    await nodes.close()
    return found

with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
(found,) = asyncio.run(scan(port))
print(found.kind, sorted({"grpc", "cryptography", "google.protobuf", "yaml"} & sys.modules.keys()))
"""


def test_a_scan_that_nothing_answers_imports_none_of_what_an_answer_needs() -> None:
    """The first packets do not wait for the libraries, which take as long to import as all of Ansible."""
    done = subprocess.run([sys.executable, "-c", SILENT], capture_output=True, text=True, timeout=120, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout.split(maxsplit=1) == ["NotListening", "[]\n"]


def test_a_module_that_scans_begins_without_what_works_on_records_and_pods() -> None:
    """What is imported counts before the first packet: AnsiballZ compiles it at each start."""
    late = ("_decide.drain", "_model.observations", "_model.workloads", "_operations.managed_workloads", "module_utils._store")
    code = "import sys\nimport ansible_collections.ichor.talos.plugins.modules.talos_discover\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert "_operations.discover\n" in done.stdout and [name for name in done.stdout.splitlines() if name.endswith(late)] == []
