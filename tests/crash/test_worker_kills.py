# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The same for a worker that joins a running cluster: its API opens only once a control plane's trustd has signed its certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.crash.life import WORKER_BOARD, WORKER_NAMES, WORKER_STEPS, Cast, Life
from tests.crash.test_kills import killed_everywhere, whole
from tests.lab.control import Lab
from tests.nursery.client import Nursery
from tests.nursery.network import Network


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with Lab.start({"nodes": {}}, speed=50) as lab, Nursery() as nursery, closing(Network()) as plane, closing(Network()) as network:
        first = Life(lab, nursery, tmp_path_factory.mktemp("plane"), plane.prefix)
        place = first.live(stay=True)
        life = Life(lab, nursery, tmp_path_factory.mktemp("worker"), network.prefix, Cast(WORKER_STEPS, "worker", "w-1", WORKER_BOARD),
                    first.secrets, place.store, (place.address,))
        life.live()
        yield life


@pytest.mark.parametrize("name", WORKER_NAMES)
def test_the_trace_misses_no_call_and_no_write(life: Life, name: str) -> None:
    whole(life, name)


@pytest.mark.parametrize("name", WORKER_NAMES)
def test_a_module_that_is_killed_at_any_boundary_and_started_again_ends_like_one_that_was_not(
        life: Life, name: str, record_property: Callable[[str, object], None]) -> None:
    record_property("told", killed_everywhere(life, name))
