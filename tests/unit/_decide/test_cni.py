# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The container network as a table: every gate and warning has a row and is noticed when it is taken away, and every sentence of the design stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide import cni
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_values import for_render, owned_in, secret_paths, without_owned
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_words import Choice
from hypothesis import given, settings, strategies as st

from tests.unit._decide.proofs import is_there
from tests.unit._decide.rows_cni import CASES, OWN, Row
from tests.unit._decide.rows_cni_objects import OBJECT_CASES
from tests.unit._decide.sentences_cni import ELSEWHERE, SENTENCES

ROOT = Path(__file__).parents[3]


def told(choice: Choice) -> tuple[object, ...]:
    branch, refusal = choice.branch, next(iter(choice.refusals), None)
    return (refusal.rule if refusal else "", refusal.reason if refusal else "", branch.what if branch else "", dict(branch.values) if branch else None,
            str(branch.chart) if branch else "", tuple(warning.rule for warning in choice.warnings))


@pytest.mark.parametrize("row", CASES, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    choice = cni.choose(row.case())
    values = dict(row.values) if row.values is not None else None
    assert told(choice) == (row.rule, row.reason, row.what, values, row.chart, row.warns)
    text = "\n".join([f"{one.message} {one.hint}" for one in choice.refusals] + [one.message for one in choice.warnings])
    for said in row.says:
        assert said in text
    assert "hush" not in text


@pytest.mark.parametrize("gate", cni.GATES, ids=lambda gate: gate[0])
def test_a_gate_that_is_taken_away_is_noticed(gate: cni.Row) -> None:
    rest = tuple(other for other in cni.GATES if other is not gate)
    assert any(told(cni.choose(row.case(), rest)) != told(cni.choose(row.case())) for row in CASES if row.rule)


def test_every_row_has_an_id_of_its_own() -> None:
    ids = [row.id for row in (*CASES, *OBJECT_CASES)]
    assert len(set(ids)) == len(ids)


def paragraph() -> str:
    """What section 15 says of the network, its lines joined."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    return " ".join(text.split("\n**CNI**: ", 1)[1].split("\n\n", 1)[0].split())


def test_no_sentence_is_left_out() -> None:
    text = paragraph()
    for sentence in sorted(SENTENCES, key=lambda one: len(one.quote), reverse=True):
        assert sentence.quote in text
        text = text.replace(sentence.quote, " ")
    assert text.strip() == ""


def test_everything_that_is_named_is_there() -> None:
    rows = {row.id for row in (*CASES, *OBJECT_CASES)}
    assert [(one.quote[:40], shown) for one in SENTENCES for shown in one.shown if not is_there(shown, rows)] == []
    assert rows - {shown for one in SENTENCES for shown in one.shown} == set(ELSEWHERE)


VALUES = st.recursive(st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["kubernetes", "cluster-pool", "/sys/fs/cgroup", "x"]),
                      lambda inner: st.dictionaries(st.sampled_from(["ipam", "mode", "cgroup", "autoMount", "enabled", "hostRoot", "a"]), inner, max_size=4))
MAPPINGS = st.dictionaries(st.sampled_from(["ipam", "cgroup", "a", "b"]), VALUES, max_size=4)


@settings(deadline=None)
@given(MAPPINGS)
def test_what_is_rendered_has_the_owned_values_whatever_somebody_gives(values: dict[str, object]) -> None:
    found = for_render(values)  # type: ignore[arg-type]
    assert owned_in(found) == (("ipam.mode", True), ("cgroup.autoMount.enabled", True), ("cgroup.hostRoot", True))


@settings(deadline=None)
@given(MAPPINGS)
def test_values_without_owned_keys_hold_none_that_could_be_taken_out_and_render_alike(values: dict[str, object]) -> None:
    rest = without_owned(values)  # type: ignore[arg-type]
    assert not [key for key, alike in owned_in(rest) if alike]
    if all(alike for dummy, alike in owned_in(values)):  # type: ignore[arg-type]
        assert owned_in(rest) == () and without_owned(rest) == rest
        assert {key: value for key, value in for_render(rest).items() if value != {}} == {
            key: value for key, value in for_render(values).items() if value != {}}  # type: ignore[arg-type]


def test_the_owned_values_alone_leave_nothing() -> None:
    assert without_owned(OWN) == {} and for_render({})["ipam"] == {"mode": "kubernetes"}
    agent = {"securityContext": {"capabilities": {"ciliumAgent": ["NET_ADMIN"]}}}
    assert for_render(agent)["securityContext"]["capabilities"]["ciliumAgent"] == ["NET_ADMIN"]  # type: ignore[index, call-overload]


def test_names_of_secrets_and_keys_of_tolerations_are_no_secrets() -> None:
    values = {"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}], "tls": {"secretName": "mine", "ca": {"key": ""}},
              "envoy": {"secretsNamespace": {"name": "cilium-secrets"}}, "auth": {"token": "abcdef"}, "x": [{"pem": "-----BEGIN RSA PRIVATE KEY-----"}]}
    assert list(secret_paths(values)) == ["auth.token", "x.0.pem"]  # type: ignore[arg-type]
