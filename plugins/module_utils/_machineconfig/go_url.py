# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""URLs as Go reads, writes and merges them: Talos keeps them in parts, and a patch replaces part by part."""
from __future__ import annotations

import re
from dataclasses import dataclass, replace

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)\Z", re.DOTALL)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_PATH = _UNRESERVED | frozenset("$&+,/:;=@")
_VALID_PATH = _PATH | frozenset("!'()*[]%")
_FRAGMENT = _UNRESERVED | frozenset("$&+,/:;=?@!()*")
_VALID_FRAGMENT = _FRAGMENT | frozenset("'[]%")
_USER = _UNRESERVED | frozenset("$&+,;=")
_HOST = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


@dataclass(frozen=True)
class URL:
    """The parts of a URL, unescaped but for the raw ones. user is None where there is none, else (name, password or None)."""

    scheme: str = ""
    opaque: str = ""
    user: tuple[str, str | None] | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    omit_host: bool = False
    force_query: bool = False
    query: str = ""
    fragment: str = ""
    raw_fragment: str = ""

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        host = self.host
        if host.startswith("["):
            return host[1:].split("]", 1)[0]
        return host.rsplit(":", 1)[0] if ":" in host else host

    @property
    def port(self) -> str:
        found = re.search(r":([0-9]*)\Z", self.host.rsplit("]", maxsplit=1)[-1])
        return found.group(1) if found else ""

    def text(self) -> str:
        """The URL in Go's spelling."""
        result = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            result += self.opaque
        else:
            path = self._escaped_path()
            if self.scheme or self.host or self.user is not None:
                if not (self.omit_host and not self.host and self.user is None):
                    if self.host or self.path or self.user is not None:
                        result += "//"
                    if self.user is not None:
                        name, password = self.user
                        result += _escape(name, _USER) + (f":{_escape(password, _USER)}" if password is not None else "") + "@"
                    if self.host:
                        result += _escape_host(self.host)
            if path and path[0] != "/" and self.host:
                result += "/"
            if not result and ":" in path.split("/", 1)[0]:
                result += "./"
            result += path
        if self.force_query or self.query:
            result += f"?{self.query}"
        if self.fragment:
            raw = self.raw_fragment
            escaped = raw if raw and _only(raw, _VALID_FRAGMENT) and _unescape(raw) == self.fragment else _escape(self.fragment, _FRAGMENT)
            result += f"#{escaped}"
        return result

    def _escaped_path(self) -> str:
        if self.raw_path and _only(self.raw_path, _VALID_PATH):
            try:
                if _unescape(self.raw_path) == self.path:
                    return self.raw_path
            except ValueError:
                return _escape(self.path, _PATH)
        return "*" if self.path == "*" else _escape(self.path, _PATH)


def parse(text: str) -> URL:
    """The parts of a URL reference. Raises ValueError with one sentence that quotes nothing."""
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise ValueError("net/url: invalid control character in URL")
    rest, hash_mark, fragment = text.partition("#")
    url = _parse_rest(rest)
    if hash_mark:
        decoded = _unescape(fragment)
        url = replace(url, fragment=decoded, raw_fragment="" if _escape(decoded, _FRAGMENT) == fragment else fragment)
    return url


def _parse_rest(text: str) -> URL:
    if text == "*":
        return URL(path="*")
    scheme = ""
    rest = text
    found = _SCHEME.match(text)
    if found is not None:
        scheme, rest = found.group(1).lower(), found.group(2)
    elif text.startswith(":"):
        raise ValueError("missing protocol scheme")
    force_query, query = False, ""
    if rest.endswith("?") and rest.count("?") == 1:
        force_query, rest = True, rest[:-1]
    else:
        rest, dummy, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(scheme=scheme, opaque=rest, force_query=force_query, query=query)
        if ":" in rest.split("/", 1)[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    user: tuple[str, str | None] | None = None
    host = ""
    omit_host = False
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, tail = rest[2:].partition("/")
        rest = slash + tail
        user, host = _parse_authority(authority)
    elif scheme and rest.startswith("/"):
        omit_host = True
    path = _unescape(rest)
    return URL(
        scheme=scheme, user=user, host=host, path=path, raw_path="" if _escape(path, _PATH) == rest else rest,
        omit_host=omit_host, force_query=force_query, query=query,
    )


def _parse_authority(authority: str) -> tuple[tuple[str, str | None] | None, str]:
    info, at, host = authority.rpartition("@")
    host = _parse_host(host)
    if not at:
        return None, host
    if not _only(info, _USER | frozenset("!'()*:%@")):
        raise ValueError("net/url: invalid userinfo")
    name, colon, password = info.partition(":")
    return (_unescape(name), _unescape(password) if colon else None), host


def _parse_host(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise ValueError("missing ']' in host")
        if not re.fullmatch(r"(:[0-9]*)?", host[end + 1:]):
            raise ValueError("invalid port after host")
        zone = host[:end].find("%25")
        if zone >= 0:
            return _unescape_host(host[:zone]) + _unescape(host[zone:end]) + _unescape_host(host[end:])
    else:
        colon = host.rfind(":")
        if colon >= 0 and not re.fullmatch(r":[0-9]*", host[colon:]):
            raise ValueError("invalid port after host")
        if host.count(":") > 1:
            raise ValueError("invalid port after host")
    return _unescape_host(host)


def merge(left: URL, right: URL) -> URL:
    """Each part of the right one that is not empty replaces the left one's. Raises ValueError where Talos cannot."""
    if left.user is not None and right.user is not None:
        raise ValueError("a URL with a user name cannot be patched over another one with a user name")
    return URL(
        scheme=right.scheme or left.scheme, opaque=right.opaque or left.opaque, user=right.user or left.user, host=right.host or left.host,
        path=right.path or left.path, raw_path=right.raw_path or left.raw_path, omit_host=right.omit_host, force_query=right.force_query,
        query=right.query or left.query, fragment=right.fragment or left.fragment, raw_fragment=right.raw_fragment or left.raw_fragment,
    )


def _only(text: str, allowed: frozenset[str]) -> bool:
    return all(character in allowed for character in text)


def _escape(text: str, keep: frozenset[str]) -> str:
    if _only(text, keep):
        return text
    return "".join(
        character if character in keep else "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape")) for character in text
    )


def _escape_host(host: str) -> str:
    if host.startswith("[") and "%" in host:
        inside, bracket, rest = host.partition("]")
        address, percent, zone = inside.partition("%")
        return f"{address}%25{_escape(zone, _HOST)}{bracket}{rest}"
    return _escape(host, _HOST)


def _unescape(text: str) -> str:
    if "%" not in text:
        return text
    if _BAD_ESCAPE.search(text):
        raise ValueError("invalid URL escape")
    raw = re.sub(rb"%([0-9a-fA-F]{2})", lambda found: bytes([int(found.group(1), 16)]), text.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def _unescape_host(host: str) -> str:
    for found in re.finditer(r"%(..)?", host):
        escaped = found.group(1) or ""
        if not re.fullmatch(r"[0-9a-fA-F]{2}", escaped) or int(escaped, 16) < 0x80 and escaped != "25":
            raise ValueError("invalid URL escape")
    if any(ord(character) < 0x80 and character not in _HOST | frozenset("%") for character in host):
        raise ValueError("invalid character in host name")
    return _unescape(host)
