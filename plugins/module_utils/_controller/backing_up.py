# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backup records as subjects of the controller: each is taken when its schedule calls for it, once, however many run (design section 3).

A look writes what is no step (the conditions of the record) and takes nothing; carrying out the step looks again, under the lease of
the record.
"""

from __future__ import annotations

from .._decide.backup import is_due, seconds_until_due
from .._model.errors import TalosError
from .._model.plan import Plan, Refusal, Target
from .._model.records import BACKUP, CLUSTER, text_at
from .._operations import etcd_backup
from .._operations.provisioning_reads import Surroundings
from .._operations.record_reads import need_store
from .._operations.rounds import Round
from .by_plan import Run, carried_out, done_by, planned, round_of

#: No machine has a name like this: a DNS-1123 name holds no space.
PREFIX = "backup "


def subject_of(record: str) -> str:
    return f"{PREFIX}{record}"


def is_backup(name: str) -> bool:
    return name.startswith(PREFIX)


async def look(around: Surroundings, name: str) -> Round:
    """Whether the backup is due, and what it would be. Raises TalosError `RecordNotFound` where the record is gone."""
    store, now = need_store(around.ports), around.ports.clock.now()
    record = store.get(BACKUP, name.removeprefix(PREFIX))
    if record is None:
        raise TalosError("RecordNotFound", f"There is no TalosEtcdBackup {name.removeprefix(PREFIX)}.", "Check the name.")
    cluster = text_at(record.spec, "clusterRef")
    try:
        due, left = is_due(record, now), seconds_until_due(record, now)
    except ValueError as error:
        return round_of(name, cluster, Plan(refusals=(Refusal(
            Target(kind=BACKUP, name=record.name, cluster=cluster, uid=record.uid), "RecordInvalid", f"The schedule of {record.name} is none: {error}.",
            "Give five fields, in UTC.", "3/backup-schedule"),)), around.timing.discovery)
    if not due:
        # A store that has left the cluster, or came into it, is told without waiting for the next backup.
        etcd_backup.tell(around.ports, record, store.get(CLUSTER, cluster), None)
        return round_of(name, cluster, Plan(), min(left if left is not None else around.timing.discovery, around.timing.discovery))
    plan = (await planned(_run(around, record.name), Target(kind=BACKUP, name=record.name, cluster=cluster), "17/backup-look"))[0]
    return round_of(name, cluster, plan, around.timing.reread)


async def act(around: Surroundings, name: str, granted: frozenset[str]) -> tuple[str, ...]:
    """Take it, where it is still due under the lease; gives the ids of the steps that were done. Raises TalosError."""
    return done_by(await carried_out(_run(around, name.removeprefix(PREFIX)), granted))


def _run(around: Surroundings, record: str) -> Run:
    request = etcd_backup.Request(backup=record, scheduled=True, timing=around.timing, allow_loopback=around.allow_loopback)
    return lambda gate: etcd_backup.run(request, around.ports, gate)
