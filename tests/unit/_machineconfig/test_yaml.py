# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading YAML strictly, what scalars mean, and writing it stable to the byte."""
from __future__ import annotations

import datetime
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import go_text, go_url, natural_order, yaml_read, yaml_write
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import plain
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.containers import sorted_free
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.scalars import resolve_plain


def read(text: str | bytes) -> list[Any]:
    return [plain(node) for node in yaml_read.read(text)]


@pytest.mark.parametrize(("text", "value"), [
    ("on", "on"), ("yes", "yes"), ("No", "No"), ("1:30", "1:30"), ("0777", 511), ("0o777", 511), ("0x1F", 31), ("0b101", 5), ("1_000", 1000),
    ("1.0", 1.0), ("1e3", 1000.0), (".5", 0.5), ("~", None), ("", None), ("null", None), ("True", True), ("FALSE", False), ("-5", -5), ("+5", 5),
    ("1.35.0", "1.35.0"), ("18446744073709551615", 18446744073709551615), ("18446744073709551616", 18446744073709551616.0), ("09", 9.0), ("0o9", "0o9"),
    ("-0", -0.0), (".inf", float("inf")), ("1.5_", 1.5), ("=", "="), ("<<", "<<"), ("::1", "::1"), ("0x", "0x"), ("--1", "--1"), ("é", "é"),
    ("2020-01-01", datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)), ("2020-13-01", "2020-13-01"),
    ("2020-01-01T10:00:00Z", datetime.datetime(2020, 1, 1, 10, tzinfo=datetime.timezone.utc)), ("2020-01-01T10:00:00", "2020-01-01T10:00:00"),
    ("2020-01-01 10:00:00", datetime.datetime(2020, 1, 1, 10, tzinfo=datetime.timezone.utc)),
])
def test_plain_scalars_mean_what_they_mean_to_talos(text: str, value: object) -> None:
    found = resolve_plain(text)
    assert (found, type(found)) == (value, type(value))


def test_quoted_scalars_are_text() -> None:
    assert read("a: '1'\nb: \"true\"\nc: |\n  5\n") == [{"a": "1", "b": "true", "c": "5\n"}]


@pytest.mark.parametrize(("text", "data"), [
    ("\ufeffa: 1", [{"a": 1}]), ("a: 1\r\nb: 2\r\n", [{"a": 1, "b": 2}]), ("--- {}\n---\n# c\n---\nb: 1\n", [{}, {"b": 1}]),
    ("a: &x {b: 1}\nc: {<<: *x, d: 2}\n", [{"a": {"b": 1}, "c": {"d": 2, "b": 1}}]),
    ("a: &x {b: 1}\nc: {b: 3, <<: [*x, {e: 1}]}\n", [{"a": {"b": 1}, "c": {"b": 3, "e": 1}}]),
    ("a: &x [1]\nb: *x\n", [{"a": [1], "b": [1]}]), ("a: !!str 5\n", [{"a": "5"}]), ("%YAML 1.1\n---\na: 1\n", [{"a": 1}]),
])
def test_accepted(text: str, data: list[Any]) -> None:
    assert read(text) == data


@pytest.mark.parametrize(("text", "line", "words"), [
    ("a: 1\nb: 2\na: 3\n", 3, "twice"), ("x:\n  a: 1\n  'a': 2\n", 3, "twice"), ("a:\n\tb: 1\n", 2, "tab"), ("a: *b\n", 1, "anchor"),
    ("a: &a {b: *a}\n", 1, "alias"), ("? [a]\n: 1\n", 1, "key"), ("a: !foo 1\n", 1, "tag"), ("<<: 5\n", 1, "mapping"), ("a: 'b\n", 2, "YAML"),
    ("a: b: c\n", 1, "YAML"),
    ("a: [1,\n", 2, "YAML"), ("a: @b\n", 1, "YAML"), ("x\n---\na: \"\\q\"\n", 3, "YAML"), ("a: \x07\n", 1, "YAML"), ("a: 1\n b: 2\n", 2, "YAML"),
])
def test_refused_with_line_in_one_sentence(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        read(text)
    assert caught.value.line == line
    assert words in caught.value.message


@pytest.mark.parametrize("data", [b"\xff\xfea\x00", b"\xfe\xff\x00a", b"a: \xe4\n", b"a: \xed\xa0\x80\n"])
def test_only_utf8(data: bytes) -> None:
    with pytest.raises(ConfigProblem, match="UTF"):
        read(data)


def test_bounds() -> None:
    started = time.process_time()
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    for text in (bomb, "a: " + "[" * 1000 + "]" * 1000, "a: " + "{b: " * 1000, "- x\n" * 300_000, "---\na: 1\n" * 1001, "x" * 10_000_001, "a: " + "- " * 5000):
        with pytest.raises(ConfigProblem):
            read(text)
    assert time.process_time() - started < 60


def test_a_large_text_is_read() -> None:
    assert read("a: |\n" + "  0123456789\n" * 500_000)[0]["a"].count("\n") == 500_000


# Characters that may stand in a configuration; surrogates cannot be encoded.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r\x85\ufeff"), max_size=20)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-2**63, 2**64 - 1), TEXT)
DATA = st.dictionaries(TEXT.filter(lambda key: "\n" not in key), st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT.filter(lambda key: "\n" not in key), inner, max_size=4), max_leaves=12),
    max_size=5)


