# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The secrets bundle: made, read, checked by field, rebuilt; nothing of it in a repr."""
from __future__ import annotations

import base64
import dataclasses
import datetime
import functools
import itertools
import json
import re

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import authorities, documents, generate, secrets
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem
from tests.vectors_config import HERE, rows

NOW = datetime.datetime(2026, 11, 29, 12, 0, 0, 5, tzinfo=datetime.timezone.utc)


def counting() -> object:
    """A source of bytes that gives the same ones each time."""
    state = itertools.count(1)
    return lambda size: bytes((next(state) * 7 + 3) % 256 for dummy in range(size))


@functools.lru_cache(maxsize=None)
def made() -> secrets.Bundle:
    return authorities.make_bundle(NOW, counting())  # type: ignore[arg-type]


@functools.lru_cache(maxsize=None)
def fixed() -> secrets.Bundle:
    return secrets.read_bundle((HERE / "secrets.yaml").read_bytes())


def test_made_as_talos_makes_them() -> None:
    bundle = made()
    for pair, organization, kind in (
        (bundle.etcd, "etcd", ec.EllipticCurvePrivateKey), (bundle.k8s, "kubernetes", ec.EllipticCurvePrivateKey),
        (bundle.aggregator, "", ec.EllipticCurvePrivateKey), (bundle.os, "talos", ed25519.Ed25519PrivateKey),
    ):
        certificate = authorities.load_certificate(pair.crt)
        assert isinstance(authorities.load_key(pair.key), kind)
        assert certificate.subject == certificate.issuer
        assert [attribute.value for attribute in certificate.subject] == ([organization] if organization else [])
        assert certificate.not_valid_before_utc == NOW.replace(microsecond=0)
        assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == datetime.timedelta(days=3650)
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        assert basic.critical and basic.value.ca and basic.value.path_length is None
        assert authorities.signed_by(pair.crt, pair.crt)
        with pytest.raises(x509.ExtensionNotFound):
            certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    key = authorities.load_key(bundle.service_account.key)
    assert isinstance(key, rsa.RSAPrivateKey) and key.key_size == 4096
    assert bundle.os.key.startswith("-----BEGIN ED25519 PRIVATE KEY-----\n")
    assert bundle.etcd.key.startswith("-----BEGIN EC PRIVATE KEY-----\n")
    assert bundle.service_account.key.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    for token in (bundle.bootstrap_token, bundle.trustd_token):
        assert re.fullmatch(r"[0-9a-z]{6}\.[0-9a-z]{16}", token)
    for value in (bundle.cluster_id, bundle.cluster_secret, bundle.secretbox):
        assert len(base64.b64decode(value)) == 32
    assert not bundle.aescbc and authorities.check_bundle(bundle, NOW) == ()


def test_randomness_is_passed_in() -> None:
    source = counting()
    assert base64.b64decode(made().cluster_id) == source(32)  # type: ignore[operator]
    assert base64.b64decode(made().cluster_secret) == source(32)  # type: ignore[operator]


def test_the_alphabet_of_the_cluster_id_follows_the_contract() -> None:
    def high(size: int) -> bytes:
        return b"\xfb" * (size - 1) + b"\x00"
    assert "-" in authorities.make_bundle(NOW, high, contract="1.13").cluster_id
    assert not set(made().cluster_id) & set("-_")


@pytest.mark.parametrize("name", ["secrets.yaml", "secrets-aescbc.yaml"])
def test_files_of_both_generations_read_back_to_the_byte(name: str) -> None:
    text = (HERE / name).read_text(encoding="utf-8")
    bundle = secrets.read_bundle(text)
    assert bundle.text() == text
    assert bool(bundle.aescbc) == ("aescbc" in name) and authorities.check_bundle(bundle) == ()


def test_unknown_keys_are_ignored_and_crlf_is_read() -> None:
    text = (HERE / "secrets.yaml").read_text(encoding="utf-8")
    assert secrets.read_bundle("extra: {a: b}\n" + text.replace("\n", "\r\n")) == fixed()


PUBLIC = dataclasses.replace(fixed(), etcd=dataclasses.replace(fixed().etcd, crt=fixed().k8s.crt))
NOT_A_CA = "no certificate"


