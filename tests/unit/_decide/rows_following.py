# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of following: what a look shows, and the life that follows from it (design section 9, "Following")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.following import Answer, Following, Insecure
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.machine import identity_of
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdStatus, ServiceState, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.tests.unit._operations import world as w

NOW = w.START
SILENT = Unknown("ConnectionRefused", "nothing listens")
WANTS = Unknown("ClientCertificateRequired", "wants a certificate")
NO_CREDENTIALS = Unknown("SecretsUnavailable", "There is no credential for the nodes of cluster prod. Give talosconfig.")
MEMBER = Present(EtcdStatus("a1", "00000000000000a1"))


def etcd(state: str) -> tuple[ServiceState, ...]:
    return (ServiceState("apid", "Running", True), ServiceState("etcd", state))


def answers(stage: str, *, unattended: str = "", unmet: tuple[str, ...] = (), services: tuple[ServiceState, ...] = (),
            status: Observed[EtcdStatus] = Absent(), number: int = 1) -> Present[Answer]:
    """An authenticated answer of machine `number`."""
    return Present(Answer(w.identity(number), StageReading(stage, not unmet, unmet, unattended), services, status))


def insecure(number: int = 1) -> Present[Insecure]:
    return Present(Insecure(w.identity(number), "FP-one"))


def followed(answer: Observed[Answer] = SILENT, maintenance: Observed[Insecure] = SILENT, *, role: str = "worker", minutes: float = 1,
             bootstrapped: bool = True, status: Mapping[str, object] | None = None, record: bool = True, **spec: object) -> Following:
    """A look at machine 1, to which a configuration was stored `minutes` ago."""
    stored = {"stage": "installing", "configStoredAt": moment(NOW - 60 * minutes), "storedConfigHash": "a"}
    machine = w.machine_record("m1", 1, role, status=stored if status is None else status, **spec)  # type: ignore[arg-type]
    cluster = w.cluster_record(status={"bootstrappedAt": "2023-11-01T00:00:00Z"} if bootstrapped else {})
    if not record:
        return Following(Identity(), answer, maintenance)
    return Following(identity_of(machine), answer, maintenance, machine, cluster)


@dataclass(frozen=True)
class Look:
    """A look, the row that decides, the stage and whether it was observed, the reason, and the last bits of a life."""

    id: str
    rule: str
    seen: Callable[[], Following]
    stage: str
    observed: bool
    reason: str
    joined: bool = False
    settled: bool = False
    says: str = ""


def _cp(answer: Observed[Answer], **more: object) -> Following:
    return followed(answer, role="controlplane", **more)  # type: ignore[arg-type]


