# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of secrets in what nodes and libraries say."""

from __future__ import annotations

import base64
import string

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._ansible.fragments import LENGTH
from ansible_collections.ichor.talos.plugins.module_utils._ansible.redaction import MASK, Redactor
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secret_paths import bundle_leaves
from ansible_collections.ichor.talos.plugins.module_utils._node.failures import SAYINGS
from tests.unit._ansible.test_redaction import TOKEN, VECTORS, configurations

SECRETS = [TOKEN, "8sWkq2PZ0xH5tYb1rU7vNf3mJc9dLgAeQoKiTzXpMhE=", "correct-horse-battery-staple", "p#ss!w0rd$with%signs^inside",
           "0123456789abcdef0123456789abcdef"]


def with_bundle() -> tuple[Redactor, list[str]]:
    text = (VECTORS / "secrets.yaml").read_text(encoding="utf-8")
    redactor = Redactor()
    redactor.add_document(text)
    return redactor, [value for dummy, value in bundle_leaves(yaml.safe_load(text))]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("cut", [slice(20), slice(LENGTH), slice(3, 20), slice(-LENGTH, None)])
def test_a_part_of_a_secret_is_masked(secret: str, cut: slice) -> None:
    redactor = Redactor()
    redactor.add([secret])
    assert redactor.foreign(f'yaml: line 3: cannot unmarshal "{secret[cut]}..." into x') == f'yaml: line 3: cannot unmarshal "{MASK}..." into x'
    assert redactor.data({"a": [f"got {secret[cut]}"]}, foreign=True) == {"a": [f"got {MASK}"]}


@settings(deadline=None)
@given(st.data())
def test_no_part_of_any_secret_of_a_bundle_is_left(data: st.DataObject) -> None:
    redactor, secrets = BUNDLE
    secret = data.draw(st.sampled_from([secret for secret in secrets if len(secret) > LENGTH]))
    at = data.draw(st.integers(0, len(secret) - LENGTH))
    part = secret[at:at + data.draw(st.integers(LENGTH, 60))]
    around = data.draw(st.text(string.ascii_letters + " \"'.,:", max_size=8))
    left = redactor.foreign(f"node says {around}{part}{around}: no")
    kept = [part[start:start + LENGTH] for start in range(len(part) - LENGTH + 1) if part[start:start + LENGTH] in left]
    assert all(piece in "LS0tLS1CRUdJTiB" or "\n" in piece for piece in kept), "only how every PEM file begins may be left"


BUNDLE = with_bundle()


def test_the_clear_text_and_the_base64_of_a_secret_have_parts_too() -> None:
    inner = "8sWkq2PZ0xH5tYb1rU7vNf3mJc9dLgAe"
    redactor = Redactor()
    redactor.add([base64.b64encode(inner.encode()).decode(), TOKEN])
    assert redactor.foreign(f"x {inner[:16]} y") == f"x {MASK} y"
    assert redactor.foreign(base64.b64encode(TOKEN.encode()).decode()[:16]) == MASK


ORDINARY = [
    "http://proxy.example.com:3128", "proxy.example.com:3128", "/etc/kubernetes/pki/ca.crt", "node-role.kubernetes.io/control-plane",
    "# the settings of containerd\n[plugins]\n  [plugins.\"io.containerd.grpc.v1.cri\"]\n    SystemdCgroup = true\n    sandbox_image = \"pause\"\n",
]


def test_ordinary_words_are_left_alone() -> None:
    redactor, dummy = with_bundle()
    redactor.add(ORDINARY)
    for text in configurations():
        redactor.add_document(text)
    for text in [*(saying.message + saying.hint for saying in SAYINGS.values()), "SystemdCgroup cannot be read in io.containerd.grpc.v1.cri here",
                 "the proxy at proxy.example.com refuses", "node-role.kubernetes.io is no label", "/etc/kubernetes/pki is no folder",
                 "the certificate LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t", "7be2944d-51c8-4f0e-8d39-3cecef000002", "certificateSANs: invalid"]:
        assert redactor.foreign(text) == text
