# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Baseline: one yaml.dump with libyaml of the documents on standard input, in a warm process. Prints CPU seconds."""

from __future__ import annotations

import json
import sys
import time

import yaml


def main() -> None:
    documents = list(yaml.load_all(sys.stdin, Loader=yaml.CSafeLoader))

    def dump() -> float:
        began = time.process_time()
        yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False)
        return time.process_time() - began

    for unused in range(20):
        dump()
    print(json.dumps({"one": sorted(dump() for unused in range(51))[25]}))


main()
