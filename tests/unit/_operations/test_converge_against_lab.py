# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check, run, check, run on emulated nodes of all three versions: drift at once, drift with a reboot, one control plane after another."""

from __future__ import annotations

import asyncio
import datetime
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.authorities import make_bundle
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import encode, read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.shown import secrets_in
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import CheckModeWrite
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Json
from ansible_collections.ichor.talos.plugins.module_utils._operations import converge
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_effects import Effects
from tests.lab.control import Lab
from tests.nursery.client import Nursery
from tests.unit._decide.converging_case import sysctl, udev
from tests.unit._operations.converging_lab import KUBERNETES, LabCluster
from tests.unit._operations.converging_world import other_kubernetes_ca, other_token

NETS = dict(zip(KUBERNETES, (64, 65, 66)))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.start({"nodes": {}}, speed=50) as running:
        yield running


@pytest.fixture(scope="module", params=list(KUBERNETES))
def small(request: pytest.FixtureRequest, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> LabCluster:
    """One control plane and one worker."""
    cluster = LabCluster(lab, tmp_path_factory.mktemp("small"), request.param, NETS[request.param])

    async def made() -> None:
        await cluster.provision("cp1", 1, "controlplane", first=True)
        await cluster.provision("w1", 2, "worker")

    asyncio.run(made())
    return cluster


def writes(lab: Lab, mark: int) -> dict[str, int]:
    found: dict[str, int] = lab.writes(since=mark, accepted_only=True)
    return found


def test_machines_that_run_what_the_records_say_are_converged(small: LabCluster) -> None:
    mark = small.lab.mark()
    ran = asyncio.run(small.run("cp1", "w1"))
    assert {name: found.row.reason for name, found in ran.last.items()} == {"cp1": "Converged", "w1": "Converged"}
    assert writes(small.lab, mark) == {}


def test_drift_by_hand_is_put_back_at_once(small: LabCluster) -> None:
    async def scenario() -> None:
        before = await small.runs("w1")
        await small.by_hand("w1", sysctl)
        mark = small.lab.mark()
        check = await small.look("w1", check=True)
        assert [step.describe()["action"] for step in check.plan.steps] == ["ApplyDrift"] and writes(small.lab, mark) == {}
        ran = await small.run("w1")
        assert ran.done == [("w1", "ApplyDrift", "NO_REBOOT")] and ran.ids == [step.id for step in check.plan.steps]
        assert await small.runs("w1") == before and writes(small.lab, mark) == {"ApplyConfiguration": 1}
        assert not (await small.look("w1", check=True)).plan.steps and not (await small.run("w1")).acted

    asyncio.run(scenario())


def test_a_step_that_is_acted_on_in_check_mode_is_stopped_before_the_node(small: LabCluster) -> None:
    async def scenario() -> None:
        await small.by_hand("w1", sysctl)
        around = small.around(check=True)
        found = await small.look("w1", check=True)
        mark = small.lab.mark()
        with pytest.raises(CheckModeWrite):
            await converge.act(around, found, found.plan.steps[0], Effects(around.ports))
        async with small.nodes(check=True).authenticated(small.places["w1"].endpoint, small.credentials) as session:
            with pytest.raises(CheckModeWrite):
                await session.reboot()
        assert writes(small.lab, mark) == {}
        assert (await small.run("w1")).done

    asyncio.run(scenario())


def test_a_change_that_needs_a_reboot_is_staged_and_then_the_reboot(small: LabCluster) -> None:
    newest = small.version.startswith("v1.14")

    async def scenario() -> None:
        before = await small.runs("w1")
        await small.by_hand("w1", udev, "NO_REBOOT" if newest else "STAGED")
        if not newest:
            mark = small.lab.mark()
            await small.reboot_by_hand("w1")
            assert writes(small.lab, mark) == {"Reboot": 1}
        assert await small.runs("w1") != before
        boots = small.lab.state(node=small.places["w1"].node)["boots"]
        mark = small.lab.mark()
        check = await small.look("w1", check=True)
        ran = await small.run("w1")
        assert ran.ids == [step.id for step in check.plan.steps] and ran.last["w1"].row.reason == "Converged"
        assert [(action, mode) for dummy, action, mode in ran.done] == (
            [("ApplyDrift", "NO_REBOOT")] if newest else [("ApplyDrift", "STAGED"), ("Reboot", "")])
        assert await small.runs("w1") == before
        assert small.lab.state(node=small.places["w1"].node)["boots"] == boots + (0 if newest else 1)
        assert writes(small.lab, mark) == ({"ApplyConfiguration": 1} if newest else {"ApplyConfiguration": 1, "Reboot": 1})
        assert "disruption" not in small.cluster().status
        assert not (await small.run("w1")).acted

    asyncio.run(scenario())


def test_a_host_name_is_changed_with_a_reboot_on_every_version_and_only_with_leave(small: LabCluster) -> None:
    async def scenario() -> None:
        name = f"renamed-{small.version[1:5].replace('.', '-')}"
        small.change("w1", hostname=name)
        mark = small.lab.mark()
        ran = await small.run("w1", allow_reboot=False)
        assert ran.last["w1"].row.reason == "RebootRequired" and writes(small.lab, mark) == {"ApplyConfiguration": 1}
        ran = await small.run("w1")
        assert [(action, mode) for dummy, action, mode in ran.done] == [("Reboot", "")] and ran.last["w1"].row.reason == "Converged"
        assert small.lab.state(node=small.places["w1"].node)["hostname"] == name

    asyncio.run(scenario())


def test_report_shows_and_sends_nothing(small: LabCluster) -> None:
    async def scenario() -> None:
        await small.by_hand("w1", sysctl)
        small.change_cluster(driftPolicy="report")
        mark = small.lab.mark()
        ran = await small.run("w1")
        assert ran.last["w1"].row.reason == "Drifted" and "somaxconn" in str(ran.last["w1"].differences) and writes(small.lab, mark) == {}
        small.change_cluster(driftPolicy=None)
        assert (await small.run("w1")).done

    asyncio.run(scenario())


def test_a_node_that_is_off_is_named_and_the_first_read_of_it_back_is_enough(small: LabCluster) -> None:
    async def scenario() -> None:
        node = small.places["w1"].node
        small.lab.power(node=node, state="off")
        ran = await small.run("w1")
        assert ran.last["w1"].row.reason == "NodeUnreachable" and str(small.places["w1"].endpoint) in ran.last["w1"].row.message
        small.lab.power(node=node, state="on")
        await asyncio.to_thread(small.lab.wait, node=node, stage="ready", seconds=60)
        assert (await small.run("w1")).last["w1"].row.reason == "Converged"

    asyncio.run(scenario())


def test_a_flag_of_the_api_server_goes_to_the_control_plane_with_its_evidence(small: LabCluster) -> None:
    async def scenario() -> None:
        newest: list[Json] = [{"apiVersion": "v1alpha1", "kind": "KubeAPIServerConfig", "extraArgs": {"v": "4"}}]
        older: list[Json] = [{"cluster": {"apiServer": {"extraArgs": {"v": "4"}}}}]
        small.patch("flags", newest if small.version.startswith("v1.14") else older)
        ran = await small.run("cp1", "w1")
        assert ran.done == [("cp1", "ApplyDrift", "NO_REBOOT")] and "disruption" not in small.cluster().status
        assert {found.row.reason for found in ran.last.values()} == {"Converged"}

    asyncio.run(scenario())


def test_keys_of_the_node_that_are_not_the_bundles_stop_everything(small: LabCluster) -> None:
    rotated = other_token if small.version.startswith("v1.14") else other_kubernetes_ca

    async def scenario() -> None:
        before = await small.runs("w1")
        await small.by_hand("w1", lambda config: sysctl(rotated(config)))
        mark = small.lab.mark()
        ran = await small.run("w1")
        assert ran.last["w1"].row.reason == "AuthorityMismatch" and writes(small.lab, mark) == {}
        await small.by_hand("w1", lambda config: before)

    asyncio.run(scenario())


@pytest.mark.parametrize("version", ["v1.13.9"])
def test_three_control_planes_restart_one_after_the_other(lab: Lab, tmp_path: Path, version: str) -> None:
    cluster = LabCluster(lab, tmp_path, version, 67)

    async def scenario() -> None:
        await cluster.provision("cp1", 1, "controlplane", first=True)
        await cluster.provision("cp2", 2, "controlplane")
        await cluster.provision("cp3", 3, "controlplane")
        cluster.patch("rules", [{"machine": {"udev": {"rules": ["one"]}}}])
        mark = lab.mark()
        ran = await cluster.run("cp1", "cp2", "cp3")
        assert {found.row.reason for found in ran.last.values()} == {"Converged"} and "disruption" not in cluster.cluster().status
        assert writes(lab, mark) == {"ApplyConfiguration": 3, "Reboot": 3}
        rebooted = [name for name, action, dummy in ran.done if action == "Reboot"]
        assert sorted(rebooted) == ["cp1", "cp2", "cp3"]

    asyncio.run(scenario())


def test_a_control_plane_whose_own_ca_was_rotated_by_hand_gets_nothing(lab: Lab, tmp_path: Path) -> None:
    cluster = LabCluster(lab, tmp_path, "v1.13.9", 69)
    other = make_bundle(datetime.datetime.now(datetime.timezone.utc), os.urandom).os
    own = read_bundle(cluster.text).os

    def rotated(config: bytes) -> bytes:
        for old, new in ((own.crt, other.crt), (own.key, other.key)):
            config = config.replace(encode(old).encode(), encode(new).encode())
        return sysctl(config)

    async def scenario() -> None:
        await cluster.provision("cp1", 1, "controlplane", first=True)
        await cluster.by_hand("cp1", rotated)
        mark = lab.mark()
        ran = await cluster.run("cp1")
        assert ran.last["cp1"].row.reason == "AuthorityMismatch" and writes(lab, mark) == {} and not ran.last["cp1"].silent

    asyncio.run(scenario())


def test_the_controller_shows_and_runs_the_same_steps_with_the_drift_by_path(lab: Lab, tmp_path: Path) -> None:
    cluster = LabCluster(lab, tmp_path, "v1.13.9", 70)

    async def drifted() -> None:
        await cluster.provision("cp1", 1, "controlplane", first=True)
        await cluster.provision("w1", 2, "worker")
        await cluster.by_hand("w1", udev, "STAGED")
        await cluster.reboot_by_hand("w1")
        await cluster.by_hand("cp1", sysctl)

    asyncio.run(drifted())
    options = {"store_path": str(tmp_path / "ichor"), "allow_loopback": True, "until": "settled", "max_runtime": 300,
               "drain": False, "timing": {"follow": 1, "lock_renewal": 5}}
    secrets = secrets_in(cluster.render("cp1"))
    with Nursery() as nursery:
        plans, changed = [], []
        for check in (True, False, True, False):
            mark = lab.mark()
            ended = nursery.run("talos_controller", check=check, **options)
            assert ended.status == 0 and not [secret for secret in secrets if secret in ended.output + ended.errors]
            plans.append([(step["id"], step["action"], step["target"]) for step in ended.result["plan"]])
            changed.append((ended.result["changed"], writes(lab, mark)))
            if len(plans) <= 2:
                assert "net.core.somaxconn" in str(ended.result["diff"]) and "configuration of w1" in str(ended.result["diff"])
    assert plans[0] == plans[1] and plans[2:] == [[], []]
    assert sorted((action, target) for dummy, action, target in plans[0]) == [("ApplyDrift", "cp1"), ("ApplyDrift", "w1"), ("Reboot", "w1")]
    assert changed == [(True, {}), (True, {"ApplyConfiguration": 2, "Reboot": 1}), (False, {}), (False, {})]
