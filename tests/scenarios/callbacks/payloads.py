# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lets all runs of the scenarios share what ansible-core packs of each module, with its code compiled.

ansible-core packs a module once a run, and the module's process compiles all of it each time; both take longer than most
modules do. That a module runs from the archive as it is shipped, with nothing shared, is proven in tests/artefact.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib.util
import io
import marshal
import os
import pickle
import zipfile
from pathlib import Path

from ansible import constants
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: payloads
type: aggregate
short_description: Packed modules shared by all runs
description: Puts the folder that the variable PAYLOADS names where ansible-core keeps the modules that it packed in this run.
requirements: []
"""

#: A hash of the source instead of its time, and not compared with a source.
UNCHECKED = (1).to_bytes(4, "little")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "payloads"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self._folder = Path(os.environ["PAYLOADS"])
        self._folder.mkdir(parents=True, exist_ok=True)
        place = Path(constants.DEFAULT_LOCAL_TMP) / "ansiballz_cache"
        if not place.exists():
            place.symlink_to(self._folder, target_is_directory=True)

    def v2_playbook_on_stats(self, stats):
        for path in self._folder.glob("*-none"):
            mark = path.with_name(f"{path.name}.compiled")
            if not mark.exists():
                compile_all(path)
                mark.touch()


def compile_all(path):
    """The sources in the packed module become code; another run that reads it meanwhile finds the old or the new file whole."""
    module = pickle.loads(path.read_bytes())
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(module.zip_data))) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith(".py"):
                code = compile(content, entry.filename, "exec", dont_inherit=True)
                content = importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(content) + marshal.dumps(code)
                entry = zipfile.ZipInfo(f"{entry.filename}c", entry.date_time)
            new.writestr(entry, content, zipfile.ZIP_DEFLATED)
    module = dataclasses.replace(module, zip_data=base64.b64encode(packed.getvalue()))
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    part.write_bytes(pickle.dumps(module))
    part.replace(path)
