# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What several files of scenarios have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lives.records import Records, chosen
from tests.parts.apiserver import ApiServer, running


@pytest.fixture(scope="module")
def own() -> Iterator[ApiServer]:
    """An API server that knows nothing of this collection, for one file alone."""
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Records]:
    """A store of the chosen kind for one file; `another` of it is a test's own."""
    with chosen(tmp_path_factory.mktemp("records") / "ichor") as records:
        yield records
