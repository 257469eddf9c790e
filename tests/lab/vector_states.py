# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The states that the recorded rows were taken in, and how lab nodes are brought into them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.lab.vector_stage import APPLY, Stage
from tests.lab.wire import message


def _maintenance(stage: Stage, row: dict[str, Any]) -> None:
    stage.add("cp1")
    changed = group(row) == "apply" and "-0,0 +" not in str(row["responses"])
    if changed:
        stage.apply("cp1", "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: 'a b'\n")


def _partial(stage: Stage, row: dict[str, Any]) -> None:
    stage.subject = "x1"
    stage.add("x1")
    document = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: partial-{}\n"
    if "/after-try" in row["id"]:
        stage.apply("x1", document.format(2))
        stage.apply("x1", document.format(1), mode=4, seconds=1 if "rolled-back" in row["id"] else 3600)
        if "rolled-back" in row["id"]:
            stage.until(lambda: any(entry.get("what") == "reverted" for entry in stage.lab.log(node=stage.key("x1"), event="node")))
    else:
        stage.apply("x1", document.format(2 if "partial-2" in str(row["responses"]) else 1))


def _staged(stage: Stage, row: dict[str, Any]) -> None:
    _partial(stage, row)
    stage.apply("x1", stage.config("x1"), mode=3)


def _after_apply(stage: Stage, row: dict[str, Any]) -> None:
    stage.add("cp1")
    stage.hold("cp1", "install")
    stage.connection = stage.connect("cp1", "none")
    request = message("machine.ApplyConfigurationRequest")(data=stage.config("cp1").encode(), mode=1)
    if stage.connection.unary(APPLY, request.SerializeToString()).code != "OK":
        raise RuntimeError("apply refused")


def _installing(stage: Stage, row: dict[str, Any]) -> None:
    stage.add("cp1")
    stage.hold("cp1", "install")
    stage.hold("cp1", "kubelet")
    stage.apply("cp1", stage.config("cp1"))
    stage.wait("cp1", "configured")
    if stage.minor >= 14:
        stage.until(lambda: [item["name"] for item in stage.state("cp1")["unmet"]] == ["services"])


def _after_try_apply(stage: Stage, row: dict[str, Any]) -> None:
    stage.subject = "z1"
    stage.add("z1")
    stage.hold("z1", "install")
    if stage.minor >= 14:
        stage.hold("z1", "kubelet")
        stage.hold("z1", "stop")
    stage.apply("z1", stage.config("z1"), mode=4, seconds=4)
    stage.wait("z1", "configured")
    if stage.minor >= 14:
        stage.hold("z1", "install", False)
        stage.wait("z1", "rebooting")


def _after_try_timeout(stage: Stage, row: dict[str, Any]) -> None:
    stage.subject = "z1"
    stage.add("z1")
    stage.apply("z1", stage.config("z1"), mode=4, seconds=4)
    stage.until(lambda: stage.state("z1")["boots"] == 2 and stage.state("z1")["mode"] == "maintenance")


def _not_bootstrapped(stage: Stage, row: dict[str, Any]) -> None:
    stage.booted("cp1")
    stage.joined("w1")


def _running(stage: Stage, row: dict[str, Any]) -> None:
    _not_bootstrapped(stage, row)
    stage.bootstrapped()
    if with_second(row):
        stage.joined("cp2")


def group(row: dict[str, Any]) -> str:
    """The kind of probe: the third part of a protocol row's id."""
    parts = row["id"].split("/")
    return str(parts[2]) if len(parts) > 3 else ""


def with_second(row: dict[str, Any]) -> bool:
    """Whether the recorded cluster had a second control plane when the row was taken."""
    if group(row) in ("two-members", "etcd-two-members", "proxied", "etcd"):
        return True
    cluster = any(name in str(row["request"]) for name in ("Members.cluster", "Affiliates.cluster"))
    return "cp2" in str(row["responses"]) + str(row["metadata"]) or (cluster and row["messages"] >= 3)


def _running_worker(stage: Stage, row: dict[str, Any]) -> None:
    _running(stage, row)
    stage.subject = "w1"


