# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Helm values of a managed Cilium: which keys the product owns, what Talos needs, and what is a secret in them (design section 15)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .._model.records import Json, JsonMap

#: Keys that nobody else sets, with their values: pods are numbered by Kubernetes, and Talos has mounted the cgroups.
OWNED: tuple[tuple[tuple[str, ...], Json], ...] = (
    (("ipam", "mode"), "kubernetes"),
    (("cgroup", "autoMount", "enabled"), False),
    (("cgroup", "hostRoot"), "/sys/fs/cgroup"),
)
#: What the agent may do on Talos, where a pod may load no kernel module. Values that somebody gives win.
_AGENT: list[Json] = ["CHOWN", "KILL", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "SYS_RESOURCE", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
_CLEANER: list[Json] = ["NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"]
_BELOW: dict[str, Json] = {"securityContext": {"capabilities": {"ciliumAgent": _AGENT, "cleanCiliumState": _CLEANER}}}

_SECRET = re.compile(r"(?:^|[a-z_.-])(?:token|password|passphrase|secret|privatekey|presharedkey|secretkey|accesskey)$", re.IGNORECASE)
_PRIVATE = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")
#: Base64 of the beginning of a PEM text.
_ENCODED = "LS0tLS1CRUdJTi"


def for_render(values: JsonMap) -> dict[str, Json]:
    """What the chart is rendered with."""
    result = merged(_BELOW, values)
    for path, value in OWNED:
        result = merged(result, _nested(path, value))
    return result


def merged(below: JsonMap, above: JsonMap) -> dict[str, Json]:
    """As Helm merges values: mappings are merged, everything else above wins."""
    result: dict[str, Json] = dict(below)
    for key, value in above.items():
        under = result.get(key)
        result[key] = merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return result


def owned_in(values: JsonMap) -> tuple[tuple[str, bool], ...]:
    """The owned keys that are set, and whether each is set as the product sets it. Something else than a mapping on the way sets them, too."""
    found = []
    for path, value in OWNED:
        here: Json | JsonMap = values
        for key in path:
            if not isinstance(here, Mapping) or key not in here:
                break
            here = here[key]
            if not isinstance(here, Mapping):
                found.append((".".join(path), key == path[-1] and _same(here, value)))
                break
        else:
            found.append((".".join(path), False))
    return tuple(found)


def without_owned(values: JsonMap) -> dict[str, Json]:
    """The values without the owned keys, and without mappings that held nothing else."""
    result = dict(values)
    for path, dummy in OWNED:
        result = _without(result, path)
    return result


def leaves(values: JsonMap, path: str = "") -> dict[str, Json]:
    """What the values set, by its path with dots; of an empty mapping its own path."""
    found: dict[str, Json] = {}
    for key, value in values.items():
        found.update(leaves(value, f"{path}{key}.") if isinstance(value, Mapping) and value else {f"{path}{key}": value})
    return found


def secret_paths(values: Json | JsonMap, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Paths of values that are secrets themselves, not names of them."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from secret_paths(value, (*path, str(key)))
    elif isinstance(values, list):
        for number, value in enumerate(values):
            yield from secret_paths(value, (*path, str(number)))
    elif isinstance(values, str) and values and _is_secret(path[-1] if path else "", values):
        yield ".".join(path)


def _is_secret(key: str, value: str) -> bool:
    return bool(_SECRET.search(key)) or bool(_PRIVATE.search(value)) or key == "key" and value.startswith(_ENCODED)


def _same(value: Json, wanted: Json) -> bool:
    return type(value) is type(wanted) and value == wanted


def _nested(path: tuple[str, ...], value: Json) -> dict[str, Json]:
    return {path[0]: _nested(path[1:], value) if len(path) > 1 else value}


def _without(values: dict[str, Json], path: tuple[str, ...]) -> dict[str, Json]:
    key, rest = path[0], path[1:]
    inner = values.get(key)
    result = {name: value for name, value in values.items() if name != key}
    if rest and isinstance(inner, dict):
        left = _without(inner, rest)
        if left or not inner:
            result[key] = left
    return {name: result[name] for name in values if name in result}
