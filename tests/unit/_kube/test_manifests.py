# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a chart renders, and what a chart that lies renders."""

from __future__ import annotations

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._kube.manifests import objects_of
from ansible_collections.ichor.talos.plugins.module_utils._model.container_network import Chart
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError

CHART = Chart("cilium", version="1.18.0")


def one(name: str = "b", more: str = "") -> str:
    return f"{{apiVersion: v1, kind: A, metadata: {{name: {name}}}{more}}}"


def aliases(levels: int) -> str:
    """A few lines that write out to 10**levels words."""
    return "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels))])


def test_lists_are_taken_apart() -> None:
    assert len(objects_of(f"apiVersion: v1\nkind: List\nitems: [{one('a')}, {one('b')}]\n---\n---\n{one('c')}\n", CHART)) == 3


@pytest.mark.parametrize(("text", "reason"), [
    ("", "renders nothing"), ("a: [", "is no YAML"), ("\x00", "is no YAML"), ("- 1", "no object"), ("<html>", "no object"), ("kind: A", "no object"),
    ("apiVersion: v1\nkind: A\nmetadata: {}", "no object"), ("apiVersion: v1\nkind: A\nmetadata: x", "no object"),
    (one(more=", x: .nan"), "no object"), (one(more=", ? [a] : b"), "no YAML"), (one(more=", ? 2026-01-01 : b"), "no object"),
    (one(more=", x: !!python/object/apply:os.abort []"), "is no YAML"), (one(more=", x: 2026-99-99"), "is no YAML"),
    (one("../../secrets/x"), "no object"), (one("'a b'"), "no object"), (one("a?x=y"), "no object"), (one("a%2fb"), "no object"),
    ("{apiVersion: ../v1, kind: A, metadata: {name: b}}", "no object"), ("{apiVersion: v1, kind: A/b, metadata: {name: b}}", "no object"),
    ("{apiVersion: v1, kind: A, metadata: {name: b, namespace: ../x}}", "no object"), (f"{one()}\n---\n{one()}\n", "renders A b twice"),
    (f"---\n{one(more=', x: ' + '[' * 300 + ']' * 300)}", "more than 200 levels"), (f"{aliases(12)}\n", "aliases"),
    ("a: &a {x: y}\nb: &b {<<: [*a, *a]}\n", "aliases"), ("&a [*a]", "aliases")])
def test_what_is_no_object_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TalosError) as caught:
        objects_of(text, CHART)
    assert caught.value.reason == "ChartInvalid" and reason in caught.value.message and "cilium 1.18.0" in caught.value.message and caught.value.hint


def test_words_of_yaml_become_words_of_json() -> None:
    found = objects_of("apiVersion: v1\nkind: A\nmetadata: {name: 'system:b'}\ndata: {day: 2026-01-01, 8: x, yes: no}\n", CHART)
    assert found[0]["data"] == {"day": "2026-01-01", "8": "x", "true": False}
