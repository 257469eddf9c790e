# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The messages and methods of the Talos API, from the embedded descriptors, in a descriptor pool of our own.

A private pool cannot collide with another package's copy of the same .proto files. Nothing is unpacked before the
first use. This file and `_descriptors` import nothing else of the product.
"""

from __future__ import annotations

import base64
import functools
import zlib
from dataclasses import dataclass
from typing import Any

from . import _descriptors

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    descriptor_pb2 = descriptor_pool = message_factory = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Method:
    """One RPC. `path` is what goes over the wire, e.g. `/machine.MachineService/Version`."""

    path: str
    request: Any
    response: Any
    client_streaming: bool
    server_streaming: bool

    @property
    def kind(self) -> str:
        """`unary`, `server-stream`, `client-stream` or `bidi-stream`."""
        if self.client_streaming:
            return "bidi-stream" if self.server_streaming else "client-stream"
        return "server-stream" if self.server_streaming else "unary"


@functools.lru_cache(maxsize=None)
def pool() -> Any:
    """The descriptor pool with every file of the set."""
    made = descriptor_pool.DescriptorPool()
    packed = zlib.decompress(base64.b85decode(_descriptors.PACKED))
    for file in descriptor_pb2.FileDescriptorSet.FromString(packed).file:
        made.AddSerializedFile(file.SerializeToString())
    return made


@functools.lru_cache(maxsize=None)
def message_class(name: str) -> Any:
    """The class of a message by its full name, e.g. `machine.VersionResponse`; KeyError when there is none."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(name))


@functools.lru_cache(maxsize=None)
def spec_class(name: str) -> Any:
    """The class of a resource's spec by package and name, e.g. `block.DiskSpec`."""
    return message_class(f"talos.resource.definitions.{name}")


@functools.lru_cache(maxsize=None)
def method(service: str, name: str) -> Method:
    """A method by service and name, e.g. `machine.MachineService`, `Version`; KeyError when there is none."""
    found = pool().FindServiceByName(service).FindMethodByName(name)
    return Method(
        path=f"/{service}/{name}",
        request=message_factory.GetMessageClass(found.input_type),
        response=message_factory.GetMessageClass(found.output_type),
        client_streaming=found.client_streaming,
        server_streaming=found.server_streaming,
    )


def method_names(service: str) -> tuple[str, ...]:
    """The names of all methods of a service, of any version."""
    return tuple(found.name for found in pool().FindServiceByName(service).methods)


def enum_name(enum: str, number: int) -> str:
    """The name of an enum value by the enum's full name, or '' for a number that is not known."""
    found = pool().FindEnumTypeByName(enum).values_by_number.get(number)
    return found.name if found is not None else ""
