# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One etcd process: how it is started, how its end is noticed, and that it never outlives the lab."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

_PR_SET_PDEATHSIG = 1
#: Wall seconds that etcd has after SIGTERM (it hands its leadership over) before it is killed.
STOP_SECONDS = 5.0
_LIBC = ctypes.CDLL(None, use_errno=True)


class EtcdProcess:
    """A running member. `data` is its data directory, `log` takes what it prints."""

    def __init__(self, program: str, name: str, address: str, data: Path, pki: Path, log: Path, cluster: Mapping[str, str] | None, fresh: bool) -> None:
        """Starts it. `cluster` maps names to peer URLs for a member without data; `fresh` makes that a new cluster."""
        host = f"[{address}]" if ":" in address else address
        peer, client = f"https://{host}:2380", f"https://{host}:2379"
        files = {"cert-file": "server.crt", "key-file": "server.key", "trusted-ca-file": "ca.crt"}
        peer_files = {"peer-cert-file": "peer.crt", "peer-key-file": "peer.key", "peer-trusted-ca-file": "ca.crt"}
        flags = {
            "name": name, "data-dir": str(data), "listen-peer-urls": peer, "listen-client-urls": client, "advertise-client-urls": client,
            "initial-advertise-peer-urls": peer, **{flag: str(pki / file) for flag, file in {**files, **peer_files}.items()},
            "initial-cluster-state": "new" if fresh else "existing", "log-level": "warn",
        }
        if cluster is not None:
            flags["initial-cluster"] = ",".join(f"{member}={url}" for member, url in cluster.items())
        command = [program, *(f"--{flag}={value}" for flag, value in flags.items()), "--client-cert-auth", "--peer-client-cert-auth", "--unsafe-no-fsync"]
        lab = os.getpid()
        with open(log, "ab") as out:
            # One processor's worth of scheduler keeps a member small; nothing of the environment may configure it.
            environment = {key: value for key, value in os.environ.items() if not key.startswith("ETCD_")} | {"GOMAXPROCS": "1"}
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
                preexec_fn=lambda: _die_with(lab), start_new_session=True,
            )
        self._ended = asyncio.Event()
        self._watcher = os.pidfd_open(self._process.pid)
        asyncio.get_running_loop().add_reader(self._watcher, self._reap)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

    def _reap(self) -> None:
        if self._watcher >= 0 and self._process.poll() is not None:
            asyncio.get_running_loop().remove_reader(self._watcher)
            os.close(self._watcher)
            self._watcher = -1
            self._ended.set()

    @property
    def code(self) -> int:
        """The exit code, negative for a signal; zero while it runs."""
        return self._process.returncode or 0

    async def ended(self) -> None:
        """Returns once the process is gone."""
        await self._ended.wait()

    async def stop(self) -> None:
        """As an orderly stop of the service does it."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._ended.wait()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """As a power cut does it."""
        self._signal(signal.SIGKILL)
        await self._ended.wait()

    def freeze(self, frozen: bool) -> None:
        """Neither answers nor ends, until it is thawed."""
        self._signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            self._process.send_signal(number)


def _die_with(lab: int) -> None:
    """In the child: the kernel ends it with the lab, however the lab ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != lab:
        os._exit(1)
