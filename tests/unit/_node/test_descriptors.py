# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The embedded descriptors are what the .proto files give, and carry every version's things."""

from __future__ import annotations

import base64
import importlib.util
import zlib
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._node import _descriptors, messages

ROOT = Path(__file__).resolve().parents[3]


def script():
    spec = importlib.util.spec_from_file_location("make_descriptors", ROOT / "protos" / "make_descriptors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_embedded_set_is_what_the_proto_files_give():
    made = script()
    fresh = made.merged({version: made.compile_version(version) for version in made.VERSIONS})
    assert zlib.decompress(base64.b85decode(_descriptors.PACKED)) == fresh.SerializeToString(deterministic=True)
    text = made.python_text(fresh)
    assert text == made.python_text(fresh)
    assert max(map(len, text.splitlines())) <= 160
    assert Path(made.TARGET).read_text(encoding="ascii").startswith("# This Source Code Form is subject to the terms of the Mozilla")


def test_things_of_each_version_are_there():
    assert messages.method("machine.MachineService", "GenerateConfiguration").kind == "unary"
    assert messages.method("machine.LifecycleService", "Install").kind == "server-stream"
    assert messages.method("machine.ImageService", "Pull").kind == "server-stream"
    assert messages.method("machine.MachineService", "EtcdRecover").kind == "client-stream"
    assert messages.method("cosi.resource.State", "Watch").kind == "server-stream"
    assert messages.method("cosi.resource.State", "Teardown").path == "/cosi.resource.State/Teardown"
    spec = messages.spec_class("etcd.SpecSpec").DESCRIPTOR.fields_by_name
    assert spec["extra_args_until_v1_12"].number == 4
    assert spec["extra_args"].number == 7
    assert spec["extra_args"].message_type.fields_by_name["value"].message_type.name == "ArgValues"
    assert spec["extra_args_until_v1_12"].message_type.fields_by_name["value"].message_type is None


#: Field numbers as the Talos API documents them: message, field, number, since.
FIELDS = [
    ("machine.ApplyConfigurationRequest", "mode", 4),
    ("machine.ApplyConfigurationRequest", "try_mode_timeout", 6),
    ("machine.ResetRequest", "mode", 5),
    ("machine.EtcdMember", "is_learner", 6),
    ("cosi.resource.WatchOptions", "bootstrap_bookmark", 7),
    ("cosi.resource.UpdateRequest", "new_resource", 2),
    ("storage.BlockDeviceWipeDescriptor", "skip_secondary_check", 5),
    ("google.rpc.Status", "details", 3),
    ("resource.config.MachineConfigSpec", "yaml_marshalled", 1),
    ("cosi.resource.meta.ResourceDefinitionSpec", "sensitivity", 7),
    ("talos.resource.definitions.hardware.SystemInformationSpec", "bios_version", 8),
    ("talos.resource.definitions.network.LinkStatusSpec", "permanent_addr", 30),
    ("talos.resource.definitions.network.LinkStatusSpec", "veth", 34),
    ("talos.resource.definitions.network.RouteStatusSpec", "next_hops", 14),
    ("talos.resource.definitions.block.DiskSpec", "firmware_version", 19),
    ("talos.resource.definitions.block.DiscoveredVolumeSpec", "partition_label", 12),
    ("talos.resource.definitions.block.VolumeStatusSpec", "scrub_interval", 27),
    ("talos.resource.definitions.runtime.UnattendedInstallStatusSpec", "phase", 2),
    ("talos.resource.definitions.runtime.BootIDSpec", "boot_id", 1),
    ("talos.resource.definitions.runtime.VersionSpec", "name", 2),
    ("talos.resource.definitions.time.StatusSpec", "consecutive_spikes", 5),
    ("talos.resource.definitions.k8s.KubeletSpecSpec", "credential_provider_config", 6),
]


@pytest.mark.parametrize(("message", "field", "number"), FIELDS)
def test_field_numbers(message, field, number):
    assert messages.message_class(message).DESCRIPTOR.fields_by_name[field].number == number


def test_well_known_types_work_in_the_private_pool():
    event = messages.message_class("machine.ServiceEvent")()
    event.ts.FromSeconds(1_700_000_000)
    assert event.ts.ToSeconds() == 1_700_000_000
    assert messages.message_class("google.protobuf.Timestamp").DESCRIPTOR.file.pool is messages.pool()


def test_enum_names():
    enum = "talos.resource.definitions.enums.RuntimeUnattendedInstallPhase"
    assert messages.enum_name(enum, 3) == "UNATTENDED_INSTALL_PHASE_WAITING_FOR_REBOOT"
    assert messages.enum_name(enum, 99) == ""


@pytest.mark.parametrize("change", ["number", "type", "name", "enum", "method"])
def test_a_conflict_between_versions_ends_the_run(change):
    made = script()
    sets = {version: made.compile_version(version) for version in ("v1.12", "v1.13")}
    files = {file.name: file for file in sets["v1.13"].file}
    machine = files["machine/machine.proto"]
    message = next(one for one in machine.message_type if one.name == "EtcdMember")
    field = next(one for one in message.field if one.name == "hostname")
    if change == "number":
        field.number = 77
    elif change == "type":
        field.type = 12
    elif change == "name":
        field.name = "host_name"
    elif change == "enum":
        next(one for one in files["common/common.proto"].enum_type if one.name == "Code").value[1].number = 9
    else:
        machine.service[0].method[0].server_streaming = not machine.service[0].method[0].server_streaming
    with pytest.raises(made.Conflict):
        made.merged(sets)
