# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoding by the schema: every field of every kind is accepted right and refused wrong, with path, line and version."""
from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import contract, documents, yaml_write
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.containers import FreeForm, ListOf, MapOf, Struct
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import (
    CONFLICTING_DOCUMENTS, DUPLICATE_DOCUMENT, UNKNOWN_KEY, UNKNOWN_KIND, WRONG_TYPE, ConfigProblem,
)
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import LEGACY, VERSIONS, schema
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.sizes import ByteSize, DiskSize, Size, SizeCondition
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.values import (
    Args, Base64, Bool, Choice, Duration, Formed, Int, Octal, Overwritten, PemPair, PortRanges, Text, Url,
)

from .inputs import Inputs

#: What Talos itself writes for a protocol that is not set, and does not read.
UNREADABLE = "Protocol(0)"
ROOT = Path(__file__).resolve().parents[3]


def right(codec: Any) -> Any:
    """A value that the type accepts and that is not its zero value."""
    for types, value in (
        (Bool, True), (Octal, 420), (Int, 7), (Args, {"flag": "x"}), (Base64, "YQ=="), (PortRanges, [80]), (Duration, "1h0m0s"), (Size, "10GB"),
        (ByteSize, "10GB"),
        (DiskSize, "10 GB"), (SizeCondition, ">= 5GB"), (Overwritten, "true"), (Url, "https://h/"), (FreeForm, {"k": "v"}), (Text, "t"),
    ):
        if isinstance(codec, types):
            return value
    if isinstance(codec, Choice):
        return codec.words[-1]
    if isinstance(codec, PemPair):
        return dict.fromkeys(codec.keys, "YQ==")
    if isinstance(codec, ListOf):
        return [right(codec.item) if not isinstance(codec.item, Struct) else first(codec.item)]
    if isinstance(codec, MapOf):
        return {"k": right(codec.item) if not isinstance(codec.item, Struct) else first(codec.item)}
    if isinstance(codec, Struct):
        return first(codec)
    assert isinstance(codec, Formed)
    for value in ("10.0.0.1", "10.0.0.0/8", "10.0.0.1:80", "aa:bb:cc:dd:ee:ff", "main", "follow"):
        try:
            codec._parse(value)
        except ValueError:
            continue
        return value
    raise AssertionError(codec.name)


def first(struct: Struct) -> dict[str, Any]:
    return {struct.fields[0].name: right(struct.fields[0].codec)} if struct.fields else {}


def wrong(codec: Any) -> Any:
    """A value that no field of that type accepts."""
    if isinstance(codec, (ListOf, PortRanges)):
        return {"a": "b"}
    if isinstance(codec, (Struct, MapOf, FreeForm, Args, PemPair)):
        return "text"
    if isinstance(codec, Bool):
        return "maybe"
    return ["list"]


def fields_of(version: str) -> list[tuple[str, tuple[str, ...], Any]]:
    """(kind, path, type) of every field of that version, each structure once."""
    result: list[tuple[str, tuple[str, ...], Any]] = []

    def walk(kind: str, struct: Struct, path: tuple[str, ...], seen: tuple[int, ...]) -> None:
        for field in struct.fields:
            here = (*path, field.name)
            result.append((kind, here, field.codec))
            inner, below = field.codec, here
            while isinstance(inner, (ListOf, MapOf)):
                inner, below = inner.item, (*below, "[]" if isinstance(inner, ListOf) else "{}")
            if isinstance(inner, Struct) and id(inner) not in seen:
                walk(kind, inner, below, (*seen, id(inner)))

    for name in schema(version).names:
        struct = schema(version).kind(name).struct
        walk(name, struct, (), (id(struct),))
    return result


def nested(path: tuple[str, ...], value: Any) -> Any:
    for step in reversed(path):
        value = [value] if step == "[]" else {"k": value} if step == "{}" else {step: value}
    return value


