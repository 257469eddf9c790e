# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No secret of a configuration or a bundle gets through, in whatever spelling."""
from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import documents, generate, masking, secrets, shown, yaml_write
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import VERSIONS, schema
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secret_paths import secret_leaves, secrets_in_text
from tests.vectors_config import HERE

BUNDLE = secrets.read_bundle((HERE / "secrets.yaml").read_bytes())


def spelled(secret: str) -> list[str]:
    raw = secret.encode()
    forms = [secret, json.dumps(secret), repr(secret), quote(secret, safe=""), raw.hex(), base64.b64encode(raw).decode(),
             base64.urlsafe_b64encode(raw).decode(),
             base64.b64encode(raw).decode().rstrip("=")]
    if "\n" in secret:
        forms += [secret.replace("\n", "\n    "), secret.replace("\n", "\\n"), "".join(secret.splitlines()[1:-1]), secret.splitlines()[1]]
    return forms


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="\x85\xa0"), min_size=6, max_size=40), st.text(max_size=10),
       st.text(max_size=10))
def test_every_spelling_of_any_secret_is_hidden(secret: str, before: str, after: str) -> None:
    mask = masking.Mask([secret])
    for form in spelled(secret):
        assert form.strip("'\"") not in mask(f"{before} {form} {after}").replace(masking.MASK, "")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("role", ["controlplane", "worker"])
def test_nothing_of_the_bundle_is_in_a_masked_configuration(version: str, role: str) -> None:
    config = generate.generate(generate.GenerateInput("c", "https://10.0.0.1:6443", "1.35.0", "i:v1", BUNDLE), role, version)
    texts = (shown.masked_text(config), shown.redact(config.text()), masking.Mask(shown.secrets_of(config))(config.text()), shown.redact(BUNDLE.text()))
    for text in texts:
        for secret in BUNDLE.secrets():
            for form in spelled(secret):
                if len(form) >= 16:
                    assert form not in text
    assert "kind: HostnameConfig" in texts[0] and "sha256:" in texts[0]
    held = shown.secrets_of(config)
    assert (BUNDLE.os.key in held or secrets.encode(BUNDLE.os.key) in held) == (role == "controlplane")
    assert BUNDLE.trustd_token in held and shown.secrets_in(config.text()) == held


def test_equal_secrets_stay_equal_and_different_ones_different() -> None:
    assert masking.fingerprint("a") == masking.fingerprint("a") != masking.fingerprint("b")
    assert "hunter2" not in masking.fingerprint("hunter2")


def test_kinds_that_hold_secrets_have_a_path_for_them() -> None:
    """Every kind with Talos's flag "holds secrets" gives up a secret when all its fields are filled."""
    from .test_decode import fields_of, nested, right
    for version in VERSIONS:
        kinds = {name for name in schema(version).names if schema(version).kind(name).secret}
        covered = set()
        for kind, path, codec in fields_of(version):
            data = nested(path, right(codec))
            if list(secret_leaves("" if kind == "v1alpha1" else kind, data)):
                covered.add(kind)
        # KubeEtcdEncryptionConfig is free-form; see below
        assert kinds - covered <= {"KubeEtcdEncryptionConfig"}, version


@pytest.mark.parametrize(("text", "secret"), [
    ("apiVersion: v1alpha1\nkind: KubeEtcdEncryptionConfig\nconfig: {resources: [{resources: [secrets], providers: [{aescbc: {keys: [{name: k, "
     "secret: hunter2hunter2}]}}]}]}\n",
     "hunter2hunter2"),
    ("machine: {env: {https_proxy: "
     "'http://user:hunter2hunter2@proxy:3128'}}", "hunter2hunter2"), ("machine: {env: {API_TOKEN: hunter2hunter2}}", "hunter2hunter2"),
    ("apiVersion: v1alpha1\nkind: EnvironmentConfig\nvariables: {DB_PASSWORD: hunter2hunter2}\n", "hunter2hunter2"),
    ("cluster: {inlineManifests: [{name: a, contents: 'kind: Secret\n\n\n  stringData:\n\n    x: hunter2hunter2'}]}", "hunter2hunter2"),
    ("cluster: {extraManifestHeaders: {Authorization: Bearer hunter2}}", "Bearer hunter2"),
    ("apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: tailscale\nenvironment: [TS_AUTHKEY=hunter2hunter2]\n", "hunter2hunter2"),
    ("apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: x\nconfigFiles: [{mountPath: /a, content: 'password: hunter2hunter2'}]\n", "hunter2hunter2"),
    ("apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: https://omni/?jointoken=hunter2hunter2\n", "hunter2hunter2"),
    ("apiVersion: v1alpha1\nkind: WireguardConfig\nname: wg0\npeers: [{presharedKey: hunter2hunter2}]\n", "hunter2hunter2"),
    ("machine: {registries: {config: {docker.io: {auth: {password: hunter2hunter2}}}}}", "hunter2hunter2"),
    ("machine: {files: [{path: /a, content: 'token = hunter2hunter2\n'}]}", "hunter2hunter2"),
    ("machine: {network: {interfaces: [{interface: a, vlans: [{vlanId: 1, vip: {hcloud: {apiToken: hunter2hunter2}}}]}]}}", "hunter2hunter2"),
])
def test_secrets_in_peoples_own_settings(text: str, secret: str) -> None:
    assert any(secret in found for found in shown.secrets_in(text))
    assert secret not in shown.redact(text)
    config = documents.load(text, "1.14")
    assert secret not in shown.masked_text(config)
    assert secret not in masking.Mask(shown.secrets_of(config))(config.text())


def test_ordinary_text_is_left() -> None:
    assert list(secrets_in_text("content", "[plugins]\n  disabled = true\n  path = /var/lib\n")) == []
    text = yaml_write.write({"machine": {"type": "worker", "certSANs": ["a.example.com"]}})
    assert shown.redact(text) == text
