# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes each task's result as a line of JSON, for the scenarios."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record
type: notification
short_description: Results as lines of JSON
description:
  - Appends one line a result to the file that the variable RECORD_FILE names, with the time.
  - Where RECORD_STORE names a folder, the line has the text of its files too, and each play begins with a line of its own. RECORD_API does the
    same for listings of an API server on this machine; it has its port, the administrator's token, and paths.
requirements: []
"""


def texts(folder):
    """Every file below a folder but the lock's, which every reader touches."""
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8", errors="surrogateescape")
            for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "lock"}


def listings(port, token, paths):
    """What an API server has, a text for each listing that is there."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    found = {}
    for path in paths:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status == 200:
            found[path] = json.dumps(json.loads(text)["items"], indent=1)
    connection.close()
    return found


def recorded():
    """The texts of the store that is looked at, None where none is."""
    if os.environ.get("RECORD_API"):
        return listings(**json.loads(os.environ["RECORD_API"]))
    return texts(Path(os.environ["RECORD_STORE"])) if os.environ.get("RECORD_STORE") else None


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def _record(self, how, result):
        task = result.task if hasattr(result, "task") else result._task
        content = result.result if hasattr(result, "result") else result._result
        self._write(task.get_name(), how, content)

    def _write(self, task, how, content):
        line = {"task": task, "how": how, "result": content, "at": time.time(), "files": recorded() or {}}
        with open(os.environ["RECORD_FILE"], "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, default=str) + "\n")

    def v2_playbook_on_play_start(self, play):
        if recorded() is not None:
            self._write(play.get_name(), "play", {})

    def v2_runner_on_ok(self, result):
        self._record("ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._record("failed", result)

    def v2_runner_on_skipped(self, result):
        self._record("skipped", result)

    def v2_runner_on_unreachable(self, result):
        self._record("unreachable", result)

    def v2_runner_item_on_ok(self, result):
        self._record("item", result)

    def v2_runner_item_on_failed(self, result):
        self._record("item-failed", result)
