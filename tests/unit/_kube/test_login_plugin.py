# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials of a kubeconfig that somebody renews: tokens in files, and programs that log in (design section 4)."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import Api, ApiRefused
from ansible_collections.ichor.talos.plugins.module_utils._kube.login_plugin import LoginPlugin
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment

from tests.unit._operations.managed_world import serving

VERSION = "client.authentication.k8s.io/v1"
NOW = 1_790_000_000.0


class Server(ThreadingHTTPServer):
    """Answers with what it was shown; tokens in `refused` are not taken."""

    daemon_threads = True
    refused: set[str] = set()

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        shown = self.headers.get("Authorization", "")
        taken = shown not in Server.refused
        data = json.dumps({"kind": "Status", "shown": shown}).encode()
        self.send_response(200 if taken else 401)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server()
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


def opened(server: Server, folder: Path, **user: Any) -> Api:
    config = {"current-context": "c", "users": [{"name": "u", "user": user}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
              "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}]}
    Server.refused = set()
    return open_api(Access(str(folder / "kubeconfig"), yaml.safe_dump(config)), patience=0.0)


def shown(api: Api) -> object:
    return api.request("GET", "/x")["shown"]


def test_a_token_in_a_file_is_read_for_each_request(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    api = opened(server, tmp_path, tokenFile="token", token="older")
    assert shown(api) == "Bearer one"
    path.write_text(" two \r\n")
    assert shown(api) == "Bearer two"
    path.unlink()
    with pytest.raises(TalosError, match="CredentialsInvalid"):
        shown(api)
    api.close()


@pytest.mark.parametrize("text", [b"hush\nX-Other: a", b"hush\0", "h\u00fcsh".encode(), b"\xffhush"])
def test_a_token_that_cannot_be_sent_is_quoted_nowhere(server: Server, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "token").write_bytes(text)
    with pytest.raises(TalosError) as caught:
        shown(opened(server, tmp_path, tokenFile="token"))
    assert caught.value.reason == "CredentialsInvalid" and "hush" not in caught.value.text and "h\u00fcsh" not in caught.value.text


def test_a_token_in_the_kubeconfig_may_end_with_a_line(server: Server, tmp_path: Path) -> None:
    api = opened(server, tmp_path, token="plain\n")
    assert shown(api) == "Bearer plain"
    api.close()


def program(folder: Path, text: str) -> dict[str, Any]:
    """A login program in Python."""
    path = folder / "login"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{text}\n", encoding="utf-8")
    path.chmod(0o700)
    return {"apiVersion": VERSION, "command": "./login", "interactiveMode": "IfAvailable"}


def prints(**status: str) -> str:
    return f"print(json.dumps({{'apiVersion': '{VERSION}', 'kind': 'ExecCredential', 'status': {status!r}}}))"


COUNTING = ("path = os.path.join(os.path.dirname(__file__), 'count')\nnumber = int(open(path).read() or 0) + 1 if os.path.exists(path) else 1\n"
            "open(path, 'w').write(str(number))\n")


def test_a_program_is_asked_once_and_again_before_its_end_and_when_it_is_refused(server: Server, tmp_path: Path) -> None:
    ends = moment(NOW + 600)
    status = f"{{'token': f'token-{{number}}', 'expirationTimestamp': '{ends}'}}"
    config = program(tmp_path, f"{COUNTING}print(json.dumps({{'apiVersion': '{VERSION}', 'kind': 'ExecCredential', 'status': {status}}}))")
    now = [NOW]
    plugin = LoginPlugin(config, str(tmp_path), {}, now=lambda: now[0])
    assert [plugin.issued().token, plugin.issued().token] == ["token-1", "token-1"]
    now[0] = NOW + 590
    assert plugin.issued().token == "token-2"
    api = opened(server, tmp_path, exec=config)
    assert shown(api) == "Bearer token-3"  # by the clock of today it has run out, or not for long
    first = shown(api)
    Server.refused = {str(first)}
    again = shown(api)
    assert again != first
    Server.refused = {f"Bearer token-{number}" for number in range(20)}
    with pytest.raises(ApiRefused):
        shown(api)
    api.close()


def test_it_is_told_of_the_cluster_and_of_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "o")
    told = "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\ntoken = ' '.join([os.environ['OUTER'], os.environ['INNER'], *sys.argv[1:], " \
           "json.dumps(info['spec'], sort_keys=True)])\n"
    config = program(tmp_path, told + f"print(json.dumps({{'apiVersion': '{VERSION}', 'kind': 'ExecCredential', 'status': {{'token': token}}}}))")
    config.update(env=[{"name": "INNER", "value": "i"}], args=["get", "token"], provideClusterInfo=True)
    cluster: dict[str, Any] = {"server": "https://c", "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}]}
    assert LoginPlugin(config, str(tmp_path), cluster).issued().token == (
        'o i get token {"cluster": {"config": {"audience": "a"}, "server": "https://c"}, "interactive": false}')


@pytest.mark.parametrize(("text", "says"), [
    ("sys.exit('no longer logged in')", "ended with status 1: no longer logged in"), ("print('hush')", "prints no ExecCredential"),
    ("print('[' * 100000)", "prints no ExecCredential"), ("sys.stdout.buffer.write(b'\\xff' * (3 << 20))", "prints more than 1 MiB"),
    ("print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1beta1', 'kind': 'ExecCredential', 'status': {'token': 'hush'}}))", "prints no"),
    (prints(clientCertificateData="hush"), "neither a token nor"), (prints(), "neither a token nor"), ("", "prints no"),
    ("sys.stderr.write('x' * (3 << 20)); sys.exit(3)", "prints more than 1 MiB"), ("sys.exit(3)", "ended with status 3: it says nothing"),
])
def test_a_program_that_fails_is_told_and_what_it_printed_is_not(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(TalosError) as caught:
        LoginPlugin(program(tmp_path, text), str(tmp_path), {}).issued()
    assert caught.value.reason == "CredentialsInvalid" and says in caught.value.message and "hush" not in caught.value.text and caught.value.hint
    assert "The login program login of the kubeconfig" in caught.value.message and len(caught.value.message) < 400


def test_a_program_that_hangs_costs_its_deadline_and_its_children_are_gone(tmp_path: Path) -> None:
    text = "import subprocess, time\nsubprocess.Popen(['sleep', '1000'])\ntime.sleep(1000)"
    with pytest.raises(TalosError, match="did not end within 0.5 s"):
        LoginPlugin(program(tmp_path, text), str(tmp_path), {}, timeout=0.5).issued()


@pytest.mark.parametrize(("config", "says"), [
    ({"command": "no-such-login", "installHint": "Install\nit."}, "is not there"), ({"command": "./none"}, "cannot be started"), ({}, "is not there"),
    ({"command": "sh", "interactiveMode": "Always"}, "asks a person"), ({"command": "sh", "args": ["a\0b"]}, "cannot be started"),
])
def test_a_program_that_cannot_be_asked_is_told(tmp_path: Path, config: dict[str, Any], says: str) -> None:
    with pytest.raises(TalosError) as caught:
        LoginPlugin({"apiVersion": VERSION, **config}, str(tmp_path), {}).issued()
    assert says in caught.value.message and caught.value.hint == ("Install it." if "installHint" in config else caught.value.hint)


def test_a_certificate_of_a_program_is_shown_and_stands_in_no_file(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = serving()
    config = program(tmp_path, prints(clientCertificateData=made.certificate, clientKeyData=made.key))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    api = opened(server, tmp_path, exec=config)
    assert shown(api) == "" and list((tmp_path / "temporary").iterdir()) == []
    api.close()
