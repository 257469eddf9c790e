# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make `plugins/module_utils/_node/_descriptors.py` from the .proto files of all supported Talos versions.

    python protos/make_descriptors.py            writes the file
    python protos/make_descriptors.py --check    exits 1 when the file differs

The descriptors of the versions are merged into one set that knows every message, field, enum value and method of
any of them. Two versions that give one name two numbers or two types, or one number two names, are a conflict and end
the run; the few real ones stand in RENAMES. Needs grpcio-tools.
"""

from __future__ import annotations

import argparse
import base64
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import grpc_tools
from google.protobuf import descriptor_pb2 as pb
from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "plugins" / "module_utils" / "_node" / "_descriptors.py"
VERSIONS = ("v1.12", "v1.13", "v1.14")

#: (version, message, field) -> name in the merged set. Talos gave the field a new number and type under the old name.
RENAMES = {
    ("v1.12", "talos.resource.definitions.etcd.SpecSpec", "extra_args"): "extra_args_until_v1_12",
    ("v1.12", "talos.resource.definitions.etcd.SpecSpec", "ExtraArgsEntry"): "ExtraArgsUntilV112Entry",
}

HEADER = '''# This Source Code Form is subject to the terms of the Mozilla Public
# License, v. 2.0. If a copy of the MPL was not distributed with this
# file, You can obtain one at http://mozilla.org/MPL/2.0/.
# SPDX-License-Identifier: MPL-2.0

"""The descriptors of the Talos API: a FileDescriptorSet, zlib, base85. Made by protos/make_descriptors.py; do not edit."""

from __future__ import annotations

VERSIONS = {versions!r}

PACKED = (
{lines}
)
'''


class Conflict(Exception):
    """Two versions disagree about a name or a number."""


def compile_version(version: str) -> pb.FileDescriptorSet:
    """The descriptor set of one version's folder, imports included."""
    root = HERE / version
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*.proto"))
    well_known = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "set.pb")
        arguments = ["protoc", f"-I{root}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={out}", *files]
        if protoc.main(arguments) != 0:
            raise SystemExit(f"protoc failed for {version}")
        return pb.FileDescriptorSet.FromString(Path(out).read_bytes())


def same(where: str, old: Any, new: Any) -> None:
    if old != new:
        raise Conflict(f"{where}: {old} and {new}")


def bare_message(version: str, scope: str, message: pb.DescriptorProto) -> pb.DescriptorProto:
    """A copy without what readers of the wire do not need (options, reserved ranges, JSON names), renames carried out."""
    full = f"{scope}.{message.name}"
    bare = pb.DescriptorProto(name=RENAMES.get((version, scope, message.name), message.name))
    if message.options.map_entry:
        bare.options.map_entry = True
    for field in message.field:
        copy = bare.field.add(name=RENAMES.get((version, full, field.name), field.name), number=field.number,
                              label=field.label, type=field.type)
        if field.type_name:
            owner, dummy, last = field.type_name.rpartition(".")
            copy.type_name = f"{owner}.{RENAMES.get((version, owner.lstrip('.'), last), last)}"
        if field.HasField("oneof_index"):
            copy.oneof_index = field.oneof_index
        if field.proto3_optional:
            copy.proto3_optional = True
    bare.oneof_decl.extend(pb.OneofDescriptorProto(name=oneof.name) for oneof in message.oneof_decl)
    bare.enum_type.extend(bare_enum(enum) for enum in message.enum_type)
    bare.nested_type.extend(bare_message(version, full, nested) for nested in message.nested_type)
    return bare


def bare_enum(enum: pb.EnumDescriptorProto) -> pb.EnumDescriptorProto:
    bare = pb.EnumDescriptorProto(name=enum.name)
    bare.value.extend(pb.EnumValueDescriptorProto(name=value.name, number=value.number) for value in enum.value)
    if enum.options.allow_alias:
        bare.options.allow_alias = True
    return bare


def merge_enums(where: str, into: Any, more: Any) -> None:
    for enum in more:
        known = next((one for one in into if one.name == enum.name), None)
        if known is None:
            into.add().CopyFrom(enum)
            continue
        names = {value.name: value.number for value in known.value}
        numbers = {value.number: value.name for value in known.value}
        for value in enum.value:
            at = f"{where}.{enum.name}.{value.name}"
            same(at, names.get(value.name, value.number), value.number)
            if not (known.options.allow_alias or enum.options.allow_alias):
                same(at, numbers.get(value.number, value.name), value.name)
            if value.name not in names:
                known.value.add().CopyFrom(value)
        ordered = sorted(known.value, key=lambda value: value.number)
        del known.value[:]
        known.value.extend(ordered)


