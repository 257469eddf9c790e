# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report's page as text: whole HTML, nothing of a node's in it unescaped, no address to load from, small enough to mail."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.fleet_report import FORMAT, FleetSeen, fleet_report
from ansible_collections.ichor.talos.plugins.module_utils._operations.report_page import page
from tests.unit._operations.report_world import HOSTILE, NOW, fleet

VOID = {"meta", "br", "input", "path"}
LOADING = {"src", "href", "action", "data", "poster", "srcset", "background", "formaction", "ping"}


class Reader(HTMLParser):
    """Elements that are open, every tag with its attributes, and the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> ends nothing"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("count", [0, 1, 3, 500])
def test_a_page_of_any_fleet_is_whole_and_small(count: int) -> None:
    document = fleet_report(fleet(count), NOW)
    text = page(document)
    assert len(text.encode()) < 2_000_000 and document["format"] == FORMAT
    reader = read(text)
    assert {tag for tag, dummy in reader.tags} & {"script", "img", "link", "iframe", "object", "embed", "base", "form", "video", "audio"} == set()
    for tag, attributes in reader.tags:
        assert all(value and value.startswith("#") for name, value in attributes.items() if name in LOADING), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    policies = [attributes["content"] for tag, attributes in reader.tags if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]
    assert "url(" not in text and "@import" not in text
    assert json.loads(json.dumps(document)) == document


def test_anchors_lead_somewhere_and_ids_are_there_once() -> None:
    reader = read(page(fleet_report(fleet(40), NOW)))
    ids = [str(attributes["id"]) for dummy, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {str(attributes["href"])[1:] for tag, attributes in reader.tags if tag == "a"} <= set(ids)


def test_what_nodes_and_people_write_is_text() -> None:
    plain, hostile = read(page(fleet_report(fleet(20), NOW))), read(page(fleet_report(fleet(20, HOSTILE), NOW)))
    assert [tag for tag, dummy in plain.tags] == [tag for tag, dummy in hostile.tags]
    assert HOSTILE in hostile.text and "<script" not in page(fleet_report(fleet(20, HOSTILE), NOW)).lower()


def test_everything_that_the_page_is_for_is_on_it() -> None:
    text = re.sub(r"\s+", " ", read(page(fleet_report(fleet(20), NOW))).text)
    for wanted in ("Talos v1.13.9, Kubernetes v1.35.0", "3 of 3 members well", "NodeInstalling", "a person's decision",
                   "machine.sysctls.net.ipv4.ip_forward", "(absent)", "21 d", "NodeReinstalled", "reboot prod-0008", "cannot be undone",
                   "waits for the lock of prod", "Look at its power and its network.", "ichor/machines/broken.yaml, line 7"):
        assert wanted in text, wanted


def test_a_text_without_end_is_cut() -> None:
    seen = fleet(1, "x" * 100_000)
    assert len(page(fleet_report(FleetSeen(seen.store, machines=[{"doing": {"what": "y" * 100_000}}]), NOW))) < 60_000


def test_what_wants_a_person_stands_first() -> None:
    document = fleet_report(fleet(40), NOW)
    kinds = [wait["kind"] for wait in document["waits"]]  # type: ignore[union-attr,index,call-overload]
    assert kinds == sorted(kinds, key=("attention", "cluster", "pending", "moving").index)
    states = [row["state"] for row in document["machines"]]  # type: ignore[union-attr,index,call-overload]
    assert states == sorted(states, key=("attention", "pending", "moving", "well", "rejected").index)
