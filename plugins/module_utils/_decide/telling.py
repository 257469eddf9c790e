# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a machine is doing, since when, what it waits for, and what a person would do now (design sections 3 and 9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .._model.approval import approval_state, status_missing, was_sent
from .._model.observations import NodeFacts
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.records import HOLD_APPLY, Record, condition_of, text_at
from .approved import held_for_adoption
from .following import GIVE_CREDENTIALS, OTHER_CLUSTER
from .record_twin import TWIN_HINT, told_of
from .same_machine import difference, recorded_identity


@dataclass(frozen=True)
class NodeNow:
    """What the node says now. `facts` is Absent where it was not asked; `maintenance`: it was asked without authentication."""

    facts: Observed[NodeFacts] = field(default_factory=Absent)
    maintenance: bool = False
    #: Another decided record of the same machine.
    twin: Record | None = None


@dataclass(frozen=True)
class Doing:
    """One sentence each; '' where there is nothing to say. `since` is a point in time as records spell it."""

    what: str
    since: str = ""
    waiting_for: str = ""
    advice: str = ""


@dataclass(frozen=True)
class _Case:
    machine: Record
    cluster: Record | None
    now: NodeNow

    @property
    def node(self) -> NodeFacts | None:
        return self.now.facts.value if isinstance(self.now.facts, Present) else None

    def since(self, condition: str) -> str:
        found = condition_of(self.machine, condition)
        return found.last_transition_time if found is not None else ""


def _pending(case: _Case) -> Doing | None:
    if approval_state(case.machine) != "pending":
        return None
    weak = condition_of(case.machine, "WeakIdentity")
    if weak is not None:
        return Doing("It is pending, with an identity that does not single it out.", case.since("WeakIdentity"), "a person who resolves its identity",
                     "Look at the machine, set spec.identity with talos_machine, and approve it with accept_weak_identity: true.")
    return Doing("It is pending: nothing is sent to it.", case.since("Ready") or text_at(case.machine.status, "maintenanceFingerprintAt"),
                 "a person's decision", "Approve or reject it with talos_machine_approval.")


def _rejected(case: _Case) -> Doing | None:
    if approval_state(case.machine) != "rejected":
        return None
    return Doing("It is rejected: nothing is ever sent to it.", text_at(case.machine.spec, "approvedAt") or case.since("Ready"), "",
                 "Nothing; approve it with talos_machine_approval when it is wanted after all.")


def _twin(case: _Case) -> Doing | None:
    if case.now.twin is None or text_at(case.machine.status, "appliedConfigHash"):
        return None
    return Doing(told_of(case.now.twin), "", "a person who takes one of them away", TWIN_HINT)


def _lost(case: _Case) -> Doing | None:
    if not (status_missing(case.machine) or case.machine.status_set_aside):
        return None
    return Doing("It is approved, and its status was lost.", "", "a person's trust", "Trust it again with talos_machine and trust: true.")


def _other(case: _Case) -> Doing | None:
    told = difference(recorded_identity(case.machine.spec), case.node.identity) if case.node is not None else ""
    if not told:
        return None
    return Doing(f"Another machine answers at its address ({told}).", case.since("Ready"), "its own answer",
                 "Correct spec.endpoint with talos_machine, or look which machine has this address.")


def _held(case: _Case) -> Doing | None:
    if case.machine.annotations.get(HOLD_APPLY) != "true":
        return None
    return Doing("It is held: nothing is applied to it.", "", "a person who lifts the hold", "Run talos_machine with hold: false.")


def _adopted(case: _Case) -> Doing | None:
    if not held_for_adoption(case.machine):
        return None
    ready = condition_of(case.machine, "Ready")
    return Doing(f"It was adopted and is held. {ready.message if ready is not None else ''}".strip(), case.since("Ready"), "its release",
                 "Run the adoption again (ichor.talos.adopt): it is released once what it runs is what its records say.")


def _never_sent(case: _Case) -> Doing | None:
    if was_sent(case.machine):
        return None
    provisioned = condition_of(case.machine, "Provisioned")
    if provisioned is not None and provisioned.status == "False":
        return Doing(f"It is approved and not provisioned: {provisioned.message or provisioned.reason}", provisioned.last_transition_time,
                     "what the message says", "Do what the message says; then run talos_maintenance_apply again.")
    if case.now.maintenance and case.node is not None:
        return Doing("It is approved and waits in maintenance mode.", text_at(case.machine.spec, "approvedAt"), "its configuration",
                     "Send it with talos_maintenance_apply.")
    return Doing("It is approved and was sent nothing yet.", text_at(case.machine.spec, "approvedAt"), "its answer in maintenance mode",
                 "Boot it into maintenance mode, then run talos_maintenance_apply.")


