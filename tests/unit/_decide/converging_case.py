# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Observations of converged machines: one that is in step with the records, and what makes of it another."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._decide.comparison import Compared, compare
from ansible_collections.ichor.talos.plugins.module_utils._decide.convergence_words import ConfiguredNode, Converging
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.contract import schema_for
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import load
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.render import Rendered, RenderInput, render
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Target
from ansible_collections.ichor.talos.tests.unit._operations import world as w

NOW = w.START
VERSION = "v1.13.9"
JOINED = {"stage": "running", "configStoredAt": "2023-11-14T00:00:00Z", "storedConfigHash": "a", "appliedConfigHash": "a"}
BOOTSTRAPPED = {"bootstrappedAt": "2023-11-14T00:00:00Z"}
Change = Callable[[bytes], bytes]


def insert(text: str) -> Change:
    """Lines under `machine`."""
    return lambda config: config.replace(b"machine:\n", b"machine:\n" + text.encode(), 1)


sysctl = insert("    sysctls:\n        net.core.somaxconn: \"1\"\n")
udev = insert("    udev:\n        rules:\n            - one\n")


def newer(config: bytes) -> bytes:
    return config.replace(b"kubelet:v1.35.0", b"kubelet:v1.35.3")


def hostname(config: bytes) -> bytes:
    return re.sub(rb"hostname: [a-z0-9]+", b"hostname: was", config)


def token(config: bytes) -> bytes:
    return re.sub(rb"\n    token: [^\n]+", b"\n    token: zzzzzz.0123456789abcdef", config, count=1)


def accepted(config: bytes) -> bytes:
    text = base64.b64encode(authority().encode()).decode()
    return insert(f"    acceptedCAs:\n        - crt: {text}\n")(config)


def both(*changes: Change) -> Change:
    def change(config: bytes) -> bytes:
        for one in changes:
            config = one(config)
        return config
    return change


@lru_cache(maxsize=None)
def rendered(role: str = "worker", version: str = VERSION, link: str = "") -> Rendered:
    bundle = read_bundle((Path(__file__).parents[2] / "vectors" / "secrets.yaml").read_bytes())
    network = {"network": {"primary": {"interface": link, "dhcp": True}}} if link else {}
    return render(RenderInput(
        "prod", {"talosVersion": version, "kubernetesVersion": "v1.35.0", "endpoint": "https://10.9.9.9:6443"}, "m1",
        {"role": role, "hostname": "m1", "install": {"disk": "/dev/sda"}, **network}, bundle))


def authority() -> str:
    return rendered().brought().machine_ca


@lru_cache(maxsize=None)
def compared(role: str = "worker", change: Change | None = None, kept: Change | None = None, version: str = VERSION) -> Compared:
    """`change`: what was done to what the node runs; `kept`: to what it keeps, None where that is the same."""
    wanted = rendered(role, version)
    schema = schema_for(version)
    own = wanted.text.encode()
    running = load(change(own) if change else own, schema)
    return compare(wanted, running, load(kept(own), schema) if kept else None, version)


def as_is(config: bytes) -> bytes:
    return config


def case(role: str = "worker", change: Change | None = None, kept: Change | None = None, *, status: Mapping[str, object] | None = None,
         annotations: Mapping[str, str] | None = None, cluster: Mapping[str, object] | None = None,
         cluster_status: Mapping[str, object] | None = None, others: int = 0, version: str = VERSION, **spec: object) -> Converging:
    """A machine that joined, and a node that runs what `change` made of the render. `others`: how many control planes beside it."""
    machine = w.machine_record("m1", 1, role, status={**JOINED, **(status or {})}, **spec)
    machine = replace(machine, annotations=dict(annotations or {}))
    siblings = (machine, *(w.machine_record(f"cp{number}", number, "controlplane") for number in range(2, 2 + others)))
    record = w.cluster_record(status={**BOOTSTRAPPED, **(cluster_status or {})}, **(cluster or {}))  # type: ignore[arg-type]
    node = ConfiguredNode("10.0.0.1:50000", w.identity(1), StageReading("running", True), version, boot_id=Present("boot-2"))
    return Converging(
        Target(name="m1", cluster="prod", uid="uid-m1"), machine, Present(rendered(role, version)), Present(authority()), Present("10.0.0.1:50000"),
        record, siblings, Present(node), Present(compared(role, change, kept, version)))


def with_node(seen: Converging, **changed: object) -> Converging:
    node = seen.node
    assert isinstance(node, Present)
    return replace(seen, node=Present(replace(node.value, **changed)))  # type: ignore[arg-type]


def disruption(machine: str = "m1", step: str = "reboot", age: float = 60, boot: str = "boot-2") -> dict[str, object]:
    return {"disruption": {"machine": machine, "step": step, "time": moment(NOW - age), "bootID": boot}}


def condition(kind: str, status: str = "True", age: float = 0) -> dict[str, object]:
    return {"conditions": [{"type": kind, "status": status, "reason": "Removing", "message": "", "lastTransitionTime": moment(NOW - age)}]}
