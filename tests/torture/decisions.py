# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random worlds of the decision to send: whatever the observation is, what it says is held against the laws, written anew here."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning import decide
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Provisioning, Refused, Send
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import ALL_REASONS
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._operations import world as w

UNKNOWN = ("TimedOut", "ConnectionRefused", "ConnectionLost", "ClientCertificateRequired", "UnknownAuthority", "AnswerInvalid", "NotTalos")
STATUSES: dict[str, tuple[Any, ...]] = {
    "stage": ("maintenance", "installing", "running", "", None, 7), "maintenanceFingerprint": ("FP-one", "FP-two", "", None),
    "configStoredAt": (None, None, "2023-11-14T00:00:00Z", "yesterday"), "storedConfigHash": (None, None, "a"), "appliedConfigHash": (None, None, None, "a"),
    "sending": (None, None, None, {}, {"hash": "f" * 64, "fingerprint": "FP-one", "time": "2023-11-14T00:00:00Z", "attempt": 1, "by": "run-0"},
                {"hash": "x", "attempt": "two"}, "broken"),
    "rejectedInputsHash": (None, None, "a"), "recordUID": (None, "uid-m1", "another"),
}
SPECS: dict[str, tuple[Any, ...]] = {
    "approvalState": ("approved", "approved", "approved", "pending", "rejected", None, "Approved"), "approvedBy": ("anna", "anna", None, ""),
    "approvedAt": ("2023-11-14T00:00:00Z", "2023-11-14T00:00:00Z", None), "acceptedFingerprint": (None, None, "FP-one", "FP-two"),
    "hostname": ("m1", "m1", "cp2", None, ""), "approvedDisk": ({"wwid": "wwid-sda", "size": 10 ** 11}, {"wwid": "other"}, None),
}


def world(chance: random.Random) -> Provisioning:
    """An observation in which anything may be as it should not be."""
    role = chance.choice(("worker", "controlplane"))
    status = {key: chance.choice(values) for key, values in STATUSES.items() if chance.random() < 0.35}
    spec = {key: chance.choice(values) for key, values in SPECS.items() if chance.random() < 0.2}
    make = case.controlplane if role == "controlplane" else case.worker
    options: dict[str, Any] = {"bootstrapped": chance.random() < 0.5} if role == "controlplane" else {}
    seen = make(status=status, machine=spec, stored=chance.random() < 0.9, hostname=chance.choice(("m1", "m1", "", "cp2")), **options)
    if seen.machine is not None and chance.random() < 0.05:
        other = chance.choice(("worker", "controlplane", None, "init"))
        seen = replace(seen, machine=replace(seen.machine, spec={**seen.machine.spec, "role": other}))
    for name in ("running", "maintenance", "members", "settled", "config", "authority", "endpoint"):
        if chance.random() < 0.15:
            nothing = chance.choice((Absent(), Unknown(chance.choice(UNKNOWN), "no answer")))
            seen = replace(seen, **{name: nothing})
    if chance.random() < 0.5 and isinstance(seen.maintenance, Present):
        seen = case.shows(seen, identity=identity(chance), certificate=chance.choice(("one", "one", "two")),
                          stage=chance.choice(("maintenance", "maintenance", "running", "")), version=chance.choice(("v1.13.9", "v1.11.0", "", "v9")))
    if chance.random() < 0.1:
        seen = case.running(seen, number=chance.randint(1, 2))
    return seen


def identity(chance: random.Random) -> Identity:
    mine, other = w.identity(1), w.identity(2)
    return Identity(*(getattr(other if chance.random() < 0.1 else mine, name) for name in ("uuid", "serial", "macs")))


def judge(seen: Provisioning, now: float) -> None:
    """Raises where the decision breaks a law."""
    verdict = decide(seen, now)
    if verdict != decide(seen, now):
        raise AssertionError("the same observation gives two decisions")
    if isinstance(verdict, Refused):
        if verdict.refusal.reason not in ALL_REASONS or not verdict.refusal.message:
            raise AssertionError(f"a refusal that says nothing: {verdict}")
    if not isinstance(verdict, Send):
        return
    broken = [law for law, kept in laws(seen) if not kept]
    if broken:
        raise AssertionError(f"would send although not: {', '.join(broken)}: {seen}")


def laws(seen: Provisioning) -> list[tuple[str, bool]]:
    """What has to hold before anything is sent insecurely (laws 3, 4, 9 and 10), whatever the product's gates are called."""
    facts = seen.maintenance.value if isinstance(seen.maintenance, Present) else None
    found = [
        ("the node answers in maintenance mode", facts is not None),
        ("the configuration is there", isinstance(seen.config, Present)),
        ("the node does not answer with authentication", not isinstance(seen.running, Present)),
        ("the identity is that of the record", facts is not None and facts.identity.uuid == seen.identity.uuid),
    ]
    if seen.machine is None:
        return [*found, ("the certificate is the pinned one", facts is not None and facts.certificate.matches(seen.pin))]
    spec, status = seen.machine.spec, seen.machine.status
    pins = [spec.get("acceptedFingerprint") or status.get("maintenanceFingerprint")]
    found += [
        ("it is approved by somebody", spec.get("approvalState") == "approved" and bool(spec.get("approvedBy")) and bool(spec.get("approvedAt"))),
        ("nothing is stored", not status.get("configStoredAt")), ("it has not joined", not status.get("appliedConfigHash")),
        ("the status is there", bool(status)),
        ("the certificate is the pinned one", facts is not None and any(isinstance(pin, str) and pin and facts.certificate.matches(pin) for pin in pins)),
        ("the serial and the MACs are those of the record", facts is not None and facts.identity == w.identity(1)),
        ("a control plane's members are known in a bootstrapped cluster", not (
            spec.get("role") == "controlplane" and seen.cluster is not None and seen.cluster.status.get("bootstrappedAt")
            and not isinstance(seen.members, Present) and seen.members is not None)),
    ]
    return found


def many(chance: random.Random, count: int = 200) -> int:
    """So many worlds, one after the other."""
    for unused in range(count):
        judge(world(chance), case.NOW + chance.choice((0.0, 30.0, 200.0, -500.0)))
    return count
