# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random machine configurations by the schema, mostly right, sometimes wrong: for property tests, mutations and comparison with
Talos's own code. Everything comes from one `random.Random`, so that a seed gives the same inputs everywhere."""
from __future__ import annotations

import random
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.containers import FreeForm, KeyedList, ListOf, MapOf, Struct
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import LEGACY, schema
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.sizes import ByteSize, DiskSize, Size, SizeCondition
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.values import (
    Args, Base64, Bool, Choice, Duration, Formed, Int, Octal, Overwritten, PemPair, PortRanges, Text, Url,
)

WORDS = ("a", "b1", "eth0", "node-1", "x.example.com", "data", "10.0.0.1", "on", "1", "0777", "1:30", "", "a b", "a: b", "#c", "v1.2.3", "ünï", "!no", "-x",
         "10.0.0.0/8", "2001:db8::1", "null", "~", "2020-01-01", "x" * 140, "l1\nl2", "tab\tx", "it's", "say \"hi\"", "1e3", ".5", "=", "<<")
ADDRESSES = ("10.0.0.1", "0.0.0.0", "2001:DB8::1", "fe80::1", "::", "::ffff:1.2.3.4", "192.168.1.300", "1.2.3", "")
PREFIXES = ("10.0.0.0/8", "10.1.2.3/16", "2001:DB8::/32", "0.0.0.0/0", "fd00::1/64", "10.0.0.0/33", "10.0.0.0", "")
URLS = ("https://a.example.com", "https://a.example.com:6443/x?y=1#z", "http://10.0.0.1:5000/v2/", "tcp://1.2.3.4:514/", "HTTPS://A.B/%7Euser",
        "https://u:p@h/",
        "grpc://x/", "https://[fd00::1]:6443", "nonsense", "https://h:99999", "", "/only/path", "https://a b/", "udp://h:1?x", "https://h?")
SIZES = ("10GB", "10GiB", "1.5 GiB", "1 gib", "100", "-5GB", "10XB", "", "1,000MB", "5Ti")
EXPRESSIONS = ('disk.dev_path == "/dev/sda"', "disk.size > 10u * GB && !disk.readonly", "true", "", "system_disk", 'disk.transport == "nvme"')
MACS = ("aa:bb:cc:dd:ee:ff", "AABBCCDDEEFF", "zz:00", "", "00:11:22")
DURATIONS = ("1h", "90s", "1h30m", "0s", "-5m", "1.5h", "100ms", "10", "0", "1us", "168h0m0s")
PLAIN = {"int": (0, 1, 5, 443, 65535, 70000, -1, 8, 4094), "bool": (True, False)}


