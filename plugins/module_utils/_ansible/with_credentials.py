# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the credentials for nodes that already run (design sections 5 and 20)."""

from __future__ import annotations

from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.ports import CredentialsSource, Store, no_credentials
from .run import Setting


def open_credentials(setting: Setting, store: Store | None) -> CredentialsSource:
    """The talosconfig of the options or the environment, else a certificate issued from the cluster's bundle.

    A talosconfig is read at once, so that a broken one is told before anything is done; a bundle when it is asked for.
    """
    options = setting.options
    text = options.secret_content("talosconfig_content", "talosconfig")
    if text is not None:
        return _Fixed(_from_talosconfig(setting, text))
    return _FromBundle(setting, store) if store is not None else no_credentials


def _from_talosconfig(setting: Setting, text: bytes) -> Credentials:
    from .._node.talosconfig import credentials_from_talosconfig  # cryptography is imported only where it is used

    options = setting.options
    source = "talosconfig" if "talosconfig_content" in options else f"talosconfig {options.text('talosconfig')}"
    return credentials_from_talosconfig(text.decode("utf-8", "replace"), now=setting.clock.now(), context=options.text("context"), source=source)


class _Fixed:
    """One talosconfig for every cluster."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def __call__(self, cluster: str, bundle: str) -> Credentials:
        return self._credentials


class _FromBundle:
    """Issues one certificate a bundle and keeps it in memory for half of its lifetime: a loop in the cluster runs for a week."""

    def __init__(self, setting: Setting, store: Store) -> None:
        self._setting = setting
        self._store = store
        self._issued: dict[str, tuple[Credentials, float]] = {}

    def __call__(self, cluster: str, bundle: str) -> Credentials:
        from .._node.issue import LIFETIME, credentials_from_bundle

        if not bundle:
            raise TalosError("SecretsUnavailable", f"The cluster {cluster or 'of this machine'} names no secrets bundle.",
                             "Set spec.secretsRef.name, or give talosconfig.")
        now = self._setting.clock.now()
        found, at = self._issued.get(bundle, (None, now))
        if found is None or abs(now - at) >= LIFETIME / 2:  # also after a clock that was wrong was set back
            found = credentials_from_bundle(self._store.bundle(bundle), now=now, source=f"bundle {bundle}")
            self._issued[bundle] = found, now
        return found
