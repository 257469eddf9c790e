# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Strategic merges beyond the vectors: each rule once, refusals, and what an empty patch is."""
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import documents, patch, yaml_write
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import (
    DUPLICATE_DOCUMENT, JSON_PATCH, PATCH_FAILED, UNKNOWN_KEY, WRONG_TYPE, ConfigProblem,
)
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import VERSIONS

from .inputs import Inputs


def merged(config: str, *patches: str, version: str = "1.14") -> documents.Config:
    return patch.apply_patches(documents.load(config, version), [patch.load_patch(text, version) for text in patches])


def doc(kind: str, body: str) -> str:
    return f"apiVersion: v1alpha1\nkind: {kind}\n{body}"


@pytest.mark.parametrize(("left", "right", "path", "value"), [
    ("machine: {install: {disk: /a}}", "machine: {install: {disk: ''}}", ("machine", "install", "disk"), "/a"),
    ("machine: {install: {disk: /a}}", "machine: {install: {disk: /b}}", ("machine", "install", "disk"), "/b"),
    ("machine: {install: {wipe: true}}", "machine: {install: {wipe: false}}", ("machine", "install", "wipe"), False),
    ("machine: {install: {wipe: true}}", "machine: {install: null}", ("machine", "install", "wipe"), True),
    ("machine: {certSANs: [a]}", "machine: {certSANs: [a, b]}", ("machine", "certSANs"), ["a", "a", "b"]),
    ("machine: {certSANs: [a]}", "machine: {certSANs: []}", ("machine", "certSANs"), ["a"]),
    ("cluster: {network: {podSubnets: [a]}}", "cluster: {network: {podSubnets: [b]}}", ("cluster", "network", "podSubnets"), ["a", "b"]),
    ("machine: {nodeLabels: {a: x, b: y}}", "machine: {nodeLabels: {a: '', c: ''}}", ("machine", "nodeLabels"), {"a": "x", "b": "y", "c": ""}),
    ("machine: {sysctls: {a: '1'}}", "machine: {sysctls: {a: 2}}", ("machine", "sysctls"), {"a": "2"}),
    ("machine: {ca: {crt: YQ==, key: Yg==}}", "machine: {ca: {crt: Yw==}}", ("machine", "ca"), {"crt": "Yw==", "key": ""}),
    ("machine: {network: {interfaces: [{interface: a, mtu: 5}]}}", "machine: {network: {interfaces: [{interface: a, addresses: [x]}, {interface: b}]}}",
     ("machine", "network", "interfaces"), [{"interface": "a", "mtu": 5, "addresses": ["x"]}, {"interface": "b"}]),
    ("cluster: {apiServer: {auditPolicy: {a: 1}}}", "cluster: {apiServer: {auditPolicy: {b: 2}}}", ("cluster", "apiServer", "auditPolicy"), {"b": 2}),
    ("machine: {kubelet: {extraConfig: {a: {l: [1], x: 1}}}}", "machine: {kubelet: {extraConfig: {a: {l: [2], x: 0, y: true}}}}",
     ("machine", "kubelet", "extraConfig"), {"a": {"l": [1, 2], "x": 1, "y": True}}),
])
@pytest.mark.parametrize("version", VERSIONS)
def test_merge_rule_of_the_legacy_document(version: str, left: str, right: str, path: tuple[str, ...], value: Any) -> None:
    data: Any = merged(left, right, version=version).documents[0].data
    for step in path:
        data = data[step]
    # podSubnets of the legacy document are replaced, not appended (reference: lists that a patch replaces)
    assert data == (["b"] if path[-1] == "podSubnets" else value)


