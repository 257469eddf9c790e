# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A folder and a real S3 server as archives: what is there is whole, or it is not there."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._archive.folder import PART, FolderArchive
from ansible_collections.ichor.talos.plugins.module_utils._archive.opening import open_archive
from ansible_collections.ichor.talos.plugins.module_utils._model.backups import Archive, Destination, Keys, Stored
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from tests.unit._operations.saved_cluster import KEYS, s3_server

PORT = 7481
NAME = "prod_nightly_20261130T030000Z_01234567.snapshot"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Destination]:
    with s3_server(tmp_path_factory.mktemp("s3"), PORT) as place:
        yield place


@pytest.fixture(params=["folder", "bucket"])
def archive(request: pytest.FixtureRequest, tmp_path: Path, bucket: Destination) -> Archive:
    place = Destination(path=str(tmp_path / "backups")) if request.param == "folder" else Destination(
        endpoint=bucket.endpoint, bucket=bucket.bucket, prefix=tmp_path.name)
    return open_archive(place, KEYS)


def put(archive: Archive, name: str, *pieces: bytes) -> None:
    writing = archive.begin(name)
    for piece in pieces:
        writing.write(piece)
    writing.finish()


def content(archive: Archive, name: str) -> bytes:
    with archive.read(name) as pieces:
        return b"".join(pieces)


def test_what_is_written_is_read_and_deleted(archive: Archive) -> None:
    assert archive.stored() == ()
    large = os.urandom(1 << 20)
    put(archive, NAME, *[large] * 20)
    assert archive.stored() == (Stored(NAME, 20 << 20),) and content(archive, NAME) == large * 20
    put(archive, "small.snapshot", b"x")
    put(archive, "notes.txt", b"x")
    assert [entry.name for entry in archive.stored()] == [NAME, "small.snapshot"]
    archive.delete(NAME)
    archive.delete(NAME)
    assert [entry.name for entry in archive.stored()] == ["small.snapshot"]


def test_what_passes_takes_little_memory(archive: Archive) -> None:
    piece = os.urandom(1 << 20)
    tracemalloc.start()
    try:
        put(archive, NAME, *[piece] * 100)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000 and archive.stored() == (Stored(NAME, 100 << 20),)


def test_one_that_goes_while_the_folder_is_listed_takes_no_other_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = FolderArchive(str(tmp_path))
    put(archive, NAME, b"x")
    put(archive, "small.snapshot", b"x")
    listed = os.scandir

    @contextlib.contextmanager
    def scan(folder: Path) -> Iterator[list[os.DirEntry[str]]]:
        with listed(folder) as entries:
            found = list(entries)
        archive.delete("small.snapshot")
        yield found

    monkeypatch.setattr(os, "scandir", scan)
    assert archive.stored() == (Stored(NAME, 1),)


@pytest.mark.parametrize("pieces", [0, 1, 3, 20])
def test_what_is_given_up_leaves_nothing(archive: Archive, pieces: int) -> None:
    writing = archive.begin(NAME)
    for unused in range(pieces):
        writing.write(bytes(1 << 20))
    assert archive.stored() == ()
    writing.abandon()
    assert archive.stored() == ()
    with pytest.raises(TalosError) as caught:
        content(archive, NAME)
    assert caught.value.reason == "SnapshotNotFound"


@pytest.mark.parametrize("refusal", [None, errno.EPERM, errno.EOPNOTSUPP], ids=["links", "vfat", "SMB"])
def test_files_are_for_their_owner_alone_and_never_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: int | None) -> None:
    def no_links(*dummy: object) -> None:
        raise OSError(refusal, "no hard links here")

    if refusal is not None:
        monkeypatch.setattr(os, "link", no_links)
    archive = FolderArchive(str(tmp_path))
    put(archive, NAME, b"first")
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    writing = archive.begin(NAME)
    writing.write(b"second")
    with pytest.raises(TalosError):
        writing.finish()
    writing.abandon()
    assert content(archive, NAME) == b"first" and os.listdir(tmp_path) == [NAME]


def test_what_a_killed_run_left_is_swept_and_what_another_run_writes_is_not(tmp_path: Path) -> None:
    archive = FolderArchive(str(tmp_path))
    (tmp_path / f".dead.snapshot{PART}").write_bytes(b"half")
    alive = archive.begin("alive.snapshot")
    other = archive.begin("other.snapshot")
    assert sorted(os.listdir(tmp_path)) == [f".alive.snapshot{PART}", f".other.snapshot{PART}"] and archive.stored() == ()
    alive.write(b"whole")
    alive.finish()
    other.abandon()
    assert os.listdir(tmp_path) == ["alive.snapshot"]


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(TalosError) as caught:
        FolderArchive(str(tmp_path / "file")).begin(NAME)
    assert caught.value.reason == "ArchiveUnreachable"


@pytest.mark.parametrize(("keys", "name", "reason"), [
    (Keys("user", "wrong"), "etcd", "ArchiveRefused"), (Keys("nobody", "wrong"), "etcd", "ArchiveRefused"), (KEYS, "nothing", "ArchiveRefused"),
])
def test_a_server_that_refuses_is_told_without_a_secret(bucket: Destination, keys: Keys, name: str, reason: str) -> None:
    archive = open_archive(Destination(endpoint=bucket.endpoint, bucket=name), keys)
    with pytest.raises(TalosError) as caught:
        archive.stored()
    assert caught.value.reason == reason and "wrong" not in f"{caught.value} {caught.value.detail}" and KEYS.secret not in f"{caught.value}"
    writing = archive.begin(NAME)
    writing.write(b"x")
    with pytest.raises(TalosError):
        writing.finish()


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TalosError) as caught:
        open_archive(Destination(endpoint="http://127.0.0.1:1", bucket="etcd"), KEYS).stored()
    assert caught.value.reason == "ArchiveUnreachable"


@pytest.mark.parametrize("endpoint", ["s3.example.com", "ftp://s3.example.com", "https://s3.example.com/path", "https://user:pass@s3.example.com"])
def test_an_endpoint_that_is_none(endpoint: str) -> None:
    with pytest.raises(TalosError) as caught:
        open_archive(Destination(endpoint=endpoint, bucket="etcd"), KEYS)
    assert caught.value.reason == "InvalidInput" and "pass@" not in caught.value.text


def test_a_bucket_that_no_store_can_have(bucket: Destination) -> None:
    with pytest.raises(TalosError) as caught:
        open_archive(Destination(endpoint=bucket.endpoint, bucket="b"), KEYS).stored()
    assert caught.value.reason == "InvalidInput" and "b" in caught.value.message


def test_a_bucket_without_keys_or_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TalosError) as caught:
        open_archive(Destination(bucket="etcd"), Keys())
    assert caught.value.reason == "SecretsUnavailable"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TalosError) as caught:
        open_archive(Destination(bucket="etcd"), KEYS)
    assert caught.value.reason == "MissingLibrary" and "pip install minio" in caught.value.hint


def test_keys_are_not_shown() -> None:
    assert KEYS.secret not in repr(KEYS) and KEYS.access not in repr(KEYS)
