# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A /16 of 127.0.0.0/8 for one process: no two runs of the tests on one machine may share addresses."""

from __future__ import annotations

import socket

FIRST, LAST = 201, 249
#: On this port, and on this host of each network, its owner listens as long as it lives.
CLAIM_PORT, CLAIM_HOST = 49999, "255.1"


class Network:
    """The first network that nobody has claimed. `prefix` is e.g. "127.201"."""

    def __init__(self) -> None:
        for number in range(FIRST, LAST + 1):
            self.prefix = f"127.{number}"
            try:
                self._claim = socket.create_server((f"{self.prefix}.{CLAIM_HOST}", CLAIM_PORT))
                return
            except OSError:
                continue
        raise RuntimeError("every network of the tests is in use")

    def close(self) -> None:
        self._claim.close()
