# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens the store for a module that works on records: with it the module packs `_store`."""

from __future__ import annotations

from .._model.ports import Store
from .run import Setting


def open_store(setting: Setting) -> Store:
    """The store, which has to exist (or would, earlier in this check run)."""
    return _open(setting, create=setting.check and setting.would_exist)


def create_store(setting: Setting) -> Store:
    """The same for the module that makes a store where there is none; in check mode it writes nothing."""
    return _open(setting, create=True)


def _open(setting: Setting, create: bool) -> Store:
    from .._store import opening  # only now, since a module may do without a store

    options = setting.options
    renewal = options.timing().lock_renewal if "timing" in options else None
    if renewal is None:
        return opening.open_store(setting.store_path, setting.state_path, clock=setting.clock, create=create, check=setting.check,
                                  decrypt=setting.clear_text)
    return opening.open_store(setting.store_path, setting.state_path, clock=setting.clock, create=create, check=setting.check,
                              decrypt=setting.clear_text, renewal=renewal)
