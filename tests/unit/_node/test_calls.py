# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of calls is complete and right about what is a write."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import ALL_REASONS, CheckModeWrite
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node import caller, calls, failures, messages
from ansible_collections.ichor.talos.plugins.module_utils._node.writes import Writes

#: Every method by name that a node in maintenance mode answers to a reader and that changes nothing.
READS = {
    "Get", "List", "Version", "Hostname", "ServiceList", "Read", "EtcdMemberList", "EtcdStatus", "EtcdAlarmList", "EtcdSnapshot", "Kubeconfig",
    "GenerateClientConfiguration", "Disks",
}


@pytest.mark.parametrize("row", calls.CALLS.values(), ids=lambda row: row.rpc)
def test_rows_exist_in_the_api_and_have_a_deadline(row):
    assert messages.method(row.service, row.method).path.endswith(row.method)
    assert 0 < getattr(Timing(), row.deadline) <= 3600
    assert row.write == (row.method not in READS)


def test_a_method_that_is_no_row_cannot_be_called():
    with pytest.raises(KeyError):
        calls.call("cosi.resource.State", "Create")


@pytest.mark.parametrize("row", [row for row in calls.CALLS.values() if row.write], ids=lambda row: row.rpc)
def test_no_write_passes_in_check_mode(row):
    class Closed:
        """Touching it would be an attempt to send."""

    sender = caller.Caller(Closed(), check=True, timing=Timing(), answer_limit=1, writes=Writes())
    with pytest.raises(CheckModeWrite):
        asyncio.run(sender.send(row, None))


def test_a_deadline_that_is_not_known_is_not_told_as_none():
    node = Endpoint("192.0.2.1")
    assert failures.failed("TimedOut", node).message == "192.0.2.1:50000 gave no answer."
    assert failures.failed("TimedOut", node, seconds=0.5).message == "192.0.2.1:50000 gave no answer within 0.5 s."


@pytest.mark.parametrize("reason", failures.SAYINGS)
def test_every_failure_has_a_reason_a_sentence_and_a_hint(reason):
    error = failures.failed(reason, Endpoint("10.0.0.1"), detail="\x1b[31mdetail", seconds=20)
    assert reason in ALL_REASONS
    assert error.message.endswith(".") and error.hint.endswith(".")
    assert "10.0.0.1:50000" in error.message
    assert "{" not in error.text
    assert error.detail == "detail"


def alert(reason):
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(("error", "reason"), [
    (alert("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "ClientCertificateRequired"),
    (alert("TLSV1_ALERT_UNKNOWN_CA"), "UnknownAuthority"),
    (alert("TLSV1_ALERT_DECRYPT_ERROR"), "UnknownAuthority"),
    (alert("SSLV3_ALERT_CERTIFICATE_EXPIRED"), "ClockSkew"),
    (alert("SSLV3_ALERT_BAD_CERTIFICATE"), "CredentialsInvalid"),
    (alert("TLSV1_ALERT_PROTOCOL_VERSION"), "NotTls"),
    (alert("WRONG_VERSION_NUMBER"), "NotTls"),
    (alert(None), "NotTls"),
    (ConnectionRefusedError(111, ""), "ConnectionRefused"),
    (ConnectionResetError(104, ""), "ConnectionLost"),
    (OSError(113, "no route"), "NotListening"),
    (TimeoutError(), "TimedOut"),
    (ssl.SSLEOFError(8, ""), "ConnectionLost"),
])
def test_reasons_of_the_transport(error, reason):
    assert failures.tls_reason(error) == reason
