# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The certificate that a run issues for itself: kept while it is good for long, issued anew in a run that goes on for days."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from cryptography import x509

from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.redaction import Redactor
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import Setting
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_credentials import open_credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.credentials import Credentials
from ansible_collections.ichor.talos.plugins.module_utils._node.issue import LIFETIME
from tests.unit._node.authority import Authority, pem

HOUR = 3600.0


class Run:
    """The credentials of one run with a clock of its own."""

    def __init__(self) -> None:
        authority = Authority()
        texts = {"crt": pem(authority.certificate), "key": pem(authority.key)}
        self.time = authority.certificate.not_valid_before_utc.timestamp() + HOUR
        self.reads = 0
        self._bundle = yaml.safe_dump({"certs": {"os": {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}}}).encode()
        clock = SimpleNamespace(now=lambda: self.time)
        setting = Setting(Options({"talosconfig": None, "talosconfig_content": None}, Redactor()), False, cast(Any, clock))
        self._source = open_credentials(setting, cast(Any, SimpleNamespace(bundle=self._read)))

    def _read(self, dummy: str) -> bytes:
        self.reads += 1
        return self._bundle

    def credentials(self) -> Credentials:
        return self._source("prod", "prod")

    def holds(self) -> bool:
        found = x509.load_pem_x509_certificate(self.credentials().certificate.encode())
        return found.not_valid_before_utc.timestamp() <= self.time < found.not_valid_after_utc.timestamp()


@pytest.mark.parametrize("moved", [LIFETIME - HOUR, 3 * LIFETIME, -LIFETIME], ids=["nearly over", "over", "set back"])
def test_a_certificate_that_runs_out_is_issued_anew(moved: float) -> None:
    run = Run()
    first = run.credentials()
    run.time += HOUR
    assert run.credentials() is first and run.reads == 1
    run.time += moved
    assert run.credentials() is not first and run.holds()
    assert run.credentials() is run.credentials() and run.reads == 2
