# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sequences of machined: install, boot, reboot, reset, shutdown, with the events and stages that a client sees."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.lab.etcd import EtcdError

if TYPE_CHECKING:
    from tests.lab.boot import Boot

WAIT_CONTAINERD = 'Waiting for service "containerd" to be "up"'
WAIT_CRI = 'Waiting for service "cri" to be "up"'
WAIT_ETCD = 'Waiting for service "cri" to be "up", time sync, network, etcd spec'
WAIT_TRUSTD = 'Waiting for service "containerd" to be "up", time sync, network'
_STOP = [
    ("umount", "unmountPodMounts"), ("unmountBind", "unmountSystemDiskBindMounts"), ("unmountSystem", "unmountEphemeralPartition"),
    ("volumeFinalize", "teardownLifecycle"),
]


@dataclass(frozen=True)
class ResetRequest:
    """A reset as the handler has checked it. `labels` empty means the whole system disk."""

    graceful: bool
    reboot: bool
    labels: tuple[str, ...]
    user_disks: tuple[str, ...]
    system: bool
    actor: str


async def install_and_boot(boot: Boot) -> None:
    """What follows the configuration: an install that ends in a reboot, or the boot sequence."""
    node, events, config = boot.node, boot.events, boot.active
    assert config is not None
    boot.sequence = "install"
    if node.needs_install(boot) and config.unattended is None and config.install is not None:
        await _install(boot)
        return
    events.sequence("install", True)
    events.sequence("install", False)
    boot.sequence = "boot"
    events.sequence("boot", True)
    boot.set_stage("booting")
    if config.unattended is not None:
        if node.storage.installed:
            boot.install_phase = "installed"
        else:
            boot.spawn(_unattended(boot))
    if node.minor == 12 and boot.endpoint is None:
        boot.spawn(boot.open_configured())
    await _boot_sequence(boot)


async def _install(boot: Boot) -> None:
    """The install sequence with `.machine.install`: stage installing, then a reboot."""
    node, events, timings = boot.node, boot.events, boot.node.world.timings
    events.sequence("install", True)
    events.phases([("env", "setUserEnvVars")])
    events.phase("install", True)
    events.task("install", True)
    boot.set_stage("installing")
    await node.hold("install")
    await boot.sleep(timings.install)
    problem = node.install(boot)
    if problem is not None:
        await _fail(boot, "install", problem)
        return
    events.task("install", False)
    events.phase("install", False)
    events.phases([("meta", "reloadMeta"), ("saveMeta", "flushMeta")])
    await _go_down(boot, "reboot", "")


async def _unattended(boot: Boot) -> None:
    """1.14's install beside the boot sequence: the stage stays booting, then the reboot sequence takes over."""
    node, config = boot.node, boot.active
    assert config is not None and config.unattended is not None
    boot.install_phase = "installing"
    boot.refresh()
    await node.hold("install")
    await boot.sleep(node.world.timings.install)
    problem = node.install(boot)
    if problem is not None:
        boot.install_phase = "failed"
        boot.refresh()
        return
    wanted = config.unattended.get("reboot")
    if wanted is False or (wanted is None and not config.install_image):
        boot.install_phase = "installed"
        boot.refresh()
        return
    boot.install_phase = "waiting-for-reboot"
    boot.refresh()
    boot.events.sequence("boot", False)
    boot.events.sequence("boot", False, error="sequence failed: error running phase 4 in boot sequence: task 1/1: failed, context canceled", code=2)
    boot.take_over("reboot", reboot(boot, ""))


async def _boot_sequence(boot: Boot) -> None:
    node, events, services = boot.node, boot.events, boot.services
    config = boot.active
    assert config is not None
    events.phases([("memorySizeCheck", "memorySizeCheck"), ("diskSizeCheck", "diskSizeCheck")])
    events.phase("ephemeral", True)
    events.task("mountEphemeral", True)
    if node.storage.installed:
        node.provision(boot)
    elif not node.hardware.sparse:
        boot.refresh()
        await boot.until(lambda: node.storage.installed)  # no EPHEMERAL before the install; the reboot after it takes over
    events.task("mountEphemeral", False)
    events.phase("ephemeral", False)
    events.phase("startEverything", True)
    events.task("startAllServices", True)
    services.begin("cri", WAIT_CONTAINERD)
    services.run("cri")
    services.begin("kubelet", WAIT_CRI)
    if config.control_plane:
        services.begin("etcd", WAIT_ETCD)
        services.begin("trustd", WAIT_TRUSTD + (", unattended install" if node.minor >= 14 else ""))
        boot.spawn(_trustd(boot))
    boot.refresh()
    await boot.until(lambda: boot.listening or not config.control_plane)
    timings = node.world.timings
    await boot.sleep(timings.node_status)
    boot.node_known = True
    boot.refresh()
    await node.hold("kubelet")
    await boot.sleep(timings.cri)
    services.check("cri", True)
    services.run("kubelet")
    if config.control_plane:
        services.set("etcd", "Waiting", WAIT_CRI)
        boot.etcd.start()
    boot.spawn(_kubelet_health(boot))
    await boot.until(lambda: _all_up(boot))
    events.task("startAllServices", False)
    events.phase("startEverything", False)
    events.sequence("boot", False)
    boot.sequence = ""
    boot.set_stage("running")


