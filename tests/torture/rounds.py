# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds of rounds of a torture, with the lab and the processes that they share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from tests.crash.life import Life
from tests.lab.control import Lab
from tests.nursery.client import Nursery
from tests.nursery.network import Network
from tests.torture import decisions, inputs, lives

Do = Callable[[random.Random], int]


@contextmanager
def rounds(folder: Path) -> Iterator[dict[str, Do]]:
    """Kind, as it is told, and what one round of it does."""
    with Lab.start({"nodes": {}}, speed=50) as lab, Nursery() as nursery, closing(Network()) as network:
        life = Life(lab, nursery, folder, network.prefix)
        life.live()
        yield {"worlds": decisions.many, "inputs": inputs.many, "kills": partial(lives.kill, life), "lives under faults": partial(lives.schedule, life)}
