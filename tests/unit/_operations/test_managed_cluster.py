# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the Kubernetes of a managed cluster has its machines: a real API server that knows the bundle's CA (design section 10)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import MERGE_PATCH
from ansible_collections.ichor.talos.plugins.module_utils._kube.nodes import place_of
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.kubeconfig import Kubeconfig
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import NodePlace
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present
from ansible_collections.ichor.talos.plugins.module_utils._operations.managed_cluster import ManagedClusters

from tests.parts.apiserver import ADMIN_TOKEN, ApiServer, running
from tests.unit._operations.managed_world import BUNDLE, Clock, Records, serving

UUID = "4c4c4544-0042-3010-8047-000000000001"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with running(serving()) as started:
        (started.folder / "certs").mkdir(exist_ok=True)
        (started.folder / "certs" / "apiserver.crt").write_text((started.folder / "serving-authority.pem").read_text())
        api = open_api(Access(kubeconfig=str(started.kubeconfig)))
        for name, address, uuid in (("cp-1", "192.0.2.21", UUID.upper()), ("w-1", "192.0.2.22", "")):
            api.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            api.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
                "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}],
                "nodeInfo": dict.fromkeys(("machineID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
                                           "kubeProxyVersion", "operatingSystem", "architecture"), "x") | {"systemUUID": uuid}}}, content_type=MERGE_PATCH)
        api.close()
        yield started


@pytest.fixture
def clusters(server: ApiServer) -> Iterator[ManagedClusters]:
    found = ManagedClusters(Records(f"https://127.0.0.1:{server.port}"), Clock())  # type: ignore[arg-type]
    yield found
    found.close()


def test_the_node_of_a_name_is_told(clusters: ManagedClusters) -> None:
    for names, uuid, wanted in ((["cp-1"], "", ("cp-1", ("192.0.2.21",), UUID.upper())), (["gone", "W-1"], UUID, ("w-1", ("192.0.2.22",), ""))):
        found = clusters("prod", names, uuid)
        assert isinstance(found, Present) and found.source == "Kubernetes of prod"
        assert (found.value.name, found.value.addresses, found.value.system_uuid) == wanted


def test_else_the_node_of_the_uuid_and_else_none(clusters: ManagedClusters) -> None:
    found = clusters("prod", ["renamed"], UUID)
    assert isinstance(found, Present) and found.value.name == "cp-1"
    assert clusters("prod", ["renamed"], "4c4c4544-0042-3010-8047-0000000000ff") == Absent("Kubernetes of prod")


def test_a_whole_pass_asks_once(server: ApiServer) -> None:
    clock = Clock()
    clusters = ManagedClusters(Records(f"https://127.0.0.1:{server.port}"), clock)  # type: ignore[arg-type]

    def asked() -> int:
        return sum(json.loads(line)["requestURI"].startswith("/api/v1/nodes?") and "ichor.talos" in json.loads(line)["userAgent"]
                   for line in server.audit.read_text().splitlines() if json.loads(line)["verb"] == "list")

    before = asked()
    for dummy in range(50):
        clusters("prod", ["cp-1"], "")
    assert asked() == before + 1
    clock.ticks += 60
    clusters("prod", ["cp-1"], "")
    assert asked() == before + 2
    clusters.close()


def test_who_asks_is_an_administrator_for_an_hour(clusters: ManagedClusters, server: ApiServer) -> None:
    clusters("prod", ["cp-1"], "")
    users = {json.loads(line)["user"]["username"] for line in server.audit.read_text().splitlines()
             if '"userAgent":"ichor.talos"' in line and "/api/v1/nodes?" in line}
    assert users == {"ichor.talos"}


@pytest.mark.parametrize("endpoint, bundle, reason", [
    ("https://127.0.0.1:1", BUNDLE.read_bytes(), "TimedOut"), ("", BUNDLE.read_bytes(), "RecordNotFound"),
    ("https://127.0.0.1:1", b"a: 1\n", "BundleInvalid"), ("https://127.0.0.1:1", b"[", "BundleInvalid"),
])
def test_what_cannot_be_told_is_unknown(endpoint: str, bundle: bytes, reason: str) -> None:
    clusters = ManagedClusters(Records(endpoint, bundle), Clock())  # type: ignore[arg-type]
    with pytest.raises(TalosError) as caught:
        clusters("prod", ["cp-1"], UUID)
    assert caught.value.reason == reason
    with pytest.raises(TalosError) as again:
        clusters("prod", ["cp-1"], UUID)
    assert again.value is caught.value  # not asked again at once
    with pytest.raises(TalosError):
        clusters("other", ["cp-1"], UUID)


def given(server: ApiServer, cluster: str) -> Kubeconfig:
    """A person's kubeconfig of two clusters: the first is out of reach, and the second is called as said. Their context is not the current one."""
    config = yaml.safe_load(server.kubeconfig_for(ADMIN_TOKEN))
    config["clusters"][0]["name"] = config["contexts"][0]["context"]["cluster"] = cluster
    config["clusters"].insert(0, {"name": "away", "cluster": {"server": "https://127.0.0.1:1"}})
    config["contexts"].insert(0, {"name": "away", "context": {"cluster": "away", "user": "test"}})
    # The path of the authority counts from the folder of the kubeconfig.
    config["clusters"][1]["cluster"]["certificate-authority"] = "certs/apiserver.crt"
    return Kubeconfig(yaml.safe_dump({**config, "current-context": "away"}), str(server.folder / "people.yaml"))


def test_a_kubeconfig_that_is_given_is_used_instead_of_endpoint_and_bundle(server: ApiServer) -> None:
    since = len(server.audit.read_text().splitlines())
    clusters = ManagedClusters(Records("https://127.0.0.1:1", b""), Clock(), given(server, "prod"))  # type: ignore[arg-type]
    found = clusters("prod", ["cp-1"], "")
    clusters.close()
    assert isinstance(found, Present) and found.value.addresses == ("192.0.2.21",)
    asked = [json.loads(line) for line in server.audit.read_text().splitlines()[since:] if '"userAgent":"ichor.talos"' in line]
    assert {entry["user"]["username"] for entry in asked} == {"admin"}


@pytest.mark.parametrize("text", ["", "[", None])
def test_a_kubeconfig_of_another_cluster_is_never_used_for_this_one(server: ApiServer, text: str | None) -> None:
    config = given(server, "lab") if text is None else Kubeconfig(text)
    clusters = ManagedClusters(Records(f"https://127.0.0.1:{server.port}"), Clock(), config)  # type: ignore[arg-type]
    with pytest.raises(TalosError) as caught:
        clusters("prod", ["cp-1"], "")
    assert caught.value.reason == "CredentialsInvalid" and (text is not None or "called prod" in caught.value.message)


def test_a_server_of_another_authority_is_unknown(apiserver: ApiServer) -> None:
    clusters = ManagedClusters(Records(f"https://127.0.0.1:{apiserver.port}"), Clock())  # type: ignore[arg-type]
    with pytest.raises(TalosError, match="CERTIFICATE_VERIFY_FAILED"):
        clusters("prod", ["cp-1"], UUID)
    clusters.close()


def test_two_nodes_of_one_uuid_tell_nothing() -> None:
    nodes = (NodePlace("a", ("192.0.2.1",), UUID), NodePlace("b", ("192.0.2.2",), UUID))
    assert isinstance(place_of(nodes, [], UUID), Absent)
    assert place_of(nodes, ["b"], UUID) == Present(nodes[1])
