# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module file as Ansible would start it, in this process: module name, then its arguments as JSON on standard input."""

from __future__ import annotations

import json
import runpy
import sys

from ansible.module_utils import basic


def main() -> None:
    arguments = {"_ansible_remote_tmp": "/tmp", "_ansible_keep_remote_files": False, **json.load(sys.stdin)}
    basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
    basic._ANSIBLE_PROFILE = "legacy"
    runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)


main()
