# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of a secrets bundle: what a person wants of it, what was read, and the steps (design sections 4, 8, 18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from .._machineconfig.secrets import Bundle
from .._model.observed import Absent, Observed
from .._model.plan import Step
from .._model.records import Broken, Record


@dataclass(frozen=True)
class BundleWish:
    """What a person wants. `imported`: the bundle that is brought, or why it cannot be used; Absent where one is to be there, made when
    there is none. `source`: where it was brought from. `replace`: one that differs may go. `export_path`: where to write a copy, or ''.
    """

    name: str
    imported: Observed[Bundle] = Absent()
    source: str = ""
    #: What is wrong with the imported one, one sentence each.
    faults: tuple[str, ...] = ()
    contract: str = "1.14"
    replace: bool = False
    export_path: str = ""


@dataclass(frozen=True)
class BundleSeen:
    """What was read. `form`: absent, clear or vaulted. `bundle`: what is in it. `clusters` and `machines`: all of the store, and what of
    them could not be read; without a store there is no memory of what was sent. `stored`: whether there is a store.
    `exported`: what stands at `export_path`, Absent where nothing does.
    """

    form: str
    bundle: Observed[Bundle] = Absent()
    clusters: Sequence[Record] = ()
    machines: Sequence[Record] = ()
    broken: Sequence[Broken] = ()
    stored: bool = True
    exported: Observed[Bundle] = Absent()


@dataclass(frozen=True)
class GenerateBundle(Step):
    """Make a new bundle and put it at its place."""

    action: ClassVar[str] = "GenerateSecrets"

    contract: str = ""


@dataclass(frozen=True)
class ImportBundle(Step):
    """Put a bundle that a person brings at its place."""

    action: ClassVar[str] = "ImportSecrets"

    bundle: Bundle | None = field(default=None, repr=False, metadata={"plan": "digest"})
    replace: bool = False


@dataclass(frozen=True)
class ExportBundle(Step):
    """Write a copy of the bundle for talosctl, readable for its owner only."""

    action: ClassVar[str] = "ExportSecrets"

    path: str = ""
    replace: bool = False
