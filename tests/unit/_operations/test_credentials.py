# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials issued from a bundle, as files (design section 5)."""

from __future__ import annotations

import asyncio
import base64
import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.authorities import signed_by
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._node.talosconfig import credentials_from_talosconfig
from ansible_collections.ichor.talos.plugins.module_utils._operations.credentials import Request, run
from tests.unit._operations.configuration_world import VECTORS, World
from tests.unit._operations.world import OpenGate

BUNDLE = read_bundle((VECTORS / "secrets.yaml").read_bytes())


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.put_bundle()
    world.machine("cp", 1, "controlplane")
    world.machine("cp2", 2, "controlplane", endpoint="10.0.0.2:50001")
    world.machine("w1", 3)
    return world


def issue(world: World, kind: str = "talosconfig", check: bool = False, **request: Any) -> Outcome:
    wish = Request(kind, str(world.folder / "out"), **{"cluster": "prod", **request})
    return asyncio.run(run(wish, world.ports(check), OpenGate(check)))


def test_a_talosconfig_that_the_client_reads(world: World) -> None:
    outcome = issue(world)
    path = world.folder / "out"
    assert path.stat().st_mode & 0o777 == 0o600 and outcome.executed
    found = credentials_from_talosconfig(path.read_text(encoding="utf-8"), now=world.clock.now())
    assert found.endpoints == ("10.0.0.1", "10.0.0.2:50001") and found.ca == BUNDLE.os.crt
    certificate = x509.load_pem_x509_certificate(found.certificate.encode())
    assert [name.value for name in certificate.subject] == ["os:admin"] and signed_by(found.certificate, BUNDLE.os.crt)
    assert certificate.not_valid_after_utc - datetime.datetime.fromtimestamp(world.clock.now(), datetime.timezone.utc) == datetime.timedelta(hours=8760)
    assert "-----BEGIN ED25519 PRIVATE KEY" in base64.b64decode(yaml.safe_load(path.read_text(encoding="utf-8"))["contexts"]["prod"]["key"]).decode()
    assert found.key not in repr(outcome)


def test_a_kubeconfig_of_an_administrator(world: World) -> None:
    issue(world, "kubeconfig")
    content = yaml.safe_load((world.folder / "out").read_text(encoding="utf-8"))
    user, cluster = content["users"][0]["user"], content["clusters"][0]["cluster"]
    pem = base64.b64decode(user["client-certificate-data"]).decode()
    certificate = x509.load_pem_x509_certificate(pem.encode())
    assert cluster["server"] == "https://10.9.9.9:6443" and base64.b64decode(cluster["certificate-authority-data"]).decode() == BUNDLE.k8s.crt
    assert certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "admin"
    assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert signed_by(pem, BUNDLE.k8s.crt) and load_pem_private_key(base64.b64decode(user["client-key-data"]), None)
    assert content["contexts"][0]["name"] == content["current-context"] == "admin@prod"


@pytest.mark.parametrize("kind", ["talosconfig", "kubeconfig"])
def test_a_good_file_is_left_alone_and_renewed_in_time(world: World, kind: str) -> None:
    issue(world, kind)
    before = (world.folder / "out").read_bytes()
    assert not issue(world, kind).plan.changed
    world.clock.time += 330 * 86400
    assert not issue(world, kind).plan.changed
    world.clock.time += 6 * 86400
    assert issue(world, kind).executed and (world.folder / "out").read_bytes() != before


def test_roles_and_addresses_and_mode_are_kept(world: World) -> None:
    issue(world)
    assert issue(world, roles=("os:reader",)).executed and not issue(world, roles=("os:reader",)).plan.changed
    assert issue(world, roles=("os:reader",), endpoints=("192.0.2.1",)).executed
    (world.folder / "out").chmod(0o644)
    assert issue(world, roles=("os:reader",), endpoints=("192.0.2.1",)).executed
    assert (world.folder / "out").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"context: a\ncontexts: {a: {}, b: {}}\n", b"contexts: {a: {ca: x, crt: y, key: z}}\n", b"- 1\n"])
def test_a_file_that_is_something_else_stays(world: World, content: bytes) -> None:
    (world.folder / "out").write_bytes(content)
    assert issue(world).refused and (world.folder / "out").read_bytes() == content
    assert issue(world, replace=True).executed


def test_check_mode_writes_nothing(world: World) -> None:
    assert issue(world, check=True).plan.changed and not (world.folder / "out").exists()


def test_without_any_store(world: World) -> None:
    bundle = (VECTORS / "secrets.yaml").read_bytes()
    issue(world, "kubeconfig", bundle=bundle, server="https://192.0.2.5:6443", cluster="home")
    assert yaml.safe_load((world.folder / "out").read_text(encoding="utf-8"))["clusters"][0]["name"] == "home"
    assert issue(world, "kubeconfig", bundle=b"nothing", server="https://192.0.2.5:6443").reason == "BundleInvalid"


def test_what_makes_no_sense_is_told(world: World) -> None:
    for wrong in ({"lifetime": 0.0}, {"lifetime": float("nan")}, {"lifetime": 1e300}, {"lifetime": 5.0, "renew_before": 6.0}, {"cluster": "nobody"}):
        with pytest.raises(TalosError):
            issue(world, **wrong)
    (world.folder / "ichor" / "secrets" / "prod.yaml").chmod(0o644)
    assert issue(world).reason == "SecretsUnavailable" and not (world.folder / "out").exists()