@pytest.mark.parametrize("value", ["\n0", " a\nb", "  a\nb\n", "\n\n x\ny"])
@pytest.mark.parametrize("dialect", ["1.12", "1.13", "1.14"])
def test_a_block_that_begins_with_a_space_or_a_line_break_reads_back_wherever_it_stands(value: str, dialect: str) -> None:
    data = {"a": value, "list": [value, {"b": value, "c": [[value], {"d": [value]}]}], "x" * 130: value, "y" * 130: [value], "z" * 130: {"e": value}}
    assert read(yaml_write.write(data, dialect)) == [data]


@pytest.mark.parametrize(("data", "text"), [
    ({"a\x85b": "c"}, '? "a\\Nb"\n: c\n'), ({"a\rb": "c"}, '? "a\\rb"\n: c\n'), ({"a": "- b\u2028"}, "a: '- b\u2028'\n"),
    ({"a": "- b\u2028c"}, "a: '- b\u2028    c'\n"),
])
def test_line_breaks_of_other_kinds(data: dict[str, str], text: str) -> None:
    assert yaml_write.write(data) == text


@settings(max_examples=60, deadline=None)
@given(DATA)
def test_what_is_written_reads_back(data: dict[str, Any]) -> None:
    for dialect in ("1.12", "1.13", "1.14"):
        text = yaml_write.write(sorted_free(data), dialect)
        assert read(text) == ([data] if data else [{}])


@settings(max_examples=25, deadline=None)
@given(DATA)
def test_written_twice_is_equal(data: dict[str, Any]) -> None:
    backwards = dict(reversed(list(data.items())))
    assert yaml_write.write(sorted_free(data)) == yaml_write.write(sorted_free(backwards))


def test_natural_order() -> None:
    keys = ["a10", "a2", "b", "A", "a", "v1.10", "v1.9", "a-b", "10", "9", "a01", "_"]
    assert natural_order.sorted_keys(keys) == natural_order.sorted_keys(keys[::-1])
    assert natural_order.sorted_keys(["a10", "a2", "v1.10", "v1.9"]) == ("a2", "a10", "v1.9", "v1.10")


@pytest.mark.parametrize(("number", "text"), [
    (1.0, "1"), (1.5, "1.5"), (0.0001, "0.0001"), (0.00001, "1e-05"), (1e6, "1e+06"), (123456.0, "123456"), (1e21, "1e+21"), (-2.5, "-2.5"), (-0.0, "-0"),
    (float("nan"), ".nan"), (float("-inf"), "-.inf"), (123456789.5, "1.234567895e+08"),
])
def test_floats(number: float, text: str) -> None:
    assert go_text.format_float(number) == text


@pytest.mark.parametrize(("text", "normal"), [
    ("90s", "1m30s"), ("168h", "168h0m0s"), ("1.5h", "1h30m0s"), ("100ms", "100ms"), ("1us", "1µs"), ("0", "0s"), ("-5m", "-5m0s"),
    ("1h1ns", "1h0m0.000000001s"),
])
def test_durations(text: str, normal: str) -> None:
    assert go_text.format_duration(go_text.parse_duration(text)) == normal


@pytest.mark.parametrize("text", ["", "5", "h", "1x", "1h ", "999999999h", "--1s", "."])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError):
        go_text.parse_duration(text)


@pytest.mark.parametrize(("left", "right", "merged"), [
    ("https://discovery.talos.dev/", "https://disco:3000", "https://disco:3000/"), ("https://a/?jointoken=1", "https://b/", "https://b/?jointoken=1"),
    ("https://a/x#f", "http://b", "http://b/x#f"),
])
def test_urls_merge_by_part(left: str, right: str, merged: str) -> None:
    assert go_url.merge(go_url.parse(left), go_url.parse(right)).text() == merged


def test_urls_with_users_do_not_merge() -> None:
    with pytest.raises(ValueError):
        go_url.merge(go_url.parse("https://u@a"), go_url.parse("https://v@b"))
