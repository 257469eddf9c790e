# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every test: the longest files come first, and a skipped test fails the run unless tests/allowed-skips.txt has it
for a machine like this."""

from __future__ import annotations

import fnmatch
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.parts.apiserver import ApiServer

CONDITIONS = {
    "not-linux": lambda: not sys.platform.startswith("linux"),
    "not-root": lambda: os.geteuid() != 0,
    "no-go": lambda: shutil.which("go") is None,
}

#: The run's status when a test was skipped that should have run; pytest's own end at 5.
UNLISTED_SKIP = 7

_skipped: dict[str, str] = {}
#: What tests have to tell of themselves (`record_property("told", …)`): counts that a person wants to see.
_told: list[str] = []


def allowed(node: str, text: str) -> bool:
    """Whether the list in `text` lets the test of that id be skipped on this machine."""
    for line in text.splitlines():
        condition, _unused, pattern = line.strip().partition(" ")
        if condition and not condition.startswith("#") and CONDITIONS[condition]() and fnmatch.fnmatchcase(node, pattern.strip()):
            return True
    return False


#: Beginnings of the names of files that take long, the longest first; the order need not be exact.
LONG = (
    "tests/crash/", "tests/lives/", "tests/scenarios/test_reconcile_", "tests/scenarios/test_rendered_life", "tests/scenarios/test_identity_and_trust",
    "tests/scenarios/test_reclaim", "tests/scenarios/test_drain", "tests/scenarios/test_adopt", "tests/scenarios/test_moved_nodes",
    "tests/scenarios/test_awx_jobs_cut_off", "tests/scenarios/test_runner.py", "tests/scenarios/test_store_in_trouble", "tests/scenarios/test_first_life",
    "tests/scenarios/test_create_cluster", "tests/scenarios/test_refusals", "tests/scenarios/test_stopping", "tests/unit/lab/test_real_etcd",
    "tests/unit/_operations/test_converge_against_lab", "tests/torture/", "tests/artefact/",
    "tests/scenarios/test_add_machine",
    "tests/hostile/", "tests/browser/", "tests/machinery/test_adoptions", "tests/scenarios/", "tests/unit/_controller/", "tests/lint/",
    "tests/unit/_machineconfig/test_mutations", "tests/unit/lab/",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files before all others, so that no worker is left alone with one at the end; what only a directory store has is not for another."""
    if os.environ.get("ICHOR_TEST_STORE") == "kubernetes":
        items[:] = [item for item in items if item.get_closest_marker("directory_only") is None]
    items.sort(key=lambda item: next((number for number, name in enumerate(LONG) if item.nodeid.startswith(name)), len(LONG)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        _skipped[report.nodeid] = str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)
    if report.when == "teardown":
        _told.extend(str(value) for name, value in report.user_properties if name == "told")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _skipped[report.nodeid] = str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    text = Path(__file__).with_name("allowed-skips.txt").read_text(encoding="utf-8")
    unlisted = [node for node in _skipped if not allowed(node, text)]
    if unlisted and not hasattr(session.config, "workerinput"):
        session.exitstatus = UNLISTED_SKIP
    session.config.stash[UNLISTED] = unlisted


UNLISTED = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in _told:
        terminalreporter.write_line(line)
    for node in config.stash.get(UNLISTED, []):
        terminalreporter.write_line(f"SKIPPED AND NOT IN tests/allowed-skips.txt: {node}: {_skipped[node]}", red=True)


@pytest.fixture(scope="session")
def apiserver() -> Iterator[ApiServer]:
    """A real kube-apiserver, started for the first test of a worker that asks for one; tests share it and keep to namespaces of their own."""
    # Here, since the rest of this file also works alone, without the tests beside it.
    from tests.parts.apiserver import running

    with running() as server:
        yield server
