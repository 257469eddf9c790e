# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens the store for a module that works on records: with it the module packs `_store`."""

from __future__ import annotations

from .._model.ports import Store
from .._model.timing import Timing
from .libraries import require
from .run import Setting


def open_store(setting: Setting) -> Store:
    """The store, which has to exist (or would, earlier in this check run)."""
    return _open(setting, create=setting.check and setting.would_exist)


def create_store(setting: Setting) -> Store:
    """The same for the module that makes a store where there is none; in check mode it writes nothing."""
    return _open(setting, create=True)


def create_other(setting: Setting, kind: str, path: str, state_path: str, kubeconfig: str, context: str, namespace: str) -> Store:
    """A second store beside that of the common options, made where there is none; in check mode nothing is written."""
    if kind == "kubernetes":
        return _in_kubernetes(setting, kubeconfig, context, namespace, True, Timing.lock_renewal)
    from .._store import opening

    return opening.open_store(path, state_path, clock=setting.clock, create=True, check=setting.check, decrypt=setting.clear_text)


def _open(setting: Setting, create: bool) -> Store:
    renewal = setting.options.timing().lock_renewal if "timing" in setting.options else Timing.lock_renewal
    if setting.store_kind == "kubernetes":
        return _kubernetes(setting, create, renewal)
    from .._store import opening  # only now, since a module may do without a store

    return opening.open_store(setting.store_path, setting.state_path, clock=setting.clock, create=create, check=setting.check,
                              decrypt=setting.clear_text, renewal=renewal)


def _kubernetes(setting: Setting, create: bool, renewal: float) -> Store:
    options = setting.options
    return _in_kubernetes(setting, options.text("store_kubeconfig"), options.text("store_context"), options.text("store_namespace"), create, renewal)


def _in_kubernetes(setting: Setting, path: str, context: str, namespace: str, create: bool, renewal: float) -> Store:
    require(("kubernetes",), "A store in Kubernetes")
    from .._kube.access import Access  # the client's import takes a third of a second, which only those pay who use it
    from .._store.kubernetes import opening

    content = setting.clear_text(path).decode("utf-8", "replace") if path and setting.clear_text is not None else ""
    return opening.open_store(Access(path, content, context), namespace or opening.NAMESPACE, clock=setting.clock, create=create, check=setting.check,
                              renewal=renewal)