@pytest.mark.parametrize(("kind", "left", "right", "key", "value"), [
    ("UserVolumeConfig", "name: a\nprovisioning: {diskSelector: {match: x}, minSize: 1GB, grow: true}\n", "name: a\nfilesystem: {type: ext4}\n",
     "provisioning", {"grow": True}),
    ("UserVolumeConfig", "name: a\nprovisioning: {maxSize: 10GB}\n", "name: a\nprovisioning: {maxSize: 80%}\n", "provisioning", {"maxSize": ("10GB", "80%")}),
    ("NetworkDefaultActionConfig", "ingress: block\n", "ingress: accept\n", "ingress", "block"),
    ("KubeAPIServerConfig", "extraArgs: {a: [x, y], b: z}\n", "extraArgs: {a: '', c: null}\n", "extraArgs", {"a": None, "b": "z", "c": None}),
    ("KubeNetworkConfig", "podSubnets: [10.0.0.0/8]\n", "podSubnets: []\n", "podSubnets", []),
    ("KubeAPIServerCAConfig", "issuingCA: {cert: a, key: b}\n", "issuingCA: {cert: c}\n", "issuingCA", {"cert": "c", "key": "b"}),
    ("ImageVerificationConfig", "rules: [{image: a, skip: true}]\n", "rules: [{image: a, deny: true}, {image: b}]\n", "rules",
     [{"image": "a", "deny": True}, {"image": "b"}]),
    ("ExtensionServiceConfig", "name: n\nconfigFiles: [{mountPath: /a, content: x}]\n", "name: n\nconfigFiles: [{mountPath: /a, content: y}]\n", "configFiles",
     [{"mountPath": "/a", "content": "y"}]),
])
def test_merge_rule_of_documents(kind: str, left: str, right: str, key: str, value: Any) -> None:
    assert merged(doc(kind, left), doc(kind, right)).documents[0].data.get(key) == value


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n---\n# x\n", "null\n", "--- {}\n".replace(" {}", ""), "\ufeff# x\n"])
def test_nothing_is_a_patch_that_changes_nothing(text: str) -> None:
    loaded = patch.load_patch(text, "1.14")
    assert loaded.empty
    config = documents.load(doc("HostnameConfig", "auto: stable\n"), "1.14")
    assert patch.apply_patches(config, [loaded]).text() == config.text()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_patch_is_the_identity(version: str) -> None:
    for seed in range(60):
        try:
            config = documents.load(yaml_write.write_documents(Inputs(seed, version, wrong=0).config()), version)
        except ConfigProblem:
            continue
        assert patch.apply_patches(config, [patch.load_patch("# nothing\n", version)]).text() == config.text()
        assert patch.apply_patches(config, []).text() == config.text()


def test_the_base_is_not_changed() -> None:
    base = documents.load("machine: {certSANs: [a], kubelet: {extraConfig: {l: [1]}}}", "1.14")
    before = base.text()
    loaded = patch.load_patch("machine: {certSANs: [b], kubelet: {extraConfig: {l: [2]}}}", "1.14")
    one = patch.apply_patches(base, [loaded, loaded])
    two = patch.apply_patches(base, [loaded, loaded])
    assert base.text() == before and one.text() == two.text()
    assert one.documents[0].data["machine"]["certSANs"] == ["a", "b", "b"]


