# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A converged machine in maintenance mode at which every gate is passed, and ways to spoil one thing of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.etcd_words import EtcdView
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Provisioning
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._operations import world as w

JOINED = {"stage": "running", "configStoredAt": "2023-11-01T00:00:00Z", "storedConfigHash": "old", "appliedConfigHash": "old"}
#: The certificate of the boot after the wipe; the pin of the first provisioning was another.
BOOT = "two"


def plane(number: int, **spec: object) -> Record:
    return w.machine_record(f"cp{number}", number, "controlplane", status=JOINED, **spec)  # type: ignore[arg-type]


PLANES = (plane(2), plane(3), w.machine_record("w9", 9, status=JOINED))


def member(number: int, name: str = "", *, learner: bool = False, at: str = "") -> EtcdMember:
    """Member 1 is the machine's own; `-` is no name at all."""
    called = "" if name == "-" else name or ("m1" if number == 1 else f"cp{number}")
    return EtcdMember(f"{number:016x}", called, (f"https://{at or f'10.0.0.{number}'}:2380",), (), learner)


def view(*members: EtcdMember, healthy: tuple[int, ...] = (2, 3)) -> EtcdView:
    return EtcdView(members, frozenset(f"{number:016x}" for number in healthy), tuple(f"10.0.0.{number}:50000" for number in healthy))


ALL = view(member(1), member(2), member(3))


def first_reading(age: float = 20, fingerprint: str = f"FP-{BOOT}", labels: tuple[str, ...] = ()) -> dict[str, object]:
    return {"wipeSeen": {"time": moment(case.NOW - age), "fingerprint": fingerprint, "labels": list(labels)}}


def worker(**more: object) -> Provisioning:
    """A wiped worker."""
    return fallen("worker", **more)  # type: ignore[arg-type]


def controlplane(**more: object) -> Provisioning:
    """A wiped control plane of three, seen so for the second time."""
    return fallen("controlplane", **more)  # type: ignore[arg-type]


def fallen(role: str, *, seen_before: Mapping[str, object] | None = None, status: Mapping[str, object] | None = None,
           others: tuple[Record, ...] = PLANES, etcd: object = ALL, everybody: tuple[Record, ...] | None = None, discard: str = "",
           **more: object) -> Provisioning:
    """`status` is added to a converged machine's, `more` goes to the case of provisioning."""
    before = first_reading() if seen_before is None else dict(seen_before)
    own = {**JOINED, **(before if role == "controlplane" else {}), **(status or {})}
    seen = case.case(role, status=own, others=others, cluster_status=more.pop("cluster_status", case.BOOTSTRAPPED), **more)  # type: ignore[arg-type]
    read = Present(etcd) if isinstance(etcd, EtcdView) else etcd
    seen = replace(seen, etcd=read, everybody=(seen.machine, *others) if everybody is None else everybody, discard_etcd=discard)  # type: ignore[arg-type]
    return case.shows(seen, certificate=BOOT)


def shows(seen: Provisioning, **changed: object) -> Provisioning:
    """The node shows something else, under the certificate of this boot unless said."""
    return case.shows(seen, **{"certificate": BOOT, **changed})


def keeps_data(seen: Provisioning, *labels: str) -> Provisioning:
    """Only STATE is gone."""
    return shows(seen, partitions=case.labels(*(labels or ("EFI", "META", "EPHEMERAL"))))
