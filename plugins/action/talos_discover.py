# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one action plugin of all modules (design section 18): the channel, and what a module cannot know.

It holds no rules and imports no library of Talos's. It is named after one module because ansible-test wants that; the other
modules are routed to it in meta/runtime.yml.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping

from ansible import constants as C
from ansible.parsing.vault import is_encrypted
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import FILE_OPTIONS, PATH_OPTIONS, SECRET_OPTIONS
from ansible_collections.ichor.talos.plugins.module_utils._ansible.channel import ENVIRONMENT, PLACEHOLDER
from ansible_collections.ichor.talos.plugins.module_utils._ansible.plan_text import duration
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.plain_files import read_given

display = Display()

#: A line at least this often, against the idle timeouts of whatever watches the output.
QUIET_SECONDS = 50.0
#: How often it is looked whether ansible-playbook is still there.
LOOK_SECONDS = 0.5
INDENT = "    "
#: The name of a Unix socket is at most 107 bytes long.
LONGEST_FOLDER = 80


class ActionModule(ActionBase):
    """Runs the module of the task with a channel beside it."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        self._supports_check_mode = True
        self._supports_async = False
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        folder = _project_folder(variables)
        arguments, secrets = self._without_secrets(folder)
        hello = {"secrets": secrets, "store_path": os.path.join(folder, "ichor"), "overlay": self._overlay(),
                 "run": os.path.basename(C.DEFAULT_LOCAL_TMP), **self._actor(variables)}
        with Channel(hello, self._clear_text, display.display) as channel:
            environment = self._task.environment
            self._task.environment = [*(environment or []), {ENVIRONMENT: channel.path}]
            try:
                result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
            finally:
                self._task.environment = environment
        return result

    def _without_secrets(self, folder):
        """The task's arguments with a placeholder for each secret and whole paths, and the secrets."""
        arguments = dict(self._task.args)
        secrets = {}
        for name in SECRET_OPTIONS & arguments.keys():
            value = arguments[name]
            if value is not None:
                secrets[name] = value if isinstance(value, str) else json.dumps(value, default=str)
                arguments[name] = PLACEHOLDER
        for name in PATH_OPTIONS & arguments.keys():
            if isinstance(arguments[name], str) and arguments[name]:
                arguments[name] = self._whole_path(arguments[name], folder, name in FILE_OPTIONS)
        return arguments, secrets

    def _whole_path(self, value, folder, is_file):
        """A relative path counts from the project's folder; a file is also looked for where Ansible keeps files (`files/`)."""
        path = os.path.join(folder, os.path.expanduser(value))
        if is_file and not os.path.exists(path):
            try:
                return self._find_needle("files", value)
            except Exception:  # the module says that it is not there, with its reason
                pass
        return path

    def _overlay(self):
        """The private folder of this ansible-playbook for the would-be records of a check run; core removes it at the end."""
        if not self._task.check_mode:
            return ""
        folder = os.path.join(C.DEFAULT_LOCAL_TMP, "ichor-check-run")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return folder

    def _actor(self, variables):
        """Who acts (design section 7): the AWX user, else who is logged in; and whether a schedule started the job."""
        login = _login()
        known = {name.split("_", 1)[1]: value for name, value in variables.items() if name.startswith(("tower_", "awx_")) and value}
        schedule = any(name.startswith("schedule_") for name in known) or any(
            str(value).lower().startswith("schedule") for name, value in known.items() if name.endswith("launch_type"))
        in_awx = "job_id" in known or "job_launch_type" in known
        named = known.get("user_name") or ""
        return {"by": str(self._templar.template(named)) if named else "" if in_awx else login, "via": login, "schedule": schedule}

    def _clear_text(self, path):
        """The clear text of a person's file; the vault secrets are this ansible-playbook's."""
        data = read_given(path, "The file")
        return self._loader._vault.decrypt(data) if is_encrypted(data) else data


def _project_folder(variables):
    """Where the playbook is; a collection's own playbook stands in nobody's project, so there the working folder counts."""
    folder = variables.get("playbook_dir") or os.getcwd()
    return os.getcwd() if f"{os.sep}ansible_collections{os.sep}" in folder + os.sep else folder


def _login():
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


class Channel:
    """The plugin's end of the channel: a Unix socket in a 0700 folder, for one module (module_utils/_ansible/channel.py).

    When ansible-playbook is gone the connection is closed, which stops the module; this also happens by itself when this
    process is killed.
    """

    def __init__(self, hello: Mapping[str, object], clear_text: Callable[[str], bytes], show: Callable[[str], None]) -> None:
        self._hello = hello
        self._clear_text = clear_text
        self._show = show
        self._folder = tempfile.mkdtemp(prefix="ichor-", dir=C.DEFAULT_LOCAL_TMP if len(C.DEFAULT_LOCAL_TMP) <= LONGEST_FOLDER else "/tmp")
        self.path = os.path.join(self._folder, "channel")
        self._parent = os.getppid()
        self._ended = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(1)
        self._listener.settimeout(LOOK_SECONDS)
        self._thread = threading.Thread(target=self._serve, name="ichor-channel", daemon=True)

    def __enter__(self) -> Channel:
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._ended.set()
        self._thread.join(timeout=10)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        # A signal that the kernel gives to this thread would not wake the main thread, whose handler ends the module.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        connection = self._accept()
        if connection is None:
            return
        with connection:
            connection.settimeout(LOOK_SECONDS)
            _send(connection, {"hello": self._hello})
            self._relay(connection)

    def _accept(self) -> socket.socket | None:
        while not self._ended.is_set() and os.getppid() == self._parent:
            try:
                return self._listener.accept()[0]
            except TimeoutError:
                continue
            except OSError:
                return None
        return None

    def _relay(self, connection: socket.socket) -> None:
        """Show lines and answer questions until the module ends, or ansible-playbook does."""
        started = told = time.monotonic()
        last, pending = "", b""
        while os.getppid() == self._parent:
            try:
                data = connection.recv(1 << 16)
            except TimeoutError:
                if self._ended.is_set():
                    return
                if time.monotonic() - told >= QUIET_SECONDS:
                    told = time.monotonic()
                    self._show(f"{INDENT}… {duration(told - started)} so far{': ' + last if last else ''}")
                continue
            except OSError:
                return
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "line" in message:
                    text, told = str(message["line"]), time.monotonic()
                    last = text.strip()
                    self._show(INDENT + text)
                elif "ask" in message:
                    _send(connection, {"answer": self._answer(str(message["ask"].get("path", "")))})

    def _answer(self, path: str) -> Mapping[str, str]:
        try:
            return {"content": self._clear_text(path).decode("utf-8", "surrogateescape")}
        except TalosError as error:
            return {"error": error.message.rstrip(".")}
        except Exception as error:  # whatever the vault says goes to the module as text
            return {"error": " ".join(str(error).split())}


def _send(connection: socket.socket, message: Mapping[str, object]) -> None:
    try:
        connection.settimeout(10)
        connection.sendall(json.dumps(message, default=str).encode() + b"\n")
    except OSError:
        pass
    finally:
        connection.settimeout(LOOK_SECONDS)