LOOKS: tuple[Look, ...] = (
    Look("9/another-member-answers", "9/follow-other-node", lambda: followed(answers("running", number=9)), "installing", False, "EndpointIdentityMismatch"),
    Look("9/another-machine-in-maintenance", "9/follow-other-machine", lambda: followed(SILENT, insecure(9)), "installing", False, "IdentityMismatch"),
    Look("9/installing", "9/follow-installing", lambda: _cp(answers("installing")), "installing", True, "NodeInstalling"),
    Look("9/unattended-pending", "9/follow-installing", lambda: _cp(answers("booting", unattended="pending")), "installing", True, "NodeInstalling"),
    Look("9/unattended-while-preparing", "9/follow-installing", lambda: _cp(answers("booting", unattended="installing", services=etcd("Preparing")),
                                                                            bootstrapped=False), "installing", True, "NodeInstalling"),
    Look("9/unattended-before-its-reboot", "9/follow-installing", lambda: followed(answers("running", unattended="waiting-for-reboot")), "installing",
         True, "NodeInstalling"),
    Look("9/unattended-failed", "9/follow-installing", lambda: followed(answers("booting", unattended="failed")), "installing", True, "NodeInstalling",
         says="tries it again"),
    Look("9/rebooting", "9/follow-rebooting", lambda: followed(answers("rebooting")), "rebooting", True, "NodeRebooting"),
    Look("9/shutting-down-node", "9/follow-rebooting", lambda: followed(answers("shuttingDown")), "shuttingDown", True, "NodeRebooting"),
    Look("9/resetting", "9/follow-rebooting", lambda: followed(answers("resetting")), "resetting", True, "NodeRebooting"),
    Look("9/booting", "9/follow-starting", lambda: followed(answers("booting", unmet=("services: kubelet not running",))), "booting", True,
         "NodeStarting", says="kubelet not running"),
    Look("9/upgrading", "9/follow-starting", lambda: followed(answers("upgrading")), "upgrading", True, "NodeStarting"),
    Look("9/unknown-stage", "9/follow-starting", lambda: followed(answers("unknown")), "unknown", True, "NodeStarting"),
    Look("9/worker-running", "9/follow-joined", lambda: followed(answers("running")), "running", True, "NodeJoined", joined=True, settled=True),
    Look("9/worker-running-before-the-bootstrap", "9/follow-worker-before-bootstrap", lambda: followed(answers("running"), bootstrapped=False),
         "running", True, "NodeStarting", settled=True, says="talos_bootstrap"),
    Look("9/control-plane-is-a-member", "9/follow-joined", lambda: _cp(answers("running", status=MEMBER)), "running", True, "NodeJoined", joined=True,
         settled=True),
    Look("9/etcd-silent", "9/follow-etcd", lambda: _cp(answers("running", status=Unknown("TimedOut", "no answer"))), "running", True, "NodeStarting",
         says="does not answer"),
    Look("9/etcd-learner", "9/follow-etcd", lambda: _cp(answers("running", status=Present(EtcdStatus("a1", "a2", learner=True)))), "running", True,
         "NodeStarting", says="learner"),
    Look("9/etcd-without-leader", "9/follow-etcd", lambda: _cp(answers("running", status=Present(EtcdStatus("a1", "0000000000000000")))), "running",
         True, "NodeStarting", says="no leader"),
    Look("9/etcd-absent", "9/follow-etcd", lambda: _cp(answers("running")), "running", True, "NodeStarting"),
    Look("9/waits-for-the-bootstrap", "9/follow-waits-for-bootstrap", lambda: _cp(answers("booting", services=etcd("Preparing")), bootstrapped=False),
         "booting", True, "NodeStarting", settled=True, says="talos_bootstrap"),
    Look("9/etcd-not-yet-preparing", "9/follow-starting", lambda: _cp(answers("booting", services=etcd("Waiting")), bootstrapped=False), "booting", True,
         "NodeStarting"),
    Look("9/joins-a-bootstrapped-cluster", "9/follow-starting", lambda: _cp(answers("booting", services=etcd("Preparing"))), "booting", True, "NodeStarting"),
    Look("9/awaiting-install", "9/follow-awaiting", lambda: followed(SILENT, insecure()), "maintenance", False, "AwaitingInstall", says="trust: true"),
    Look("9/says-maintenance-with-authentication", "9/follow-maintenance", lambda: followed(answers("maintenance")), "maintenance", True, "AwaitingInstall"),
    Look("9/neither-answers", "9/follow-silent", followed, "rebooting", False, "NodeRebooting", says="a worker opens its port only when"),
    Look("9/port-closed-for-the-whole-install", "9/follow-silent", lambda: followed(SILENT, Unknown("TimedOut", "no")), "rebooting", False, "NodeRebooting"),
    Look("9/takes-no-certificate-of-ours", "9/follow-locked-out", lambda: followed(Unknown("CredentialsInvalid", "not accepted."), WANTS), "unknown",
         False, "NodeStarting", says="talosconfig may be the wrong one"),
    Look("9/talosconfig-of-another-cluster", "9/follow-other-authority", lambda: followed(Unknown("UnknownAuthority", "another authority."), WANTS),
         "installing", False, "UnknownAuthority", settled=True, says="of another cluster"),
    Look("9/another-authority-and-not-asked-otherwise", "9/follow-other-authority", lambda: followed(Unknown("UnknownAuthority"), Absent()),
         "installing", False, "UnknownAuthority", settled=True, says="the node was reset"),
    Look("9/no-certificate-to-show", "9/follow-no-credentials", lambda: followed(NO_CREDENTIALS, WANTS, record=False), "unknown", False,
         "SecretsUnavailable", settled=True, says="Give talosconfig"),
    Look("9/no-credentials-and-not-asked-otherwise", "9/follow-no-credentials", lambda: followed(NO_CREDENTIALS, Absent()), "installing", False,
         "SecretsUnavailable", settled=True, says="can only be read with authentication"),
    Look("9/no-credentials-and-nobody-listens", "9/follow-silent", lambda: followed(NO_CREDENTIALS, SILENT), "rebooting", False, "NodeRebooting"),
    Look("9/no-credentials-in-maintenance", "9/follow-awaiting", lambda: followed(NO_CREDENTIALS, insecure()), "maintenance", False, "AwaitingInstall"),
    Look("9/static-address", "9/follow-joined", lambda: replace(followed(), elsewhere=(("10.0.0.50:50000", answers("running")),)), "running", True,
         "NodeJoined", joined=True, settled=True),
    Look("9/static-address-of-another", "9/follow-silent", lambda: replace(followed(), elsewhere=(("10.0.0.50:50000", answers("running", number=9)),)),
         "rebooting", False, "NodeRebooting"),
    Look("9/slow", "9/follow-silent", lambda: followed(minutes=10), "rebooting", False, "NodeRebooting", says="This is slow: 10 min"),
    Look("9/not-slow-yet", "9/follow-silent", lambda: followed(minutes=9.9), "rebooting", False, "NodeRebooting"),
    Look("9/stuck", "9/follow-silent", lambda: followed(minutes=30), "rebooting", False, "NodeRebooting", says="00:1c:42:00:00:01"),
    Look("9/not-stuck-yet", "9/follow-silent", lambda: followed(minutes=29.9), "rebooting", False, "NodeRebooting", says="This is slow"),
    Look("9/control-plane-without-a-record", "9/follow-etcd", lambda: followed(answers("running", status=Unknown("TimedOut", "no")), record=False),
         "running", True, "NodeStarting"),
    Look("9/worker-without-a-record", "9/follow-joined", lambda: followed(answers("running"), record=False), "running", True, "NodeJoined", joined=True,
         settled=True),
)
