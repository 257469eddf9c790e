# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The same adoption with records in a real API server: killed at every write, and the same records in the end (design sections 4 and 15)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access
from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE
from ansible_collections.ichor.talos.plugins.module_utils._operations.reconcile import HELD, phase_of
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import open_store
from tests.parts.apiserver import ApiServer
from tests.unit._decide import adoption_world as w
from tests.unit._operations.test_adopt import PLANE, WORKER, Place
from tests.unit._operations.world import Killed


@dataclass
class InKubernetes(Place):
    """A namespace of its own instead of a folder."""

    server: ApiServer | None = None
    namespace: str = field(default_factory=lambda: f"adopt-{uuid.uuid4().hex[:8]}")

    opened: Any = None

    def store(self) -> Any:
        assert self.server is not None
        self.opened = self.opened or open_store(Access(kubeconfig=str(self.server.kubeconfig)), self.namespace, clock=self.clock, create=True)
        return self.opened


def place(folder: Path, apiserver: ApiServer) -> InKubernetes:
    nodes = w.plane(1, w.SYSCTL), w.worker(4, w.SYSCTL)
    return InKubernetes(folder, {parse_endpoint(one.address): one for one in nodes}, server=apiserver)


def test_killed_at_writes_and_run_again(tmp_path: Path, apiserver: ApiServer) -> None:
    whole = place(tmp_path, apiserver)
    whole.run()
    whole.store().close()
    assert [whole.ready(name) for name in (PLANE, WORKER)] == [("True", "Converged")] * 2
    for number in range(1, len(whole.trace), 3):
        here = place(tmp_path, apiserver)

        def kill(what: str, here: InKubernetes = here, number: int = number) -> None:
            if len(here.trace) - 1 == number:
                raise Killed

        here.hook = kill
        with pytest.raises(Killed):
            here.run()
        assert all(phase_of(record) in ("undecided", HELD, "converged") for record in here.store().list(MACHINE).records), whole.trace[number]
        here.hook = lambda what: None
        here.run()
        here.store().close()
        assert [spec for dummy, unused, spec, status in here.everything()] == [spec for dummy, unused, spec, status in whole.everything()]
        assert [here.ready(name) for name in (PLANE, WORKER)] == [("True", "Converged")] * 2
