# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Baseline: an empty module of Ansible plus the imports that a module which talks to nodes needs, up to its first packet."""

from __future__ import annotations

import socket

import cryptography.x509
import google.protobuf.message_factory
import grpc.aio
import yaml
from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    module = AnsibleModule(argument_spec={"addresses": {"type": "list", "elements": "str"}}, supports_check_mode=True)
    host, dummy, port = module.params["addresses"][0].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20):
        used = (cryptography.x509, google.protobuf.message_factory, grpc.aio, yaml)
        module.exit_json(changed=False, used=len(used))


if __name__ == "__main__":
    main()
