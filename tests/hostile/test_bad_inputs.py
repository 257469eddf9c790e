# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials, names and configurations that cannot be used, through the modules: reason, sentence, nothing sent."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import yaml

from tests.hostile.saying import World, refusal, two_sentences, world
from tests.lab.certificates import certificate_pem, talos_key_pem
from tests.lab.configs import ClusterSecrets
from tests.lab.machine_calls import talosconfig

RESOLVER = "tests.hostile.resolver:install"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("inputs")) as made:
        yield made


def expired(secrets: ClusterSecrets) -> str:
    leaf = secrets.client(start=timedelta(hours=-48), lifetime=timedelta(hours=24))
    return talosconfig("prod", certificate_pem(secrets.os.certificate), certificate_pem(leaf.certificate), talos_key_pem(leaf.key), ["os:admin"], [])


def without_keys(secrets: ClusterSecrets) -> str:
    return "context: omni\ncontexts:\n  omni:\n    endpoints: [https://omni.example.org]\n    auth:\n      siderov1: {identity: ada@example.org}\n"


def with_line_breaks(secrets: ClusterSecrets) -> str:
    document = yaml.safe_load(secrets.talosconfig([]))
    context = document["contexts"][document["context"]]
    for key in ("ca", "crt", "key"):
        context[key] = "\n".join(textwrap.wrap(context[key], 64))
    return yaml.safe_dump(document)


def cut(secrets: ClusterSecrets) -> str:
    text = secrets.talosconfig([])
    return text[:len(text) // 2]


def half_a_key(secrets: ClusterSecrets) -> str:
    document = yaml.safe_load(secrets.talosconfig([]))
    context = document["contexts"][document["context"]]
    context["key"] = context["key"][:40]
    return yaml.safe_dump(document)


def sops(secrets: ClusterSecrets) -> str:
    return "context: ENC[AES256_GCM,data:x,type:str]\ncontexts: ENC[AES256_GCM,data:y]\nsops:\n  version: 3.9.0\n  mac: ENC[AES256_GCM,data:z]\n"


TALOSCONFIGS: dict[str, tuple[Callable[[ClusterSecrets], str], set[str]]] = {
    "expired": (expired, {"CredentialsExpired"}), "cut": (cut, {"CredentialsInvalid"}), "half-a-key": (half_a_key, {"CredentialsInvalid"}),
    "without-keys": (without_keys, {"CredentialsInvalid"}), "sops": (sops, {"CredentialsInvalid", "TemplateUnexpanded"}),
    "empty": (lambda secrets: "", {"CredentialsInvalid"}), "not-yaml": (lambda secrets: "a: [b", {"CredentialsInvalid"}),
    "vault": (lambda secrets: "$ANSIBLE_VAULT;1.1;AES256\n6162\n", {"SecretsUnavailable"}),
    "template": (lambda secrets: "{{ talosconfig }}", {"CredentialsInvalid", "TemplateUnexpanded"}),
    "binary": (lambda secrets: "\ufffd\u0000\u0001", {"CredentialsInvalid"}),
    "long": (lambda secrets: "x: " + "y" * 1_000_000, {"CredentialsInvalid"}),
}


@pytest.mark.parametrize("case", TALOSCONFIGS)
def test_a_talosconfig_that_cannot_be_used(here: World, case: str) -> None:
    make, reasons = TALOSCONFIGS[case]
    path = here.file(f"talosconfig-{case}", make(here.secrets))
    address = here.node("read", 1)
    looked = here.run("talos_stage", address=address, talosconfig=path)
    if looked.status:
        assert refusal(looked)[0] in reasons
    else:
        row = looked.result["machines"][0]
        assert row["stage"] in ("maintenance", "unknown")
    sent = here.applied("read", address, talosconfig_content=None, talosconfig=path, config_content=here.secrets.config("worker", "w-1"))
    assert refusal(sent)[0] in reasons, sent.output
    assert not [entry for entry in here.lab.log(node="read") if entry.get("kind") == "write"]


def test_a_talosconfig_with_line_breaks_in_its_base64_is_read(here: World) -> None:
    address = here.node("breaks", 2)
    path = here.file("breaks", with_line_breaks(here.secrets))
    assert here.applied("breaks", address, talosconfig_content=None, talosconfig=path).status == 0


CONFIGURATIONS = {
    "empty": "", "not-yaml": "a: [b", "list": "- 1\n", "template": "machine: {{ x }}\n", "vault": "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
    "deep": "a: " + "{b: " * 2000 + "1" + "}" * 2000, "bomb": "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(3)),
    "tag": "!!python/object/apply:os.system ['touch HERE']\n", "unknown": "version: v1alpha1\nmachine: {type: worker, nonsense: 1}\n",
    "binary": "\u0001\u0002", "half": "version: v1alpha1\nmachine:\n  type: worker\n  token: abc",
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_a_configuration_that_cannot_be_sent(here: World, case: str) -> None:
    address = here.node("sent", 3)
    reason, dummy = refusal(here.applied("sent", address, config_content=CONFIGURATIONS[case]))
    assert reason in ("ConfigInvalid", "TemplateUnexpanded", "SecretsUnavailable", "InstallDiskUnknown", "InvalidInput")
    assert not [entry for entry in here.lab.log(node="sent") if entry.get("kind") == "write"]
    assert not list(here.folder.rglob("HERE"))


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "[::1]:50000", "0.0.0.0", "224.0.0.1", "::ffff:127.0.0.1", "[::]", "127.1"])
def test_addresses_that_are_never_dialled(here: World, address: str) -> None:
    ended = here.run("talos_discover", addresses=[address], register=False, allow_loopback=False)
    assert refusal(ended)[0] in ("EndpointRefused", "InvalidAddress", "NameNotResolved")


