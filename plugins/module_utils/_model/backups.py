# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where backups of etcd live and what they are called: the words, and the port of an archive (design sections 3 and 17)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from .moments import moment
from .records import Json, JsonMap, Record, text_at

#: Bytes at the end of a snapshot of etcd that hold the SHA-256 of all before, and the size of which the rest is a multiple.
TRAILER, PAGE = 32, 512
SUFFIX = ".snapshot"
_NAME = re.compile(r"(?P<cluster>[a-z0-9.-]+)_(?P<record>[a-z0-9.-]*)_(?P<time>\d{8}T\d{6}Z)_(?P<tag>[0-9a-f]{8})\.snapshot")


@dataclass(frozen=True)
class Destination:
    """A folder (`path`), or a bucket of a store that speaks S3. `endpoint` is a URL; '' is that of Amazon."""

    path: str = ""
    endpoint: str = ""
    bucket: str = ""
    prefix: str = ""
    region: str = ""
    credentials: str = ""

    @property
    def s3(self) -> bool:
        return bool(self.bucket)

    @property
    def host(self) -> str:
        """The host of the endpoint, or ''."""
        try:
            return urlsplit(self.endpoint if "://" in self.endpoint else f"//{self.endpoint}").hostname or ""
        except ValueError:
            return ""

    def __str__(self) -> str:
        """For messages: no credential is part of it."""
        if not self.s3:
            return f"folder {self.path}"
        folder = f"{self.bucket}/{self.prefix.strip('/')}".rstrip("/")
        return f"bucket {folder} at {self.host}" if self.endpoint else f"bucket {folder}"


@dataclass(frozen=True)
class Keys:
    """What opens a store that speaks S3. Never shown."""

    access: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    session: str = field(default="", repr=False)


@dataclass(frozen=True)
class Stored:
    """One object of an archive; `size` in bytes."""

    name: str
    size: int


class Writing(Protocol):
    """An object that is being written. Nothing of it is seen before `finish`, and nothing is left of it after `abandon` or a crash that
    could be taken for a whole one."""

    def write(self, data: bytes) -> None: ...

    def finish(self) -> None: ...

    def abandon(self) -> None: ...


class Archive(Protocol):
    """Where backups live. Every method may wait for a disk or a network, and raises TalosError `ArchiveUnreachable`, `ArchiveRefused` or
    `SnapshotNotFound`."""

    def stored(self) -> tuple[Stored, ...]:
        """Every snapshot that is there, by whomever, sorted by name."""

    def begin(self, name: str) -> Writing: ...

    def read(self, name: str) -> AbstractContextManager[Iterator[bytes]]:
        """The content in pieces."""

    def delete(self, name: str) -> None:
        """Delete it; one that is gone is no error."""


@dataclass(frozen=True)
class BackupName:
    """The parts of a name that this product gave. `tag` tells records of equal name apart."""

    cluster: str
    record: str
    time: str
    tag: str

    def __str__(self) -> str:
        return f"{self.cluster}_{self.record}_{self.time}_{self.tag}{SUFFIX}"


def backup_name(cluster: str, record: str, uid: str, now: float) -> BackupName:
    """The name of a backup that is taken now, for a record ('' for none)."""
    tag = hashlib.sha256("\n".join((cluster, record, uid)).encode()).hexdigest()[:8]
    return BackupName(cluster, record, re.sub("[-:]", "", moment(now)), tag)


def parsed_name(name: str) -> BackupName | None:
    """The parts of a name, None where this product gave it to nothing."""
    found = _NAME.fullmatch(name)
    return BackupName(**found.groupdict()) if found else None


def destination_of(spec: Json | JsonMap) -> Destination:
    """What `spec.destination` of a TalosEtcdBackup says."""
    def s3(*path: str) -> str:
        return text_at(spec, "destination", "s3", *path)

    return Destination(text_at(spec, "destination", "file", "path"), s3("endpoint"), s3("bucket"), s3("prefix"), s3("region"), s3("credentialsRef", "name"))


def backup_label(record: Record | None) -> str:
    """The name of the record that a backup belongs to, '' for none."""
    return record.name if record is not None else ""