class Inputs:
    """A source of random documents for one Talos version. wrong: how often a value is of a wrong type or form (0 to 1)."""

    def __init__(self, seed: int, version: str, wrong: float = 0.02) -> None:
        self.random = random.Random(seed)
        self.schema = schema(version)
        self.wrong = wrong

    def document(self, kind: str | None = None, density: float = 0.35) -> dict[str, Any]:
        """Plain data of one random document."""
        name = kind or self.random.choice(self.schema.names)
        data = self.struct(self.schema.kind(name).struct, density, 0)
        if name == LEGACY:
            data.setdefault("version", "v1alpha1")
            data.setdefault("machine", {"type": "worker"})
            return data
        return {"apiVersion": "v1alpha1", "kind": name, **data}

    def struct(self, struct: Struct, density: float, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for field in struct.fields:
            if self.random.random() < (0.9 if field.name in ("name", "type", "token") else density / (1 + depth * 0.25)):
                result[field.name] = self.value(field.codec, density, depth + 1)
        if self.random.random() < self.wrong / 8:
            result["unknownKey"] = self.random.choice(WORDS)
        items = list(result.items())
        self.random.shuffle(items)
        return dict(items)

    def value(self, codec: Any, density: float, depth: int) -> Any:
        pick = self.random.choice
        if self.random.random() < self.wrong:
            return pick((None, 5, "text", True, [1], {"a": 1}, 1.5, "", []))
        if isinstance(codec, Struct):
            return self.struct(codec, density, depth)
        if isinstance(codec, KeyedList) or isinstance(codec, ListOf):
            return [self.value(codec.item, density, depth) for dummy in range(pick((0, 1, 1, 2, 3)))]
        if isinstance(codec, MapOf):
            return {pick(WORDS): self.value(codec.item, density, depth) for dummy in range(pick((0, 1, 2, 3)))}
        if isinstance(codec, FreeForm):
            return self.free(0)
        if isinstance(codec, Args):
            return {pick(WORDS[:8]): pick(("x", "", ["a", "b"], ["a"], 5, True, None, [])) for dummy in range(pick((0, 1, 2)))}
        return self.scalar(codec)

    def scalar(self, codec: Any) -> Any:
        pick = self.random.choice
        if isinstance(codec, Bool):
            return pick((True, False, True, False, "yes", "off"))
        if isinstance(codec, Octal):
            return pick((420, 384, 0, 511))
        if isinstance(codec, Int):
            return pick(PLAIN["int"])
        if isinstance(codec, Choice):
            return pick(codec.words)
        if isinstance(codec, Duration):
            return pick(DURATIONS)
        if isinstance(codec, Size):
            return pick((*SIZES, "80%", "-25%", "120%"))
        if isinstance(codec, (DiskSize, ByteSize)):
            return pick(SIZES)
        if isinstance(codec, SizeCondition):
            return pick((">= 100GB", "<10GiB", "== 5TB", "100", "~ 5"))
        if isinstance(codec, Overwritten):
            return pick(EXPRESSIONS)
        if isinstance(codec, Formed):
            return self.formed(codec.name)
        if isinstance(codec, Url):
            return pick(URLS)
        if isinstance(codec, PemPair):
            return {key: pick(("YQ==", "", "Yg==")) for key in codec.keys}
        if isinstance(codec, Base64):
            return pick(("YQ==", "", "not base64!"))
        if isinstance(codec, PortRanges):
            return [pick((80, "443", "100-200", "5-1", 70000)) for dummy in range(pick((0, 1, 2)))]
        if isinstance(codec, Text):
            return pick((*WORDS, 5, True, 1.5))
        raise AssertionError(f"no inputs for {type(codec).__name__}")

    def formed(self, name: str) -> Any:
        pick = self.random.choice
        if "port" in name:
            return pick(("1.2.3.4:80", "[FD00::1]:51820", "1.2.3.4", "[1.2.3.4]:5", ""))
        if "prefix" in name:
            return pick(PREFIXES)
        if "address" in name and "IP" in name:
            return pick(ADDRESSES)
        if "hardware" in name:
            return pick(MACS)
        if "routing table" in name:
            return pick(("main", "local", "default", 100, "252", "unspec", "999"))
        return pick(("none", "active", "follow"))

    def free(self, depth: int) -> Any:
        pick = self.random.choice
        result: dict[str, Any] = {}
        for dummy in range(pick((0, 1, 2, 3))):
            kind = pick(("text", "int", "bool", "list", "map", "float", "null")) if depth < 3 else pick(("text", "int"))
            result[pick(("a", "b", "c10", "c9", "k", "x y", "A"))] = {
                "text": pick(WORDS[:12]), "int": pick((0, 1, 1000, -5)), "bool": pick((True, False)), "float": pick((1.5, 0.25, 1e21, 1e6, 123456789.5)),
                "null": None, "list": [pick(WORDS[:5]) for each in range(pick((0, 1, 2)))], "map": self.free(depth + 1) if kind == "map" else None,
            }[kind]
        return result

    def config(self, extra: int = 3) -> list[dict[str, Any]]:
        """Documents of one configuration: a legacy one and some others, each kind and name once."""
        documents = [self.document(LEGACY, 0.25)]
        seen: set[tuple[str, str]] = set()
        for dummy in range(self.random.randrange(extra + 1)):
            document = self.document()
            if document.get("kind") and (document["kind"], str(document.get("name"))) not in seen:
                seen.add((document["kind"], str(document.get("name"))))
                documents.append(document)
        return documents
