# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the bootstrap: an observation, and what is decided (design section 9, "Bootstrap")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.bootstrap import Bootstrapping, cluster_target
from ansible_collections.ichor.talos.plugins.module_utils._decide.following import Answer
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Observed, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from ansible_collections.ichor.talos.tests.unit._decide.rows_following import MEMBER, answers, etcd
from ansible_collections.ichor.talos.tests.unit._operations import world as w

SENT = {"stage": "booting", "configStoredAt": "2023-11-14T00:00:00Z", "storedConfigHash": "a"}


def waiting(number: int = 1) -> Observed[Answer]:
    """A control plane that waits for the bootstrap."""
    return answers("booting", services=etcd("Preparing"), number=number)


def seen(*, cluster: Mapping[str, object] | None = None, cluster_status: Mapping[str, object] | None = None, machine: Record | None = None,
         others: tuple[Record, ...] = (), answers_of: Mapping[str, Observed[Answer]] | None = None) -> Bootstrapping:
    """Control plane m1 waits, alone unless `others` say more."""
    own = machine or w.machine_record("m1", 1, "controlplane", status=SENT)
    spec = dict(cluster or {})
    record = w.cluster_record(status=cluster_status, count=spec.pop("count", 3), **spec)  # type: ignore[arg-type]
    found = {"m1": waiting(), **(answers_of or {})}
    return Bootstrapping(cluster_target("prod", record.uid, own), record, own, (own, *others), tuple(found.items()))


def another(number: int, **changed: object) -> Record:
    return w.machine_record(f"m{number}", number, "controlplane", status=changed.pop("status", SENT), **changed)  # type: ignore[arg-type]


TWO = (another(2), another(3))


BEGUN = {"bootstrapping": {"machine": "m1", "time": "x"}}


def begun_and_joined() -> Bootstrapping:
    """A bootstrap of m1 whose answer was lost, and whose machine has been seen to have joined since."""
    return seen(cluster_status=BEGUN, machine=another(1, status={**SENT, "appliedConfigHash": "a"}))


@dataclass(frozen=True)
class Case:
    """An observation, the rule that decides ('' for the bootstrap itself), and the reason or the kind of the verdict."""

    id: str
    rule: str
    seen: Callable[[], Bootstrapping]
    says: str
    passing: bool = False


def _answer(answer: Observed[Answer]) -> Bootstrapping:
    return seen(answers_of={"m1": answer})


