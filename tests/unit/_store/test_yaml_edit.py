# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits of texts as people write them: exactly these bytes change (design section 4)."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.ichor.talos.plugins.module_utils._store.yaml_edit import edit
from ansible_collections.ichor.talos.plugins.module_utils._store.yaml_nodes import parse, to_data
from ansible_collections.ichor.talos.plugins.module_utils._store.yaml_splice import CannotEdit

GONE = object()


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def reader(request, monkeypatch):
    """Both of PyYAML's parsers have to tell the same places."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CLoader", raising=False)


def with_values(data, values):
    for path, value in values.items():
        *way, last = path
        here = data
        for step in way:
            here = here[step]
        if value is GONE:
            del here[last]
        else:
            here[last] = value
    return data


# name, before, changes by path, after
EDITS = [
    ("plain stays plain", "a: x  # why\nb: 2\n", {("a",): "z"}, "a: z  # why\nb: 2\n"),
    ("quotes stay", "a: 'x'\nb: \"y\"\n", {("a",): "it's", ("b",): "z"}, "a: 'it''s'\nb: \"z\"\n"),
    ("quoted to number", "a: 'x' # n\n", {("a",): 5}, "a: 5 # n\n"),
    ("text that looks like something else", "a: x\n", {("a",): "on"}, 'a: "on"\n'),
    ("empty value", "a:\nb: 1\n", {("a",): "x"}, "a: x\nb: 1\n"),
    ("empty value with a comment", "a: # note\nb: 1\n", {("a",): "x"}, "a: x # note\nb: 1\n"),
    ("empty value at the end", "b: 1\na:", {("a",): "x"}, "b: 1\na: x"),
    ("crlf", "a: 1\r\nb:\r\n  c: 2\r\n", {("b", "d"): 3}, "a: 1\r\nb:\r\n  c: 2\r\n  d: 3\r\n"),
    ("no line break at the end", "a: 1", {("b",): 2}, "a: 1\nb: 2"),
    ("new block in an empty place", "a:  # note\nb: 1\n", {("a",): {"x": 1}}, "a:  # note\n  x: 1\nb: 1\n"),
    ("block for braces", "a: {}\n", {("a",): {"x": {"z": [1]}}}, "a:\n  x:\n    z:\n      - 1\n"),
    ("block for a text", "a: x  # note\nb: 1\n", {("a",): [1]}, "a:  # note\n  - 1\nb: 1\n"),
    ("text for a block", "a:  # note\n  x: 1\n  # in\n  y: 2\n# after\nb: 1\n", {("a",): "t"}, "a: t  # note\n# after\nb: 1\n"),
    ("mapping for a list", "a:\n  - 1\n  - 2\nb: 1\n", {("a",): {"x": 1}}, "a:\n  x: 1\nb: 1\n"),
    ("braces for a block", "a:\n  x: 1\nb: 1\n", {("a",): {}}, "a: {}\nb: 1\n"),
    ("indentation of four", "a:\n    b: 1\n", {("a", "c"): {"d": 1}}, "a:\n    b: 1\n    c:\n        d: 1\n"),
    ("lists not indented", "a:\n- 1\nb: 2\n", {("c",): [3]}, "a:\n- 1\nb: 2\nc:\n- 3\n"),
    ("comments stay where they are", "# top\na: 1\n# of b\nb: 2  # side\n# end\n", {("b",): GONE, ("c",): 3}, "# top\na: 1\n# of b\nc: 3\n# end\n"),
    ("entry before a blank line", "a:\n  b: 1\n\n# next\nc: 2\n", {("a", "d"): 2}, "a:\n  b: 1\n  d: 2\n\n# next\nc: 2\n"),
    ("braces grow", "a: {x: 1}  # c\n", {("a", "z"): "p:q"}, 'a: {x: 1, z: "p:q"}  # c\n'),
    ("braces shrink at the start", "a: {x: 1, y: 2}\n", {("a", "x"): GONE}, "a: {y: 2}\n"),
    ("braces shrink at the end", "a: {x: 1, y: 2 }\n", {("a", "y"): GONE}, "a: {x: 1 }\n"),
    ("brackets over lines", "a: [\n  1,  # one\n  2,\n]\n", {("a", 1): 5}, "a: [\n  1,  # one\n  5,\n]\n"),
    ("item appended", "a:\n  - 1  # one\n  - 2  # two\nb: 1\n", {("a",): [1, 2, 3]}, "a:\n  - 1  # one\n  - 2  # two\n  - 3\nb: 1\n"),
    ("item put first", "a:\n  - 1  # one\n", {("a",): [0, 1]}, "a:\n  - 0\n  - 1  # one\n"),
    ("item taken from the middle", "a:\n  - 1\n  - 2  # two\n  - 3\n", {("a",): [1, 3]}, "a:\n  - 1\n  - 3\n"),
    ("item of an empty dash", "a:\n  -\n  - 2\n", {("a", 0): "x"}, "a:\n  - x\n  - 2\n"),
    ("mapping behind a dash", "a:\n  - x: 1\n    y: 2\n  - x: 3\n", {("a", 0, "x"): GONE}, "a:\n  - y: 2\n  - x: 3\n"),
    ("mapping behind a dash, comment between", "a:\n  - x: 1\n    # of y\n    y: 2\n", {("a", 0, "x"): GONE}, "a:\n  - \n    # of y\n    y: 2\n"),
    ("mapping for an item", "a:\n  - x  # c\n", {("a", 0): {"k": 1, "l": 2}}, "a:\n  - k: 1  # c\n    l: 2\n"),
    ("literal text replaced", "a: |\n  one\n  two\n\nb: 1\n", {("a",): "x"}, "a: x\n\nb: 1\n"),
    ("entry behind a literal text", "a:\n  t: |\n    one\n\n# c\nb: 1\n", {("a", "u"): 1}, "a:\n  t: |\n    one\n  u: 1\n\n# c\nb: 1\n"),
    ("entry behind a literal text that keeps its end", "t: |+\n  one\n\n", {("u",): 1}, "t: |+\n  one\n\nu: 1\n"),
    ("alias replaced where it stands", "a: &x\n  k: 1\nb: *x\n", {("b",): {"k": 2}}, "a: &x\n  k: 1\nb:\n  k: 2\n"),
    ("key over a merge", "a: &x\n  k: 1\nb:\n  <<: *x\n  l: 1\n", {("b", "k"): 2}, "a: &x\n  k: 1\nb:\n  <<: *x\n  l: 1\n  k: 2\n"),
    ("anchor that nobody uses", "a: &x 1\n", {("a",): 2}, "a: &x 2\n"),
    ("tag stays", "a: !!str 1\n", {("a",): "2"}, 'a: !!str "2"\n'),
    ("document marks", "%YAML 1.1\n---\na: 1\n...\n", {("b",): 2}, "%YAML 1.1\n---\na: 1\nb: 2\n...\n"),
    ("wide characters", "ä: \U0001f600 # é\nb: 1\n", {("b",): 2}, "ä: \U0001f600 # é\nb: 2\n"),
    ("key of a question mark", "? a\n: 1\nb: 2\n", {("b",): 3, ("a",): 4}, "? a\n: 4\nb: 3\n"),
    ("text over two lines", "a: one\n  two\nb: 1\n", {("a",): "x"}, "a: x\nb: 1\n"),
    ("multi-line text written", "a: x\n", {("a",): "1\n2"}, 'a: "1\\n2"\n'),
    ("list of lists", "a:\n  - - 1\n    - 2\n", {("a",): [[0, 1, 2]]}, "a:\n  - - 0\n    - 1\n    - 2\n"),
]


@pytest.mark.parametrize(("before", "changes", "after"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_exactly_these_bytes_change(before, changes, after):
    wanted = with_values(to_data(parse(before)), changes)
    assert edit(before, wanted) == after


REFUSED = [
    ("the value of an anchor that others use", "a: &x 1\nb: *x\n", {("a",): 2}, 1),
    ("a key of a mapping that others merge", "a: &x\n  k: 1\nb:\n  <<: *x\n", {("a", "k"): 2}, 2),
    ("a key that is merged in", "a: &x\n  k: 1\nb:\n  <<: *x\n  l: 1\n", {("b", "k"): GONE}, 4),
    ("the only key beside a merge, gone with it", "a: &x {k: 1}\nb: {<<: *x}\n", {("a",): GONE}, 1),
    ("an item with an anchor", "a: [&x 1, 2]\nb: *x\n", {("a",): [2]}, 1),
]


@pytest.mark.parametrize(("text", "changes", "line"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_cannot_be_changed_alone_is_refused_with_its_line(text, changes, line):
    wanted = with_values(to_data(parse(text)), changes)
    with pytest.raises(CannotEdit) as caught:
        edit(text, wanted)
    assert caught.value.line == line


def test_no_change_is_the_very_text():
    text = "a:   1   \n\n\n#x\n"
    assert edit(text, {"a": 1}) == text
    assert edit(text, {"a": 1.0}) == "a:   1.0   \n\n\n#x\n"
    assert edit("a: 1\n", {"a": True}) == "a: true\n"
