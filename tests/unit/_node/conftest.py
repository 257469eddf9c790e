# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Authorities and leaves, made once: keys cost time."""

from __future__ import annotations

import pytest

from tests.unit._node import authority


@pytest.fixture(scope="session")
def in_memory_ca():
    return authority.Authority(())


@pytest.fixture(scope="session")
def os_ca():
    return authority.Authority()


@pytest.fixture(scope="session")
def other_ca():
    """Another cluster's OS CA: the same name, another key."""
    return authority.Authority()


@pytest.fixture(scope="session")
def maintenance_leaf(in_memory_ca):
    return in_memory_ca.leaf(common="maintenance-service.talos.dev")


@pytest.fixture(scope="session")
def node_leaf(os_ca):
    return os_ca.leaf(common="cp1")
