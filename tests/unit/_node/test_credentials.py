# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials from talosconfig and bundle, good and bad; keys never on a disk (design section 5)."""

from __future__ import annotations

import base64
import os
import ssl
import textwrap
import time

import pytest
import yaml
from tests.unit._node.authority import CLIENT, Authority, pem
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._node import contexts, issue, talosconfig

NOW = time.time()


def b64(text):
    return base64.b64encode(text.encode()).decode()


def talos_label(key):
    return key.replace("BEGIN PRIVATE KEY", "BEGIN ED25519 PRIVATE KEY").replace("END PRIVATE KEY", "END ED25519 PRIVATE KEY")


@pytest.fixture(scope="module")
def admin(os_ca):
    certificate, key = os_ca.leaf(usages=(CLIENT,), organization=("os:admin",))
    return {"endpoints": ["10.0.0.1"], "ca": b64(pem(os_ca.certificate)), "crt": b64(certificate), "key": b64(talos_label(key))}


def config(context, name="prod"):
    return yaml.safe_dump({"context": name, "contexts": {name: context, "other": {}}})


def test_a_context_is_read_and_its_key_relabelled(admin):
    found = talosconfig.credentials_from_talosconfig(config(admin), now=NOW)
    assert found.endpoints == ("10.0.0.1",)
    assert found.source == "talosconfig context prod"
    assert found.key.startswith("-----BEGIN PRIVATE KEY-----")
    assert "KEY" not in repr(found)
    contexts.authenticated_context(found)


def wrapped(admin, key, how):
    lines = textwrap.wrap(admin[key], 64)
    body = "\n".join(f"      {line}" for line in lines)
    rest = "".join(f"    {name}: {value}\n" for name, value in admin.items() if name not in (key, "endpoints"))
    return f"context: prod\ncontexts:\n  prod:\n{rest}    {key}: {how}\n{body}\n"


def test_base64_with_line_breaks_is_read_where_talos_reads_it(admin):
    assert talosconfig.credentials_from_talosconfig(wrapped(admin, "crt", "|"), now=NOW).certificate.startswith("-----BEGIN")


