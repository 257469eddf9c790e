# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever may answer instead of a node, or as a broken one: its reason, within its deadline, through the modules themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.hostile.saying import SHORT, World, refusal, two_sentences, world
from tests.lab.configs import ClusterSecrets
from tests.lab.faults import ANSWER_KINDS, CALL_KINDS, CONNECT_KINDS, HANDSHAKE_KINDS, KINDS

SILENT = frozenset({"TimedOut"})
LOST = frozenset({"ConnectionLost"})
STRANGE = frozenset({"NotTls", "NotTalos"})
UNCONFIRMED = "SendingUnconfirmed"


@dataclass(frozen=True)
class Row:
    """A fault of a node: what a scan calls it, and the reason with which a send is refused."""

    kind: str
    found: frozenset[str]
    refused: frozenset[str]
    value: object = None


def row(kind: str, found: str, refused: frozenset[str] | set[str], value: object = None) -> Row:
    return Row(kind, frozenset(found.split()), frozenset(refused), value)


#: Faults of the connection: nothing of the node can be read.
CONNECTIONS = (
    row("connect-hang", "Unreachable", SILENT), row("connect-reset", "Unreachable", LOST), row("connect-close", "Unreachable NotTalos", LOST | STRANGE),
    row("connect-garbage", "NotTalos", STRANGE), row("plain-http", "NotTalos", STRANGE), row("plain-drip", "Unreachable NotTalos", SILENT | STRANGE, 0.05),
    row("handshake-hang", "Unreachable", SILENT), row("handshake-reset", "Unreachable", LOST), row("handshake-garbage", "NotTalos", STRANGE | LOST),
    row("web-server", "NotTalos", STRANGE), row("corrupt-record", "NotTalos Unreachable", STRANGE | LOST),
    row("write-drip", "Unreachable NotTalos", SILENT | STRANGE),
)
#: Faults of calls: the node is there, and cannot be read.
CALLS = (
    row("call-hang", "Maintenance", SILENT), row("call-half-open", "Maintenance", SILENT), row("call-reset", "Maintenance", LOST),
    row("call-delay", "Maintenance", SILENT, 3600),
    row("call-status", "Maintenance", {"CallFailed"}, "INTERNAL: something \x1b[31mred\u202e {{ 7 * 7 }}"),
    row("answer-lost", "Maintenance", LOST), row("answer-hang", "Maintenance", SILENT), row("answer-endless", "Maintenance", {"AnswerTooLarge"} | SILENT),
    row("answer-huge", "Maintenance", {"AnswerTooLarge"} | SILENT | LOST, 32 * 1024 * 1024), row("answer-garbage", "Maintenance", {"AnswerInvalid"}),
    row("answer-drip", "Maintenance", SILENT), row("answer-claims-huge", "Maintenance", {"AnswerTooLarge"}),
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("hostile")) as made:
        yield made


def test_every_fault_of_the_lab_has_a_row() -> None:
    rows = [row.kind for row in (*CONNECTIONS, *CALLS)]
    assert sorted(rows) == sorted(KINDS) and set(rows) == {*CONNECT_KINDS, *HANDSHAKE_KINDS, *CALL_KINDS, *ANSWER_KINDS, "write-drip"}


def test_one_scan_over_every_fault_names_each_and_finds_the_good_one(here: World) -> None:
    rows = {}
    for number, case in enumerate((*CONNECTIONS, *CALLS), 1):
        rows[here.node(f"scan-{number}", number)] = case
        here.lab.fault(node=f"scan-{number}", kind=case.kind, value=case.value)
    good = here.node("scan-good", 200)
    # The lab is one process: while it makes up 32 MiB for one node, the good one has to wait.
    patient = {**SHORT, "call": 10.0, "connect": 10.0}
    ended = here.run("talos_discover", addresses=[*rows, good, f"{here.network}.0.201"], register=False, timing=patient)
    found = {entry["address"].partition(":")[0]: entry for entry in ended.result["found"]}
    assert ended.status == 0 and found[good]["kind"] == "Maintenance" and found[good]["uuid"] and not found[good]["message"]
    silent = [case.kind for address, case in rows.items() if address not in found]
    assert silent in ([], ["connect-reset"]) and ended.result["silent"] == 1 + len(silent)  # a reset may come before the connect is seen
    for address, case in rows.items():
        if address not in found:
            continue
        assert found[address]["kind"] in case.found, (case.kind, found[address])
        two_sentences(found[address]["message"])
    for number in range(1, len(rows) + 1):
        here.lab.remove(node=f"scan-{number}")


