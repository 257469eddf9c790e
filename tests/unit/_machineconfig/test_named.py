# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a configuration names is the same whether it is read off documents or off bytes."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import load
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.named import host_name, machine_authority
from tests.unit._decide.converging_case import rendered


@pytest.mark.parametrize("role", ["worker", "controlplane"])
@pytest.mark.parametrize("version", ["v1.12.11", "v1.13.9", "v1.14.0"])
def test_of_a_render(role: str, version: str) -> None:
    found = rendered(role, version)
    assert machine_authority(found.config) == found.brought().machine_ca and "BEGIN CERTIFICATE" in machine_authority(found.config)
    assert host_name(found.config) == found.brought().hostname == "m1"


@pytest.mark.parametrize("text", [
    "machine:\n  type: worker\n  network:\n    hostname: legacy\ncluster: {}\n", "machine:\n  type: worker\ncluster: {}\n",
    "machine:\n  type: worker\n  ca:\n    crt: AAAA\n    key: ''\ncluster: {}\n", "machine: {}\ncluster: {}\n",
    "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: alone\n",
])
def test_of_what_somebody_wrote(text: str) -> None:
    found, brought = load(text, "1.13"), bring(text.encode())
    assert host_name(found) == brought.hostname
    assert machine_authority(found).strip("\0") == brought.machine_ca.strip("\0")