@pytest.mark.parametrize(("text", "hint"), [
    ('[{"op": "replace", "path": "/machine/type", "value": "worker"}]', "machine:\n    type: worker\n"),
    ("- op: add\n  path: /machine/certSANs/-\n  value: a\n- op: add\n  path: /machine/certSANs/-\n  value: b\n", "certSANs:\n        - a\n        - b\n"),
    ("- op: add\n  path: /machine/nodeLabels/a~1b\n  value: x\n", "a/b: x"),
    ("- op: remove\n  path: /machine/type\n", "strategic merge patch"), ("- op: replace\n  path: /machine/certSANs/0\n  value: b\n", "strategic merge patch"),
    ("- op: replace\n  path: /machine/certSANs\n  value: [b]\n", "strategic merge patch"), ("- op: test\n  path: /a\n  value: 1\n", "strategic merge patch"),
    ("- op: add\n  path: /machine\n  value: 5\n- op: add\n  path: /machine/type\n  value: x\n", "strategic merge patch"),
])
def test_json_patches_are_refused_with_the_merge_that_says_the_same(text: str, hint: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        patch.load_patch(text, "1.14", source="p.yaml")
    assert caught.value.cause == JSON_PATCH and hint in caught.value.hint and caught.value.source == "p.yaml"


def test_operations_in_a_record_are_known_as_such() -> None:
    with pytest.raises(ConfigProblem) as caught:
        patch.patch_of_documents([{"op": "add", "path": "/machine/nodeLabels/a", "value": "x"}], "1.13", source="patch p")
    assert caught.value.cause == JSON_PATCH and "nodeLabels:\n        a: x\n" in caught.value.hint and caught.value.source == "patch p"


@pytest.mark.parametrize(("path", "value"), [
    ("/machine/token", "hunter2secret"), ("/machine/ca/key", "aHVudGVyMnNlY3JldA=="), ("/machine/registries/config/r.lan/auth/password", "pw"),
    ("/cluster/inlineManifests/-", '{"name": "s", "contents": "kind: Secret\\nstringData:\\n  password: hunter2secret\\n"}'),
])
def test_no_secret_is_quoted_in_that_merge(path: str, value: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        patch.load_patch(f"- op: add\n  path: {path}\n  value: {value}\n", "1.13")
    assert "hunter2secret" not in caught.value.text and value not in caught.value.text and "sha256:" in caught.value.text


@pytest.mark.parametrize(("config", "text", "cause", "path"), [
    ("machine: {nodeLabels: {a: b}}", "machine: {nodeLabels: {c: {$patch: delete}}}", PATCH_FAILED, "machine.nodeLabels.c"),
    ("machine: {}", "machine: {network: {hostname: {$patch: delete}}}", PATCH_FAILED, "machine.network.hostname"),
    ("machine: {certSANs: [a]}", "machine: {certSANs: [{$patch: delete}]}", PATCH_FAILED, "machine.certSANs.[0]"),
    ("machine: {disks: [{device: a}]}", "machine: {disks: [{device: a, partitions: {$patch: delete}}]}", PATCH_FAILED, "machine.disks.[0].partitions"),
    ("machine: {}", "machine: {$patch: replace}", UNKNOWN_KEY, "machine.$patch"), ("machine: {}", "$patch: delete\n", PATCH_FAILED, ""),
    ("machine: {}", "kind: LinkConfig\n$patch: delete\n", PATCH_FAILED, ""), ("machine: {}", "- 1\n", WRONG_TYPE, ""), ("machine: {}", "text", WRONG_TYPE, ""),
    ("machine: {kubelet: {extraConfig: {a: 1}}}", "machine: {kubelet: {extraConfig: {a: x}}}", PATCH_FAILED, "machine.kubelet.extraConfig.a"),
    (doc("SideroLinkConfig", "apiUrl: https://u:p@a\n"), doc("SideroLinkConfig", "apiUrl: https://v:q@b\n"), PATCH_FAILED, "apiUrl"),
])
def test_refused_with_the_path(config: str, text: str, cause: str, path: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        merged(config, text)
    assert (caught.value.cause, caught.value.path) == (cause, path)


@pytest.mark.parametrize("version", VERSIONS)
def test_deletes(version: str) -> None:
    config = "machine: {type: worker, certSANs: [a], sysctls: {a: '1', b: '2'}, disks: [{device: a}, {device: b}], install: {disk: x}}\n---\n" + doc(
        "LinkConfig", "name: a\n") + "---\n" + doc("HostnameConfig", "auto: stable\n")
    text = ("machine:\n  certSANs: {$patch: delete}\n  sysctls: {a: {$patch: delete}, c: '3'}\n  disks: [{device: a, $patch: delete}]\n  install: "
            "{$patch: delete}\n"
            "---\n" + doc("LinkConfig", "name: a\n$patch: delete\n") + "---\n" + doc("LinkConfig", "name: gone\n$patch: delete\n"))
    result = merged(config, text, version=version)
    assert result.documents[0].data["machine"] == {"type": "worker", "sysctls": {"b": "2", "c": "3"}, "disks": [{"device": "b"}]}
    assert [document.id for document in result.documents] == ["v1alpha1", "HostnameConfig"]


def test_a_delete_without_the_name_matches_no_named_document() -> None:
    assert len(merged(doc("LinkConfig", "name: a\n"), doc("LinkConfig", "$patch: delete\n")).documents) == 1


def test_duplicates_in_one_patch() -> None:
    twice = "machine: {certSANs: [b]}\n---\nmachine: {certSANs: [c]}\n"
    assert merged("machine: {certSANs: [a]}", twice).documents[0].data["machine"]["certSANs"] == ["a", "b", "c"]
    with pytest.raises(ConfigProblem) as caught:
        merged("machine: {}", twice, version="1.13")
    assert caught.value.cause == DUPLICATE_DOCUMENT


def test_order_of_documents() -> None:
    result = merged(doc("LinkConfig", "name: a\n"), doc("LinkConfig", "name: b\n") + "---\nmachine: {type: "
                                                                                     "worker}\n---\n" + doc("LinkConfig", "name: a\nmtu: 5\n"))
    assert [document.id for document in result.documents] == ["v1alpha1", "LinkConfig/a", "LinkConfig/b"]


def test_patches_from_records() -> None:
    loaded = patch.patch_of_documents([{"machine": {"sysctls": {"a": 1, "b": True}, "certSANs": ["on"]}}, None], "1.14", source="patch p")
    result = patch.apply_patches(documents.load("machine: {}", "1.14"), [loaded])
    assert result.documents[0].data["machine"] == {"sysctls": {"a": "1", "b": "true"}, "certSANs": ["on"]}
    for bad in ([{"machine": {1: 2}}], [{"machine": object()}], ["text"], [{"machine": {"type": {"a": "b"}}}]):
        with pytest.raises(ConfigProblem) as caught:
            patch.patch_of_documents(bad, "1.14", source="patch p")
        assert caught.value.source == "patch p"
