# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A secrets bundle where it lives: in the store, or in a file of its own where there is no store (design section 18)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from .._machineconfig.problem import ConfigProblem
from .._machineconfig.secrets import Bundle, read_bundle
from .._model.errors import TalosError
from .._model.observed import Absent, Observed, Present, Unknown
from .._store import bundle


class BundlePlace(Protocol):
    """What the port `Store` says of bundles."""

    def bundle(self, name: str) -> bytes: ...

    def bundle_form(self, name: str) -> str: ...

    def write_bundle(self, name: str, data: bytes, *, replace: bool = False) -> None: ...


class BundleFile:
    """A file of a person's; the name is its path. `decrypt` gives the clear text of a vaulted one."""

    def __init__(self, decrypt: bundle.Decrypt | None) -> None:
        self._decrypt = decrypt

    def bundle(self, name: str) -> bytes:
        return bundle.read(Path(name), name, self._decrypt)

    def bundle_form(self, name: str) -> str:
        return bundle.form(Path(name))

    def write_bundle(self, name: str, data: bytes, *, replace: bool = False) -> None:
        bundle.write(Path(name), data, replace=replace)


def observe_bundle(place: BundlePlace, name: str) -> tuple[str, Observed[Bundle]]:
    """Its form, and what is in it."""
    form = place.bundle_form(name)
    if form == bundle.ABSENT:
        return form, Absent(name)
    try:
        return form, Present(read_bundle(place.bundle(name), source=f"bundle {name}"), name)
    except ConfigProblem as error:
        return form, Unknown("BundleInvalid", error.message, error.hint)
    except TalosError as error:
        return form, Unknown(error.reason, error.message, error.hint)
