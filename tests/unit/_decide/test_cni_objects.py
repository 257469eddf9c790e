# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of a network against a render: rows, what is filled in, and that a change touches what is shown and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide import cni_objects
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_compare import content, lay, normal, same
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_filled import ANY, NOTHING, Shape, shape_of
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_generated import generated, marked, settled
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_words import ChangeObject, NetworkPlan
from ansible_collections.ichor.talos.plugins.module_utils._model.container_network import Live
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present
from hypothesis import given, settings, strategies as st

from tests.unit._decide.rows_cni_objects import OBJECT_CASES, ObjectRow, World, agent, config, keys, live


def decide(world: World, gates: Any = cni_objects.OBJECT_GATES, warnings: Any = cni_objects.OBJECT_WARNINGS) -> NetworkPlan:
    return cni_objects.decide_network(world.case, world.branch, world.first, world.second, world.objects, gates, warnings)


def told(found: NetworkPlan) -> tuple[object, ...]:
    refusal = next(iter(found.plan.refusals), None)
    return (refusal.rule if refusal else "", tuple(f"{step.action} {step.target.name}" for step in found.plan.steps),
            tuple(warning.rule for warning in found.plan.warnings))


def texts(found: NetworkPlan) -> str:
    """Everything that a person may read of it."""
    wanted = {one.place: one.wanted for one in found.live}
    return "\n".join([f"{one.message} {one.hint}" for one in found.plan.refusals] + [one.message for one in found.plan.warnings]
                     + [json.dumps(step.describe()) for step in found.plan.steps] + [repr(step) for step in found.plan.steps]
                     + [json.dumps(cni_objects.shown(entry, wanted)) for entry in found.differences])


@pytest.mark.parametrize("row", OBJECT_CASES, ids=lambda row: row.id)
def test_row(row: ObjectRow) -> None:
    found = decide(row.world())
    assert told(found) == (row.rule, row.steps, row.warns)
    for said in row.says:
        assert said in texts(found)
    for hidden in row.hides:
        assert hidden not in texts(found)


@pytest.mark.parametrize("gate", cni_objects.OBJECT_GATES, ids=lambda gate: gate[0])
def test_a_gate_that_is_taken_away_is_noticed(gate: Any) -> None:
    rest = tuple(other for other in cni_objects.OBJECT_GATES if other is not gate)
    assert any(told(decide(row.world(), rest)) != told(decide(row.world())) for row in OBJECT_CASES if row.rule == gate[0])


@pytest.mark.parametrize("warning", cni_objects.OBJECT_WARNINGS, ids=lambda warning: warning[0])
def test_a_warning_that_is_taken_away_is_noticed(warning: Any) -> None:
    rest = tuple(other for other in cni_objects.OBJECT_WARNINGS if other is not warning)
    assert any(told(decide(row.world(), warnings=rest)) != told(decide(row.world())) for row in OBJECT_CASES if warning[0] in row.warns)


def test_two_renders_of_other_keys_are_one_plan() -> None:
    one = World((keys("b25l"),), (Absent(),), (keys("dHdv"),), what="install")
    two = World((keys("dHJl"),), (Absent(),), (keys("Zm91"),), what="install")
    assert decide(one).plan.id == decide(two).plan.id
    assert decide(one).plan.id != decide(World((keys("b25l"),), (Absent(),), (keys("b25l"),), what="install")).plan.id


def test_an_object_that_somebody_changed_is_another_plan_and_is_not_written_over() -> None:
    now = live(agent("cilium:v1.17.0"))
    world = World((agent(),), (Present(now),), (agent(),), accept=True)
    step = decide(world).plan.steps[0]
    assert isinstance(step, ChangeObject)
    assert cni_objects.still(step, {**now, "status": {"numberReady": 1}, "metadata": {**now["metadata"], "resourceVersion": "8"}}) is not None
    changed = live(agent("mine:v1"))
    assert cni_objects.still(step, changed) is None
    assert decide(World((agent(),), (Present(changed),), (agent(),), accept=True)).plan.id != decide(world).plan.id
    assert cni_objects.still(step, {**now, "metadata": {**now["metadata"], "uid": "another"}}) is None


def test_a_change_keeps_what_kubernetes_filled_in_and_what_helm_put_there() -> None:
    now = live(agent("cilium:v1.17.0"), annotations={"meta.helm.sh/release-name": "cilium", "deprecated.daemonset.template.generation": "3"})
    found, changes = lay(agent(), now)
    assert [change.path for change in changes] == ["spec.template.spec.containers[agent].image"]
    expected = copy.deepcopy(now)
    expected["spec"]["template"]["spec"]["containers"][0]["image"] = "cilium:v1.18.0"
    del expected["spec"]["template"]["metadata"]["creationTimestamp"]
    assert found == expected


@pytest.mark.parametrize(("wanted", "now", "alike"), [
    ({"cpu": "1000m"}, {"cpu": "1"}, True), ({"memory": "1Gi"}, {"memory": "1024Mi"}, True), ({"cpu": 0.1}, {"cpu": "100m"}, True),
    ({"cpu": 2}, {"cpu": "2"}, True), ({"cpu": "1"}, {"cpu": "2"}, False), ({"memory": "1G"}, {"memory": "1Gi"}, False), ({"cpu": "x"}, {"cpu": "1"}, False),
])
def test_quantities_are_compared_by_their_amount(wanted: dict[str, Any], now: dict[str, Any], alike: bool) -> None:
    one, other = agent(), live(agent())
    one["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": wanted}
    other["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": now}
    assert (lay(one, other)[1] == ()) == alike


