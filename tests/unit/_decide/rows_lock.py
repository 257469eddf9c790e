# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the cluster lock: who may take it (design section 13)."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.ichor.talos.plugins.module_utils._decide.lock import LockView
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from ansible_collections.ichor.talos.tests.unit._operations import world as w


@dataclass(frozen=True)
class LockRow:
    """What the taker sees, and the reasons that refuse it."""

    id: str
    view: LockView
    reasons: tuple[str, ...]


def planes(count: int, **spec: object) -> tuple[Record, ...]:
    return tuple(w.machine_record(f"cp{number}", number, "controlplane", **spec) for number in range(1, count + 1))  # type: ignore[arg-type]


LOCKS: tuple[LockRow, ...] = (
    LockRow("13/free", LockView(w.cluster_record(), planes(3)), ()),
    LockRow("13/without-a-store", LockView(None, ()), ("NoLock",)),
    LockRow("13/shutting-down", LockView(w.cluster_record(hold="shutdown"), planes(1)), ("ClusterShuttingDown",)),
    LockRow("13/rotating", LockView(w.cluster_record(hold="caRotation"), planes(1)), ("CARotation",)),
    LockRow("13/even", LockView(w.cluster_record(), planes(2)), ("Transitioning",)),
    LockRow("13/even-and-completed", LockView(w.cluster_record(), planes(2), completes_transition=True), ()),
    LockRow("13/even-of-pending", LockView(w.cluster_record(), (*planes(1), *planes(2, approvalState="pending")[1:])), ()),
    LockRow("13/even-of-workers", LockView(w.cluster_record(), (*planes(1), w.machine_record("w9", 9))), ()),
    LockRow("13/one-more-than-the-count", LockView(w.cluster_record(count=3), planes(4), completes_transition=True), ()),
    LockRow("13/two-more-than-the-count", LockView(w.cluster_record(count=3), planes(5)), ("ControlPlaneCapExceeded",)),
    LockRow("13/two-more-and-completed", LockView(w.cluster_record(count=3), planes(5), completes_transition=True), ("ControlPlaneCapExceeded",)),
    LockRow("13/no-control-plane-yet", LockView(w.cluster_record(), ()), ()),
    LockRow("13/hold-and-completed", LockView(w.cluster_record(hold="caRotation"), planes(3), completes_transition=True), ("CARotation",)),
)
