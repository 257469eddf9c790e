# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`status.sending`: what a run writes before it sends, and what its absence of an answer means (design section 9, step 10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .._model.moments import moment, seconds_of
from .._model.records import Json, dig, text_at
from .conditions import Status

#: The node answered, and took nothing.
_ANSWERED_NO = frozenset({"PermissionDenied", "Unimplemented", "NodeRefused", "NotInMaintenance"})
#: The request never left.
_NOT_SENT = frozenset({
    "NotListening", "ConnectionRefused", "NameNotResolved", "EndpointRefused", "NotTls", "NotTalos", "MaintenanceIdentityChanged",
    "ClientCertificateRequired", "LockHeld", "NoLock", "InvalidInput",
})

REJECTED, TRANSIENT, NOT_SENT, UNCONFIRMED = "rejected", "transient", "not sent", "unconfirmed"


def outcome_of(reason: str) -> str:
    """What an error of an apply means: the bytes are refused, try again, nothing was stored, or nobody knows."""
    if reason == "ConfigRejected":
        return REJECTED
    if reason == "FailedPrecondition":
        return TRANSIENT
    return NOT_SENT if reason in _NOT_SENT | _ANSWERED_NO else UNCONFIRMED


@dataclass(frozen=True)
class Sending:
    """`status.sending`: SHA-256 of the bytes, the certificate's fingerprint, when, the how-manieth attempt, which run."""

    config: str
    fingerprint: str
    time: str
    attempt: int
    by: str

    def fresh(self, now: float, within: float) -> bool:
        """Younger than `within` seconds; a time that cannot be read, or lies in the future, is fresh."""
        began = seconds_of(self.time)
        return began is None or now - began < within


def sending_of(status: Mapping[str, object]) -> Sending | None:
    """The `sending` of a status, or None."""
    raw = status.get("sending")
    if not isinstance(raw, dict) or not raw:
        return None
    found: dict[str, Json] = raw
    attempt = dig(found, "attempt")
    return Sending(text_at(found, "hash"), text_at(found, "fingerprint"), text_at(found, "time"),
                   attempt if isinstance(attempt, int) else 2, text_at(found, "by"))


def with_sending(status: Status, sending: Sending) -> Status:
    """The status just before the request leaves."""
    return {**status, "sending": {"hash": sending.config, "fingerprint": sending.fingerprint, "time": sending.time,
                                  "attempt": sending.attempt, "by": sending.by}}


def without_sending(status: Status, by: str, before: object = None) -> Status:
    """The `sending` of this run withdrawn; another run's stays. `before` is the `sending` that it was written over: that send's answer
    is as unknown as it was, so its entry comes back."""
    found = status.get("sending")
    if not isinstance(found, dict) or found.get("by") != by:
        return status
    kept = {key: value for key, value in status.items() if key != "sending"}
    return {**kept, "sending": before} if isinstance(before, dict) and before else kept


def with_stored(status: Status, config: str, now: float) -> Status:
    """A node accepted these bytes: never again for the same wipe. A machine that had joined is followed from anew (section 12), and the
    certificate that it was sent them under is its pin from now on."""
    over = ("sending", "rejectedInputsHash", "appliedConfigHash", "observedInputsHash", "wipeSeen")
    kept = {key: value for key, value in status.items() if key not in over}
    sending = sending_of(status)
    if status.get("appliedConfigHash") and sending is not None:
        kept.update({"maintenanceFingerprint": sending.fingerprint, "maintenanceFingerprintAt": sending.time})
    return {**kept, "configStoredAt": moment(now), "storedConfigHash": config, "stage": "installing", "stageObserved": False}


def with_left_over_stored(status: Status) -> Status:
    """A left-over `sending` counts as stored, at the time that it was sent."""
    sending = sending_of(status)
    if sending is None:
        return status
    began = seconds_of(sending.time)
    return with_stored(status, sending.config, began if began is not None else 0.0)


def with_rejected(status: Status, config: str) -> Status:
    """The node refused these bytes: not stored, and not tried again before they change."""
    kept = {key: value for key, value in status.items() if key != "sending"}
    return {**kept, "rejectedInputsHash": config}