async def _kubelet_health(boot: Boot) -> None:
    await boot.sleep(boot.node.world.timings.kubelet)
    boot.services.check("kubelet", True)


async def _trustd(boot: Boot) -> None:
    """trustd runs at once on an installed node; an unattended install holds it back until after the reboot."""
    await boot.until(lambda: boot.install_phase in (None, "installed"))
    boot.services.run("trustd")
    await boot.node.hold("kubelet")
    await boot.sleep(boot.node.world.timings.trustd)
    boot.services.check("trustd", True)


def _all_up(boot: Boot) -> bool:
    """A service counts when it is healthy, or once it has finished (the old etcd of a bootstrap does)."""
    assert boot.active is not None
    names = ["apid", "cri", "kubelet"]
    if boot.active.control_plane:
        names += ["etcd", "trustd"]
    return all(boot.services.healthy(name) or (name == "etcd" and boot.etcd.counted_finished) for name in names)


async def _fail(boot: Boot, sequence: str, error: str, actor: str = "") -> None:
    """A failed sequence is seen as an event, and the machine reboots unchanged."""
    boot.events.sequence(sequence, False, actor)
    boot.events.sequence(sequence, False, actor, error=error)
    boot.set_stage("rebooting")
    await boot.node.hold("failure")
    await boot.sleep(boot.node.world.timings.failure)
    boot.over("reboot")


async def _go_down(boot: Boot, outcome: str, actor: str) -> None:
    """The end of every orderly sequence."""
    events = boot.events
    events.phase("stopEverything", True, actor)
    events.task("stopAllServices", True, actor)
    await boot.node.hold("stop")
    await boot.sleep(boot.node.world.timings.stop)
    await boot.etcd.stop()
    for name in ("syslogd", "udevd", "auditd"):
        boot.services.stop(name)
    with contextlib.suppress(asyncio.TimeoutError):
        await boot.stop_listening()
    boot.over(outcome)


async def _stop_services(boot: Boot, actor: str) -> None:
    events = boot.events
    events.phase("stopServices", True, actor)
    events.task("stopServicesForUpgrade", True, actor)
    await boot.etcd.stop()
    for name in ("trustd", "kubelet", "cri"):
        boot.services.stop(name)
    events.task("stopServicesForUpgrade", False, actor)
    events.phase("stopServices", False, actor)


async def reboot(boot: Boot, actor: str, force: bool = False) -> None:
    boot.reboot_pending = True
    boot.events.sequence("reboot", True, actor)
    if not force:
        boot.events.phases([("cleanup", "stopAllPods"), ("dbus", "stopDBus")], actor)
        boot.set_stage("rebooting")
        await _stop_services(boot, actor)
        boot.events.phases([*_STOP, ("kexec", "kexecPrepare")], actor)
        await _go_down(boot, "reboot", actor)
        return
    boot.set_stage("rebooting")
    boot.over("reboot")


async def shutdown(boot: Boot, actor: str, force: bool) -> None:
    boot.events.sequence("shutdown", True, actor)
    boot.set_stage("shutting down")
    if not force:
        boot.events.phases([("drain", "cordonAndDrainNode")], actor)
    boot.events.phases([("cleanup", "stopAllPods"), ("dbus", "stopDBus")], actor)
    await _stop_services(boot, actor)
    boot.events.phases(_STOP, actor)
    await _go_down(boot, "off", actor)


async def reset(boot: Boot, request: ResetRequest) -> None:
    """Reset answers before any of this; a graceful one leaves etcd first, and wipes nothing when that fails."""
    node, events, actor = boot.node, boot.events, request.actor
    events.sequence("reset", True, actor)
    boot.set_stage("resetting")
    await node.hold("reset")
    if request.graceful:
        events.phases([("drain", "cordonAndDrainNode"), ("cleanup", "removeAllPods")], actor)
    else:
        events.phases([("cleanup", "stopAllPods")], actor)
    events.phases([("dbus", "stopDBus")], actor)
    config = boot.active
    if request.graceful and config is not None and config.control_plane:
        events.phase("leave", True, actor)
        events.task("leaveEtcd", True, actor)
        await node.hold("leaveEtcd")
        error = await _leave(boot)
        events.task("leaveEtcd", False, actor)
        events.phase("leave", False, actor)
        if error is not None:
            text = f"sequence failed: error running phase 4 in reset sequence: task 1/1: failed, failed to leave cluster: 1 error(s) occurred:\n\t{error}"
            await _fail(boot, "reset", text, actor)
            return
    events.phases([("preReset", "sendResetSignal")], actor)
    await _stop_services(boot, actor)
    events.phases(_STOP, actor)
    events.phase("stopEverything", True, actor)
    events.task("stopAllServices", True, actor)
    await node.hold("wipe")
    await boot.sleep(node.world.timings.stop)
    with contextlib.suppress(asyncio.TimeoutError):
        await boot.stop_listening()
    node.wipe_for(request)
    boot.over("reboot" if request.reboot else "off")


async def _leave(boot: Boot) -> str | None:
    """Leaves etcd; None when it is done or was not needed."""
    service = boot.services.get("etcd")
    if boot.node.storage.etcd is None or service is None or service.state not in ("Running", "Stopping", "Failed"):
        return None
    try:
        await boot.etcd.leave()
    except EtcdError as error:
        return f"failed to remove member: {error}"
    return None