def test_a_name_that_resolves_to_loopback_beside_a_good_address_is_refused_as_a_whole(here: World) -> None:
    ended = here.run("talos_stage", address="node.example.org", talosconfig_content=here.secrets.talosconfig([]), allow_loopback=False,
                     hook=RESOLVER, told=[["192.0.2.1", "127.0.0.1"]])
    assert "loopback" in ended.result["msg"], ended.result
    two_sentences(ended.result["msg"])


def test_a_name_that_answers_otherwise_the_second_time_is_not_asked_twice_by_one_connection(here: World) -> None:
    """Each connection looks the name up once, and what was checked is what is dialled; the next look-up is checked anew."""
    address = here.node("named", 4)
    ended = here.run("talos_discover", addresses=["node.example.org"], register=False, allow_loopback=True, hook=RESOLVER, told=[[address], [address]])
    assert ended.result["found"][0]["uuid"] == here.lab.state(node="named")["uuid"]
    mark = here.lab.mark()
    ended = here.run("talos_discover", addresses=["node.example.org"], register=False, hook=RESOLVER, told=[[address], ["224.0.0.1"]])
    assert ended.result["found"][0]["kind"] == "Maintenance" and "multicast" in ended.result["found"][0]["message"]
    assert not here.lab.log(since=mark, node="named", event="call")


def test_a_resolver_that_hangs_costs_one_deadline(here: World) -> None:
    ended = here.run("talos_stage", address="node.example.org", talosconfig_content=here.secrets.talosconfig([]), hook=RESOLVER, told=[])
    assert ended.result["machines"][0]["reason"] == "NodeUnreachable" and "resolved" in ended.result["machines"][0]["message"]
    found = here.run("talos_discover", addresses=["a.example.org", "b.example.org"], register=False, hook=RESOLVER, told=[])
    assert all("resolved" in entry["message"] for entry in found.result["found"])


def test_a_bundle_that_is_no_base64_or_belongs_to_nobody(here: World) -> None:
    """A store whose bundle is broken fails before anything is dialled."""
    path = str(here.folder / "bundled")
    address = here.node("bundled", 5)
    made = here.run("talos_cluster", name="prod", endpoint="https://192.0.2.10:6443", talos_version="v1.13.9", kubernetes_version="v1.35.0", bundle="prod",
                    control_planes=1, discovery={"addresses": [address]}, store_path=path)
    assert made.status == 0, made.output
    (here.folder / "bundled" / "secrets").mkdir(mode=0o700, exist_ok=True)
    here.file("bundled/secrets/prod.yaml", "certs: {os: {crt: " + base64.b64encode(b"no certificate").decode() + ", key: eA==}}\n")
    assert here.run("talos_discover", cluster="prod", store_path=path).status == 0
    (name,) = [file.stem for file in (here.folder / "bundled" / "machines").glob("*.yaml")]
    assert here.run("talos_machine_approval", machine=name, role="worker", hostname="w-1", install={"disk": "/dev/sda"}, store_path=path).status == 0
    mark = here.lab.mark()
    ended = here.run("talos_maintenance_apply", machine=name, store_path=path, config_content=here.secrets.config("worker", "w-1"))
    assert refusal(ended)[0] in ("SecretsUnavailable", "BundleInvalid", "CredentialsInvalid")
    assert not here.lab.log(since=mark, node="bundled", event="call")
