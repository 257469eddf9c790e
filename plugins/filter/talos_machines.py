# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A filter over records of machines: which record the machine is that a person knows by its UUID, address or MAC."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ansible.errors import AnsibleFilterError

from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import canonical_mac, canonical_uuid

#: By what a machine is known, in the order in which an entry's first one counts.
KEYS = ("machine", "uuid", "mac", "address")


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {"talos_name_machines": talos_name_machines}


def talos_name_machines(entries: object, records: object) -> list[dict[str, object]]:
    """The entries, each with the name of its record as `machine`; every other key stays as it is."""
    if not isinstance(entries, list) or not isinstance(records, list) or not all(isinstance(entry, Mapping) for entry in (*entries, *records)):
        raise AnsibleFilterError("talos_name_machines: both the entries and the records have to be lists of dictionaries.")
    named: list[dict[str, object]] = [{**{key: value for key, value in entry.items() if key not in KEYS}, "machine": _name(entry, records)}
                                      for entry in entries]
    names = [entry["machine"] for entry in named]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise AnsibleFilterError(f"talos_name_machines: two entries mean machine {twice}. Take one of them away.")
    return named


def _name(entry: Mapping[str, object], records: list[Mapping[str, object]]) -> str:
    key = next((key for key in KEYS if entry.get(key)), "")
    if not key:
        raise AnsibleFilterError("talos_name_machines: an entry names no machine. Give its uuid, mac, address, or the machine's name.")
    wanted = str(entry[key]).strip()
    if key == "machine":
        return wanted
    found = [record for record in records if _is(record, key, wanted)]
    if len(found) != 1:
        told = "is not found yet. Boot it into maintenance mode, in a network that is looked at" if not found else "is several records"
        raise AnsibleFilterError(f"talos_name_machines: the machine with {key} {wanted} {told}; talos_machine_info shows what there is.")
    return str(_at(found[0], "metadata", "name"))


def _is(record: Mapping[str, object], key: str, wanted: str) -> bool:
    if key == "uuid":
        return bool(canonical_uuid(wanted)) and canonical_uuid(str(_at(record, "spec", "identity", "uuid") or "")) == canonical_uuid(wanted)
    if key == "mac":
        macs = _at(record, "spec", "identity", "macs")
        return bool(canonical_mac(wanted)) and canonical_mac(wanted) in [canonical_mac(str(mac)) for mac in (macs if isinstance(macs, list) else [])]
    try:
        return parse_endpoint(str(_at(record, "spec", "endpoint") or "")) == parse_endpoint(wanted)
    except TalosError:
        return False


def _at(data: object, *path: str) -> object:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data
