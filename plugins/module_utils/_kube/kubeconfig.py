# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which kubeconfig applies, read as kubectl reads it: several files are one, and paths in each count from its own folder (design section 10)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment, unused-ignore]

from .._model.errors import TalosError
from .._model.plain_files import NotPlain, read_plain
from .._model.records import Json, dig, list_at

HINT = "Name a kubeconfig that can be read, and one of its contexts, or run where KUBECONFIG or a pod's own account names an API server."
_PARTS = ("clusters", "contexts", "users")
#: What holds a path.
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def read_kubeconfig(path: str, content: str = "") -> dict[str, Json] | None:
    """The kubeconfig at a path, or with that content, or of KUBECONFIG or ~/.kube/config; None where only the pod's account is left.

    Raises TalosError `CredentialsInvalid` where a file cannot be read, ValueError and yaml.YAMLError where it is no kubeconfig.
    """
    if content:
        return _placed(content, path)
    paths = [path] if path else _named()
    return _merged([_placed(_text(one), one) for one in paths]) if paths else None


def _named() -> list[str]:
    """Of several files in KUBECONFIG those count that are there."""
    named = [one for one in os.environ.get("KUBECONFIG", "").split(os.pathsep) if one]
    if not named and not os.environ.get("KUBERNETES_SERVICE_HOST"):
        named = ["~/.kube/config"]
    return [one for one in named if os.path.exists(os.path.expanduser(one))] or named[:1]


def _text(path: str) -> str:
    try:
        return read_plain(Path(path).expanduser()).decode()
    except (OSError, NotPlain, UnicodeDecodeError) as error:
        why = " ".join(str(error).split()).rstrip(".")[:300] or type(error).__name__
        raise TalosError("CredentialsInvalid", f"The kubeconfig {path} cannot be read: {why}.", HINT) from None


def _placed(text: str, path: str) -> dict[str, Json]:
    """With whole paths in it, and such a path of each login program."""
    config = yaml.safe_load(text)
    if not isinstance(config, dict):
        raise ValueError("it is no kubeconfig")
    folder = os.path.dirname(os.path.abspath(os.path.expanduser(path))) if path else os.getcwd()
    for holder in (*_inner(config, "clusters", "cluster"), *_inner(config, "users", "user")):
        for key in _PATHS:
            _place(holder, key, folder)
        login = holder.get("exec")
        if isinstance(login, dict) and os.path.dirname(str(login.get("command") or "")):
            _place(login, "command", folder)
    return config


def _inner(config: dict[str, Json], part: str, name: str) -> Iterator[dict[str, Json]]:
    """What the entries of a part hold, as it stands there."""
    entries = config.get(part)
    for entry in entries if isinstance(entries, list) else ():
        held = entry.get(name) if isinstance(entry, dict) else None
        if isinstance(held, dict):
            yield held


def _place(holder: dict[str, Json], key: str, folder: str) -> None:
    value = holder.get(key)
    if isinstance(value, str) and value:
        holder[key] = os.path.join(folder, value)


def _merged(configs: Sequence[dict[str, Json]]) -> dict[str, Json]:
    """Of a name, and of the context that is used, the first one counts."""
    result = dict(configs[0])
    for more in configs[1:]:
        for part in _PARTS:
            have = list_at(result, part)
            names = {_name(entry) for entry in have}
            result[part] = [*have, *(entry for entry in list_at(more, part) if _name(entry) not in names)]
        result["current-context"] = result.get("current-context") or more.get("current-context")
    return result


def _name(entry: Json | Mapping[str, Json]) -> str:
    return str(dig(entry, "name"))
