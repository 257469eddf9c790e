# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for the bootstrap script that ansible-test downloads: the interpreter's own pip, then what was asked for from the index."""

from __future__ import annotations

import ensurepip
import os
import runpy
import sys

# ensurepip takes the user's settings for pip (a certificate, an index) out of the environment; the install below needs them.
before = dict(os.environ)
ensurepip.bootstrap(default_pip=True)
os.environ.clear()
os.environ.update(before)
sys.argv = ["pip", "install", *(argument for argument in sys.argv[1:] if argument not in ("--no-setuptools", "--no-wheel"))]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
