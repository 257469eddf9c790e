# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real etcd is saved, lost and brought back: the same keys, the same revision."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.backups import Destination
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE
from tests.lab.control import Lab
from tests.unit._operations.saved_cluster import SavedCluster, s3_server
from tests.unit.lab.real_etcd import start

NET = 93


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with start() as lab:
        yield lab


def test_the_wiped_only_control_plane_comes_back_from_the_bucket(lab: Lab, tmp_path: Path) -> None:
    cluster = SavedCluster(lab, tmp_path, "v1.13.9", NET)

    async def life(place: Destination) -> None:
        await cluster.one()
        for number in range(20):
            await cluster.put("cp1", b"key-%d" % number, b"value-%d" % number)
        saved = await cluster.back_up(place)
        assert not saved.refused and saved.executed, saved
        before = await cluster.keys("cp1")
        await cluster.put("cp1", b"later", b"lost")
        live = await cluster.restore(place)
        assert live.refused and live.plan.refusals[0].rule == "17/restore-live" and "talosctl reset" in live.plan.refusals[0].hint
        await asyncio.to_thread(cluster.wipe, "cp1")
        unconfirmed = await cluster.restore(place, confirm="")
        assert unconfirmed.reason == "ConfirmationMissing"
        planned = await cluster.restore(place, check=True)
        assert [step.action for step in planned.plan.steps] == ["Reinstall", "RestoreEtcd"], planned
        restored = await cluster.restore(place)
        assert not restored.refused and list(restored.executed) == [step.id for step in planned.plan.steps], restored
        assert await cluster.keys("cp1") == before
        status = cluster.cluster().status
        assert "operation" not in status and str(status["bootstrappedAt"]) > "2026-01-01T00:00:00Z"
        machine = cluster.store.get(MACHINE, "cp1")
        assert machine is not None and (await cluster.restore(place)).plan.refusals[0].rule == "17/restore-live"

    with s3_server(tmp_path, 7493) as place:
        asyncio.run(life(place))
