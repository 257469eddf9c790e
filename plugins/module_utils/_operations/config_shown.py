# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Differences and configurations as a result shows them: secrets as fingerprints, by path and by value (design sections 8, 11, 20)."""

from __future__ import annotations

from collections.abc import Iterable

from .._decide.config_state import ConfigState
from .._machineconfig.compare import Difference
from .._machineconfig.documents import Config
from .._machineconfig.masking import Mask
from .._machineconfig.shown import masked_text, secrets_of
from .._model.records import Json


def masked_config(config: Config) -> str:
    """The configuration as YAML, secrets as fingerprints."""
    return masked_text(config)


def shown_differences(wanted: Config, running: Config, state: ConfigState) -> dict[str, Json]:
    """Lists of a result: `differences`, `newer_images`, `authority`, and what changing needs."""
    drift, effect = state.drift, state.effect
    found = (*drift.apply, *drift.newer_images, *drift.authority) if drift is not None else ()
    # what is a secret at one path of either side is hidden at every other, too
    mask = Mask(secrets_of(wanted) | secrets_of(running)) if found else Mask(())
    return {
        "differences": as_data(drift.apply if drift else (), mask), "newer_images": as_data(drift.newer_images if drift else (), mask),
        "authority": as_data(drift.authority if drift else (), mask),
        "reboot": [one.where for one in effect.reboot] if effect else [], "later": [one.where for one in effect.later] if effect else [],
    }


def as_data(found: Iterable[Difference], mask: Mask) -> list[Json]:
    """One entry a path, in order."""
    return [{"document": one.document, "path": one.path, "running": _text(one, one.running, mask), "wanted": _text(one, one.wanted, mask),
             "secret": one.secret} for one in found]


def change_lines(shown: dict[str, Json]) -> tuple[str, str]:
    """The two sides of Ansible's diff: one line a path."""
    sides: tuple[list[str], list[str]] = ([], [])
    for entry in _entries(shown.get("differences")) + _entries(shown.get("authority")):
        where = f"{entry['document']}: {entry['path']}" if entry["path"] else str(entry["document"])
        for side, key in zip(sides, ("running", "wanted")):
            if entry[key] is not None:
                side.append(f"{where}: {entry[key]}\n")
    return "".join(sides[0]), "".join(sides[1])


def difference_lines(shown: dict[str, Json]) -> list[str]:
    """One line a path: what the node has, and what the records say."""
    found = []
    for entry in _entries(shown.get("differences")) + _entries(shown.get("authority")):
        where = f"{entry['document']}: {entry['path']}" if entry["path"] else str(entry["document"])
        found.append(f"{where}: {'(absent)' if entry['running'] is None else entry['running']} -> "
                     f"{'(absent)' if entry['wanted'] is None else entry['wanted']}")
    return found


def _entries(value: Json) -> list[dict[str, Json]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _text(difference: Difference, value: object, mask: Mask) -> str | None:
    return None if value is None else difference.shown(value) if difference.secret else mask(difference.shown(value))
