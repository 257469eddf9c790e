# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration that a person brings: what is read off it, what is refused, what is hidden."""
from __future__ import annotations

import base64
import hashlib

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.cel import of_selector, path_of, selector_of
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem

CA = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN ED25519 PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END ED25519 PRIVATE KEY-----\n"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


LEGACY = f"""\
version: v1alpha1
machine:
  type: controlplane
  token: abcdef.0123456789abcdef
  ca:
    crt: {b64(CA)}
    key: {b64(KEY)}
  network:
    hostname: cp-1
  install:
    disk: /dev/sda  # the first
    image: ghcr.io/siderolabs/installer:v1.12.0
cluster:
  id: the-id
  secret: c2VjcmV0LW9mLXRoZS1jbHVzdGVy
  clusterName: home
  controlPlane:
    endpoint: https://10.0.0.1:6443
"""
DOCUMENTS = """\
machine: {type: worker}
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: w-1
auto: off
---
apiVersion: v1alpha1
kind: UnattendedInstallConfig
installer: {image: x}
provisioning:
  diskSelector: {match: 'disk.dev_path == "/dev/nvme0n1"'}
---
apiVersion: v1alpha1
kind: KubeClusterConfig
clusterName: home
endpoint: https://10.0.0.1:6443
---
apiVersion: v1alpha1
kind: DiscoveryIdentityConfig
clusterID: the-id
clusterSecret: top-secret-value
"""


def test_legacy_facts() -> None:
    config = bring(LEGACY.encode())
    assert config.complete
    assert (config.role, config.hostname, config.install_disk) == ("controlplane", "cp-1", "/dev/sda")
    assert (config.cluster_name, config.cluster_id, config.endpoint) == ("home", "the-id", "https://10.0.0.1:6443")
    assert config.machine_ca == CA
    assert config.install_image == "ghcr.io/siderolabs/installer:v1.12.0"
    assert config.sha256 == hashlib.sha256(LEGACY.encode()).hexdigest()
    assert config.raw == LEGACY.encode()
    assert {"abcdef.0123456789abcdef", b64(KEY), "c2VjcmV0LW9mLXRoZS1jbHVzdGVy"} <= config.secrets


def test_document_facts() -> None:
    config = bring(DOCUMENTS.encode())
    assert (config.role, config.hostname, config.install_disk) == ("worker", "w-1", "/dev/nvme0n1")
    assert (config.cluster_name, config.cluster_id, config.endpoint) == ("home", "the-id", "https://10.0.0.1:6443")
    assert [document.id for document in config.documents][:2] == ["v1alpha1", "HostnameConfig"]
    assert "top-secret-value" in config.secrets


def test_partial_is_not_complete() -> None:
    assert not bring(DOCUMENTS.split("---\n", 1)[1].encode()).complete


def test_masked_form_hides_and_keeps() -> None:
    config = bring(LEGACY.encode())
    for secret in config.secrets:
        assert secret not in config.masked
    assert "# the first" in config.masked and "hostname: cp-1" in config.masked and b64(CA) in config.masked


def test_repr_shows_no_secret() -> None:
    assert "abcdef.0123456789abcdef" not in repr(bring(LEGACY.encode()))


