# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person's text may look like, and what is said of it when it cannot be read (design section 4)."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.ichor.talos.plugins.module_utils._store import yaml_nodes
from ansible_collections.ichor.talos.plugins.module_utils._store.yaml_nodes import YamlProblem, decode, parse, to_data


@pytest.fixture(params=["libyaml", "python"])
def reader(request, monkeypatch):
    """Both of PyYAML's parsers: the one in C is missing on some machines."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CLoader", raising=False)
    return lambda text: to_data(parse(text))


BROKEN = [
    ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' is there twice"),
    ("a:\n  - x: 1\n    x: 2\n", 3, "the key 'x' is there twice"),
    ("{a: 1, a: 2}", 1, "the key 'a' is there twice"),
    ("a: 1\nb:\n\tc: 2\n", 3, "a tab is used for indentation"),
    ("a: [1, 2\nb: 3\n", 2, "not valid YAML"),
    ("a: 'open\n", 2, "not valid YAML"),
    ("", 1, "empty"),
    (" \n\n", 1, "empty"),
    ("# only a comment\n", 1, "holds no record"),
    ("a: 1\n---\nb: 2\n", 2, "more than one document"),
    ("a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> other\n", 2, "unresolved merge conflict of git"),
    ("a: !vault |\n  $ANSIBLE_VAULT\n", 1, "tag '!vault' is not known"),
    ("a: !!python/object:os.system {}\n", 1, "is not known in a record"),
    ("a: *nothing\n", 1, "has no anchor before it"),
    ("a: &a\n  b: *a\n", 2, "has no anchor before it"),
    ("? [1]\n: 2\n", 1, "a key has to be a plain word"),
    ("a: .nan\n", 1, "no number that a record can hold"),
    ("a: -.inf\n", 1, "no number that a record can hold"),
    ("a: 1e999\n", 1, "too large"),
    ("a: !!int x\n", 1, "'x' is no int"),
    ("a: !!bool 1\n", 1, "'1' is no bool"),
    ("a: 1\n<<: text\n", 2, "'<<' needs a mapping"),
    ("a: \x07\n", 1, "not valid YAML"),
    ("a: {{ name }}\n", 1, "a key has to be a plain word"),
]


@pytest.mark.parametrize(("text", "line", "message"), BROKEN, ids=[repr(row[0])[:30] for row in BROKEN])
def test_a_broken_text_is_told_with_its_line(reader, text, line, message):
    with pytest.raises(YamlProblem, match=message) as caught:
        reader(text)
    assert caught.value.line == line


@pytest.mark.parametrize(("data", "line", "message"), [
    (b"\xff\xfea\x00", 1, "UTF-16"),
    (b"a: 1\nb: \xe9\n", 2, "not UTF-8"),
    (b"a: 1\n\x00\x00\x00", 2, "NUL"),
    (b"a" * (yaml_nodes.MAX_BYTES + 1), 0, "more than the"),
])
def test_bytes_that_are_no_text(data, line, message):
    with pytest.raises(YamlProblem, match=message) as caught:
        decode(data)
    assert caught.value.line == line


def test_the_mark_of_utf8_is_kept_apart():
    assert decode(b"\xef\xbb\xbfa: 1\r\n") == ("\ufeff", "a: 1\r\n")
    assert decode("ä: 1".encode()) == ("", "ä: 1")


SCALARS = [
    ("on", "on"), ("yes", "yes"), ("No", "No"), ("10:20:30", "10:20:30"), ("007", "007"), ("2026-01-31", "2026-01-31"), ("1_000", "1_000"),
    ("0b11", "0b11"), ("true", True), ("False", False), ("~", None), ("", None), ("null", None), ("12", 12), ("-3", -3), ("+3", 3), ("0x1F", 31),
    ("0o17", 15), ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("1.2.3.4", "1.2.3.4"), ("'1'", "1"), ('"true"', "true"), ("!!str 5", "5"),
    ("! 5", "5"), ("!!float 3", 3.0), ("!!null ~", None), ("!!bool true", True), ("52:54:00:12:34:56", "52:54:00:12:34:56"), ("=", "="), ("-", [None]),
]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_what_a_scalar_means(reader, text, value):
    found = reader(f"a: {text}\n" if text != "-" else "a:\n-\n")["a"]
    assert found == value
    assert type(found) is type(value)


def test_anchors_and_merges_are_written_out(reader):
    text = "base: &base {a: 1, b: 2}\none: {<<: *base, b: 3}\ntwo:\n  <<: [*base, {c: 4}]\nthree: *base\n"
    base = {"a": 1, "b": 2}
    assert reader(text) == {"base": base, "one": {"a": 1, "b": 3}, "two": {"a": 1, "b": 2, "c": 4}, "three": base}


def test_nesting_and_aliases_are_bounded(reader):
    with pytest.raises(YamlProblem, match="nested deeper"):
        reader("a: " + "[" * 500 + "]" * 500)
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefg", "bcdefgh"))
    with pytest.raises(YamlProblem, match="too many values"):
        reader(bomb)


def test_offsets_are_those_of_the_text_with_wide_characters_and_crlf(reader):
    text = "# \U0001f600 é\r\na: \U0001f600\r\nb: 'é' # c\r\n"
    root = parse(text)
    assert [text[value.start:value.end] for dummy, value in root.entries] == ["\U0001f600", "'é'"]
