# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Authorities and leaves, made once: keys cost time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def _load(name):
    """The neighbours of this file as modules of their own name, whatever the import mode."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


authority = _load("authority")
_load("fake_node")


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
