# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one table of calls: what the product may call on a node, whether it changes anything there, and its deadline.

A deadline is the name of a field of `Timing` (design section 19). A method that is not a row cannot be called.
"""

from __future__ import annotations

from dataclasses import dataclass

MACHINE = "machine.MachineService"
LIFECYCLE = "machine.LifecycleService"
IMAGE = "machine.ImageService"
STORAGE = "storage.StorageService"
STATE = "cosi.resource.State"


@dataclass(frozen=True)
class Call:
    """One row. `write`: it changes the node (or may), and check mode must never reach it."""

    service: str
    method: str
    write: bool
    deadline: str = "call"

    @property
    def rpc(self) -> str:
        """For messages and logs: `MachineService/Version`."""
        return f"{self.service.rpartition('.')[2]}/{self.method}"


_ROWS = (
    # Reads.
    Call(STATE, "Get", False),
    Call(STATE, "List", False),
    Call(MACHINE, "Version", False),
    Call(MACHINE, "Hostname", False),
    Call(MACHINE, "ServiceList", False),
    Call(MACHINE, "Read", False),
    Call(MACHINE, "EtcdMemberList", False),
    Call(MACHINE, "EtcdStatus", False),
    Call(MACHINE, "EtcdAlarmList", False),
    Call(MACHINE, "EtcdSnapshot", False, "snapshot"),
    Call(MACHINE, "Kubeconfig", False),
    Call(MACHINE, "GenerateClientConfiguration", False),
    Call(STORAGE, "Disks", False),
    Call(IMAGE, "List", False),
    # Writes.
    Call(MACHINE, "ApplyConfiguration", True, "apply"),
    Call(MACHINE, "Bootstrap", True, "apply"),
    Call(MACHINE, "Reset", True),
    Call(MACHINE, "Reboot", True),
    Call(MACHINE, "Shutdown", True),
    Call(MACHINE, "Rollback", True),
    Call(MACHINE, "Upgrade", True, "leave_and_reset"),
    Call(MACHINE, "EtcdRemoveMemberByID", True),
    Call(MACHINE, "EtcdLeaveCluster", True, "leave_and_reset"),
    Call(MACHINE, "EtcdForfeitLeadership", True),
    Call(MACHINE, "EtcdAlarmDisarm", True),
    Call(MACHINE, "EtcdDefragment", True),
    Call(MACHINE, "EtcdRecover", True, "snapshot"),
    Call(MACHINE, "ServiceRestart", True),
    Call(MACHINE, "ServiceStart", True),
    Call(MACHINE, "ServiceStop", True),
    Call(MACHINE, "MetaWrite", True),
    Call(MACHINE, "MetaDelete", True),
    Call(STORAGE, "BlockDeviceWipe", True),
    Call(LIFECYCLE, "Install", True, "leave_and_reset"),
    Call(LIFECYCLE, "Upgrade", True, "leave_and_reset"),
    Call(IMAGE, "Pull", True, "leave_and_reset"),
)

CALLS = {(row.service, row.method): row for row in _ROWS}


def call(service: str, method: str) -> Call:
    """The row of a method; KeyError when the table has none."""
    return CALLS[service, method]