CASES: tuple[Case, ...] = (
    Case("9/bootstrap-alone", "", seen, "Go"),
    Case("9/bootstrap-of-three", "", lambda: seen(others=TWO, answers_of={"m2": waiting(2), "m3": waiting(3)}), "Go"),
    Case("9/bootstrap-beside-a-pending", "", lambda: seen(others=(another(2, approvalState="pending"),)), "Go"),
    Case("9/bootstrap-beside-two-never-sent", "",
         lambda: seen(others=(another(2, status={"stage": "maintenance"}), another(3, status={"stage": "maintenance"}))),
         "Go"),
    Case("9/bootstrap-again-on-the-same", "", lambda: seen(cluster_status=BEGUN), "Go"),
    Case("9/bootstrap-done", "", lambda: seen(cluster_status={"bootstrappedAt": "2023-11-14T00:00:00Z"}), "Done"),
    Case("9/bootstrap-done-wins", "", lambda: replace(seen(cluster_status={"bootstrappedAt": "x"}, cluster={"hold": "shutdown"}), answers=None), "Done"),
    Case("9/bootstrap-done-on-another", "", lambda: seen(cluster_status={"bootstrappedAt": "x"}, machine=another(1, status={"stage": "maintenance"})),
         "Done"),
    Case("9/bootstrap-done-and-a-worker", "9/bootstrapped-not-control-plane", lambda: seen(
        cluster_status={"bootstrappedAt": "x"}, machine=w.machine_record("m1", 1, status=SENT)), "NotControlPlane"),
    Case("9/bootstrap-and-lost", "9/bootstrapped-and-lost", lambda: seen(
        cluster_status={"bootstrappedAt": "2023-11-14T00:00:00Z"},
        machine=another(1, status={**SENT, "configStoredAt": "2023-12-01T00:00:00Z"})), "AlreadyBootstrapped"),
    Case("9/bootstrap-and-lost-before-it-is-installed-anew", "9/bootstrapped-and-lost", lambda: seen(
        cluster_status={"bootstrappedAt": "2023-11-14T00:00:00Z"}, machine=another(1, status={**SENT, "appliedConfigHash": "a", "conditions": [
            {"type": "Ready", "status": "False", "reason": "ReprovisionBlocked", "message": ""}]})), "AlreadyBootstrapped"),
    Case("9/bootstrap-and-one-of-three-lost", "", lambda: seen(
        others=(another(2, status={**SENT, "appliedConfigHash": "a"}), TWO[1]), cluster_status={"bootstrappedAt": "2023-11-14T00:00:00Z"},
        machine=another(1, status={**SENT, "configStoredAt": "2023-12-01T00:00:00Z"})), "Done"),
    Case("9/bootstrap-lost-answer", "", lambda: replace(seen(cluster_status=BEGUN),
                                                        answers=(("m1", answers("running", status=MEMBER)),)), "Done"),
    Case("9/bootstrap-lost-answer-and-followed-since", "", lambda: replace(begun_and_joined(), answers=None), "NeedAnswers"),
    Case("9/bootstrap-lost-answer-and-joined-since", "", lambda: replace(
        begun_and_joined(), answers=(("m1", answers("running", status=MEMBER)),)), "Done"),
    Case("9/bootstrap-begun-joined-and-wiped", "9/bootstrap-had-members", begun_and_joined, "AlreadyBootstrapped"),
    Case("9/bootstrap-begun-and-etcd-comes-up", "9/bootstrap-under-way", lambda: replace(
        seen(cluster_status=BEGUN), answers=(("m1", answers("booting", services=etcd("Running"))),)), "BootstrapInProgress", passing=True),
    Case("9/bootstrap-asks", "", lambda: replace(seen(), answers=None), "NeedAnswers"),
    Case("9/bootstrap-shutdown", "13/shutdown", lambda: seen(cluster={"hold": "shutdown"}), "ClusterShuttingDown"),
    Case("9/bootstrap-rotation", "13/ca-rotation", lambda: seen(cluster={"hold": "caRotation"}), "CARotation"),
    Case("9/bootstrap-over-cap", "13/over-cap", lambda: seen(cluster={"count": 1}, others=TWO), "ControlPlaneCapExceeded"),
    Case("9/bootstrap-even", "13/transitioning", lambda: seen(others=TWO[:1]), "Transitioning"),
    Case("9/bootstrap-begun-elsewhere", "9/bootstrap-in-progress", lambda: seen(cluster_status={"bootstrapping": {"machine": "m2", "time": "x"}}),
         "BootstrapInProgress"),
    Case("9/bootstrap-pending", "9/bootstrap-not-approved", lambda: seen(machine=another(1, approvalState="pending")), "NotApproved"),
    Case("9/bootstrap-worker", "9/bootstrap-not-control-plane", lambda: seen(machine=w.machine_record("m1", 1, status=SENT)), "NotControlPlane"),
    Case("9/bootstrap-status-lost", "9/bootstrap-status-missing", lambda: seen(others=(another(2, status={}), TWO[1]), answers_of={"m3": waiting(3)}),
         "StatusMissing"),
    Case("9/bootstrap-a-worker-had-joined", "9/bootstrap-had-members", lambda: seen(
        others=(w.machine_record("w2", 2, status={**SENT, "appliedConfigHash": "a"}),)), "AlreadyBootstrapped"),
    Case("9/bootstrap-adopted", "9/bootstrap-had-members", lambda: seen(others=(w.machine_record("w2", 2, status={
        "stage": "running", "conditions": [{"type": "Ready", "status": "False", "reason": "AdoptionHeld", "message": ""}]}),)), "AlreadyBootstrapped"),
    Case("9/bootstrap-never-sent", "9/bootstrap-not-sent", lambda: seen(machine=another(1, status={"stage": "maintenance"})), "BootstrapNotAvailable"),
    Case("9/bootstrap-during-a-restore", "9/bootstrap-operation", lambda: seen(cluster_status={"operation": {"name": "restore", "since": "x"}}),
         "OperationInProgress"),
    Case("9/bootstrap-during-a-disruption", "9/bootstrap-disruption", lambda: seen(
        cluster_status={"disruption": {"machine": "m9", "step": "reset", "time": "2023-11-14T00:00:00Z"}}), "OperationInProgress"),
    Case("9/bootstrap-one-unreachable", "9/bootstrap-unreachable", lambda: seen(others=TWO, answers_of={"m2": Unknown("TimedOut", "no"), "m3": waiting(3)}),
         "ControlPlaneUnreachable", passing=True),
    Case("9/bootstrap-without-credentials", "9/bootstrap-no-credentials", lambda: _answer(Unknown("SecretsUnavailable", "There are none.")),
         "SecretsUnavailable"),
    Case("9/bootstrap-talosconfig-of-another-cluster", "9/bootstrap-other-authority", lambda: _answer(Unknown("UnknownAuthority", "another one")),
         "UnknownAuthority", passing=True),
    Case("9/bootstrap-other-node-answers", "9/bootstrap-other-node", lambda: _answer(waiting(9)), "EndpointIdentityMismatch"),
    Case("9/bootstrap-runs", "9/bootstrap-has-member", lambda: _answer(answers("running", status=MEMBER)), "AlreadyBootstrapped"),
    Case("9/bootstrap-etcd-runs", "9/bootstrap-has-member", lambda: _answer(answers("booting", services=etcd("Running"))), "AlreadyBootstrapped"),
    Case("9/bootstrap-etcd-failed", "9/bootstrap-has-member", lambda: _answer(answers("booting", services=etcd("Failed"))), "AlreadyBootstrapped"),
    Case("9/bootstrap-another-has-a-member", "9/bootstrap-has-member", lambda: seen(
        others=TWO, answers_of={"m2": answers("booting", services=etcd("Running"), number=2), "m3": waiting(3)}), "AlreadyBootstrapped"),
    Case("9/bootstrap-unattended", "9/bootstrap-installing", lambda: _answer(answers("booting", unattended="installing", services=etcd("Preparing"))),
         "BootstrapNotAvailable", passing=True),
    Case("9/bootstrap-installing-node", "9/bootstrap-not-booting", lambda: _answer(answers("installing", services=etcd("Preparing"))),
         "BootstrapNotAvailable", passing=True),
    Case("9/bootstrap-no-etcd-service", "9/bootstrap-etcd-unseen", lambda: _answer(answers("booting")), "BootstrapNotAvailable", passing=True),
)
