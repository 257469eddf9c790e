# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a send says that it does to the node."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning import decide
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Send
from ansible_collections.ichor.talos.plugins.module_utils._decide.send_words import send_words
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Disk
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._operations import world as w

SDA = Disk("sda", "/dev/sda", 10 ** 11, wwid="wwid-sda", model="Fast", serial="S1")
SDB, STICK = Disk("sdb", "/dev/sdb", 10 ** 12), Disk("sdc", "/dev/sdc", 10 ** 9, boot_medium=True)
USER_VOLUME = "---\napiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning:\n  diskSelector:\n    match: '!system_disk'\n  minSize: 1GiB\n"


def sent(*disks: Disk) -> Send:
    verdict = decide(case.shows(case.worker(), disks=disks), case.NOW)
    assert isinstance(verdict, Send)
    return verdict


@pytest.mark.parametrize("disks, says, warns", [
    ((SDA,), "as worker m1 the node installs to /dev/sda (Fast, 100 GB, serial S1, blank) and reboots; it has no other disk to write to", []),
    ((SDA, SDB, STICK), "1 other disk (/dev/sdb) is left alone", []),
    ((Disk("sda", "/dev/sda", 10 ** 11, wwid="wwid-sda", contents=("STATE xfs",)), SDB), "/dev/sda (100 GB, carries STATE xfs)", ["9/7-disk-not-blank"]),
    ((Disk("sda", "/dev/sda", 10 ** 11, wwid="wwid-sda", contents=("unknown",)),), "what is on it is not known", ["9/7-disk-contents-unknown"]),
])
def test_the_step_says_what_becomes_of_the_disks(disks: tuple[Disk, ...], says: str, warns: list[str]) -> None:
    verdict = sent(*disks)
    assert says in verdict.step.why and [warning.rule for warning in verdict.warnings] == warns


def test_a_configuration_with_volumes_promises_nothing_of_other_disks() -> None:
    brought = bring(w.config("worker", "m1", extra=USER_VOLUME))
    assert "which of the 1 other disk (/dev/sdb) it uses is up to the configuration (UserVolumeConfig/data)" in send_words(
        brought, Present(SDA), Present((SDA, SDB)))


def test_what_is_not_known_is_said() -> None:
    brought = bring(w.config())
    assert send_words(brought, Absent("none"), Absent()).endswith("which disk it installs to is not known")
    assert send_words(brought, Present(SDA), Unknown("TimedOut")).endswith("its other disks are not known")