def _joining(case: _Case) -> Doing | None:
    if text_at(case.machine.status, "appliedConfigHash"):
        return None
    provisioned = condition_of(case.machine, "Provisioned")
    told = provisioned.message if provisioned is not None else ""
    since = text_at(case.machine.status, "configStoredAt")
    control_plane = text_at(case.machine.spec, "role") == "controlplane"
    bootstrapped = case.cluster is not None and bool(text_at(case.cluster.status, "bootstrappedAt"))
    if control_plane and not bootstrapped and _stage(case) == "booting":
        return Doing("It is booting and waits for etcd.", since, "the bootstrap of the cluster", "Bootstrap it with talos_bootstrap, once.")
    if case.cluster is not None and not control_plane and not bootstrapped and _stage(case) == "running":
        return Doing("It runs, and its cluster is not bootstrapped yet.", since, "the bootstrap of the cluster",
                     "Bootstrap a control plane with talos_bootstrap, once.")
    if case.now.maintenance and case.node is not None:
        return Doing("It took a configuration and is still in maintenance mode.", since, "its installation",
                     "Wait; when it stays so, trust: true with talos_machine allows one more send.")
    return Doing(f"It took its configuration and is on its way{f' ({_stage(case)})' if _stage(case) else ''}. {told}".strip(), since,
                 "stage running", "Follow it with talos_stage.")


def _stage(case: _Case) -> str:
    if case.node is not None and isinstance(case.node.stage, Present):
        return case.node.stage.value.stage
    return text_at(case.machine.status, "stage")


def unread(facts: Observed[NodeFacts]) -> bool:
    """Whether the node was not read for want of the right credentials, which says nothing of the node."""
    return isinstance(facts, Unknown) and facts.reason in ("SecretsUnavailable", "UnknownAuthority", "CredentialsExpired", "CredentialsInvalid")


def _fell_back(case: _Case) -> Doing | None:
    """A converged machine is never asked without authentication for a person (section 9): what the controller saw is what there is."""
    provisioned = condition_of(case.machine, "Provisioned")
    if case.node is not None or provisioned is None or provisioned.status != "False" or text_at(case.machine.status, "stage") != "maintenance":
        return None
    return Doing(f"It had joined, and was in maintenance mode when it was last looked at: {provisioned.message or provisioned.reason}",
                 provisioned.last_transition_time, "what the message says", "Let talos_controller go on, and do what the message asks for.")


def _unread(case: _Case) -> Doing | None:
    facts = case.now.facts
    if not unread(facts) or not isinstance(facts, Unknown):
        return None
    if facts.reason == "SecretsUnavailable":
        return Doing(f"It has joined, and was not read, since there are no credentials for it ({facts.message.rstrip('.')}).", "", "", GIVE_CREDENTIALS)
    advice = OTHER_CLUSTER if facts.reason == "UnknownAuthority" else "Have a new talosconfig issued with talos_credentials."
    return Doing(f"It has joined, and is not read with these credentials ({(facts.message or facts.reason).rstrip('.')}).", "", "", advice)


def _silent(case: _Case) -> Doing | None:
    if not isinstance(case.now.facts, Unknown):
        return None
    return Doing(f"It has joined, and does not answer now ({case.now.facts.message or case.now.facts.reason}).", case.since("NodeReachable"), "its answer",
                 "Look at the machine and its network; when its address changed, set spec.endpoint with talos_machine.")


def _running(case: _Case) -> Doing | None:
    ready = condition_of(case.machine, "Ready")
    if ready is not None and ready.status == "False":
        return Doing(f"It has joined, and is not Ready: {ready.message or ready.reason}", ready.last_transition_time, "what the message says",
                     "Do what the message says.")
    stage = _stage(case)
    if stage and stage != "running":
        return Doing(f"It has joined, and is in stage {stage} now.", case.since("Ready"), "stage running", "Follow it with talos_stage.")
    return Doing("It runs.", case.since("Provisioned") or case.since("Ready"), "", "Nothing.")


#: The first row that has something to say says it.
ROWS: tuple[Callable[[_Case], Doing | None], ...] = (
    _rejected, _twin, _pending, _lost, _other, _held, _adopted, _never_sent, _joining, _fell_back, _unread, _silent, _running,
)


def tell(machine: Record, cluster: Record | None, now: NodeNow) -> Doing:
    """What a person wants to know about one machine."""
    case = _Case(machine, cluster, now)
    return next(found for row in ROWS if (found := row(case)) is not None)
