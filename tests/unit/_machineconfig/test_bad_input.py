# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input of every class, wherever a person's text comes in: place, line, one sentence; and what only looks bad, as Talos reads it.

More of each class: test_yaml.py, test_bring.py, test_decode.py, test_secrets.py, test_mutations.py, tests/machinery/test_coverage.py.
"""
from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.patch_edit import documents_of, refuse_unlike
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import bring, documents, patch, plain_nodes, secrets, shown
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.contract import refuse_too_new
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.validate import validate
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.yaml_read import MAX_DEPTH

SOURCE = "given.yaml"
BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{number}: &a{number} [{','.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 12))


def a_patch(data: bytes) -> None:
    found = documents_of(data, SOURCE)
    patch.load_patch(data, "1.13", source=SOURCE)
    patch.patch_of_documents(found, "1.13", source=SOURCE)


READERS: dict[str, Callable[[bytes], Any]] = {
    "configuration": lambda data: bring.bring(data, source=SOURCE), "patch": a_patch, "bundle": lambda data: secrets.read_bundle(data, source=SOURCE),
    "running": lambda data: documents.load(data, "1.13", source=SOURCE), "redact": lambda data: shown.redact(data.decode("utf-8", "surrogateescape")),
}
#: class, text, line (0: the text as a whole), words of the sentence
EVERYWHERE: tuple[tuple[str, bytes, int, str], ...] = (
    ("tab", b"machine:\n\tsysctls: {}\n", 2, "tab"),
    ("duplicate key", b"machine:\n  sysctls:\n    a: '1'\n    a: '2'\n", 4, "twice"),
    ("unknown anchor", b"machine: *m\n", 1, "anchor"),
    ("alias of itself", b"machine: &m\n  sysctls: *m\n", 2, "alias"),
    ("alias bomb", BOMB.encode(), 5, "aliases expand"),
    ("nesting", b"machine: " + b"{a: " * 1000 + b"}" * 1000, 1, f"deeper than {MAX_DEPTH}"),
    ("nesting of lists", b"machine: " + b"[" * 1000 + b"]" * 1000, 1, f"deeper than {MAX_DEPTH}"),
    ("ten megabytes", b"machine: {sysctls: {a: '" + b"x" * 10_000_000 + b"'}}\n", 0, "10000000"),
    ("a thousand documents", b"---\nmachine: {}\n" * 1001, 0, "1000 documents"),
    ("another encoding", "machine: {}\n".encode("utf-16"), 1, "UTF-16"),
    ("a cut-off text", b"machine:\n  sysctls: {a: 'b\n", 3, "not valid YAML"),
    ("NUL", b"machine: {}\nx: \0\n", 2, "NUL"),
)


def refusal(read: Callable[[bytes], Any], data: bytes) -> ConfigProblem:
    began = time.process_time()
    with pytest.raises(ConfigProblem) as caught:
        read(data)
    assert time.process_time() - began < 20
    return caught.value


def is_one_sentence(error: ConfigProblem) -> None:
    assert error.reason and error.hint and "\n" not in error.message and error.message.endswith(".") and len(error.message) < 400, error.message


@pytest.mark.parametrize("reader", sorted(READERS))
@pytest.mark.parametrize(("name", "data", "line", "words"), EVERYWHERE, ids=[entry[0] for entry in EVERYWHERE])
def test_bad_yaml(reader: str, name: str, data: bytes, line: int, words: str) -> None:
    if reader == "redact" and name == "another encoding":
        data = b"machine: {}\n\xff\n"
        line, words = 2, "UTF-8"
    error = refusal(READERS[reader], data)
    is_one_sentence(error)
    assert (error.line, words in error.message) == (line, True), error.message
    assert reader == "redact" or error.source == SOURCE and SOURCE in error.message


@pytest.mark.parametrize("reader", ["configuration", "patch", "bundle"])
@pytest.mark.parametrize("value", ["'{{ value }}'", "'{% if x %}'", "${VALUE}", "'${VALUE:-x}'", "ENC[AES256_GCM,data:abc]", "op://vault/item",
                                   "ref+vault://a/b"])
def test_placeholders_left_unexpanded(reader: str, value: str) -> None:
    error = refusal(READERS[reader], f"machine:\n  sysctls:\n    a: {value}\ncerts: {{}}\n".encode())
    is_one_sentence(error)
    assert (error.reason, error.line, error.path) == ("TemplateUnexpanded", 3, "machine.sysctls.a")
    assert "abc" not in error.message and "VALUE" not in error.message


@pytest.mark.parametrize("reader", ["configuration", "patch", "bundle"])
def test_an_unquoted_placeholder_and_an_encrypted_file(reader: str) -> None:
    assert refusal(READERS[reader], b"sops:\n  mac: x\n").reason == "TemplateUnexpanded"
    unquoted = refusal(READERS[reader], b"certs: {}\nmachine:\n  a: {{ value }}\n")
    assert (unquoted.reason, unquoted.line) == ("TemplateUnexpanded", 3)
    if reader != "bundle":  # a vaulted bundle is opened by whoever reads the file
        assert refusal(READERS[reader], b"$ANSIBLE_VAULT;1.1;AES256\n6162\n").reason == "TemplateUnexpanded"


def test_a_placeholder_in_a_record_is_told_with_its_path() -> None:
    with pytest.raises(ConfigProblem) as caught:
        patch.patch_of_documents([{"machine": {"network": {"nameservers": ["192.0.2.1", "{{ dns }}"]}}}], "1.13", source="patch p")
    assert (caught.value.reason, caught.value.path) == ("TemplateUnexpanded", "machine.network.nameservers.1")


def test_files_and_manifests_may_hold_what_looks_like_a_placeholder() -> None:
    a_patch(b"machine:\n  files:\n    - path: /var/x\n      op: create\n      content: |\n        echo ${HOME} {{ x }}\n")


@pytest.mark.parametrize(("text", "written"), [
    ("debug: on\n", "debug: true"), ("debug: 'yes'\n", "debug: true"), ("debug: off\n", "debug: false"),
    ("machine: {sysctls: {a: on}}\n", "a: 'on'"), ("machine: {sysctls: {a: no}}\n", "a: 'no'"), ("machine: {sysctls: {a: 1:30}}\n", "a: '1:30'"),
    ("machine: {sysctls: {a: 0777}}\n", 'a: "0777"'),
    ("machine: {sysctls: {a: 1.10}}\n", 'a: "1.10"'), ("machine: {sysctls: {a: 1_000}}\n", 'a: "1_000"'),
    ("machine: {files: [{path: /var/x, permissions: 0644}]}\n", "permissions: 0o644"),
    ("machine: {files: [{path: /var/x, permissions: 0o644}]}\n", "permissions: 0o644"),
    ("machine: {kubelet: {image: 1.30}}\n", 'image: "1.30"'),
    ("machine: &m {sysctls: &s {a: '1'}, sysfs: *s}\n", "sysfs:\n        a: \"1\""),
    ("\ufeffmachine: {sysctls: {a: '1'}}\r\n", 'a: "1"'),
])
def test_what_looks_odd_and_means_something(text: str, written: str) -> None:
    """Words as Talos understands them: on and yes in a bool, a number's text in a text; never what Python's YAML makes of it."""
    got = documents.load(text.encode(), "1.14").text()
    assert written in got
    assert documents.load(got, "1.14").text() == got


@pytest.mark.parametrize(("text", "line", "path"), [
    ("debug: perhaps\n", 1, "debug"), ("machine:\n  sysctls:\n    a: [1]\n", 3, "machine.sysctls.a"), ("machine:\n  type: {a: b}\n", 2, "machine.type"),
    ("machine:\n  certSANs: x\n", 2, "machine.certSANs"), ("machine:\n  sysctls:\n    a: 2024-01-01\n", 3, "machine.sysctls.a"),
    ("cluster:\n  network:\n    cni:\n      flannel:\n        extraArgs: {a: b}\n", 5, "cluster.network.cni.flannel.extraArgs"),
    ("machine:\n  network:\n    interfaces:\n      - interface: eth0\n        mtu: big\n", 5, "machine.network.interfaces.0.mtu"),
])
def test_a_wrong_type(text: str, line: int, path: str) -> None:
    for reader in ("patch", "running"):
        error = refusal(READERS[reader], text.encode())
        is_one_sentence(error)
        assert (error.line, error.path) == (line, path), error.message


@pytest.mark.parametrize(("text", "held"), [
    ("machine: {sysctls: {a: 1.10, b: 1e3, c: 12, d: yes, e: 1:30}}\n", {"a": "1.10", "b": "1e3", "c": 12, "d": "yes", "e": "1:30"}),
    ("machine: {kubelet: {extraConfig: {a: 0.5, b: 0777, c: [on]}}}\n", None), ("machine: {files: [{path: /x, permissions: 0644}]}\n", None),
    ("machine: {files: [{path: /x, permissions: 0o644}], kubelet: {image: 1.30}}\n", None),
])
def test_the_record_of_a_patch_file_says_what_the_file_says(text: str, held: Any) -> None:
    found = documents_of(text.encode(), SOURCE)
    refuse_unlike(patch.load_patch(text, "1.13", source=SOURCE), patch.patch_of_documents(found, "1.13"))
    assert held is None or found[0]["machine"]["sysctls"] == held  # type: ignore[call-overload,index]


@pytest.mark.parametrize("text", ["machine: {sysctls: {a: 0777}}\n", "machine: {sysctls: {a: 1_000}}\n",
                                  "machine: {kubelet: {extraConfig: {a: 1.10}}}\n"])
def test_what_the_record_of_a_patch_file_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(ConfigProblem, match="as it is written") as caught:
        refuse_unlike(patch.load_patch(text, "1.13", source=SOURCE), patch.patch_of_documents(documents_of(text.encode(), SOURCE), "1.13"))
    is_one_sentence(caught.value)
    assert caught.value.path.endswith(".a") and (caught.value.source, caught.value.line) == (SOURCE, 1)


def test_nesting_in_a_record() -> None:
    data: Any = "x"
    for dummy in range(1000):
        data = {"a": data}
    with pytest.raises(ConfigProblem, match="deeper"):
        plain_nodes.node_of(data)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), "\ud800", ["a", {"b": "x\udfff"}]])
def test_a_record_holds_nothing_that_no_file_can_hold(value: Any) -> None:
    with pytest.raises(ConfigProblem) as caught:
        patch.patch_of_documents([{"machine": {"kubelet": {"extraConfig": {"a": value}}}}], "1.13", source="patch p")
    is_one_sentence(caught.value)
    assert caught.value.source == "patch p" and caught.value.path.startswith("machine.kubelet.extraConfig.a")


def test_a_contract_that_is_newer_than_the_node() -> None:
    with pytest.raises(ConfigProblem) as caught:
        refuse_too_new("1.14", "v1.13.9")
    is_one_sentence(caught.value)
    assert caught.value.reason == "ContractTooNew" and "1.14" in caught.value.message and "1.13" in caught.value.message


@pytest.mark.parametrize("version", ["1.12", "1.13", "1.14"])
def test_a_host_name_in_two_places(version: str) -> None:
    text = "machine: {network: {hostname: a}}\ncluster: {}\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: b\n"
    verdict = validate(documents.load(text, version), "cloud")
    found = [error for error in verdict.errors if "hostname" in error.message]
    assert [error.path for error in found] == ["HostnameConfig"] and "static hostname is already set in v1alpha1 config" in found[0].sentence


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "---\n# c\n---\n", "null\n"])
def test_an_empty_patch_is_no_change_and_an_empty_configuration_is_refused(text: str) -> None:
    before = documents.load("machine: {type: worker}\n", "1.13")
    assert patch.apply_patches(before, [patch.load_patch(text, "1.13")]).text() == before.text()
    assert documents_of(text.encode(), SOURCE) == ()
    is_one_sentence(refusal(READERS["configuration"], text.encode()))


def test_memory_stays_bounded() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for dummy, data, unused, words in EVERYWHERE:
        for read in (READERS["configuration"], READERS["patch"], READERS["bundle"]):
            refusal(read, data)
    refusal(READERS["patch"], b"machine: {sysctls: {" + b"a: b, " * 1_000_000 + b"}}\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000
