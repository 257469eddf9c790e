# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subject: a module over a fleet in this process: its name, then its arguments as JSON on standard input. Prints its peak, whether it
changed something, and how its machines are."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import runpy
import sys
from collections import Counter

from ansible.module_utils import basic


def main() -> None:
    arguments = {"_ansible_remote_tmp": "/tmp", "_ansible_keep_remote_files": False, **json.load(sys.stdin)}
    basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
    basic._ANSIBLE_PROFILE = "legacy"
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
        runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
    result = json.loads(told.getvalue().strip().splitlines()[-1])
    print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "msg": result["msg"],
                      "changed": result["changed"], "reasons": Counter(row["reason"] for row in result["machines"])}))


main()
