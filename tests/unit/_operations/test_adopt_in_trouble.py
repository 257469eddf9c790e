# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adoption of nodes that lie or change, beside records of the same names, in stores that cannot be written (design section 15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CONFIG_PATCH, MACHINE, Record
from ansible_collections.ichor.talos.plugins.module_utils._operations.reconcile import HELD, phase_of
from tests.unit._decide import adoption_world as w
from tests.unit._operations.test_adopt import OTHER, PLANE, WORKER, place

WHOLE = w.config("worker", w.SYSCTL).encode()
DOCUMENT = b"---\napiVersion: v1alpha1\nkind: Unknown%dConfig\n"
#: What a node may say in place of its configuration.
LIES: dict[str, bytes] = {
    "nothing": b"", "half of it": WHOLE[:len(WHOLE) // 2], "no text": b"\xff\xfe\x00\x01" * 64, "null": b"null\n", "a list": b"- a\n- b\n",
    "another program's YAML": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "deep": b"[" * 20000, "endless aliases":
    b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\nmachine: *d\n", "twice the same": WHOLE + b"---\n" + WHOLE,
    "a megabyte of documents": WHOLE + b"".join(DOCUMENT % number for number in range(24000)),
    "thousands of keys": b"".join(b"key%d: 1\n" % number for number in range(8000)) + WHOLE,
}


@pytest.mark.parametrize("lie", LIES)
def test_a_node_that_lies_is_left_out_and_the_others_go_on(tmp_path: Path, lie: str) -> None:
    here = place(tmp_path, w.plane(1), w.worker(4), w.worker(5))
    here.change(4, text=LIES[lie])
    first = here.run()
    assert here.store().get(MACHINE, WORKER) is None and here.ready(OTHER) == ("True", "Converged")
    assert list(first.blocked) == [WORKER] and 1 <= len(first.plan.refusals) <= 101
    assert all(one.message.endswith(".") and one.hint and len(one.message) < 600 for one in first.plan.refusals), first.plan.refusals[0]


@pytest.mark.parametrize("lie", [lie for lie in LIES if "of documents" not in lie and "of keys" not in lie])
def test_a_node_that_lies_only_at_its_release_stays_held(tmp_path: Path, lie: str) -> None:
    here = place(tmp_path, w.plane(1), w.worker(4))
    here.run(release=False)
    honest = here.nodes[Endpoint("192.0.2.4")]
    here.hook = lambda what: here.change(4, text=LIES[lie]) if what.startswith("patch_status") and PLANE in what else None
    first = here.run()
    assert here.ready(WORKER) == ("False", "AdoptionHeld") and here.ready(PLANE) == ("True", "Converged") and WORKER in first.blocked
    here.hook = lambda what: None
    here.change(4, text=honest.text)
    here.run()
    assert here.ready(WORKER) == ("True", "Converged")


def test_another_machine_at_the_address_is_not_let_go(tmp_path: Path) -> None:
    here = place(tmp_path, w.plane(1), w.worker(4))
    here.run(release=False)
    other = replace(here.nodes[Endpoint("192.0.2.4")].facts, identity=Identity(w.UUID.format(9, 9), "ACME-9", ()))
    here.hook = lambda what: here.change(4, facts=other) if what.startswith("patch_status") and PLANE in what else None
    first = here.run()
    assert here.ready(WORKER) == ("False", "AdoptionHeld") and "EndpointIdentityMismatch" in {one.reason for one in first.plan.refusals}


def test_what_waits_for_the_next_boot_at_the_release_holds(tmp_path: Path) -> None:
    here = place(tmp_path, w.plane(1), w.worker(4))
    here.run(release=False)
    here.hook = lambda what: here.change(4, kept=WHOLE) if what.startswith("patch_status") and PLANE in what else None
    here.run()
    assert here.ready(WORKER) == ("False", "AdoptionHeld") and phase_of(here.machine(WORKER)) == HELD


def _patch(name: str, cluster: str, **more: object) -> Record:
    spec: dict[str, Any] = {"clusterRef": cluster, "layer": "cluster", "documents": [{"machine": {"sysctls": {"a.b": "1"}}}], **more}
    return Record(CONFIG_PATCH, name, spec)


@pytest.mark.parametrize("record", [
    _patch(f"{w.CLUSTER}-adopted", "another"), _patch(f"{OTHER}-adopted", "another"),
    _patch(f"{w.CLUSTER}-adopted", w.CLUSTER, machineSelector={"names": ["x"]})], ids=["another cluster's", "a machine's", "for one machine"])
def test_a_patch_of_the_same_name_is_not_taken_over(tmp_path: Path, record: Record) -> None:
    here = place(tmp_path)
    here.store().create(record)
    outcome = here.run()
    assert outcome.refused and outcome.reason == "RecordExists" and record.name in outcome.message and not here.trace
    assert [(name, spec) for dummy, name, spec, unused in here.everything()] == [(record.name, dict(record.spec))]


def test_a_machine_of_the_same_name_is_left_and_this_one_has_another(tmp_path: Path) -> None:
    here = place(tmp_path, w.plane(1), w.worker(4))
    spec = {"clusterRef": "another", "identity": {"uuid": w.UUID.format(7, 7)}, "endpoint": "192.0.2.7", "approvalState": "pending"}
    here.store().create(Record(MACHINE, WORKER, spec))
    here.run()
    assert dict(here.machine(WORKER).spec) == spec
    new = next(one.name for one in here.store().list(MACHINE).records if one.name not in (WORKER, PLANE))
    assert here.ready(new) == ("True", "Converged")


def test_another_bundle_of_the_same_name_is_refused(tmp_path: Path) -> None:
    here = place(tmp_path)
    other = replace(w.bundle(), cluster_id="VGhpcyBpcyBhbm90aGVyIGNsdXN0ZXI=")
    here.store().write_bundle(w.CLUSTER, other.text().encode())
    outcome = here.run()
    assert outcome.refused and outcome.reason == "AuthorityMismatch" and not here.everything() and here.store().bundle(w.CLUSTER) == other.text().encode()


def _refuses(reason: str) -> Callable[[str], None]:
    def hook(what: str) -> None:
        if not what.endswith("done"):
            raise TalosError(reason, "The store cannot be written.", "Make it writable.")
    return hook


@pytest.mark.parametrize("reason", ["StoreReadOnly", "StoreFull", "StoreUnreachable"])
def test_a_store_that_cannot_be_written_is_told_and_the_next_run_goes_on(tmp_path: Path, reason: str) -> None:
    here = place(tmp_path, w.plane(1), w.worker(4))
    assert here.run(check=True).plan.changed
    for allowed in (0, 1, 2, 3):
        count = len(here.trace) + 2 * allowed
        here.hook = lambda what, count=count: _refuses(reason)(what) if len(here.trace) > count else None  # type: ignore[misc]
        with pytest.raises(TalosError) as caught:
            here.run()
        assert caught.value.reason == reason
        assert all(phase_of(record) in ("undecided", HELD, "converged") for record in here.store().list(MACHINE).records)
    here.hook = lambda what: None
    here.run()
    assert [here.ready(name) for name in (PLANE, WORKER)] == [("True", "Converged")] * 2
