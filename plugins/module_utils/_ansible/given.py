# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that no option can have, refused before anything is read by them.

An empty text is how a template spells a variable that is not there. Where it would lift a restriction - no fingerprint, no
saved plan, every machine - it is refused instead of taken for an option that was not given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._model.errors import TalosError
from .arguments import SECRET_OPTIONS

#: Options whose empty value would mean less than what was asked for.
NOT_BLANK = frozenset({"fingerprint", "uuid", "serial", "expect_plan_id", "plan_file", "save_plan", "machine", "select", "address", "config_file", "config_dir",
                       "config_content", "json_path", "show_plan"})


def check_given(values: Mapping[str, object]) -> None:
    """Raises TalosError `InvalidInput` for a NUL byte, a blank value that would lift a restriction, and a name or a fingerprint that is none."""
    for name, value in values.items():
        if name not in SECRET_OPTIONS and any("\0" in text for text in _texts(value)):
            raise TalosError("InvalidInput", f"{name} has a NUL byte in it.", "Give it as plain text.")
        if name in NOT_BLANK and isinstance(value, str) and not value.strip():
            raise TalosError("InvalidInput", f"{name} is given and empty.", "Give a value, or leave the option out (in a template: default(omit)).")
    machines = values.get("machines")
    listed = [item for item in machines if isinstance(item, str)] if isinstance(machines, (list, tuple)) else []
    if listed and not any(item.strip() for item in listed):
        raise TalosError("InvalidInput", "machines is given, and every name in it is empty.", "Give the names, or leave the option out.")
    machine = values.get("machine")
    named = [*([machine] if isinstance(machine, str) else []), *listed]
    fingerprint = values.get("fingerprint")
    if not named and not fingerprint:
        return
    from .._model.schema_formats import FORMATS, is_dns_1123  # it brings the forms of everything else

    if isinstance(fingerprint, str) and (fault := FORMATS["fingerprint"].fault(fingerprint.strip())):
        raise TalosError("InvalidInput", f"fingerprint is {fingerprint[:100]!r}; it {fault}.", "Give it as the node's console shows it.")
    for text in named:
        if text.strip() and not is_dns_1123(text.strip()):
            raise TalosError("InvalidInput", f"{text[:100]!r} cannot be the name of a machine's record.",
                             "Give the exact name, as talos_machine_info lists it; a pattern is none.")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