def as_text(kind: str, path: tuple[str, ...], value: Any) -> str:
    data = nested(path, value)
    if kind == LEGACY:
        return yaml_write.write({"machine": {}, **data} if path[0] != "machine" else data)
    head = {"apiVersion": "v1alpha1", "kind": kind, **({"name": "v"} if kind == "VethConfig" else {})}
    return yaml_write.write({**head, **data})


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_is_accepted_right_and_refused_wrong(version: str) -> None:
    fields = fields_of(version)
    for kind, path, codec in fields:
        text = as_text(kind, path, right(codec))
        config = documents.load(text, version)
        once = config.text()
        if UNREADABLE not in once:
            assert documents.load(once, version).text() == once, (kind, path)
        with pytest.raises(ConfigProblem) as caught:
            documents.load(as_text(kind, path, wrong(codec)), version)
        assert caught.value.cause == WRONG_TYPE, (kind, path)
        plain = ".".join("0" if step == "[]" else "k" if step == "{}" else step for step in path)
        assert caught.value.path.startswith(plain), (kind, path, caught.value.path)
        assert caught.value.line > 0 and caught.value.document.startswith(kind)
    counts = {"1.12": 580, "1.13": 640, "1.14": 870}
    assert len({kind for kind, dummy, unused in fields}) == {"1.12": 37, "1.13": 45, "1.14": 90}[version]
    assert len(fields) >= counts[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_keys_are_refused_at_every_depth(version: str) -> None:
    for kind, path, codec in fields_of(version):
        if isinstance(codec, Struct):
            with pytest.raises(ConfigProblem) as caught:
                documents.load(as_text(kind, path, {"nobodyKnows": 1}), version)
            assert (caught.value.cause, caught.value.path.rsplit(".", 1)[-1]) == (UNKNOWN_KEY, "nobodyKnows")


def test_keys_of_a_newer_talos_are_named_with_the_version() -> None:
    with pytest.raises(ConfigProblem, match="1.13 on") as caught:
        documents.load("cluster: {network: {cni: {flannel: {kubeNetworkPoliciesEnabled: true}}}}", "1.12")
    assert caught.value.path == "cluster.network.cni.flannel.kubeNetworkPoliciesEnabled"
    with pytest.raises(ConfigProblem, match="1.14 on"):
        documents.load("apiVersion: v1alpha1\nkind: DHCPv4Config\nname: a\nignoreRoutes: true\n", "1.13")


@pytest.mark.parametrize(("text", "version", "words"), [
    ("apiVersion: v1alpha1\nkind: KubeletConfig\n", "1.13", "1.14 on"), ("apiVersion: v1alpha1\nkind: KubeSpanConfig\n", "1.12", "1.13 on"),
    ("apiVersion: v1alpha1\nkind: Nope\n", "1.14", "spelling"), ("apiVersion: v1\nkind: Secret\n", "1.14", "inline manifests"),
    ("kind: HostnameConfig\n", "1.14", "apiVersion"), ("version: v1alpha1\n", "1.14", "no kind"), ("apiVersion: v1alpha1\nkind: "
                                                                                                   "v1alpha1\n", "1.14", "not known"),
])
def test_unknown_kinds(text: str, version: str, words: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        documents.load(text, version)
    assert caught.value.cause == UNKNOWN_KIND and words in caught.value.text


@pytest.mark.parametrize(("text", "cause"), [
    ("machine: {}\n---\ncluster: {}\n", DUPLICATE_DOCUMENT),
    ("apiVersion: v1alpha1\nkind: LinkConfig\nname: a\n---\napiVersion: v1alpha1\nkind: LinkConfig\nname: a\n", DUPLICATE_DOCUMENT),
    ("apiVersion: v1alpha1\nkind: LinkConfig\nname: a\n---\napiVersion: v1alpha1\nkind: BondConfig\nname: a\n", CONFLICTING_DOCUMENTS),
    ("apiVersion: v1alpha1\nkind: Layer2VIPConfig\nname: 10.0.0.1\n---\napiVersion: v1alpha1\nkind: HCloudVIPConfig\nname: 10.0.0.1\n", CONFLICTING_DOCUMENTS),
    ("apiVersion: v1alpha1\nkind: VethConfig\nname: a\npeer: {name: b}\n---\napiVersion: v1alpha1\nkind: DummyLinkConfig\nname: b\n", CONFLICTING_DOCUMENTS),
])
def test_documents_that_may_not_stand_together(text: str, cause: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        documents.load(text, "1.14")
    assert caught.value.cause == cause


@pytest.mark.parametrize(("number", "kept"), [("1.5", 1), ("300.7", 300), ("-0.5", 0), ("70000.0", 70000)])
def test_talos_1_12_drops_what_stands_behind_the_point(number: str, kept: int) -> None:
    text = f"apiVersion: v1alpha1\nkind: ZswapConfig\nmaxPoolPercent: {number}\n"
    assert f"maxPoolPercent: {kept}\n" in documents.load(text, "1.12").text()
    if not number.endswith(".0"):
        with pytest.raises(ConfigProblem, match="whole number"):
            documents.load(text, "1.13")


def test_messages_quote_no_values() -> None:
    with pytest.raises(ConfigProblem) as caught:
        documents.load("machine: {token: [hunter2hunter2]}", "1.14")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("version", VERSIONS)
def test_random_configurations_are_stable(version: str) -> None:
    for seed in range(120):
        text = yaml_write.write_documents(Inputs(seed, version, wrong=0).config())
        try:
            config = documents.load(text, version)
        except ConfigProblem:
            continue
        once = config.text()
        if UNREADABLE not in once:
            assert documents.load(once, version).text() == once


def test_shuffled_documents_and_keys_give_equal_text() -> None:
    source = Inputs(4, "1.14", wrong=0)
    data = source.document("UserVolumeConfig", 0.9)
    data["name"] = "x"
    keys = list(data)
    random.Random(1).shuffle(keys)
    one = documents.load(yaml_write.write(data), "1.14").text()
    assert documents.load(yaml_write.write({key: data[key] for key in keys}), "1.14").text() == one


@pytest.mark.parametrize(("text", "minor"), [("v1.13.9", "1.13"), ("1.14.0-rc.1", "1.14"), ("1.12", "1.12"), ("v1.15.2", "1.15")])
def test_versions(text: str, minor: str) -> None:
    assert contract.minor(text) == minor


@pytest.mark.parametrize("text", ["", "latest", "v1", "1.14-rc", "1.x.2", "v1.15.0", "v1.11.0", "v" + "1" * 400 + ".2.3"])
def test_no_contract(text: str) -> None:
    with pytest.raises(ConfigProblem):
        contract.contract_of(text)


def test_contract_newer_than_the_node() -> None:
    contract.refuse_too_new("1.13", "v1.14.0")
    contract.refuse_too_new("1.13", "v1.13.1")
    with pytest.raises(ConfigProblem) as caught:
        contract.refuse_too_new("1.14", "v1.13.9")
    assert caught.value.reason == "ContractTooNew"


def test_the_packed_tables_are_what_the_field_lists_give() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "schemas" / "pack.py"), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_only_the_table_asked_for_is_decoded() -> None:
    code = ("import sys; from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import load; load('machine: {}', '1.13'); "
            "print(sorted(name.rsplit('.', 1)[-1] for name in sys.modules if '._schema_' in name))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['_schema_1_13']"
