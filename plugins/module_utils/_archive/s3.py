# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups in a store that speaks S3, through the client library `minio`.

An object appears when its last part was confirmed: an upload that is given up, or whose process was killed, is none.
"""

from __future__ import annotations

import ctypes
import io
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from .._model.backups import SUFFIX, Destination, Keys, Stored
from .._model.errors import TalosError
from . import problem

try:
    import minio
    import minio.error
    import urllib3
except ImportError:
    minio = urllib3 = None  # type: ignore[assignment,unused-ignore]

AMAZON = "https://s3.amazonaws.com"
#: Size of a part in bytes, the smallest that S3 takes: ten thousand of them are more than an etcd may hold. The library holds three of them.
_PART = 5 << 20
_PIECE = 1 << 18
#: glibc's M_MMAP_THRESHOLD.
_MMAP_THRESHOLD = -3
#: Pieces that wait for the store: whoever writes faster waits.
_WAITING = 8
#: Seconds after which a thread that waits for another one looks whether it is given up, and for how long the end of one is waited for.
_TURN, _LAST = 0.1, 3.0
#: Seconds to connect, and between two bytes of an answer.
_CONNECT, _READ = 20.0, 60.0


class S3Archive:
    """Implements the port `Archive` over the objects of a bucket below a prefix."""

    def __init__(self, destination: Destination, keys: Keys) -> None:
        url = urlsplit(destination.endpoint or AMAZON)
        if url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/") or url.query or url.username:
            raise TalosError("InvalidInput", f"The endpoint {destination.host or 'of the backups'} is no URL of a store that speaks S3.",
                             "Give it as https://host or https://host:port.")
        self._bucket, self._prefix = destination.bucket, f"{destination.prefix.strip('/')}/".lstrip("/")
        self._where = str(destination)
        pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=_CONNECT, read=_READ), retries=urllib3.Retry(total=2, backoff_factor=0.2))
        self._client = minio.Minio(url.netloc, access_key=keys.access or None, secret_key=keys.secret or None, session_token=keys.session or None,
                                   secure=url.scheme == "https", region=destination.region or "us-east-1", http_client=pool)

    def stored(self) -> tuple[Stored, ...]:
        found = self._do(lambda: [Stored(entry.object_name[len(self._prefix):], entry.size or 0)
                                  for entry in self._client.list_objects(self._bucket, prefix=self._prefix) if not entry.is_dir])
        return tuple(sorted((entry for entry in found if entry.name.endswith(SUFFIX)), key=lambda entry: entry.name))

    def begin(self, name: str) -> Upload:
        _give_large_blocks_back()
        return Upload(lambda stream: self._do(lambda: self._client.put_object(
            self._bucket, self._prefix + name, stream, -1, part_size=_PART, num_parallel_uploads=1)))

    @contextmanager
    def read(self, name: str) -> Iterator[Iterator[bytes]]:
        answer = self._do(lambda: self._client.get_object(self._bucket, self._prefix + name), name)
        try:
            yield self._pieces(answer)
        finally:
            answer.close()
            answer.release_conn()

    def _pieces(self, answer: Any) -> Iterator[bytes]:
        while piece := self._do(lambda: answer.read(_PIECE)):
            yield piece

    def delete(self, name: str) -> None:
        self._do(lambda: self._client.remove_object(self._bucket, self._prefix + name))

    def _do(self, call: Callable[[], Any], name: str = "") -> Any:
        """The call, with what the library raises as errors of ours."""
        try:
            return call()
        except minio.error.S3Error as error:
            if error.code == "NoSuchKey":
                raise problem.not_found(name, self._where) from None
            raise problem.refused(self._where, str(error.code), str(error.message or "")) from None
        except minio.error.MinioException as error:
            raise problem.refused(self._where, "it does not answer as S3 does", str(error)) from None
        except urllib3.exceptions.HTTPError as error:
            raise problem.unreachable(self._where, type(error).__name__) from None
        except ValueError as error:
            raise TalosError("InvalidInput", f"The {self._where} is not one: {error}.", "Correct the bucket, the prefix or the name.") from None
        except OSError as error:
            raise problem.unreachable(self._where, str(error)) from None


def _give_large_blocks_back() -> None:
    """glibc keeps freed blocks of the size of a part and breaks them up, which doubles what an upload takes; with a limit of our own it returns
    each at once. Other libraries have no such call, or no such habit."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _PART >> 1)


class _GivenUp(Exception):
    """The writer does not finish: the library takes the parts back that are there."""


class _Pipe:
    """What the library reads from while another thread writes. Whoever writes is held up while nothing is read."""

    def __init__(self) -> None:
        self._pieces: queue.Queue[bytes] = queue.Queue(_WAITING)
        self._rest = b""
        self._written = threading.Event()
        self._given_up = threading.Event()

    def put(self, piece: bytes, alive: Callable[[], bool]) -> None:
        while alive() and not self._given_up.is_set():
            try:
                self._pieces.put(piece, timeout=_TURN)
                return
            except queue.Full:
                continue

    def end(self) -> None:
        """Everything was put."""
        self._written.set()

    def give_up(self) -> None:
        self._given_up.set()

    def read(self, size: int = -1) -> bytes:
        # The bytes that are given back are the buffer itself, so that a part is not there twice.
        taken = io.BytesIO()
        while size < 0 or taken.tell() < size:
            if self._given_up.is_set():
                raise _GivenUp
            try:
                piece, self._rest = self._rest or self._pieces.get(timeout=_TURN), b""
            except queue.Empty:
                if self._written.is_set() and self._pieces.empty():
                    break
                continue
            wanted = len(piece) if size < 0 else size - taken.tell()
            taken.write(memoryview(piece)[:wanted])
            self._rest = piece[wanted:]
        return taken.getvalue()


class Upload:
    """One upload, in a thread of its own."""

    def __init__(self, upload: Callable[[_Pipe], Any]) -> None:
        self._pipe = _Pipe()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(upload,), name="ichor-upload", daemon=True)
        self._thread.start()

    def _run(self, upload: Callable[[_Pipe], Any]) -> None:
        try:
            upload(self._pipe)
        except BaseException as error:  # raised where it is written
            self._failure = error

    def write(self, data: bytes) -> None:
        self._pipe.put(data, self._thread.is_alive)
        self._raise()

    def finish(self) -> None:
        self._pipe.end()
        self._thread.join()
        self._raise()

    def abandon(self) -> None:
        """The parts that are there are taken back; a store that does not answer is not waited for."""
        self._pipe.give_up()
        self._thread.join(_LAST)

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure
