# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ApplyConfiguration in every mode and state, with Talos's texts. Nothing is masked: dry-run differences hold secrets."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.lab import api, sequences, status
from tests.lab.calllog import digest
from tests.lab.difftext import unified
from tests.lab.canonical import canonical
from tests.lab.machineconfig import Config, ConfigError, load
from tests.lab.selectors import matching
from tests.lab.status import Refusal
from tests.lab.validation import bullets, validate
from tests.lab.wire import message

if TYPE_CHECKING:
    from tests.lab.boot import Boot
    from tests.lab.director import Context

REBOOT, AUTO, NO_REBOOT, STAGED, TRY = range(5)
_DETAILS = {
    REBOOT: "Applied configuration with a reboot",
    NO_REBOOT: "Applied configuration without a reboot",
    STAGED: "Staged configuration to be applied after the next reboot",
    TRY: "Applied configuration without a reboot",
}
_NO_V1ALPHA1 = "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?"
_REBOOTING = "configuration was already applied and node is rebooting, cannot apply more configuration changes until next reboot"
_DEFAULT_TRY_SECONDS = 60.0

# What 1.12 and 1.13 apply without a reboot, besides the whole cluster section and every other document.
_IMMEDIATE = frozenset((
    "ca", "acceptedCAs", "time", "certSANs", "install", "network", "sysfs", "sysctls", "logging", "controlPlane", "kubelet", "kernel", "registries", "pods",
    "seccompProfiles", "nodeAnnotations", "nodeLabels", "nodeTaints",
))
_IMMEDIATE_FEATURES = frozenset(("kubernetesTalosAPIAccess", "kubePrism", "hostDNS", "imageCache", "nodeAddressSortAlgorithm"))


async def apply(context: Context, request: Any) -> Any:
    boot, node = context.boot, context.node
    raw: bytes = request.data
    fields = {**digest(raw), "mode": int(request.mode), "dry_run": bool(request.dry_run)}
    context.call.log_fields.update(fields)
    node.world.log.add("config", node.name, peer=context.call.peer, credentials="none" if context.maintenance else "certificate", **fields)
    if boot.apply_lock.locked():
        raise Refusal(status.FAILED_PRECONDITION, "another apply configuration is already in progress")
    async with boot.apply_lock:
        await node.hold("apply")
        if boot.reboot_pending and node.minor < 14:
            raise Refusal(status.FAILED_PRECONDITION, _REBOOTING)
        maintenance = not boot.configured
        if not maintenance and not context.admin:
            raise Refusal(status.PERMISSION_DENIED, api.NOT_AUTHORIZED)
        mode = int(request.mode)
        if mode != TRY:
            _cancel_try(boot)
        config, warnings = check(boot, raw, maintenance, mode)
        if mode > TRY and node.minor >= 14:
            raise Refusal(status.INVALID_ARGUMENT, f"incorrect mode '{mode}' specified for the apply config call")
        mode, details, reason = effective(boot, config, mode, maintenance)
        if request.dry_run:
            difference = unified(canonical(boot.active), canonical(config)) or "No changes."
            return _reply(mode, f"Dry run summary:\n{details} (skipped in dry-run).\nConfig diff:\n\n{difference}", [])
        if mode > TRY:
            raise Refusal(status.UNKNOWN, f"incorrect mode '{mode}' specified for the apply config call")
        if mode == TRY:
            seconds = request.try_mode_timeout.seconds + request.try_mode_timeout.nanos / 1e9 if request.HasField("try_mode_timeout") else _DEFAULT_TRY_SECONDS
            details += f"\nThe config is applied in 'try' mode and will be automatically reverted back in {go_duration(seconds)}"
            attempt(boot, config, seconds)
        else:
            store(boot, config, mode)
        node.note("applied", mode=mode, sha256=fields["sha256"], maintenance=maintenance)
        return _reply(mode, details + reason, warnings)


def check(boot: Boot, raw: bytes, maintenance: bool, mode: int) -> tuple[Config, list[str]]:
    """Decoding, 1.14's refusal of a mode, validation, and what can only be told on the machine."""
    node = boot.node
    try:
        config = load(raw, node.minor)
    except ConfigError as error:
        raise Refusal(status.INVALID_ARGUMENT, str(error)) from error
    if not maintenance and not config.complete:
        raise Refusal(status.INVALID_ARGUMENT, _NO_V1ALPHA1)
    if not maintenance and mode == REBOOT and node.minor >= 14:
        raise Refusal(status.UNIMPLEMENTED, "the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead")
    installed = node.storage.installed
    warnings: list[str] = []
    if node.world.oracle is not None:
        problem, warnings = node.world.oracle.ask(node.version, raw, installed)
        if problem:
            raise Refusal(status.INVALID_ARGUMENT, problem)
    text = validate(config, installed, node.version)
    if text is not None:
        raise Refusal(status.INVALID_ARGUMENT, text)
    selector = (config.install or {}).get("diskSelector") if not (config.install or {}).get("disk") else None
    if selector and not installed and node.minor < 14 and not matching(node.hardware.disks, selector):
        text = f"no disks matched the expression: {selector_expression(selector)}"
        raise Refusal(status.INVALID_ARGUMENT, bullets(["v1alpha1.Config: " + bullets([text])]))
    return config, warnings


