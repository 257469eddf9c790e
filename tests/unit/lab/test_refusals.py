# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every refusal that was observed on real Talos, with its code and its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.lab.wire import message
from tests.lab.wireclient import Outcome, WireClient, WireError, alert_number, context
from tests.unit.lab.lab_nodes import PORT, Nodes

ADMIN, READER = "os:admin", "os:reader"
VERSIONS = ("v1.13.9", "v1.14.0-rc.1")


class World:
    """Nodes of one version: m in maintenance, cp1 bootstrapped, w1 a worker, new waiting for its bootstrap."""

    def __init__(self, lab: Lab, version: str) -> None:
        self.nodes = Nodes(lab, version)
        self.nodes.control_plane("cp1")
        self.nodes.join("w1", "worker")
        self.nodes.add("m")
        self.minor = int(version.split(".")[1])


@pytest.fixture(scope="module", params=VERSIONS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with Lab.start(speed=40) as lab:
        yield World(lab, request.param)


def machine(name: str, **fields: Any) -> Any:
    return message(f"machine.{name}")(**fields)


def partition(label: str) -> Any:
    return machine("ResetPartitionSpec", label=label, wipe=True)


def cosi(name: str, namespace: str = "runtime", kind: str = "Disks.block.talos.dev", **fields: Any) -> Any:
    return message(f"cosi.resource.{name}Request")(namespace=namespace, type=kind, **fields)


STATE = "/cosi.resource.State/"
NOT_AUTHORIZED = ("PERMISSION_DENIED", "not authorized")

# id, node, role, method, request, code, text (exact, or the part that it has to hold when it starts with …), since which minor version
CALLS: list[tuple[str, str, str | None, str, Any, str, str, int]] = [
    *((f"maintenance-{name}", "m", None, name, b"", *NOT_AUTHORIZED, 13) for name in (
        "Reset", "Reboot", "Shutdown", "Upgrade", "Bootstrap", "EtcdRemoveMemberByID", "MetaWrite", "GenerateClientConfiguration", "Kubeconfig", "Rollback")),
    ("maintenance-admin-is-reader", "m", ADMIN, "Reset", b"", *NOT_AUTHORIZED, 13),
    ("maintenance-create", "m", None, STATE + "Create", b"", *NOT_AUTHORIZED, 13),
    ("maintenance-destroy", "m", None, STATE + "Destroy", b"", *NOT_AUTHORIZED, 13),
    ("maintenance-member-list", "m", None, "EtcdMemberList", b"", "UNIMPLEMENTED", "member list is only available on control plane nodes", 13),
    ("maintenance-etcd-status", "m", None, "EtcdStatus", b"", "UNIMPLEMENTED", "etcd status is only available on control plane nodes", 13),
    ("worker-bootstrap", "w1", ADMIN, "Bootstrap", b"", "UNIMPLEMENTED", "bootstrap is only available on control plane nodes", 13),
    ("worker-leave", "w1", ADMIN, "EtcdLeaveCluster", b"", "UNIMPLEMENTED", "etcd leave is only available on control plane nodes", 13),
    ("cosi-unknown-type", "m", None, STATE + "Get", cosi("Get", kind="Nopes.x", id="a"), "PERMISSION_DENIED", 'resource type "Nopes.x" is not supported', 13),
    ("cosi-unknown-type-admin", "cp1", ADMIN, STATE + "List", cosi("List", kind="Nopes.x"), "PERMISSION_DENIED",
     'resource type "Nopes.x" is not supported', 13),
    ("cosi-short-name", "m", None, STATE + "Get", cosi("Get", kind="Disk", id="a"), "PERMISSION_DENIED", 'resource type "Disk" is not supported', 13),
    ("cosi-unknown-namespace", "m", None, STATE + "List", cosi("List", namespace="nope"), "PERMISSION_DENIED", 'namespace "nope" is not supported', 13),
    ("cosi-empty-namespace", "m", None, STATE + "List", cosi("List", namespace=""), "PERMISSION_DENIED", 'namespace "" is not supported', 13),
    ("cosi-missing-id", "m", None, STATE + "Get", cosi("Get", id="zz"), "NOT_FOUND", "resource Disks.block.talos.dev(runtime/zz@undefined) doesn't exist", 13),
    ("cosi-lower-case", "m", None, STATE + "Get", cosi("Get", kind="disks.block.talos.dev", id="sda"), "NOT_FOUND",
     "resource disks.block.talos.dev(runtime/sda@undefined) doesn't exist", 13),
    ("cosi-wrong-namespace-list", "m", None, STATE + "List", cosi("List", namespace="network"), "OK", "", 13),
    ("cosi-sensitive", "m", None, STATE + "Get", cosi("Get", "config", "MachineConfigs.config.talos.dev", id="v1alpha1"), *NOT_AUTHORIZED, 13),
    ("cosi-sensitive-reader", "cp1", READER, STATE + "List", cosi("List", "secrets", "OSRootSecrets.secrets.talos.dev"), *NOT_AUTHORIZED, 13),
    ("cosi-write-admin", "cp1", ADMIN, STATE + "Destroy", cosi("Destroy", id="sda"), "PERMISSION_DENIED", "write access is not allowed", 13),
    ("cosi-write-reader", "cp1", READER, STATE + "Destroy", cosi("Destroy", id="sda"), *NOT_AUTHORIZED, 13),
    ("cosi-empty-create", "cp1", ADMIN, STATE + "Create", b"", "UNKNOWN", "metadata is missing", 13),
    ("cosi-equal-without-value", "m", None, STATE + "List",
     cosi("List", options=message("cosi.resource.ListOptions")(label_query=[message("cosi.resource.LabelQuery")(terms=[{"key": "x", "op": 1}])])),
     "INTERNAL", "…runtime error: index out of range", 13),
    ("cosi-tail-and-bootstrap", "m", None, STATE + "Watch",
     cosi("Watch", options=message("cosi.resource.WatchOptions")(tail_events=1, bootstrap_contents=True), api_version=1), "UNKNOWN",
     "…cannot use BootstrapContents", 13),
    ("events-two-tails", "m", None, "Events", machine("EventsRequest", tail_events=1, tail_seconds=3), "UNKNOWN", "…can't be specified at the same time", 13),
    *((f"lesser-role-{role}-{what.rpartition('/')[2]}", "cp1", f"os:{role}", what, b"" if what == "Version" else cosi("Get", id="sda"), *NOT_AUTHORIZED, 13)
      for role in ("etcd:backup", "meta:writer", "image:verifier", "impersonator") for what in ("Version", STATE + "Get")),
    ("bootstrap-again", "cp1", ADMIN, "Bootstrap", b"", "ALREADY_EXISTS", "etcd data directory is not empty", 13),
    ("remove-unknown-member", "cp1", ADMIN, "EtcdRemoveMemberByID", machine("EtcdRemoveMemberByIDRequest", member_id=170), "NOT_FOUND",
     "failed to remove member 170: etcdserver: member not found", 13),
    ("leave-as-last", "cp1", ADMIN, "EtcdLeaveCluster", b"", "UNKNOWN", "…not enough started members", 13),
    ("forfeit-alone", "cp1", ADMIN, "EtcdForfeitLeadership", b"", "UNKNOWN", "failed to forfeit leadership: cannot forfeit leadership, only one member", 13),
    ("reset-unknown-disk", "cp1", ADMIN, "Reset", machine("ResetRequest", user_disks_to_wipe=["/dev/nope"]), "UNKNOWN",
     "reset user disk failed: device /dev/nope wasn't found", 13),
    ("reset-system-disk-as-user-disk", "cp1", ADMIN, "Reset", machine("ResetRequest", user_disks_to_wipe=["/dev/sda"]), "UNKNOWN", "…is the system disk", 13),
    ("reset-mode-and-user-disks", "cp1", ADMIN, "Reset", machine("ResetRequest", mode=1, user_disks_to_wipe=["/dev/sda"]), "UNKNOWN",
     "reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter", 13),
    ("reset-mode-and-partitions", "cp1", ADMIN, "Reset", machine("ResetRequest", mode=2, system_partitions_to_wipe=[partition("STATE")]), "UNKNOWN",
     "reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter", 13),
    ("reset-unknown-label", "cp1", ADMIN, "Reset", machine("ResetRequest", system_partitions_to_wipe=[partition("NOPE")]), "UNKNOWN",
     '…failed to get volume status with label "NOPE"', 13),
    ("reset-operator", "cp1", "os:operator", "Reset", b"", *NOT_AUTHORIZED, 13),
    ("meta-key", "cp1", ADMIN, "MetaWrite", machine("MetaWriteRequest", key=256), "INVALID_ARGUMENT", "key must be a uint8", 13),
    ("meta-delete-absent", "cp1", ADMIN, "MetaDelete", machine("MetaDeleteRequest", key=77), "NOT_FOUND", "meta key not found", 13),
    ("read-absent", "cp1", ADMIN, "Read", machine("ReadRequest", path="/no/such"), "NOT_FOUND", "stat /no/such: no such file or directory", 13),
    ("unknown-service", "cp1", ADMIN, "ServiceRestart", machine("ServiceRestartRequest", id="x"), "UNKNOWN", 'service "x" not defined', 13),
    ("restart-apid", "cp1", ADMIN, "ServiceRestart", machine("ServiceRestartRequest", id="apid"), "UNKNOWN",
     'service "apid" doesn\'t support restart operation via API', 13),
    ("client-configuration-without-ttl", "cp1", ADMIN, "GenerateClientConfiguration", b"", "INVALID_ARGUMENT", "crt_ttl should be positive", 13),
    ("wipe-unknown-device", "m", None, "/storage.StorageService/BlockDeviceWipe",
     message("storage.BlockDeviceWipeRequest")(devices=[{"device": "/dev/sda"}]), "NOT_FOUND", 'blockdevice "/dev/sda" not found', 13),
    ("unknown-method", "m", None, "Nope", b"", "UNIMPLEMENTED", "unknown method Nope for service machine.MachineService", 13),
    ("unknown-grpc-service", "m", None, "/no.such.Service/X", b"", "UNIMPLEMENTED", "unknown service no.such.Service", 13),
    ("removed-method", "cp1", ADMIN, "GenerateConfiguration", b"", "UNIMPLEMENTED", "unknown method GenerateConfiguration for service "
                                                                                    "machine.MachineService", 13),
    ("reader-apply", "cp1", READER, "ApplyConfiguration", b"", *NOT_AUTHORIZED, 13),
    ("teardown", "cp1", ADMIN, STATE + "Teardown", b"", "PERMISSION_DENIED", "write access is not allowed", 14),
]


@pytest.mark.parametrize(("node", "role", "method", "request_", "code", "text", "since"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
def test_call(world: World, node: str, role: str | None, method: str, request_: Any, code: str, text: str, since: int) -> None:
    if world.minor < since:
        code, text = "UNIMPLEMENTED", "…unknown method"
    outcome = world.nodes.call(node, method, request_, role)
    assert outcome.code == code
    assert text[1:] in outcome.details if text.startswith("…") else outcome.details == text


HOSTNAME = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n"

# id, node, role, text of the configuration (a callable of the world), fields, code, text
APPLIES: list[tuple[str, str, str | None, Callable[[World], str], dict[str, Any], str, str]] = [
    ("empty", "m", None, lambda world: "", {}, "INVALID_ARGUMENT", "config not found"),
    ("missing-kind", "m", None, lambda world: "version: v1alpha1\n", {}, "INVALID_ARGUMENT", "error decoding document /v1alpha1/ (line 1): missing kind"),
    ("not-a-document", "m", None, lambda world: "- a\n", {}, "INVALID_ARGUMENT", "expected a YAML document at line 1"),
    ("garbage", "m", None, lambda world: "{", {}, "INVALID_ARGUMENT", "…decode error: "),
    ("unknown-key", "m", None, lambda world: world.nodes.config("worker", "a").replace("machine:\n", "machine:\n    nope: 1\n"), {}, "INVALID_ARGUMENT",
     "error decoding document /v1alpha1/ (line 1): unknown keys found during decoding:\nmachine:\n    nope: 1\n"),
    ("unknown-kind", "m", None, lambda world: "apiVersion: v1alpha1\nkind: NopeConfig\n", {}, "INVALID_ARGUMENT",
     'error decoding document v1alpha1/NopeConfig/ (line 1): "NopeConfig" "v1alpha1": not registered'),
    ("duplicate-document", "m", None, lambda world: HOSTNAME + "---\n" + HOSTNAME, {}, "INVALID_ARGUMENT",
     "duplicate document v1alpha1/HostnameConfig/ is not allowed (line 5)"),
    ("two-host-names", "m", None, lambda world: world.nodes.config("worker", "a").replace("machine:\n", "machine:\n    network:\n        hostname: b\n"), {},
     "INVALID_ARGUMENT", "1 error occurred:\n\t* static hostname is already set in v1alpha1 config\n\n"),
    ("partial-on-running", "cp1", ADMIN, lambda world: HOSTNAME, {}, "INVALID_ARGUMENT",
     "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?"),
    ("unknown-mode", "cp1", ADMIN, lambda world: world.nodes.config("controlplane", "cp1"), {"mode": 9}, "…", "incorrect mode '9' specified for the "
                                                                                                              "apply config call"),
    ("no-control-plane-key", "m", None, lambda world: world.nodes.config("controlplane", "a").replace("type: controlplane", "type: worker"), {},
     "INVALID_ARGUMENT", "…issuing Talos API CA key is not allowed on non-controlplane nodes (.machine.ca)"),
]


@pytest.mark.parametrize(("node", "role", "text", "fields", "code", "details"), [row[1:] for row in APPLIES], ids=[row[0] for row in APPLIES])
def test_apply(world: World, node: str, role: str | None, text: Callable[[World], str], fields: dict[str, Any], code: str, details: str) -> None:
    if code == "…":
        code = "UNKNOWN" if world.minor < 14 else "INVALID_ARGUMENT"
    outcome = world.nodes.apply(node, text(world), role, **fields)
    assert outcome.code == code
    assert details[1:] in outcome.details if details.startswith("…") else outcome.details == details


def test_install_disk_is_required(world: World) -> None:
    """1.13 wants a disk or a selector while it is not installed; 1.14's document names a selector always."""
    text = world.nodes.config("worker", "a")
    if world.minor < 14:
        outcome = world.nodes.apply("m", text.replace("        disk: /dev/sda\n", ""))
        assert outcome.details == "1 error occurred:\n\t* v1alpha1.Config: 1 error occurred:\n\t* either install disk or diskSelector should be defined\n\n\n\n"
    else:
        outcome = world.nodes.apply("m", text.replace('disk.dev_path == "/dev/sda"', "disk.dev_path =="))
        assert outcome.details.startswith("1 error occurred:\n\t* UnattendedInstallConfig: provisioning.volumeSelector.match: ERROR: ")
    assert outcome.code == "INVALID_ARGUMENT"


def test_an_install_disk_that_is_not_there_is_not_checked(world: World) -> None:
    assert world.nodes.apply("m", world.nodes.config("worker", "a", disk="/dev/nope"), dry_run=True).code == "OK"


def test_reboot_mode_of_a_running_node(world: World) -> None:
    outcome = world.nodes.apply("cp1", world.nodes.config("controlplane", "cp1"), ADMIN, mode=0, dry_run=True)
    if world.minor < 14:
        assert outcome.code == "OK"
    else:
        assert (outcome.code, outcome.details) == ("UNIMPLEMENTED", "the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead")


def test_a_dry_run_shows_secrets_in_clear(world: World) -> None:
    outcome = world.nodes.apply("m", world.nodes.config("controlplane", "a"), dry_run=True)
    details = message("machine.ApplyConfigurationResponse").FromString(outcome.messages[0]).messages[0].mode_details
    assert world.nodes.secrets.token in details


def test_an_apply_beside_another_is_refused(world: World) -> None:
    key = world.nodes.key("m")
    world.nodes.lab.hold(node=key, phase="apply")
    request = message("machine.ApplyConfigurationRequest")(data=HOSTNAME.encode(), mode=1, dry_run=True).SerializeToString()
    with world.nodes.connect("m") as first:
        first.unary("/machine.MachineService/ApplyConfiguration", request, read_for=0.1)
        second = world.nodes.apply("m", HOSTNAME, dry_run=True)
        world.nodes.lab.hold(node=key, phase="apply", held=False)
    assert (second.code, second.details) == ("FAILED_PRECONDITION", "another apply configuration is already in progress")


ROUTES: list[tuple[str, str, str, list[tuple[str, str]], str, str]] = [
    ("two-values", "cp1", "Version", [("node", "127.0.0.1"), ("node", "127.0.0.2")], "INVALID_ARGUMENT", "node metadata must be single-valued"),
    ("empty", "cp1", "Version", [("node", "")], "INTERNAL", 'invalid target ""'),
    ("name", "cp1", "Version", [("node", "cp1")], "UNAVAILABLE", "name resolver error: produced zero addresses"),
    ("dead", "cp1", "Version", [("node", "127.0.0.77")], "UNAVAILABLE", "…connect: connection refused"),
    ("many-on-cosi", "cp1", STATE + "Get", [("nodes", "127.0.0.77")], "INVALID_ARGUMENT",
     "one-2-many proxying is not supported for method /cosi.resource.State/Get"),
    ("many-on-an-unknown-service", "cp1", "/no.such.Service/X", [("nodes", "127.0.0.77")], "INVALID_ARGUMENT",
     "one-2-many proxying is not supported for method /no.such.Service/X"),
    ("worker", "w1", "Version", [("node", "127.0.0.77")], "PERMISSION_DENIED", "no request forwarding"),
    ("worker-before-form", "w1", "Version", [("node", "")], "PERMISSION_DENIED", "no request forwarding"),
]


@pytest.mark.parametrize(("node", "method", "metadata", "code", "text"), [row[1:] for row in ROUTES], ids=[row[0] for row in ROUTES])
def test_route(world: World, node: str, method: str, metadata: list[tuple[str, str]], code: str, text: str) -> None:
    outcome = world.nodes.call(node, method, role=ADMIN, metadata=metadata)
    assert outcome.code == code
    assert text[1:] in outcome.details if text.startswith("…") else outcome.details == text


def test_a_dead_node_under_nodes_is_an_error_in_the_answer(world: World) -> None:
    outcome = world.nodes.call("cp1", "Version", role=ADMIN, metadata=[("nodes", "127.0.0.77")])
    answer = message("machine.VersionResponse").FromString(outcome.messages[0]).messages[0]
    assert (outcome.code, answer.metadata.hostname) == ("OK", "127.0.0.77")
    assert answer.metadata.error.startswith("rpc error: code = Unavailable desc = connection error")


def test_an_unknown_method_under_nodes_is_an_error_in_the_answer(world: World) -> None:
    outcome = world.nodes.call("cp1", "Nope", role=ADMIN, metadata=[("nodes", world.nodes.addresses["cp1"])])
    answer = message("machine.VersionResponse").FromString(outcome.messages[0]).messages[0]
    assert (outcome.code, answer.metadata.hostname) == ("OK", world.nodes.addresses["cp1"])
    assert answer.metadata.error == "rpc error: code = Unimplemented desc = unknown method Nope for service machine.MachineService"


def test_the_last_member_is_not_removed(world: World) -> None:
    listed = world.nodes.call("cp1", "EtcdMemberList", role=ADMIN)
    (member,) = message("machine.EtcdMemberListResponse").FromString(listed.messages[0]).messages[0].members
    outcome = world.nodes.call("cp1", "EtcdRemoveMemberByID", machine("EtcdRemoveMemberByIDRequest", member_id=member.id), ADMIN)
    assert outcome.code == "UNKNOWN"
    assert outcome.details.startswith("failed to remove member: failed to remove member ")
    assert outcome.details.endswith(": etcdserver: re-configuration failed due to not enough started members")


@pytest.mark.parametrize("mode", [2, 4], ids=["NO_REBOOT", "TRY"])
def test_a_change_that_needs_a_reboot_is_refused_where_none_is_allowed(world: World, mode: int) -> None:
    """1.14 needs a reboot for nothing."""
    text = world.nodes.config("controlplane", "cp1").replace("    certSANs: []\n", "    certSANs: []\n    env:\n        A: b\n")
    outcome = world.nodes.apply("cp1", text, ADMIN, mode=mode, dry_run=True)
    if world.minor < 14:
        assert outcome.code == "INVALID_ARGUMENT" and outcome.details.startswith("this config change can't be applied in immediate mode\ndiff:\n--- a\n")
    else:
        assert outcome.code == "OK"


def test_metadata_is_ignored_in_maintenance(world: World) -> None:
    assert world.nodes.call("m", "Version", metadata=[("node", "nonsense"), ("node", "")]).code == "OK"


def test_a_call_without_a_certificate_to_a_running_node(world: World) -> None:
    outcome = world.nodes.call("cp1", "Version")
    assert (outcome.code, alert_number(outcome.details)) == ("TLS", 116)


def test_tls_12_is_refused(world: World) -> None:
    import ssl

    with pytest.raises(WireError) as error:
        WireClient(world.nodes.addresses["m"], PORT, context(low=ssl.TLSVersion.TLSv1_2, high=ssl.TLSVersion.TLSv1_2))
    assert alert_number(str(error.value)) == 70


def test_an_unknown_protocol_alone_is_refused(world: World) -> None:
    with pytest.raises(WireError) as error:
        WireClient(world.nodes.addresses["m"], PORT, context(alpn=["foo"]))
    assert alert_number(str(error.value)) == 120


class TestBeforeBootstrap:
    """A control plane that has no etcd yet."""

    @pytest.fixture(params=VERSIONS, scope="class")
    def nodes(self, request: pytest.FixtureRequest) -> Iterator[Nodes]:
        with Lab.start(speed=40) as lab:
            nodes = Nodes(lab, request.param)
            nodes.add("cp1")
            lab.hold(node=nodes.key("cp1"), phase="install")
            assert nodes.apply("cp1", nodes.config("controlplane", "cp1")).code == "OK"
            nodes.wait("cp1", "configured")
            yield nodes

    def test_bootstrap_too_early(self, nodes: Nodes) -> None:
        outcome = nodes.call("cp1", "Bootstrap", role=ADMIN)
        assert (outcome.code, outcome.details) == ("FAILED_PRECONDITION", "bootstrap is not available yet")

    @pytest.mark.parametrize("method", ["EtcdMemberList", "EtcdStatus", "EtcdAlarmList", "EtcdSnapshot", "EtcdForfeitLeadership", "EtcdLeaveCluster"])
    def test_etcd_hangs_until_the_deadline(self, nodes: Nodes, method: str) -> None:
        outcome: Outcome = nodes.call("cp1", method, role=ADMIN, deadline=0.2)
        assert outcome.code in ("DEADLINE_EXCEEDED", "RST_STREAM 8") and outcome.seconds >= 0.2

    def test_a_second_apply_on_the_old_connection(self, nodes: Nodes) -> None:
        nodes.add("late")
        nodes.lab.hold(node=nodes.key("late"), phase="install")
        request = message("machine.ApplyConfigurationRequest")(data=nodes.config("controlplane", "late").encode(), mode=1).SerializeToString()
        with nodes.connect("late") as client:
            assert client.unary("/machine.MachineService/ApplyConfiguration", request).code == "OK"
            again = client.unary("/machine.MachineService/ApplyConfiguration", request)
        assert (again.code, again.details) == NOT_AUTHORIZED


@pytest.mark.parametrize("version", VERSIONS)
def test_another_machine_ca_is_taken_without_a_word_and_locks_the_old_certificate_out(version: str) -> None:
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab, version)
        nodes.control_plane("cp1")
        other = Nodes(lab, version)
        old, new = nodes.secrets.os, other.secrets.os
        text = nodes.config("controlplane", "cp1")
        nodes.secrets.os = new
        swapped = nodes.config("controlplane", "cp1")
        nodes.secrets.os = old
        assert swapped != text
        assert nodes.apply("cp1", swapped, ADMIN, mode=2).code == "OK"
        outcome = nodes.call("cp1", "Version", role=ADMIN)
        assert (outcome.code, alert_number(outcome.details)) == ("TLS", 48)


def test_apply_after_an_apply_that_reboots() -> None:
    """1.13 refuses it; 1.14 never reboots on an apply."""
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab)
        nodes.control_plane("cp1")
        lab.hold(node=nodes.key("cp1"), phase="stop")
        text = nodes.config("controlplane", "cp1").replace("    certSANs: []\n", "    certSANs: []\n    env:\n        A: b\n")
        request = message("machine.ApplyConfigurationRequest")(data=text.encode(), mode=1).SerializeToString()
        with nodes.connect("cp1", nodes.leaf(ADMIN)) as client:
            first = client.unary("/machine.MachineService/ApplyConfiguration", request)
            second = client.unary("/machine.MachineService/ApplyConfiguration", request)
    details = message("machine.ApplyConfigurationResponse").FromString(first.messages[0]).messages[0].mode_details
    assert details.startswith("Applied configuration with a reboot: this config change can't be applied in immediate mode\ndiff:\n")
    assert second.code == "FAILED_PRECONDITION"
    assert second.details == "configuration was already applied and node is rebooting, cannot apply more configuration changes until next reboot"


def test_graceful_reset_of_the_last_control_plane_answers_ok_and_wipes_nothing() -> None:
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab)
        nodes.control_plane("cp1")
        reset = machine("ResetRequest", graceful=True, reboot=True, system_partitions_to_wipe=[partition("STATE"), partition("EPHEMERAL")])
        boots = nodes.state("cp1")["boots"]
        assert nodes.call("cp1", "Reset", reset, ADMIN).code == "OK"
        nodes.wait("cp1", "rebooting")
        nodes.wait("cp1", "ready", 60)
        state = nodes.state("cp1")
        assert state["boots"] == boots + 1 and state["has_config"] and "EPHEMERAL" in state["partitions"]
        assert not [entry for entry in lab.log(node=nodes.key("cp1"), event="node") if entry["what"] == "wiped"]


