# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Baseline: a bare epoll loop that connects to every address of a /16 and notes how each connect ends."""

from __future__ import annotations

import errno
import ipaddress
import json
import select
import socket
import sys
import time


def main() -> None:
    network, port = ipaddress.ip_network(sys.argv[1]), int(sys.argv[2])
    began, cpu = time.perf_counter(), time.process_time()
    epoll, waiting, closed, opened = select.epoll(), {}, 0, 0
    for address in network.hosts():
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        code = sock.connect_ex((str(address), port))
        if code == errno.EINPROGRESS:
            waiting[sock.fileno()] = sock
            epoll.register(sock, select.EPOLLOUT)
        else:
            closed += code != 0
            opened += code == 0
            sock.close()
        while len(waiting) >= 256:
            for number, dummy in epoll.poll(1):
                done = waiting.pop(number)
                code = done.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                closed += code != 0
                opened += code == 0
                epoll.unregister(number)
                done.close()
    while waiting:
        for number, dummy in epoll.poll(1):
            done = waiting.pop(number)
            closed += done.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
            epoll.unregister(number)
            done.close()
    print(json.dumps({"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu, "closed": closed, "open": opened}))


main()