def selector_expression(selector: dict[str, Any]) -> str:
    """The expression that Talos makes of an install selector."""
    names = {"busPath": "bus_path", "name": "dev_path"}
    terms = []
    for key, value in selector.items():
        if key == "size":
            terms.append(f"disk.size {value}")
        elif key == "type":
            terms.append({"nvme": 'disk.transport == "nvme"', "hdd": "disk.rotational"}.get(str(value), "!disk.rotational"))
        else:
            terms.append(f'glob("{value}", disk.{names.get(key, key)})')
    return " && ".join([*terms, 'disk.transport != ""', "!disk.readonly", "!disk.cdrom"])


def effective(boot: Boot, config: Config, mode: int, maintenance: bool) -> tuple[int, str, str]:
    """The mode that is carried out, its text, and why AUTO became a reboot."""
    if maintenance and mode == REBOOT:
        mode = NO_REBOOT
    problem = None if maintenance or boot.node.minor >= 14 else immediate_problem(boot.active, config)
    if mode in (TRY, NO_REBOOT) and problem is not None:
        raise Refusal(status.INVALID_ARGUMENT, problem)
    if mode == AUTO:
        if problem is not None:
            return REBOOT, _DETAILS[REBOOT], ": " + problem
        return NO_REBOOT, _DETAILS[NO_REBOOT], ""
    return mode, _DETAILS.get(mode, _DETAILS[REBOOT]), ""


def immediate_problem(active: Config | None, config: Config) -> str | None:
    """What 1.12 and 1.13 say when a change needs a reboot, with the difference of just that part."""
    if active is None or active.v1alpha1 is None or config.v1alpha1 is None:
        return None
    difference = unified(canonical(_with_immediate(active, config)), canonical(_only_v1alpha1(config, config.v1alpha1)))
    return f"this config change can't be applied in immediate mode\ndiff:\n{difference}" if difference else None


def _with_immediate(active: Config, config: Config) -> Config:
    """The active v1alpha1 document with everything that may change at once taken from the new one."""
    old, new = dict(active.v1alpha1 or {}), config.v1alpha1 or {}
    for key in ("debug", "cluster"):
        _take(old, new, key)
    machine, fresh = dict(old.get("machine") or {}), new.get("machine") or {}
    for key in _IMMEDIATE:
        _take(machine, fresh, key)
    if isinstance(machine.get("features"), dict) and isinstance(fresh.get("features"), dict):
        machine["features"] = dict(machine["features"])
        for key in _IMMEDIATE_FEATURES:
            _take(machine["features"], fresh["features"], key)
    old["machine"] = machine
    return _only_v1alpha1(active, old)


def _take(old: dict[str, Any], new: dict[str, Any], key: str) -> None:
    if key in new:
        old[key] = new[key]
    else:
        old.pop(key, None)


def _only_v1alpha1(config: Config, tree: dict[str, Any] | None) -> Config:
    document = next(document for document in config.documents if document.kind == "v1alpha1")
    return Config(config.raw, config.version, [replace(document, tree=tree or {})])


def _cancel_try(boot: Boot) -> None:
    if boot.try_timer is not None:
        boot.try_timer.cancel()
        boot.try_timer = None
        boot.tried_from = None


def attempt(boot: Boot, config: Config, seconds: float) -> None:
    """Active only, and back again when the time is over; in maintenance the node goes on to install with it."""
    before = boot.tried_from if boot.try_timer is not None else boot.active
    _cancel_try(boot)
    boot.tried_from = before
    if boot.configured or not config.complete:
        boot.try_timer = boot.spawn(_revert(boot, before, seconds))
    boot.configure(config, boot.persistent)


async def _revert(boot: Boot, before: Config | None, seconds: float) -> None:
    await boot.sleep(seconds)
    boot.try_timer, boot.tried_from = None, None
    boot.configure(before, boot.persistent)
    boot.node.note("reverted")


def store(boot: Boot, config: Config, mode: int) -> None:
    if mode == STAGED:
        boot.configure(boot.active, config) if boot.configured else _stage(boot, config)
    elif mode == REBOOT:
        boot.persistent = config
        if boot.node.storage.state:
            boot.node.storage.config = config.raw
        boot.reboot_pending = True
        boot.refresh()
        asyncio.get_running_loop().call_soon(boot.take_over, "reboot", sequences.reboot(boot, ""))
    else:
        boot.configure(config, config)


def _stage(boot: Boot, config: Config) -> None:
    """In maintenance there is no STATE to keep it on, so a staged configuration is lost with the power."""
    boot.persistent = config
    if boot.node.storage.state:
        boot.node.storage.config = config.raw
    boot.refresh()


def _reply(mode: int, details: str, warnings: list[str]) -> Any:
    answer = message("machine.ApplyConfigurationResponse")()
    answer.messages.add(mode=mode, mode_details=details, warnings=warnings)
    return answer


def go_duration(seconds: float) -> str:
    """A duration as Go prints it, for whole seconds and what is above."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, seconds - whole + whole % 60
    text = f"{rest:g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


HANDLERS = {"machine.MachineService": {"ApplyConfiguration": apply}}
