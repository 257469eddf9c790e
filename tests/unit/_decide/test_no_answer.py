# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an error of an apply means, and `status.sending` (design section 9, step 10)."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.no_answer import (
    NOT_SENT, REJECTED, TRANSIENT, UNCONFIRMED, Sending, outcome_of, sending_of, with_left_over_stored, with_rejected, with_sending, with_stored,
    without_sending,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TRANSPORT_REASONS
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing

MEANING = {
    "ConfigRejected": REJECTED, "FailedPrecondition": TRANSIENT,
    **dict.fromkeys(("NotListening", "ConnectionRefused", "NameNotResolved", "EndpointRefused", "NotTls", "NotTalos", "MaintenanceIdentityChanged",
                     "ClientCertificateRequired", "LockHeld", "PermissionDenied", "Unimplemented", "NodeRefused", "NotInMaintenance"), NOT_SENT),
    **dict.fromkeys(("TimedOut", "ConnectionLost", "CallFailed", "AnswerInvalid", "AnswerTooLarge", "AlreadyExists", "NotFound"), UNCONFIRMED),
}
SENDING = Sending("c0ffee", "FP", "2023-11-14T22:13:20Z", 1, "run-1")


@pytest.mark.parametrize("reason", sorted(MEANING))
def test_meaning(reason: str) -> None:
    assert outcome_of(reason) == MEANING[reason]


def test_whatever_is_not_known_to_be_harmless_is_unconfirmed() -> None:
    harmless = {reason for reason, meaning in MEANING.items() if meaning != UNCONFIRMED}
    assert all(outcome_of(reason) == UNCONFIRMED for reason in TRANSPORT_REASONS - harmless)


def test_sending_is_read_as_it_was_written() -> None:
    assert sending_of(with_sending({}, SENDING)) == SENDING
    assert sending_of({}) is None and sending_of({"sending": {}}) is None and sending_of({"sending": "x"}) is None


def test_a_broken_attempt_counts_as_the_second() -> None:
    found = sending_of({"sending": {"hash": "a"}})
    assert found is not None and found.attempt == 2


@pytest.mark.parametrize("age, fresh", [(0, True), (89, True), (90, False), (-10, True)])
def test_fresh(age: float, fresh: bool) -> None:
    assert SENDING.fresh(1_700_000_000.0 + age, 90) == fresh
    assert Sending("a", "b", "never", 1, "c").fresh(0, 90)


def test_only_the_own_sending_is_withdrawn() -> None:
    status = with_sending({"x": 1}, SENDING)
    assert without_sending(status, "run-1") == {"x": 1} and without_sending(status, "run-2") == status and without_sending({}, "run-1") == {}


def test_a_withdrawn_second_attempt_leaves_the_first_as_it_was() -> None:
    before = {"hash": "a", "by": "run-0", "attempt": 1, "time": "2023-11-14T00:00:00Z"}
    status = with_sending({"x": 1, "sending": before}, SENDING)
    assert without_sending(status, "run-1", before) == {"x": 1, "sending": before}
    assert without_sending(status, "run-1", {}) == {"x": 1} and without_sending({"x": 1}, "run-1", before) == {"x": 1}


@pytest.mark.parametrize("timing, counts", [(Timing(), 90.0), (Timing(sending_fresh=1.0), 90.0), (Timing(sending_fresh=1.0, apply=8.0), 12.0),
                                            (Timing(apply=600.0), 630.0), (Timing(sending_fresh=120.0), 120.0)])
def test_a_sending_counts_for_longer_than_a_send_may_last(timing: Timing, counts: float) -> None:
    assert timing.sending_counts == counts > timing.apply


def test_stored() -> None:
    status = with_stored({**with_sending({}, SENDING), "rejectedInputsHash": "x"}, "c0ffee", 1_700_000_000.0)
    assert status == {"configStoredAt": "2023-11-14T22:13:20Z", "storedConfigHash": "c0ffee", "stage": "installing", "stageObserved": False}


def test_a_left_over_is_stored_at_the_time_of_its_send() -> None:
    assert with_left_over_stored(with_sending({}, SENDING))["configStoredAt"] == "2023-11-14T22:13:20Z"
    assert with_left_over_stored({"x": 1}) == {"x": 1}


def test_rejected() -> None:
    assert with_rejected(with_sending({"x": 1}, SENDING), "c0ffee") == {"x": 1, "rejectedInputsHash": "c0ffee"}
