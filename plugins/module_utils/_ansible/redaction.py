# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Masks by value whatever leaves a module (law 7; design sections 5 and 20).

Talos's own refusals quote the configuration, so masking by path is not enough: every secret leaf that a module was given
is remembered in each form in which it may come back, and each outgoing text is searched for them. Which leaves are secret
is told by their keys, over any document, since the same code serves a talosconfig, a bundle and a configuration.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from .._model.records import Json
from .fragments import Fragments

MASK = "********"
#: A shorter value would blot out unrelated text, and is no secret worth the name.
SHORTEST = 6

_SECRET_KEY = re.compile(
    r"(?:^|[a-z_.-])(?:key|keys|token|secret|secrets|password|passphrase|auth|privatekey|presharedkey|identitytoken)$", re.IGNORECASE)
#: Keys that merely name something, although they look like the ones above.
_HARMLESS_KEY = re.compile(r"^(?:publickey|sshkey|keysize|keyid|apikeyname|imagekey)$", re.IGNORECASE)
#: Below these keys every leaf is a secret: headers, credential providers, extension and Secret payloads.
_SECRET_TREE = re.compile(
    r"^(?:auth|stringdata|credentialproviderconfig|extramanifestheaders|headers|environment|secretboxencryptionsecret|configfiles)$", re.IGNORECASE)
_PRIVATE = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_LINE = re.compile(r"^\s*(?:-\s+)?[\"']?([\w.-]+)[\"']?\s*:\s*(?:[|>][+-]?\s*$|[\"']?(.+?)[\"']?\s*(?:#.*)?$)")


class Redactor:
    """Remembers secrets and masks them in text and data."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._fragments = Fragments()

    @property
    def secrets(self) -> frozenset[str]:
        """The secret values themselves, for AnsibleModule's own `no_log_values`."""
        return frozenset(self._secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Remember secret values, in every form that they may take in a text."""
        for secret in secrets:
            if len(secret.strip()) >= SHORTEST and secret not in self._secrets:
                self._secrets.add(secret)
                self._fragments.add((secret, _decoded(secret), base64.b64encode(secret.encode("utf-8", "surrogatepass")).decode("ascii")))
            self._forms.update(forms(secret))
        self._pattern = None

    def add_document(self, text: str) -> None:
        """Remember the secret leaves of a YAML text: a configuration, a bundle, a talosconfig, a kubeconfig."""
        self.add(secret_leaves(text))

    def text(self, text: str) -> str:
        """The text with each secret masked, the longest form first."""
        if not self._forms:
            return text
        if self._pattern is None:
            self._pattern = re.compile("|".join(re.escape(form) for form in sorted(self._forms, key=len, reverse=True)))
        return self._pattern.sub(MASK, text)

    def foreign(self, text: str) -> str:
        """The same for a text that may quote a node or a library: parts of secrets are masked as well."""
        return self._fragments.mask(self.text(text), MASK)

    def data(self, value: object, *, foreign: bool = False) -> Json:
        """Plain JSON data with each secret masked, in keys too; what is no JSON becomes its text. `foreign`: as in `foreign`."""
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.data(item, foreign=foreign) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.data(item, foreign=foreign) for item in value]
        return self.foreign(str(value)) if foreign else self.text(str(value))


def forms(secret: str) -> set[str]:
    """The secret itself, what it is base64 of, its base64, its lines, and JSON-, YAML- and shell-escaped forms of each."""
    plain = {secret, secret.strip()}
    decoded = _decoded(secret)
    if decoded:
        plain.add(decoded)
    for text in tuple(plain):
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("-----")]
        if len(lines) > 1:
            plain.update(lines)
            plain.add("".join(lines))
    found: set[str] = set()
    for text in plain:
        if len(text) >= SHORTEST:
            encoded = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")
            once = _escaped(text)
            found.update((encoded, encoded.rstrip("=")), once, *(_escaped(form) for form in once))
    return {form for form in found if len(form) >= SHORTEST}


def _escaped(text: str) -> set[str]:
    """The text as JSON (both ways), YAML (both quotes), Python and a shell write it inside their quotes."""
    yaml_bytes = re.sub(r"\\u00([0-9a-f]{2})", lambda found: f"\\x{found.group(1).upper()}", json.dumps(text)[1:-1])
    return {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1], yaml_bytes,
            text.replace("'", "''"), shlex.quote(text).strip("'")}


def _decoded(text: str) -> str:
    """What the text is base64 of, when that is text again; else ''."""
    packed = "".join(text.split())
    if len(packed) < 12 or not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", packed):
        return ""
    try:
        return base64.b64decode(packed, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def secret_leaves(text: str) -> set[str]:
    """The secret values of a YAML text; where it does not parse, what its lines show."""
    try:
        return {leaf for document in _documents(text) for leaf in _leaves(document, False, set())}
    except (ImportError, ValueError, RecursionError):
        return set(_leaves_of_lines(text))


def _documents(text: str) -> Iterator[object]:
    """The documents of a YAML text, every scalar as the text that it is, so that a numeric token is found too. Raises ValueError."""
    import yaml  # only a task that was given a secret pays for it

    try:
        yield from yaml.load_all(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except yaml.YAMLError as error:
        raise ValueError("no YAML") from error


def _leaves(node: object, secret: bool, seen: set[tuple[int, bool]]) -> Iterator[str]:
    """`seen`: what was looked at already, since aliases may stand for one node a billion times, or inside itself."""
    if isinstance(node, (Mapping, list, tuple)):
        if (id(node), secret) in seen:
            return
        seen.add((id(node), secret))
    if isinstance(node, Mapping):
        secret_kind = node.get("kind") in ("Secret", "ExtensionServiceConfig")
        for key, value in node.items():
            name = str(key)
            here = secret or bool(_SECRET_TREE.match(name)) or (secret_kind and name == "data")
            yield from _leaves(value, here or (not isinstance(value, Mapping) and _is_secret_key(name)), seen)
            if name == "contents" and isinstance(value, str) and re.search(r"^kind:\s*Secret\s*$", value, re.MULTILINE):
                yield from secret_leaves(value)
    elif isinstance(node, (list, tuple)):
        for item in node:
            yield from _leaves(item, secret, seen)
    elif isinstance(node, str):
        yield from _of_scalar(node, secret)


def _is_secret_key(name: str) -> bool:
    return bool(_SECRET_KEY.search(name)) and not _HARMLESS_KEY.match(name)


def _of_scalar(value: str, secret: bool) -> Iterator[str]:
    if secret or _PRIVATE.search(value) or _PRIVATE.search(_decoded(value)):
        yield value
    yield from _URL_PASSWORD.findall(value)


def _leaves_of_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        found = _LINE.match(line)
        if found and found.group(2):
            yield from _of_scalar(found.group(2), _is_secret_key(found.group(1)))
    yield from re.findall(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?-----END [A-Z0-9 ]*PRIVATE KEY-----", text, re.DOTALL)