@pytest.mark.parametrize(("text", "line", "words"), [
    ("machine:\n  token: {{ token }}\n", 2, "Jinja expression"),
    ("machine:\n  token: '{{ token }}'\n", 2, "Jinja expression"),
    ("{% if x %}\nmachine: {}\n{% endif %}\n", 1, "Jinja statement"),
    ("machine:\n  token: ${TOKEN}\n", 2, "shell variable"),
    ("machine:\n  token: ENC[AES256_GCM,data:abc,type:str]\n", 2, "ENC["),
    ("machine:\n  type: worker\n  token: ENC[PKCS7,MII]\n", 3, "ENC["),
    ("machine:\n  token: op://vault/item\n", 2, "1Password"),
    ("machine:\n  token: ref+vault://a/b\n", 2, "vals"),
    ("machine:\n  token: vault:secret/data/x#token\n", 2, "Vault reference"),
    ("machine: {}\nsops:\n  mac: x\n", 2, "SOPS"),
    ("$ANSIBLE_VAULT;1.1;AES256\n6162\n", 1, "ansible-vault"),
    ("machine:\n  token: !vault |\n    $ANSIBLE_VAULT;1.1;AES256\n", 2, "!vault"),
])
def test_template_left_is_refused_by_name(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        bring(text.encode(), source="cp.yaml")
    assert caught.value.reason == "TemplateUnexpanded"
    assert (caught.value.line, caught.value.source) == (line, "cp.yaml")
    assert words in caught.value.text and f"line {line}" in caught.value.text
    assert "AES256_GCM" not in caught.value.text


def test_text_of_files_may_hold_anything() -> None:
    config = bring(b"machine:\n  files:\n    - path: /x\n      content: |\n        {{ x }} ${Y} op://z\n")
    assert config.complete


@pytest.mark.parametrize(("text", "line", "words"), [
    ("machine: {}\nmachine: {}\n", 2, "twice"),
    ("machine:\n\ttype: worker\n", 2, "tab"),
    ("- 1\n", 1, "mapping"),
    ("foo: 1\n", 1, "no machine configuration"),
    ("apiVersion: v1\nkind: Secret\n", 1, "no Talos document"),
    ("machine: {}\n---\nmachine: {}\n", 3, "twice"),
    ("machine: [\n", 2, "YAML"),
    ("machine: *x\n", 1, "anchor"),
    ("a: &a [*a]\n", 1, "alias"),
    ("machine: {a: \x00}\n", 1, "NUL"),
    ("machine: " + "[" * 500 + "]" * 500, 1, "nest"),
])
def test_broken_input_is_one_sentence_with_line(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        bring(text.encode())
    assert caught.value.reason == "ConfigInvalid"
    assert caught.value.line == line
    assert words in caught.value.text


@pytest.mark.parametrize("data", [b"", b"# only a comment\n", b"---\n---\n", b"\xef\xbb\xbf"])
def test_empty(data: bytes) -> None:
    with pytest.raises(ConfigProblem, match="empty"):
        bring(data)


@pytest.mark.parametrize("data", [b"\xff\xfem\x00", b"machine: {a: \xff}", b"x" * 10_000_001])
def test_wrong_bytes(data: bytes) -> None:
    with pytest.raises(ConfigProblem):
        bring(data)


def test_bom_and_crlf_are_read() -> None:
    config = bring(b"\xef\xbb\xbf" + DOCUMENTS.replace("\n", "\r\n").encode())
    assert config.hostname == "w-1" and config.role == "worker"


@pytest.mark.parametrize(("text", "disk"), [
    ('disk.dev_path == "/dev/sda"', "/dev/sda"), ("disk.dev_path=='/dev/sda'", "/dev/sda"),
    ('disk.dev_path == "/dev/sda" || true', ""), ('disk.dev_path == "a" && x == "b"', ""), ("disk.size > 1u", ""), ("", ""),
])
def test_path_of_an_expression(text: str, disk: str) -> None:
    assert path_of(text) == disk


@pytest.mark.parametrize("selector", [
    {"size": ">= 1001"}, {"size": "< 100GB"}, {"size": "== 3GiB"}, {"size": "> 0"}, {"type": "nvme"}, {"type": "hdd", "model": "WDC*"},
    {"serial": 'a"b\\c', "wwid": "*", "busPath": "/pci*", "uuid": "u", "modalias": "m"},
])
def test_legacy_selector_reads_back_from_its_expression(selector: dict[str, str]) -> None:
    assert selector_of(of_selector(selector)) == selector


def test_selector_of_a_foreign_expression_is_unknown() -> None:
    assert selector_of("disk.size > 1u") == {}
    assert selector_of('foo && disk.transport != "" && !disk.readonly && !disk.cdrom') == {}