def _bootstrapping(stage: Stage, row: dict[str, Any]) -> None:
    stage.booted("cp1")
    stage.connection = stage.connect("cp1", "admin")
    stage.connection.unary("/machine.MachineService/Bootstrap")
    if "second-at-once" not in row["id"]:
        stage.until(lambda: stage.state("cp1")["stage"] == "running" and stage.state("cp1")["ready"])


def _y1(stage: Stage, row: dict[str, Any]) -> None:
    stage.subject = "y1"
    stage.booted("y1")
    if row["state"] == "bootstrapped-twice":
        stage.must("y1", "Bootstrap")
        stage.until(lambda: stage.has_member("y1"))
    else:
        stage.must("y1", "Bootstrap", message("machine.BootstrapRequest")(recover_etcd=True))
        _not_recovered(stage, "y1")
        if "etcdmemberlist" in row["id"]:
            stage.must("y1", "Bootstrap")
            stage.wait("y1", "ready")


def _worker_rebooting(stage: Stage, row: dict[str, Any]) -> None:
    _running(stage, row)
    stage.subject = "w1"
    stage.hold("w1", "stop")
    if row["state"] == "after-apply-worker":
        stage.connection = stage.connect("w1", "admin")
        changed = stage.config("w1").replace("    type: worker\n", "    type: worker\n    env:\n        FOO: bar\n")
        request = message("machine.ApplyConfigurationRequest")(data=changed.encode(), mode=1)
        stage.connection.unary(APPLY, request.SerializeToString())
    elif row["state"] == "shutting-down":
        stage.must("w1", "Shutdown")
        stage.wait("w1", "shutting down")
    else:
        stage.must("w1", "Reboot")
        stage.wait("w1", "rebooting")


def _after_shutdown(stage: Stage, row: dict[str, Any]) -> None:
    _running(stage, row)
    stage.subject = "w1"
    stage.must("w1", "Shutdown")
    stage.wait("w1", "off")


def _two(stage: Stage, row: dict[str, Any]) -> None:
    _not_bootstrapped(stage, row)
    stage.bootstrapped()
    stage.joined("cp2")
    stage.until(lambda: stage.has_member("cp2"))


def _removed(stage: Stage, row: dict[str, Any]) -> None:
    _two(stage, row)
    stage.subject = "cp2"
    stage.hold("cp2", "etcd-restart")
    stage.must("cp1", "EtcdRemoveMemberByID", message("machine.EtcdRemoveMemberByIDRequest")(member_id=stage.member_id("cp2")))
    stage.until(lambda: any("etcd" in item["reason"] for item in stage.state("cp2")["unmet"]))


def _left(stage: Stage, row: dict[str, Any]) -> None:
    _two(stage, row)
    stage.subject = "cp2"
    stage.must("cp2", "EtcdLeaveCluster")


def _resetting(stage: Stage, row: dict[str, Any]) -> None:
    _removed(stage, row)
    stage.hold("cp2", "wipe")
    stage.reset("cp2")
    stage.wait("cp2", "resetting")
    if "took-over" in row["id"]:
        stage.hold("cp2", "stop")
        stage.must("cp2", "Reboot")


def apid_unchecked(row: dict[str, Any]) -> bool:
    """Whether the row was taken before the first health check of apid."""
    for answer in row["responses"]:
        if not isinstance(answer, dict):
            continue
        services = (answer.get("messages") or [{}])[0].get("services", ()) if "messages" in answer else ()
        if any(service["id"] == "apid" and service["health"].get("unknown") for service in services):
            return True
        resource = answer.get("resource") or {}
        if (resource.get("metadata") or {}).get("id") == "apid" and "unknown: true" in resource["spec"].get("yaml_spec", ""):
            return True
    return False


def _after_reset(stage: Stage, row: dict[str, Any]) -> None:
    _removed(stage, row)
    stage.hold("cp2", "etcd-restart", False)
    if apid_unchecked(row):
        stage.hold("cp2", "apid")
    stage.reset("cp2")
    stage.wait("cp2", "maintenance")
    if row["state"] == "reinstalled-booting":
        stage.hold("cp2", "kubelet")
        stage.apply("cp2", stage.config("cp2"))
        stage.wait("cp2", "configured")
        stage.until(lambda: not any(item["name"] == "nodeReady" for item in stage.state("cp2")["unmet"]))


