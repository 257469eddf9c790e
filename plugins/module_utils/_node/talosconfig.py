# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials from a context of a talosconfig (design section 5)."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

from .._model.credentials import Credentials
from .._model.errors import TalosError
from . import clean, pem
from .certificates import moment

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment,unused-ignore]

_SIZE = 1024 * 1024
_NEW = "Have a new talosconfig issued, or give the secrets bundle."


def credentials_from_talosconfig(text: str, *, now: float, context: str = "", source: str = "talosconfig") -> Credentials:
    """The credentials of a context, by default the current one. `now` is UTC seconds.

    Raises `CredentialsInvalid` or `CredentialsExpired`; no message quotes a value of the file but names of contexts.
    """
    contexts, current = _contexts(text, source)
    name = context or current
    if name not in contexts:
        known = ", ".join(sorted(clean.text(one) for one in contexts)[:20])
        which = f"no context {clean.text(name)}" if name else "no current context"
        raise _invalid(f"The {source} has {which}; it has {known or 'none at all'}.", "Name one of its contexts.")
    where = f"{source} context {clean.text(name)}"
    chosen = contexts[name]
    if not isinstance(chosen, dict):
        raise _invalid(f"The {where} is not a mapping.", _NEW)
    if not chosen.get("crt") and not chosen.get("key") and (_is_omni(chosen) or chosen.get("ca") is None):
        raise _invalid(f"The {where} has no client certificate and key (as those that Omni gives out).",
                       "Omni's machines are managed by Omni; give a talosconfig with keys, or the secrets bundle.")
    try:
        ca = pem.decode(chosen.get("ca"), "CA")
        certificate = pem.decode(chosen.get("crt"), "client certificate")
        key = pem.decode(chosen.get("key"), "client key")
        pem.load_certificate(ca, "CA")
        parsed = pem.load_certificate(certificate, "client certificate")
        if not pem.belongs(pem.load_key(key, "client key"), parsed):
            raise pem.Unreadable("has a client key that is not the key of its certificate")
    except pem.Unreadable as error:
        raise _invalid(f"The {where} {error}.", _NEW) from None
    ends = moment(parsed, "not_valid_after")
    if ends <= now:
        day = datetime.fromtimestamp(ends, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        raise TalosError("CredentialsExpired", f"The client certificate of the {where} expired on {day}.", _NEW)
    return Credentials(ca=ca, certificate=certificate, key=pem.standard_key(key), source=where, endpoints=_endpoints(chosen))


def _contexts(text: str, source: str) -> tuple[dict[Any, Any], str]:
    if len(text) > _SIZE:
        raise _invalid(f"The {source} is larger than 1 MiB.", "Check that it is a talosconfig.")
    if text.lstrip().startswith("$ANSIBLE_VAULT"):
        raise _invalid(f"The {source} is encrypted with ansible-vault.", "Give it as a variable that Ansible decrypts.")
    if len(text.strip()) > 60 and re.fullmatch(r"[A-Za-z0-9+/=\s]+", text):
        raise _invalid(f"The {source} is base64, not a talosconfig.", "Decode it first, for example with the filter b64decode.")
    try:
        loaded = yaml.load(text.lstrip("\ufeff"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise _invalid(f"The {source} is not YAML or is cut off{line}.", _NEW) from None
    if not isinstance(loaded, dict):
        raise _invalid(f"The {source} is not a talosconfig: it is no mapping.", _NEW)
    if "sops" in loaded or _has_sops_value(loaded):
        raise _invalid(f"The {source} is encrypted with SOPS.", "Decrypt it first, for example with the lookup of community.sops.")
    contexts = loaded.get("contexts")
    if not isinstance(contexts, dict):
        raise _invalid(f"The {source} is not a talosconfig: it has no contexts.", _NEW)
    return contexts, str(loaded.get("context") or "")


def _has_sops_value(value: object, depth: int = 6) -> bool:
    if isinstance(value, str):
        return value.startswith("ENC[AES256_GCM")
    if isinstance(value, dict) and depth:
        return any(_has_sops_value(one, depth - 1) for one in value.values())
    return isinstance(value, list) and depth > 0 and any(_has_sops_value(one, depth - 1) for one in value)


def _is_omni(chosen: dict[Any, Any]) -> bool:
    auth = chosen.get("auth")
    return isinstance(auth, dict) and "siderov1" in auth


def _endpoints(chosen: dict[Any, Any]) -> tuple[str, ...]:
    found = chosen.get("endpoints")
    return clean.texts(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def _invalid(message: str, hint: str) -> TalosError:
    return TalosError("CredentialsInvalid", message, hint)