@pytest.mark.parametrize(("change", "path", "words", "talos"), [
    ({"cluster_id": ""}, "cluster.id", "cluster.id is required", True), ({"cluster_secret": ""}, "cluster.secret", "cluster.secret is required", True),
    ({"trustd_token": ""}, "trustdinfo.token", "trustdinfo.token is required", True),
    ({"bootstrap_token": ""}, "secrets.bootstraptoken", "secrets.bootstraptoken is required", True),
    ({"secretbox": ""}, "secrets", "one of [secrets.secretboxencryptionsecret, secrets.aescbcencryptionsecret] is required", True),
    ({"aescbc": "x"}, "secrets", "only one of [secrets.secretboxencryptionsecret, secrets.aescbcencryptionsecret] is allowed", True),
    ({"cluster_secret": "c2hvcnQ="}, "cluster.secret", "not 32 bytes", False),
    ({"secretbox": "not base64!"}, "secrets.secretboxencryptionsecret", "not 32 bytes", False),
    ({"etcd": secrets.Pair()}, "certs.etcd.key", "required", True), ({"k8s": secrets.Pair("x", "y")}, "certs.k8s.key", "invalid", True),
    ({"k8s": secrets.Pair("x", fixed().k8s.key)}, "certs.k8s.crt", "invalid", True),
    ({"os": secrets.Pair(fixed().os.crt, made().os.key)}, "certs.os.key", "is not the key of", False),
    ({"os": secrets.Pair(fixed().etcd.crt, fixed().etcd.key)}, "certs.os", "Ed25519", False),
    ({"aggregator": secrets.Pair(fixed().aggregator.crt, fixed().etcd.key)}, "certs.k8saggregator.key", "is not the key of", False),
    ({"service_account": secrets.Pair(key="")}, "certs.k8sserviceaccount.key", "required", True),
    ({"service_account": secrets.Pair(key="-----BEGIN X-----")}, "certs.k8sserviceaccount.key", "invalid", True),
])
def test_checked_by_field(change: dict[str, object], path: str, words: str, talos: bool) -> None:
    findings = authorities.check_bundle(dataclasses.replace(fixed(), **change))  # type: ignore[arg-type]
    assert any(finding.path == path and words in finding.message and finding.talos == talos for finding in findings), findings


def test_a_certificate_that_may_not_sign_is_no_ca() -> None:
    key = authorities.load_key(fixed().etcd.key)
    name = x509.Name([])
    leaf = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
            .not_valid_before(NOW).not_valid_after(NOW + datetime.timedelta(days=1)).sign(key, hashes.SHA256()))
    pem = leaf.public_bytes(serialization.Encoding.PEM).decode()
    findings = authorities.check_bundle(dataclasses.replace(fixed(), etcd=secrets.Pair(pem, fixed().etcd.key)))
    assert [finding.path for finding in findings] == ["certs.etcd.crt"] and "no CA" in findings[0].message


def test_an_expired_ca_is_found() -> None:
    late = NOW + datetime.timedelta(days=4000)
    assert {finding.path for finding in authorities.check_bundle(made(), late)} >= {"certs.os.crt", "certs.etcd.crt"}
    assert not authorities.signed_by(made().os.crt, fixed().os.crt)


@pytest.mark.parametrize("text", ["", "a: 1\n", "- 1\n", "certs: 5\n", "certs: {etcd: {crt: [a]}}\n", "certs: {etcd: {crt: '%%%'}}\n",
                                  "certs: {etcd: {crt: /w==}}\n",
                                  "a: 1\n---\nb: 1\n", "cluster: {id: a, id: b}\n"])
def test_no_bundle(text: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        secrets.read_bundle(text, source="secrets.yaml")
    assert caught.value.source == "secrets.yaml"


ROWS = [row for row in rows(HERE, "generate.jsonl") if row["input"]["role"] == "controlplane"]


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_rebuilt_from_a_control_planes_configuration(row: dict[str, object]) -> None:
    config = documents.load(str(row["output"]), str(row["machinery"])[1:5])
    name = json.loads(json.dumps(row["input"]))["secrets"]
    expected = secrets.read_bundle((HERE / name).read_bytes())
    if name == "secrets-aescbc.yaml" and not row["id"].endswith("v1.14/controlplane/aescbc"):  # type: ignore[attr-defined]
        # Talos's generator leaves the old key out for 1.12 and 1.13
        expected = dataclasses.replace(expected, aescbc="")
    assert secrets.bundle_of_config(config) == expected


def test_a_worker_has_no_bundle() -> None:
    given = generate.GenerateInput("c", "https://h", "1.35.0", "i:v1", fixed())
    with pytest.raises(ConfigProblem) as caught:
        secrets.bundle_of_config(generate.generate(given, "worker", "1.14"))
    assert caught.value.reason == "BundleInvalid"


def test_no_secret_in_a_repr() -> None:
    shown = repr(fixed())
    for secret in fixed().secrets():
        assert secret not in shown
    assert len(fixed().secrets()) == 9