def test_a_field_that_somebody_added_or_took_away_is_a_difference() -> None:
    now = live(agent())
    now["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    now["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "x"})
    now["metadata"]["labels"] = {}
    assert {change.path for change in lay(agent(), now)[1]} == {
        "spec.template.spec.containers[agent].securityContext", "spec.template.spec.containers[sidecar]", "metadata.labels.k8s-app"}


def test_texts_of_a_secret_are_compared_as_they_are_kept() -> None:
    wanted = {**keys("bGl2ZQ=="), "data": {"ca.key": "bGl2ZQ=="}, "stringData": {"plain": "plain"}}
    assert lay(wanted, live(keys("bGl2ZQ==")))[1] == () and "stringData" not in normal(wanted)


def test_one_is_not_true() -> None:
    assert not same(1, True) and not same({"a": [0]}, {"a": [False]}) and same(1, 1.0)
    assert lay(config(a="1"), live(config(a="1")))[1] == ()


KINDS = ("DaemonSet", "Deployment", "Service", "ConfigMap", "ClusterRoleBinding", "MutatingWebhookConfiguration", "CronJob", "Unknown")
LEAVES = st.booleans() | st.integers(0, 5) | st.sampled_from(["", "a", "b", "100m", "cilium:v1"])
FIELDS = st.sampled_from(["spec", "template", "metadata", "labels", "containers", "env", "ports", "name", "value", "data", "image", "rules", "webhooks", "x"])
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4), max_leaves=25)


@st.composite
def objects(draw: Any) -> dict[str, Any]:
    body = draw(st.dictionaries(st.sampled_from(["spec", "data", "webhooks", "rules", "x"]), TREES, max_size=4))
    labels = draw(st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["", "x"]), max_size=2))
    return {"apiVersion": "v1", "kind": draw(st.sampled_from(KINDS)), **body, "metadata": {"name": "n", "labels": labels}}


def filled(value: Any, shape: Shape, draw: Any, around: Mapping[str, Any] | None = None) -> Any:
    """The value as Kubernetes would have it: something of what the table says is filled in, and empty fields dropped."""
    if isinstance(value, list):
        return [filled(entry, shape, draw) for entry in value] if all(isinstance(entry, dict) for entry in value) else value
    if not isinstance(value, dict):
        return value
    found = {key: filled(entry, shape.fields.get(key, NOTHING), draw) for key, entry in value.items()
             if not (key in shape.dropped and not entry) and entry not in ({}, [])}
    for key, default in shape.filled.items():
        if key not in value and draw(st.booleans()):
            default = default(found) if callable(default) else draw(st.sampled_from(["any", 7])) if default is ANY else default
            if default is not None:
                found[key] = default
    return found


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_what_is_filled_in_is_no_difference(data: Any) -> None:
    wanted = data.draw(objects())
    now = filled(wanted, shape_of(wanted["kind"]), data.draw)
    found, changes = lay(wanted, now)
    assert changes == () and found == now


@settings(deadline=None, max_examples=150)
@given(objects(), objects())
def test_what_is_laid_differs_no_more_and_only_where_it_is_shown(wanted: dict[str, Any], other: dict[str, Any]) -> None:
    now = {**other, "kind": wanted["kind"]}
    found, changes = lay(wanted, now)
    assert lay(wanted, found)[1] == ()
    assert bool(changes) or found == normal(now)
    again, dummy = lay(wanted, found)
    assert again == found


@settings(deadline=None, max_examples=150)
@given(objects(), st.data())
def test_one_changed_leaf_is_one_difference(wanted: dict[str, Any], data: Any) -> None:
    leaves = [path for path in _leaves(wanted) if path[:1] != ("kind",)]
    path = data.draw(st.sampled_from(leaves))
    now = copy.deepcopy(wanted)
    _set(now, path, "changed by hand")
    found, changes = lay(wanted, now)
    assert len(changes) >= 1 or _get(wanted, path) == "changed by hand"
    assert content(now) != content(wanted) or path[0] == "status"
    assert lay(wanted, found)[1] == ()


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, entry in value.items() for leaf in _leaves(entry, (*path, key))]
    return [path]


def _get(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _set(value: Any, path: tuple[Any, ...], leaf: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = leaf


@settings(deadline=None, max_examples=100)
@given(objects(), objects())
def test_two_renders_are_alike_where_nothing_is_made_anew(one: dict[str, Any], two: dict[str, Any]) -> None:
    other = {**two, "kind": one["kind"]}
    paths = generated((one,), (other,))
    if paths is None:
        assert normal(one).keys() != normal(other).keys()
        return
    assert same(marked(one, paths[0]), marked(other, paths[0])) and generated((one,), (copy.deepcopy(one),)) == ((),)
    kept = settled((Live(one, Present(other)),), paths)[0].wanted
    assert set(kept) == set(normal(one))
