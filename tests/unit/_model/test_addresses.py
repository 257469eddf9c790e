# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses as people write them."""

from __future__ import annotations

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import expand, parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10.0.0.1", "10.0.0.1:50000"),
        (" 10.0.0.1 ", "10.0.0.1:50000"),
        ("10.0.0.1:50001", "10.0.0.1:50001"),
        ("node-1", "node-1:50000"),
        ("Node-1.Example.", "node-1.example:50000"),
        ("node-1:50001", "node-1:50001"),
        ("2001:DB8:0::1", "[2001:db8::1]:50000"),
        ("[2001:db8::1]:50001", "[2001:db8::1]:50001"),
        ("[2001:db8::1]", "[2001:db8::1]:50000"),
        ("fe80::1%eth0", "[fe80::1%eth0]:50000"),
        ("::ffff:10.0.0.1", "10.0.0.1:50000"),
    ],
)
def test_one_host(text: str, wanted: str) -> None:
    assert str(parse_endpoint(text)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0",
        "10.0.0.256",
        "http://10.0.0.1",
        "10.0.0.1/24",
        "10.0.0.1:",
        "10.0.0.1:0",
        "10.0.0.1:65536",
        "10.0.0.1:5o",
        "[10.0.0.1]",
        "[2001:db8::1",
        "[2001:db8::1]5",
        "2001:db8::g",
        "a b",
        "-node",
        "node-",
        "n" * 64,
        "a..b",
        "nöde",
        "node\x1b[31m",
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(TalosError) as caught:
        parse_endpoint(text)
    assert caught.value.reason == "InvalidAddress" and caught.value.hint


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["10.0.0.1,10.0.0.2"], ["10.0.0.1", "10.0.0.2"]),
        (["10.0.0.1 10.0.0.2\n10.0.0.1"], ["10.0.0.1", "10.0.0.2"]),
        (["10.0.0.8-10.0.0.10"], ["10.0.0.8", "10.0.0.9", "10.0.0.10"]),
        (["10.0.0.254-10.0.1.1"], ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"]),
        (["10.0.0.8-10"], ["10.0.0.8", "10.0.0.9", "10.0.0.10"]),
        (["10.0.0.0/30"], ["10.0.0.1", "10.0.0.2"]),
        (["10.0.0.5/30"], ["10.0.0.5", "10.0.0.6"]),
        (["10.0.0.4/31"], ["10.0.0.4", "10.0.0.5"]),
        (["10.0.0.4/32"], ["10.0.0.4"]),
        (["2001:db8::/126"], ["2001:db8::1", "2001:db8::2", "2001:db8::3"]),
        (["2001:db8::1-2001:db8::2"], ["2001:db8::1", "2001:db8::2"]),
        (["node-1", "node-2.example"], ["node-1", "node-2.example"]),
        ([], []),
        ([" , "], []),
    ],
)
def test_several(texts: list[str], wanted: list[str]) -> None:
    assert [endpoint.host for endpoint in expand(texts)] == wanted


@pytest.mark.parametrize(
    "text", ["10.0.0.1-", "10.0.0.1-node", "10.0.0.9-10.0.0.1", "10.0.0.1-2001:db8::1", "10.0.0.1-300", "10.0.0.0/33", "x/24", "10.0.0.1-10.0.0.2-10.0.0.3"]
)
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(TalosError) as caught:
        expand([text])
    assert caught.value.reason == "InvalidAddress"


def test_a_slash_16_is_fine() -> None:
    found = expand(["10.7.0.0/16"])
    assert (len(found), found[0].host, found[-1].host) == (65534, "10.7.0.1", "10.7.255.254")


@pytest.mark.parametrize(
    "texts", [["0.0.0.0/0"], ["::/0"], ["2001:db8::/64"], ["10.0.0.0/8"], ["10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"], ["0.0.0.0-255.255.255.255"]]
)
def test_a_slash_0_is_refused_before_it_is_counted_out(texts: list[str]) -> None:
    with pytest.raises(TalosError) as caught:
        expand(texts)
    assert caught.value.reason == "RangeTooLarge"


@given(st.text(max_size=40))
def test_whatever_is_typed_is_an_address_or_refused_by_its_reason(text: str) -> None:
    try:
        for endpoint in expand([text]):
            assert parse_endpoint(str(endpoint)) == endpoint
    except TalosError as error:
        assert error.reason in ("InvalidAddress", "RangeTooLarge")


@given(st.ip_addresses(), st.integers(min_value=1, max_value=65535))
def test_an_endpoint_reads_as_it_is_written(address: object, port: int) -> None:
    host = parse_endpoint(str(address)).host
    text = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    assert str(parse_endpoint(text)) == text