BAD = {
    "empty": (lambda a: "", "CredentialsInvalid", "no mapping"),
    "not yaml": (lambda a: "context: [", "CredentialsInvalid", "cut off"),
    "cut in the middle of a key": (lambda a: config(a)[:-60].rsplit("ke", 1)[0] + "key: " + a["key"][:50], "CredentialsInvalid", ""),
    "key cut off": (lambda a: config({**a, "key": a["key"][:40]}), "CredentialsInvalid", "client key"),
    "crt cut off": (lambda a: config({**a, "crt": a["crt"][:101]}), "CredentialsInvalid", "cut off"),
    "omni": (lambda a: config({"endpoints": ["https://x.omni.siderolabs.io"], "auth": {"siderov1": {"identity": "a@b.c"}}}),
             "CredentialsInvalid", "Omni"),
    "no key": (lambda a: config({name: value for name, value in a.items() if name != "key"}), "CredentialsInvalid", "no client key"),
    "sops file": (lambda a: config({**a, "key": "ENC[AES256_GCM,data:x,iv:y]"}) + "sops: {}\n", "CredentialsInvalid", "SOPS"),
    "sops value": (lambda a: config({**a, "key": "ENC[AES256_GCM,data:x,iv:y]"}), "CredentialsInvalid", "SOPS"),
    "vault": (lambda a: "$ANSIBLE_VAULT;1.1;AES256\n6162\n", "CredentialsInvalid", "ansible-vault"),
    "file in base64": (lambda a: textwrap.fill(b64(config(a)), 76), "CredentialsInvalid", "base64"),
    "base64 joined with spaces": (lambda a: wrapped(a, "crt", ""), "CredentialsInvalid", "several lines"),
    "pem instead of base64": (lambda a: config({**a, "crt": base64.b64decode(a["crt"]).decode()}), "CredentialsInvalid", "PEM"),
    "not a certificate": (lambda a: config({**a, "crt": b64("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}),
                          "CredentialsInvalid", "client certificate"),
    "key of another": (lambda a: config({**a, "key": b64(pem(Authority().key))}), "CredentialsInvalid", "not the key"),
    "no such context": (lambda a: config(a).replace("context: prod", "context: gone"), "CredentialsInvalid", "gone"),
    "no contexts": (lambda a: "context: x\n", "CredentialsInvalid", "no contexts"),
    "context is a list": (lambda a: "context: x\ncontexts: {x: []}\n", "CredentialsInvalid", "not a mapping"),
    "huge": (lambda a: "x" * (2 << 20), "CredentialsInvalid", "1 MiB"),
    "a python object": (lambda a: "!!python/object/apply:os.system ['true']", "CredentialsInvalid", ""),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_talosconfigs_have_their_reason(admin, case):
    make, reason, said = BAD[case]
    with pytest.raises(TalosError) as raised:
        talosconfig.credentials_from_talosconfig(make(admin), now=NOW)
    error = raised.value
    assert error.reason == reason
    assert said in error.message
    assert error.hint
    for secret in (admin["key"], admin["key"][:40], base64.b64decode(admin["key"]).decode().splitlines()[1]):
        assert secret not in error.text + error.detail


def test_an_expired_certificate_says_when(os_ca):
    certificate, key = os_ca.leaf(usages=(CLIENT,), begins=-7200, ends=-3600)
    context = {"ca": b64(pem(os_ca.certificate)), "crt": b64(certificate), "key": b64(key)}
    with pytest.raises(TalosError) as raised:
        talosconfig.credentials_from_talosconfig(config(context), now=NOW)
    assert raised.value.reason == "CredentialsExpired"
    assert "UTC" in raised.value.message
    assert talosconfig.credentials_from_talosconfig(config(context), now=NOW - 5400)


def bundle(ca, key=None):
    return yaml.safe_dump({"certs": {"os": {"crt": b64(pem(ca.certificate)), "key": b64(key or talos_label(pem(ca.key)))}}})


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
def test_a_certificate_from_the_bundle_is_as_talos_makes_it(kind):
    ca = Authority(kind=kind)
    found = issue.credentials_from_bundle(bundle(ca).encode(), now=NOW, source="bundle prod")
    certificate = x509.load_pem_x509_certificate(found.certificate.encode())
    assert [value.value for value in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["os:admin"]
    assert len(list(certificate.subject)) == 1
    assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert certificate.extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
    begins, ends = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    assert 60 < NOW - begins < 3600 and 3600 < ends - NOW <= 24 * 3600
    assert type(certificate.public_key()) is type(ca.key.public_key())
    certificate.verify_directly_issued_by(ca.certificate)
    assert found.source == "bundle prod"
    contexts.authenticated_context(found)
    again = issue.credentials_from_bundle(bundle(ca), now=NOW)
    assert again.key != found.key


def test_an_ec_key_in_its_old_form_is_read():
    ca = Authority(kind="ecdsa")
    old = ca.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    assert b"BEGIN EC PRIVATE KEY" in old
    assert issue.credentials_from_bundle(bundle(ca, old.decode()), now=NOW)


@pytest.mark.parametrize(("text", "said"), [
    ("a: [", "not YAML"), ("{}", "certs.os"), ("certs: {os: {crt: x}}", "OS CA"), ("certs: {os: {}}", "no certificate"),
    ("$ANSIBLE_VAULT;1.1;AES256\n6162", "ansible-vault"), ("sops: {}\ncerts: {}", "SOPS"), (b"\xff\xfe", "not YAML"),
])
def test_bad_bundles_have_their_reason(text, said):
    with pytest.raises(TalosError) as raised:
        issue.credentials_from_bundle(text, now=NOW)
    assert raised.value.reason == "BundleInvalid"
    assert said in raised.value.message


def test_an_expired_ca():
    ca = Authority(days=1)
    with pytest.raises(TalosError) as raised:
        issue.credentials_from_bundle(bundle(ca), now=NOW + 3 * 86400)
    assert raised.value.reason == "CredentialsExpired"


def test_the_key_is_never_on_a_disk(admin, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = []
    original = ssl.SSLContext.load_cert_chain

    def look(self, certfile, keyfile=None, password=None):
        seen.append((certfile, keyfile, os.listdir(tmp_path)))
        return original(self, certfile, keyfile, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    before = set(os.listdir("/proc/self/fd"))
    contexts.authenticated_context(talosconfig.credentials_from_talosconfig(config(admin), now=NOW))
    assert len(seen) == 1 and seen[0][0].startswith("/proc/self/fd/") and seen[0][1].startswith("/proc/self/fd/") and seen[0][2] == []
    assert set(os.listdir("/proc/self/fd")) == before


def test_without_memory_files_it_is_a_private_file_that_goes_at_once(admin, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delattr(os, "memfd_create")
    modes = []
    original = ssl.SSLContext.load_cert_chain

    def look(self, certfile, keyfile=None, password=None):
        modes.append((os.stat(keyfile).st_mode & 0o777, os.stat(os.path.dirname(keyfile)).st_mode & 0o777))
        return original(self, certfile, keyfile, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    contexts.authenticated_context(talosconfig.credentials_from_talosconfig(config(admin), now=NOW))
    assert modes == [(0o600, 0o700)]
    assert os.listdir(tmp_path) == []