def _resetting_last(stage: Stage, row: dict[str, Any]) -> None:
    _not_bootstrapped(stage, row)
    stage.bootstrapped()
    stage.hold("cp1", "failure")
    stage.reset("cp1", graceful=True)
    stage.wait("cp1", "rebooting")


def _reset_power_off(stage: Stage, row: dict[str, Any]) -> None:
    _left(stage, row)
    stage.must("cp2", "Reset", message("machine.ResetRequest")())
    stage.wait("cp2", "off")


def _after_ephemeral(stage: Stage, row: dict[str, Any]) -> None:
    _not_bootstrapped(stage, row)
    stage.bootstrapped()
    snapshot = b"".join(message("common.Data").FromString(part).bytes for part in stage.call("cp1", "admin", "/machine.MachineService/EtcdSnapshot").messages)
    stage.reset("cp1", labels=("EPHEMERAL",))
    stage.until(lambda: stage.state("cp1")["boots"] == 3 and [item["reason"] for item in stage.state("cp1")["unmet"]] == ["etcd not running"])
    if row["state"] == "booting-after-EPHEMERAL-reset":
        if row["id"].endswith("bootstrap-recover-with-garbage"):
            _upload(stage, b"garbage")
        return
    _upload(stage, b"garbage")
    stage.must("cp1", "Bootstrap", message("machine.BootstrapRequest")(recover_etcd=True))
    _not_recovered(stage, "cp1")
    if row["state"] == "recovered" or row["id"].endswith("bootstrap-recover-good"):
        _upload(stage, snapshot)
    if row["state"] == "recovered":
        stage.must("cp1", "Bootstrap", message("machine.BootstrapRequest")(recover_etcd=True))
        stage.until(lambda: stage.has_member("cp1"))


def _not_recovered(stage: Stage, name: str) -> None:
    """The bootstrap came to its snapshot and found none, or a bad one."""
    stage.until(lambda: b"error verifying snapshot" in b"".join(stage.must(name, "ServiceList").messages))


def _upload(stage: Stage, data: bytes) -> None:
    with stage.connect("cp1", "admin") as client:
        client.call("/machine.MachineService/EtcdRecover", [message("common.Data")(bytes=data).SerializeToString()])


def _other_ca(stage: Stage, row: dict[str, Any]) -> None:
    _not_bootstrapped(stage, row)
    stage.bootstrapped()
    stage.connection = stage.connect("cp1", "admin")
    text = stage.configs.text(stage.good("cp1"), stage.secrets, stage.addresses, stage.other)
    request = message("machine.ApplyConfigurationRequest")(data=text.encode(), mode=2)
    stage.connection.unary(APPLY, request.SerializeToString())


STATES: dict[str, Callable[[Stage, dict[str, Any]], None]] = {
    "maintenance": _maintenance, "maintenance-partial": _partial, "maintenance-staged": _staged, "after-apply": _after_apply, "installing": _installing,
    "after-try-apply": _after_try_apply, "after-try-apply-timeout": _after_try_timeout, "booting-not-bootstrapped": _not_bootstrapped,
    "bootstrapping": _bootstrapping, "bootstrapped-twice": _y1, "bootstrapped-with-missing-snapshot": _y1, "running-controlplane": _running,
    "running-worker": _running_worker, "rebooting": _worker_rebooting, "shutting-down": _worker_rebooting, "after-apply-worker": _worker_rebooting,
    "after-shutdown": _after_shutdown, "removed-from-etcd": _removed, "left-etcd": _left, "resetting": _resetting, "maintenance-after-reset": _after_reset,
    "reinstalled-booting": _after_reset, "resetting-last-controlplane": _resetting_last, "after-reset-power-off": _reset_power_off,
    "booting-after-EPHEMERAL-reset": _after_ephemeral, "recover-failed": _after_ephemeral, "recovered": _after_ephemeral, "after-other-machine-ca": _other_ca,
}
