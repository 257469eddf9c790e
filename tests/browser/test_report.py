# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report in a real browser: it says nothing on the console, asks for nothing but itself, and fits a phone, a tablet and a screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.fleet_report import fleet_report
from ansible_collections.ichor.talos.plugins.module_utils._operations.report_page import page
from tests.browser.chromium import Browser
from tests.unit._operations.report_world import HOSTILE, NOW, fleet

WIDTHS = (390, 800, 1280)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.mark.parametrize(("count", "hostile"), [(0, ""), (3, ""), (30, HOSTILE), (500, "")])
def test_the_page_opens_at_every_width_and_asks_for_nothing(browser: Browser, tmp_path: Path, count: int, hostile: str) -> None:
    path = tmp_path / "fleet.html"
    path.write_text(page(fleet_report(fleet(count, hostile), NOW)), encoding="utf-8")
    for width in WIDTHS:
        seen = browser.open(path, width, dark=width == 800)
        assert seen.console == []
        assert seen.requests == [path.resolve().as_uri()]
        assert seen.width <= width, f"at {width} the page is {seen.width} wide"
        assert "Talos fleet" in seen.text
    told = {0: "No machine is known yet.", 3: "All is well.", 30: "9 of 30 machines want attention.", 500: "150 of 500 machines want attention."}
    assert told[count] in seen.text


def test_the_page_is_dark_where_the_reader_is(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "fleet.html"
    path.write_text(page(fleet_report(fleet(3), NOW)), encoding="utf-8")
    colours = []
    for dark in (False, True):
        browser.open(path, 1280, dark=dark)
        colours.append(browser.value("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(245, 246, 248)", "rgb(14, 17, 22)"]


def test_machines_can_be_narrowed_without_a_script(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "fleet.html"
    path.write_text(page(fleet_report(fleet(30), NOW)), encoding="utf-8")
    browser.open(path, 1280)
    shown = "[...document.querySelectorAll('tr[data-s]')].filter(row => row.offsetParent !== null).length"
    counts = {}
    for key in ("all", "open", "attention", "moving", "pending", "well", "rejected"):
        browser.value(f"document.querySelector('label[for=show-{key}]').click()")
        counts[key] = browser.value(shown)
    assert counts == {"all": 30, "open": 18, "attention": 9, "moving": 3, "pending": 3, "well": 12, "rejected": 3}


def test_a_page_that_would_load_something_is_stopped_by_its_own_policy(browser: Browser, tmp_path: Path) -> None:
    """What the policy is for: were a node's text not escaped, nothing of it would run or be fetched."""
    path = tmp_path / "fleet.html"
    text = page(fleet_report(fleet(3), NOW))
    path.write_text(text.replace("</main>", "<script>document.title='owned'</script><img src='http://127.0.0.1:1/x.png'></main>"), encoding="utf-8")
    seen = browser.open(path, 1280)
    assert browser.value("document.title") == "Talos fleet" and len(seen.console) == 2
    assert all("Content Security Policy" in line for line in seen.console)
