# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers as JSON, and the comparisons that a row's JSON alone does not give: events, differences, several nodes."""

from __future__ import annotations

import base64
import re
from typing import Any

from google.protobuf import json_format

from tests.lab.vector_match import Mismatch, compare, text_matches
from tests.lab.wire import message


def is_event_stream(row: dict[str, Any]) -> bool:
    return bool(row["rpc"] == "/machine.MachineService/Events")


def check_events(expected: list[Any], actual: list[Any], addresses: dict[str, str], varies: tuple[str, ...]) -> None:
    """The hello event exactly, then the shape: how many came (or the cut), and the form of each."""
    if bool(expected) != bool(actual):
        raise Mismatch(f"{len(actual)} events, expected {len(expected)}")
    if expected:
        compare(expected[0], actual[0], addresses, varies, "/responses")
    cut = expected and isinstance(expected[-1], str)
    if not cut and len(actual) < len(expected) and "/messages" not in varies:
        raise Mismatch(f"{len(actual)} events, expected {len(expected)}")
    for item in actual[1:]:
        if item.get("metadata") and not item.get("data"):
            continue  # another node's hello
        if not re.match(r"^talos/runtime/machine\.\w+Event$", str((item.get("data") or {}).get("@type", ""))):
            raise Mismatch(f"not an event: {item!r}")


def as_set(expected: list[Any], actual: list[Any], addresses: dict[str, str], varies: tuple[str, ...]) -> bool:
    """Answers of several nodes come in any order."""
    first = expected[0].get("messages") if isinstance(expected[0], dict) else None
    second = actual[0].get("messages") if actual and isinstance(actual[0], dict) else None
    if first is None or second is None or len(first) != len(second):
        return False
    rest = list(second)
    for item in first:
        for index, candidate in enumerate(rest):
            try:
                compare(item, candidate, addresses, varies, "/responses/messages")
            except Mismatch:
                continue
            rest.pop(index)
            break
        else:
            return False
    return True


_SECRET_LINE = re.compile(r"((?:crt|key|token|id|secret|secretboxEncryptionSecret|clusterID|clusterSecret): ).*")


def same_diff(expected: str, actual: str, addresses: dict[str, str], minor: int) -> bool:
    """Whether two texts with a difference in them say the same change.

    Which of several equally short differences is shown depends on the algorithm and on the values of secrets, so that is not compared: the
    text before the difference has to be the same, and so have the lines that are added and taken away in all; of a recorded text that was cut
    short, the lines of the new side. Secrets are alike.
    """
    first_text, unused, first = expected.partition("--- a\n+++ b\n")
    second_text, found, second = actual.partition("--- a\n+++ b\n")
    if not found or not text_matches(first_text, second_text, addresses):
        return False
    cut = re.search(r"<\d+ more characters>", first)
    if cut is not None:
        wanted = _side(first[:cut.start()], "+")[:-1]
        return _same_lines(wanted, _side(second, "+")[:len(wanted)], addresses)
    if minor < 14 and len(re.findall(r"^@@", first, re.M)) == 1 and _lines(first)[0] != _lines(second)[0]:
        return False
    return _same_lines(_net(first), _net(second), addresses)


def _same_lines(first: list[str], second: list[str], addresses: dict[str, str]) -> bool:
    return len(first) == len(second) and all(text_matches(one, two, addresses) for one, two in zip(first, second, strict=True))


_PEM = re.compile(r"^[ +-]?\s*(?:<cert>|<secret>|-----(?:BEGIN|END) [A-Z ]+-----|[A-Za-z0-9+/]{16,}={0,2})$")


def _lines(text: str) -> list[str]:
    """Secrets on one line are alike; blocks of them, which the recording has cut to one line, are left out."""
    return [_SECRET_LINE.sub(r"\1~", line) for line in text.split("\n") if not _PEM.match(line)]


def _side(text: str, sign: str) -> list[str]:
    return [line[1:] for line in _lines(text) if line[:1] in (" ", sign)]


def _net(text: str) -> list[str]:
    """Added and removed lines in a fixed order; one that is both added and removed is neither."""
    added = [line[1:] for line in _lines(text) if line.startswith("+")]
    removed = [line[1:] for line in _lines(text) if line.startswith("-")]
    for line in list(added):
        if line in removed:
            added.remove(line)
            removed.remove(line)
    return sorted("+" + line for line in added) + sorted("-" + line for line in removed)


def alert(text: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_").removeprefix("SSL_")


def normal(item: Any) -> Any:
    """A row's JSON as json_format prints it: decoded specs apart, dry-run differences canonical."""
    if isinstance(item, dict):
        return {key: normal(value) for key, value in item.items() if key != "proto_spec_json"}
    if isinstance(item, list):
        return [normal(part) for part in item]
    return item


def _any_to_json(event: Any) -> dict[str, Any]:
    data = event.pop("data", None)
    if data is not None:
        kind, raw = str(data.get("type_url", "")), base64.b64decode(data.get("value", ""))
        event["data"] = {}
        if kind:
            inner = message(kind.rpartition("/")[2]).FromString(raw)
            event["data"] = {"@type": kind, **json_format.MessageToDict(inner, preserving_proto_field_name=True)}
    return dict(event)


def to_json(answer: Any, minor: int) -> Any:
    if answer.DESCRIPTOR.full_name == "machine.Event":
        plain: dict[str, Any] = {"data": {"type_url": answer.data.type_url, "value": base64.b64encode(answer.data.value).decode()}, "id": answer.id}
        if answer.actor_id:
            plain["actor_id"] = answer.actor_id
        if answer.HasField("metadata"):
            plain["metadata"] = json_format.MessageToDict(answer.metadata, preserving_proto_field_name=True)
        return _any_to_json(plain)
    decoded = json_format.MessageToDict(answer, preserving_proto_field_name=True)
    return normal(decoded)
