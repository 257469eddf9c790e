# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Masking by value, on the configurations and bundles that Talos itself generated."""

from __future__ import annotations

import base64
import json
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from ansible_collections.ichor.talos.plugins.module_utils._ansible import redaction
from ansible_collections.ichor.talos.plugins.module_utils._ansible.redaction import MASK, Redactor, secret_leaves
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secret_paths import bundle_leaves
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secret_paths import secret_leaves as leaves_by_path

VECTORS = Path(__file__).parents[2] / "vectors"
TOKEN = "xq3v9d.k2l4m6n8p0r1s3t5"
PEM = "-----BEGIN ED25519 PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ3kq2lV\nZ8yO0f2dQ4hXn1m7Tz9pLw\n-----END ED25519 PRIVATE KEY-----\n"


def configurations() -> list[str]:
    rows = [json.loads(line) for line in (VECTORS / "generate.jsonl").read_text(encoding="utf-8").splitlines()]
    return [row["output"] for row in rows if "output" in row]


def test_every_secret_of_every_generated_configuration_is_known() -> None:
    seen = 0
    for text in configurations():
        known = secret_leaves(text)
        for document in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if not isinstance(document, dict):
                continue
            for path, value in leaves_by_path(str(document.get("kind", "")), document):
                if len(value) >= redaction.SHORTEST and "\n" not in value:
                    assert value in known, path
                    seen += 1
    assert seen > 500


@pytest.mark.parametrize("name", ["secrets.yaml", "secrets-aescbc.yaml"])
def test_every_secret_of_a_bundle_is_masked_also_where_yaml_does_not_parse(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (VECTORS / name).read_text(encoding="utf-8")
    secrets = [value for dummy, value in bundle_leaves(yaml.safe_load(text))]
    assert len(secrets) >= 8
    for loader in (True, False):
        if not loader:
            monkeypatch.setitem(sys.modules, "yaml", None)
        redactor = Redactor()
        redactor.add_document(text)
        masked = redactor.text(text)
        assert not [value for value in secrets if value in masked]


@pytest.mark.parametrize("form", [
    pytest.param(lambda secret: secret, id="raw"),
    pytest.param(lambda secret: base64.b64encode(secret.encode()).decode(), id="base64"),
    pytest.param(json.dumps, id="json"),
    pytest.param(lambda secret: json.dumps(json.dumps(secret)), id="json-in-json"),
    pytest.param(lambda secret: yaml.safe_dump({"key": secret}), id="yaml"),
    pytest.param(lambda secret: yaml.safe_dump({"key": secret}, default_style="'"), id="yaml-quoted"),
    pytest.param(shlex.quote, id="shell"),
    pytest.param(repr, id="repr"),
])
@pytest.mark.parametrize("secret", [TOKEN, PEM, base64.b64encode(PEM.encode()).decode(), 'a"b\'c\\d e$f', "päßwörter mit Umlaut"])
def test_a_secret_is_masked_in_every_form(secret: str, form) -> None:  # type: ignore[no-untyped-def]
    redactor = Redactor()
    redactor.add([secret])
    masked = redactor.text(f"before {form(secret)} after")
    assert MASK in masked
    for line in secret.splitlines():
        if len(line) >= redaction.SHORTEST and not line.startswith("-----"):
            assert line not in masked
    assert masked.startswith("before ") and masked.endswith(" after")


def test_a_key_that_is_base64_in_the_file_is_masked_as_clear_text_too() -> None:
    redactor = Redactor()
    redactor.add_document(f"machine:\n  ca:\n    crt: abcdefgh\n    key: {base64.b64encode(PEM.encode()).decode()}\n")
    assert "MC4CAQAwBQYDK2VwBCIEIJ3kq2lV" not in redactor.text(PEM)
    assert redactor.text("abcdefgh") == "abcdefgh"


@pytest.mark.parametrize(("text", "secret"), [
    ("machine: {env: {https_proxy: 'http://joe:hunter2secret@proxy:3128'}}", "hunter2secret"),
    ("kind: RegistryAuthConfig\npassword: correcthorse\n", "correcthorse"),
    ("machine: {registries: {config: {r: {auth: {username: joe-the-user, password: battery-staple}}}}}", "battery-staple"),
    ("cluster: {inlineManifests: [{name: x, contents: \"apiVersion: v1\\nkind: Secret\\ndata: {a: c2VjcmV0dmFsdWU=}\"}]}", "c2VjcmV0dmFsdWU="),
    ("kind: WireguardConfig\nprivateKey: aG9sZGVyb2Z0aGVrZXk=\n", "aG9sZGVyb2Z0aGVrZXk="),
    ("token: 12345678\n", "12345678"),
    ("contexts: {c: {ca: Y2FjYWNhY2E=, crt: Y3J0Y3J0Y3J0, key: a2V5a2V5a2V5}}\n", "a2V5a2V5a2V5"),
    ("machine:\n  token: [unclosed\n  ca:\n    key: half-a-file-still-secret\n", "half-a-file-still-secret"),
])
def test_where_people_keep_secrets(text: str, secret: str) -> None:
    redactor = Redactor()
    redactor.add_document(text)
    assert secret not in redactor.text(text)


def test_data_is_masked_in_depth_and_keys_too() -> None:
    redactor = Redactor()
    redactor.add([TOKEN])
    assert redactor.data({TOKEN: [{"a": (TOKEN, 1, None, True)}], "b": 1.5}) == {MASK: [{"a": [MASK, 1, None, True]}], "b": 1.5}


def test_short_words_are_left_alone() -> None:
    redactor = Redactor()
    redactor.add_document("token: a\nsecret: none\n")
    assert redactor.text("a none") == "a none"
    assert redactor.secrets == frozenset()


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{number}: &a{number} [{','.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 12))


@pytest.mark.parametrize("text", [
    pytest.param(f"{BOMB}token: hidden-below-a-bomb\nauth: [*a11]\n", id="alias bomb"),
    pytest.param("machine: &m\n  other: *m\n  token: hidden-below-a-bomb\n", id="alias of itself"),
    pytest.param("plain: &p {a: hidden-below-a-bomb}\nauth: *p\n", id="plain first, secret by an alias"),
])
def test_aliases_are_looked_at_once(text: str) -> None:
    assert "hidden-below-a-bomb" in secret_leaves(text)