def field_shape(message: pb.DescriptorProto, field: pb.FieldDescriptorProto) -> tuple[Any, ...]:
    oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
    return field.name, field.number, field.type, field.label, field.type_name, oneof, field.proto3_optional


def merge_messages(where: str, into: Any, more: Any) -> None:
    for message in more:
        known = next((one for one in into if one.name == message.name), None)
        if known is None:
            into.add().CopyFrom(message)
            continue
        full = f"{where}.{message.name}"
        by_name = {field.name: field for field in known.field}
        by_number = {field.number: field for field in known.field}
        for field in message.field:
            at = f"{full}.{field.name}"
            old = by_name.get(field.name) or by_number.get(field.number)
            if old is not None:
                same(at, field_shape(known, old), field_shape(message, field))
                continue
            added = known.field.add()
            added.CopyFrom(field)
            if field.HasField("oneof_index"):
                name = message.oneof_decl[field.oneof_index].name
                names = [oneof.name for oneof in known.oneof_decl]
                if name not in names:
                    if field.proto3_optional or not any(one.proto3_optional for one in known.field):
                        known.oneof_decl.add(name=name)
                    else:
                        raise Conflict(f"{at}: a new oneof would have to stand before the optional fields")
                added.oneof_index = [oneof.name for oneof in known.oneof_decl].index(name)
        ordered = sorted(known.field, key=lambda field: field.number)
        del known.field[:]
        known.field.extend(ordered)
        merge_enums(full, known.enum_type, message.enum_type)
        merge_messages(full, known.nested_type, message.nested_type)


def merge_services(where: str, into: Any, more: Any) -> None:
    for service in more:
        known = next((one for one in into if one.name == service.name), None) or into.add(name=service.name)
        methods = {method.name: method for method in known.method}
        for method in service.method:
            bare = pb.MethodDescriptorProto(name=method.name, input_type=method.input_type, output_type=method.output_type,
                                            client_streaming=method.client_streaming, server_streaming=method.server_streaming)
            same(f"{where}.{service.name}/{method.name}", methods.get(method.name, bare), bare)
            if method.name not in methods:
                known.method.add().CopyFrom(bare)
        ordered = sorted(known.method, key=lambda method: method.name)
        del known.method[:]
        known.method.extend(ordered)


def merged(versions: dict[str, pb.FileDescriptorSet]) -> pb.FileDescriptorSet:
    """One set of all versions, each file after those that it imports, by name otherwise."""
    files: dict[str, pb.FileDescriptorProto] = {}
    for version, one in versions.items():
        for file in one.file:
            known = files.setdefault(file.name, pb.FileDescriptorProto(name=file.name, package=file.package, syntax=file.syntax))
            same(f"{file.name}: package", (known.package, known.syntax), (file.package, file.syntax))
            known.dependency.extend(name for name in file.dependency if name not in known.dependency)
            merge_messages(file.package, known.message_type, [bare_message(version, file.package, one) for one in file.message_type])
            merge_enums(file.package, known.enum_type, [bare_enum(enum) for enum in file.enum_type])
            merge_services(file.package, known.service, file.service)
    result = pb.FileDescriptorSet()
    done: set[str] = set()

    def add(name: str) -> None:
        if name in done:
            return
        done.add(name)
        files[name].dependency.sort()
        for needed in files[name].dependency:
            add(needed)
        result.file.add().CopyFrom(files[name])

    for name in sorted(files):
        add(name)
    return result


def python_text(descriptors: pb.FileDescriptorSet) -> str:
    """The Python file: the serialised set, compressed, as strings of 120 characters (base85 has no quote or backslash)."""
    packed = base64.b85encode(zlib.compress(descriptors.SerializeToString(deterministic=True), 9)).decode("ascii")
    lines = "\n".join(f'    "{packed[at:at + 120]}"' for at in range(0, len(packed), 120))
    return HEADER.format(versions=VERSIONS, lines=lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args()
    text = python_text(merged({version: compile_version(version) for version in VERSIONS}))
    if not options.check:
        TARGET.write_text(text, encoding="ascii")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="ascii") == text:
        return 0
    sys.stderr.write(f"{TARGET.name} is not what the .proto files give: run protos/make_descriptors.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
