# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Any text that a person may write, any change: what is said afterwards is what was wanted, and the rest keeps its bytes."""

from __future__ import annotations

import copy
import re

import yaml
from ansible_collections.ichor.talos.plugins.module_utils._store.yaml_edit import canonical, edit
from ansible_collections.ichor.talos.plugins.module_utils._store.yaml_nodes import parse, to_data
from ansible_collections.ichor.talos.plugins.module_utils._store.yaml_write import block, document, flow, scalar
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KEYS = st.sampled_from(["a", "b", "name", "size", "on", "x-y", "k8s.io/role", "a b", "1"])
WORDS = st.one_of(
    st.sampled_from(["", "x", "yes", "007", "1e5", "10:20:30", "a: b", "a #b", "- a", "{", "'", '"', "é ü", "two\nlines\n", " lead", "~", "*a",
                     "tab\there", "\u2028", "\ufeff", "0x1f", "2026-01-01", "2026-01-01T00:00:00Z", "=", "<<", "1_000", ".5", "!x", "%a", "@a", "`"]),
    st.text(max_size=8), st.sampled_from(["one\ntwo\n", "one\n", "# no comment\nb: 1", "- x\n- y\n", "a: |\n"]),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-10**12, 10**12), st.floats(allow_nan=False, allow_infinity=False), WORDS.filter(
    lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text)))
VALUES = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)), max_leaves=12)
MAPS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=5)


LITERAL = re.compile(r"[!-~][ -~]*(\n[!-~][ -~]*)*\n?\Z")


def written(data, draw, indent=0, step=2, dash=2):
    """The data as lines with comments of a unique number each, in one of the forms that people mix."""
    lines = []
    for key, value in data.items():
        if draw(st.integers(0, 3)) == 0:
            lines.append(" " * indent + f"# note {draw(st.integers(0, 10**9))}")
        anchor = f" &x{draw(st.integers(0, 10**9))}" if draw(st.integers(0, 9)) == 0 else ""
        head = " " * indent + scalar(key) + ":" + anchor
        comment = f"  # side {draw(st.integers(0, 10**9))}" if draw(st.integers(0, 3)) == 0 else ""
        if isinstance(value, dict) and value and draw(st.integers(0, 3)):
            lines.append(head + comment)
            lines += written(value, draw, indent + step, step, dash)
        elif isinstance(value, list) and value and draw(st.integers(0, 3)):
            lines.append(head + comment)
            lines += block(value, indent + dash, step=step, dash=dash)
        elif isinstance(value, str) and LITERAL.match(value) and draw(st.booleans()):
            chomp = "-" if not value.endswith("\n") else ""
            lines.append(f"{head} |{chomp}{comment}")
            lines += [" " * (indent + step) + line for line in value.removesuffix("\n").split("\n")]
        elif isinstance(value, list) and value and draw(st.booleans()):
            lines.append(f"{head} [{comment}")
            lines += [f"{' ' * (indent + 3)}{flow(item)},  # item {draw(st.integers(0, 10**9))}" for item in value]
            lines.append(" " * (indent + 1) + "]")
        elif isinstance(value, str) and value.isascii() and value.isprintable() and draw(st.booleans()):
            lines.append(head + " '" + value.replace("'", "''") + "'" + comment)
        else:
            lines.append(f"{head} {flow(value)}{comment}")
        if draw(st.integers(0, 6)) == 0:
            lines.append("")
    return lines


@st.composite
def texts(draw):
    data = draw(MAPS)
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines = written(data, draw, 0, draw(st.sampled_from([2, 4])), draw(st.sampled_from([0, 2])))
    lead = draw(st.sampled_from(["", "---" + newline, "# top" + newline]))
    literal = any(line.split("#")[0].rstrip().endswith(("|", "|-")) for line in lines)  # the break at its end is part of what it says
    return data, lead + newline.join(lines) + (newline if literal else draw(st.sampled_from(["", newline]))), newline


def places(data, path=()):
    """The paths of all values."""
    found = [path] if path else []
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, inner in items:
        found += places(inner, (*path, step))
    return found


@st.composite
def changes(draw):
    """A text, what it says, and what it is to say after one or several changes anywhere."""
    data, text, newline = draw(texts())
    wanted = copy.deepcopy(data)
    for _unused in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(wanted) or [("new",)]))
        parent = wanted
        for step in path[:-1]:
            parent = parent[step]
        what = draw(st.sampled_from(["set", "set", "drop", "add"]))
        if what == "set" or isinstance(parent, dict) and what == "drop" and parent is wanted and len(wanted) == 1:
            parent[path[-1]] = draw(VALUES)
        elif what == "drop":
            del parent[path[-1]]
        elif isinstance(parent, list):
            parent.insert(path[-1], draw(VALUES))
        else:
            parent[draw(KEYS)] = draw(VALUES)
    return data, text, newline, wanted


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read_back_by_both_dialects(value):
    text = document({"value": value})
    assert canonical(to_data(parse(text))) == canonical({"value": value})
    assert canonical(yaml.safe_load(text)) == canonical({"value": value})
    assert canonical(yaml.safe_load(f"value: {flow(value)}")) == canonical({"value": value})


@given(changes())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
def test_an_edit_says_what_was_wanted_and_keeps_the_rest(case):
    data, text, newline, wanted = case
    assert canonical(to_data(parse(text))) == canonical(data)
    changed = edit(text, wanted)
    assert canonical(to_data(parse(changed))) == canonical(wanted)
    if newline in text and newline == "\r\n":
        assert not re.search("(?<!\r)\n", changed.replace("\r\n", ""))
    for key, value in data.items():  # the lines of what was not touched are there, byte for byte, comments and all
        if key in wanted and canonical(wanted[key]) == canonical(value):
            assert own_lines(text, key) in changed
    assert edit(text, data) == text


def own_lines(text, key):
    """The bytes of a top-level entry, from its key to the end of its last line."""
    root = parse(text)
    index, entry = next((number, pair) for number, pair in enumerate(root.entries) if pair[0].text == key)
    following = root.entries[index + 1][0].start if index + 1 < len(root.entries) else len(text)
    return text[entry[0].start:following].split("# note")[0].rstrip()
