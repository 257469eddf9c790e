# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real kube-apiserver on a real etcd, without controllers and kubelets, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.parts.build import build

#: Seconds that a start may take on a busy machine.
READY_WITHIN = 120.0
ADMIN_TOKEN = "admin-token"


class NotReady(RuntimeError):
    """A process ended or never became ready; the text holds the end of its log."""


@dataclass
class ApiServer:
    """A running API server. `kubeconfig` is the path of an administrator's."""

    folder: Path
    port: int
    etcd: subprocess.Popen[bytes]
    process: subprocess.Popen[bytes] | None = None
    arguments: tuple[str, ...] = field(default_factory=tuple)

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def audit(self) -> Path:
        """The audit log, one JSON object a line."""
        return self.folder / "audit.log"

    def start(self) -> None:
        """Start the API server over the etcd that runs, and wait until it is ready."""
        with open(self.folder / "apiserver.log", "ab") as log:
            self.process = subprocess.Popen([str(build("kube-apiserver-1.36")), *self.arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + READY_WITHIN
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() > until:
                raise NotReady((self.folder / "apiserver.log").read_text(errors="replace")[-3000:])
            time.sleep(0.05)

    def stop(self) -> None:
        """Kill the API server; what it stored stays."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def kubeconfig_for(self, token: str, namespace: str = "default") -> str:
        """A kubeconfig as text, with a bearer token."""
        authority = str(self.folder / "certs/apiserver.crt")
        return yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": authority}}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
        })

    def read(self, path: str, body: object = None, method: str = "") -> str:
        """What the administrator gets from a path, or for what is posted there. Raises OSError where there is no answer or it is an error,
        FileNotFoundError where nothing is there."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=context)
        try:
            headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}
            connection.request(method or ("GET" if body is None else "POST"), path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status not in (200, 201):
            raise (FileNotFoundError if answer.status == 404 else OSError)(f"{path}: {answer.status} {text[:300]}")
        return text

    def token_of(self, account: str, namespace: str) -> str:
        """A token of a ServiceAccount, which is made where it is not there, as the API server issues it to a pod."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        with contextlib.suppress(OSError):
            self.read(accounts, {"metadata": {"name": account}})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        return str(json.loads(self.read(f"{accounts}/{account}/token", request))["status"]["token"])

    def _ready(self) -> bool:
        try:
            return self.read("/readyz") == "ok"
        except OSError:
            return False


@dataclass(frozen=True)
class Serving:
    """PEM texts: what a cluster's API server shows, and the CA of the clients that it knows."""

    certificate: str
    key: str
    authority: str


#: Beginning of the names of the folders in which API servers and their etcd are.
FOLDER = "kas-"


@contextmanager
def running(serving: Serving | None = None) -> Iterator[ApiServer]:
    """An API server of its own; it and its etcd are gone afterwards. Without `serving` it signs its own certificate."""
    folder = Path(tempfile.mkdtemp(prefix=FOLDER, dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    etcd = None
    server = None
    try:
        store, peer = f"http://127.0.0.1:{_free_port()}", f"http://127.0.0.1:{_free_port()}"
        with open(folder / "etcd.log", "wb") as log:
            etcd = subprocess.Popen(
                [str(build("etcd-3.6")), "--data-dir", str(folder / "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--unsafe-no-fsync",
                 "--log-level", "error"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        port = _free_port()
        server = ApiServer(folder, port, etcd, arguments=(*_arguments(folder, store, port), *_served(folder, serving)))
        server.start()
        server.kubeconfig.write_text(server.kubeconfig_for(ADMIN_TOKEN))
        yield server
    finally:
        if server is not None:
            server.stop()
        if etcd is not None:
            etcd.kill()
            etcd.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _arguments(folder: Path, store: str, port: int) -> tuple[str, ...]:
    key = rsa.generate_private_key(65537, 2048)
    (folder / "account.key").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()))
    (folder / "tokens.csv").write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n')
    (folder / "audit.yaml").write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n")
    account = str(folder / "account.key")
    return (
        f"--etcd-servers={store}", f"--cert-dir={folder / 'certs'}", "--bind-address=127.0.0.1", f"--secure-port={port}",
        "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={account}", f"--service-account-signing-key-file={account}",
        f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
        "--disable-admission-plugins=ServiceAccount", f"--audit-log-path={folder / 'audit.log'}", f"--audit-policy-file={folder / 'audit.yaml'}",
        "--max-requests-inflight=400", "--v=0",
    )


def _served(folder: Path, serving: Serving | None) -> tuple[str, ...]:
    if serving is None:
        return ()
    paths = {name: folder / f"serving-{name}.pem" for name in ("certificate", "key", "authority")}
    for name, path in paths.items():
        path.write_text(str(getattr(serving, name)))
    return (f"--tls-cert-file={paths['certificate']}", f"--tls-private-key-file={paths['key']}", f"--client-ca-file={paths['authority']}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