def test_a_reboot_right_after_a_reset_takes_over() -> None:
    with Lab.start(speed=40) as lab:
        nodes = Nodes(lab)
        nodes.control_plane("cp1")
        lab.hold(node=nodes.key("cp1"), phase="reset")
        with nodes.connect("cp1", nodes.leaf(ADMIN)) as client:
            assert client.unary("/machine.MachineService/Reset", machine("ResetRequest", reboot=True).SerializeToString()).code == "OK"
            assert client.unary("/machine.MachineService/Reboot").code == "OK"
        nodes.wait("cp1", "rebooting")
        nodes.wait("cp1", "ready", 60)
        assert nodes.state("cp1")["installed"] and nodes.state("cp1")["has_config"]


class TestVersion12:
    """1.12's maintenance service is a server of its own."""

    @pytest.fixture(scope="class")
    def nodes(self) -> Iterator[Nodes]:
        with Lab.start(speed=40) as lab:
            nodes = Nodes(lab, "v1.12.9")
            nodes.add("m")
            yield nodes

    @pytest.mark.parametrize(("method", "text"), [
        ("Version", "API is not implemented in maintenance mode"), ("Reset", "API is not implemented in maintenance mode"),
        ("MetaWrite", "API is not implemented in maintenance mode"), ("Reboot", "method Reboot not implemented"),
        ("ServiceList", "method ServiceList not implemented"), ("EtcdMemberList", "method EtcdMemberList not implemented"),
        ("GenerateClientConfiguration", "client configuration (talosconfig) can't be generated in the maintenance mode"),
        ("/machine.LifecycleService/Install", "unknown service machine.LifecycleService"),
    ])
    def test_refusal(self, nodes: Nodes, method: str, text: str) -> None:
        outcome = nodes.call("m", method)
        assert (outcome.code, outcome.details) == ("UNIMPLEMENTED", text)

    def test_what_is_answered(self, nodes: Nodes) -> None:
        assert nodes.call("m", "/storage.StorageService/Disks").code == "OK"
        assert nodes.get("m", "runtime", "Versions.runtime.talos.dev", "version").code == "OK"
        assert nodes.get("m", "config", "MachineConfigs.config.talos.dev", "v1alpha1").code == "PERMISSION_DENIED"

    @pytest.mark.parametrize(("mode", "text"), [(2, "no-reboot"), (3, "staged")])
    def test_modes(self, nodes: Nodes, mode: int, text: str) -> None:
        outcome = nodes.apply("m", nodes.config("worker", "a"), mode=mode)
        assert (outcome.code, outcome.details) == ("UNIMPLEMENTED", f"apply configuration --mode='{text}' is not supported in maintenance mode")

    def test_texts_of_a_bad_configuration(self, nodes: Nodes) -> None:
        assert nodes.apply("m", "").details == "failed to parse config: config not found"
        outcome = nodes.apply("m", nodes.config("worker", "a").replace("        disk: /dev/sda\n", ""))
        assert outcome.code == "INVALID_ARGUMENT" and outcome.details.startswith("configuration validation failed: 1 error occurred:")
