# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person is told of a converged machine that the controller found in maintenance mode (design sections 9 and 12)."""

from __future__ import annotations

from ansible_collections.ichor.talos.plugins.module_utils._decide.fallen_back import told_of, with_good_read, with_told
from ansible_collections.ichor.talos.plugins.module_utils._decide.reprovision import decide_again
from ansible_collections.ichor.talos.plugins.module_utils._decide.telling import NodeNow, tell
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record, condition_of
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._decide import reprovision_case as again
from ansible_collections.ichor.talos.tests.unit._decide.rows_provisioning import sending
from ansible_collections.ichor.talos.tests.unit._operations import world as w

NOT_OURS = Unknown("UnknownAuthority", "its certificate is not of our authority")


def blocked(**more: object) -> Record:
    """The record of the only control plane after a look at it."""
    seen = again.controlplane(others=(), etcd=None, **more)
    status = with_told(dict(seen.machine.status), told_of(decide_again(seen, case.NOW)), 1, case.NOW)  # type: ignore[union-attr]
    return w.machine_record("m1", 1, "controlplane", status=status)


def test_the_reason_is_told_and_not_that_the_credentials_are_wrong() -> None:
    doing = tell(blocked(), None, NodeNow(NOT_OURS))
    assert doing.what.startswith("It had joined, and was in maintenance mode") and "Restore etcd from a backup" in doing.what
    assert "talos_controller" in doing.advice and doing.since


def test_a_node_that_answers_is_told_as_it_is() -> None:
    assert "maintenance" not in tell(blocked(), None, NodeNow(Present(case.facts(stage="running")))).what.partition(":")[0]


def test_a_good_read_ends_it_all() -> None:
    record = blocked()
    status = with_good_read({**record.status, **again.first_reading()}, 1, case.NOW)
    after = w.machine_record("m1", 1, "controlplane", status=status)
    found = condition_of(after, "Provisioned")
    assert "wipeSeen" not in status and found is not None and (found.status, found.reason) == ("True", "NodeJoined")
    assert with_good_read(dict(status), 1, case.NOW) == status


def test_a_good_read_settles_a_send_whose_answer_was_lost() -> None:
    status = with_good_read({**again.JOINED, **sending()}, 1, case.NOW)
    assert "sending" not in status and "appliedConfigHash" not in status and status["storedConfigHash"] == sending()["sending"]["hash"]  # type: ignore[index]