@pytest.mark.parametrize("case", (*CONNECTIONS, *CALLS), ids=lambda case: case.kind)
def test_a_send_is_refused_with_the_reason_and_sends_nothing(here: World, case: Row) -> None:
    name = f"read-{case.kind}"
    address = here.node(name, 300)
    here.lab.fault(node=name, kind=case.kind, value=case.value)
    reason, dummy = refusal(here.applied(name, address))
    assert reason in case.refused
    assert not [entry for entry in here.lab.log(node=name) if entry.get("kind") == "write"]
    looked = here.run("talos_stage", address=address, talosconfig_content=here.secrets.talosconfig([])).result
    assert looked["machines"][0]["reason"] == "NodeUnreachable"
    two_sentences(looked["machines"][0]["message"])
    here.lab.remove(node=name)


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case.kind)
def test_a_send_without_an_answer_is_told_as_unconfirmed_and_a_refused_one_as_refused(here: World, case: Row) -> None:
    name = f"send-{case.kind}"
    address = here.node(name, 301)
    here.lab.fault(node=name, kind=case.kind, rpc="ApplyConfiguration", value=case.value)
    reason, message = refusal(here.applied(name, address))
    assert reason == UNCONFIRMED and "talos_stage" in message
    assert len([entry for entry in here.lab.log(node=name, event="call") if entry.get("kind") == "write"]) == 1
    here.lab.remove(node=name)


def test_nothing_listens(here: World) -> None:
    reason, dummy = refusal(here.run(
        "talos_maintenance_apply", address=f"{here.network}.0.251", uuid="5a1f0c3e-51c8-4f0e-8d39-3cecef000001", fingerprint="A" * 43 + "=",
        config_content=here.secrets.config("worker", "w-1"), talosconfig_content=here.secrets.talosconfig([])))
    assert reason == "ConnectionRefused"


def test_a_configured_node_wants_a_client_certificate_and_shows_another_authority(here: World) -> None:
    address = here.node("configured", 302)
    uuid = here.lab.state(node="configured")["uuid"]
    assert here.applied("configured", address, config_content=here.secrets.config("controlplane", "cp-1")).status == 0
    here.lab.wait(node="configured", stage="booting")
    here.lab.wait(node="configured", stage="configured")
    other = ClusterSecrets(name="other")
    stranger = other.talosconfig([])
    bare = {"address": address, "uuid": uuid, "fingerprint": "A" * 43 + "=", "config_content": here.secrets.config("worker", "w-1")}
    assert refusal(here.run("talos_maintenance_apply", **bare))[0] == "AlreadyConfigured"
    assert refusal(here.run("talos_maintenance_apply", **bare, talosconfig_content=stranger))[0] == "AuthorityMismatch"
    bare["config_content"] = other.config("worker", "w-1")
    reason, message = refusal(here.run("talos_maintenance_apply", **bare, talosconfig_content=stranger))
    assert reason == "AlreadyConfigured" and "authorit" in message
    looked = here.run("talos_stage", address=address, talosconfig_content=stranger).result
    assert looked["reason"] == "UnknownAuthority" and "authorit" in looked["msg"], looked
    two_sentences(looked["msg"])
    (entry,) = here.run("talos_discover", addresses=[address], register=False).result["found"]
    assert entry["kind"] == "AlreadyConfigured"
    two_sentences(entry["message"])
    for kind, said in (("expired", "expired"), ("not-yet-valid", "not yet valid"), ("foreign", "authorit"), ("rsa", "bootstrap")):
        here.lab.certificate(node="configured", kind=kind)
        looked = here.run("talos_stage", address=address, talosconfig_content=here.secrets.talosconfig([])).result
        assert looked["reason"] == ("UnknownAuthority" if kind == "foreign" else "NodeStarting") and said in looked["msg"], (kind, looked)
        assert (looked["machines"][0]["stage"] == "booting") == (kind == "rsa")
    here.lab.remove(node="configured")


@pytest.mark.parametrize("kind", ["expired", "not-yet-valid", "rsa", "foreign", "self-named"])
def test_another_certificate_in_maintenance_mode_gets_nothing(here: World, kind: str) -> None:
    address = here.node(f"leaf-{kind}", 303)
    state = here.lab.state(node=f"leaf-{kind}")
    here.lab.certificate(node=f"leaf-{kind}", kind=kind)
    reason, dummy = refusal(here.applied(f"leaf-{kind}", address, fingerprint=state["fingerprint"]))
    assert reason in ("MaintenanceIdentityChanged", "NotTalos", "ClockSkew")
    assert not [entry for entry in here.lab.log(node=f"leaf-{kind}") if entry.get("kind") == "write"]
    here.lab.remove(node=f"leaf-{kind}")
