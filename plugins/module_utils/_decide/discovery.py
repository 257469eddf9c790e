# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a discovery pass writes down (design section 6)."""

from __future__ import annotations

from collections.abc import Mapping

from .._model.approval import approval_state
from .._model.hardware import meaningful
from .._model.identity import Identity, swapped_uuid
from .._model.machine import cluster_of, dial_endpoint, known_endpoints, strong_name
from .._model.moments import moment, seconds_of
from .._model.observations import NodeFacts
from .._model.outcome import Transition
from .._model.plan import Plan, Step, Target, Wait, Warn
from .._model.records import CLUSTER, Condition, Event, Json, Record, Ref, condition_of, text_at
from .discovery_entry import endpoint_text, pending_record, weak_name
from .discovery_table import OTHER, OWN, row_of, state_of
from .discovery_targets import owners_of
from .discovery_verdict import CreateMachine, Found, RefreshPin, Verdict
from .discovery_words import Answer, Discovery, World
from .hardware_status import hardware_values, pin_values
from .same_machine import recorded_identity
from .status_change import StatusChange
from .weak_identity import Suspect, Weakness, contradicts, weaknesses

SECOND_READING = "a second equal reading of its certificate"
#: So many warnings of one rule are shown one by one.
WARNINGS_A_RULE = 8


def decide_discovery(request: Discovery, world: World, now: float) -> Verdict:
    """The plan (machines to create, pins to refresh), the effects beside it, and what was found.

    Depends on what was read and not on the order in which it came.
    """
    decision = _Pass(request, world, now)
    for answer in decision.answers:
        decision.take(answer)
    return decision.verdict()


class _Pass:
    """One decision under construction; `take` is called with the answers in order of their addresses."""

    def __init__(self, request: Discovery, world: World, now: float) -> None:
        self.request, self.world, self.now = request, world, now
        self.owners = owners_of(world.machines)
        self.by_name = {machine.name: machine for machine in world.machines}
        self.by_identity: dict[Identity, list[Record]] = {}
        self.by_uuid: dict[str, list[Record]] = {}
        for machine in sorted(world.machines, key=lambda record: record.name):
            identity = meaningful(recorded_identity(machine.spec))
            if identity.uuid:
                self.by_identity.setdefault(identity, []).append(machine)
                self.by_uuid.setdefault(identity.uuid, []).append(machine)
        self.live: dict[str, list[Identity]] = {}
        self.groups: dict[Identity, list[Answer]] = {}
        self.silent = sum(1 for answer in world.answers if answer.probe.kind == "NotListening")
        told = (answer for answer in world.answers if answer.probe.kind != "NotListening" or answer.probe.endpoint in self.owners)
        self.answers = sorted(told, key=lambda entry: entry.probe.endpoint)
        for answer in self.answers:
            if answer.facts is not None and meaningful(answer.facts.identity).uuid:
                self.groups.setdefault(meaningful(answer.facts.identity), []).append(answer)
                self.live.setdefault(meaningful(answer.facts.identity).uuid, []).append(answer.facts.identity)
        self.names = {machine.name for machine in world.machines} | {broken.name for broken in world.broken}
        self.pending = sum(1 for machine in world.machines
                           if cluster_of(machine) == request.cluster and approval_state(machine) == "pending")
        self.over_limit = 0
        self.steps: list[Step] = []
        self.warnings: list[Warn] = []
        self.changes: dict[str, StatusChange] = {}
        self.events: list[Event] = []
        self.found: list[Found] = []
        self.created: set[Identity] = set()

    def verdict(self) -> Verdict:
        if self.over_limit:
            target = Target(kind=CLUSTER, name=self.request.cluster)
            self.warnings.append(Warn(target, (
                f"{self.over_limit} more machines answered, but {self.request.pending_limit} are pending already: none was created. "
                "Approve or reject some, or raise pending_limit."), "6/pending-limit"))
        changes = tuple(self.changes[name] for name in sorted(self.changes))
        return Verdict(Plan(tuple(self.steps), warnings=_few(self.warnings)), changes, tuple(self.events), tuple(self.found), self.silent)

    def take(self, answer: Answer) -> None:
        if answer.probe.kind == "AlreadyConfigured":
            self._configured(answer)
        elif answer.facts is None:
            owner = self.owners.get(answer.probe.endpoint)
            self._tell(answer, answer.problem or answer.probe.message, "6/no-facts" if answer.probe.kind == "Maintenance" else "",
                       owner.name if owner else "")
        else:
            self._maintenance(answer, answer.facts)

    def _maintenance(self, answer: Answer, facts: NodeFacts) -> None:
        identity = meaningful(facts.identity)
        group = self.groups.get(identity, [answer])
        owner = self.owners.get(answer.probe.endpoint)
        entry = self.by_name.get(weak_name(answer.probe.endpoint, identity))
        matches = self.by_identity.get(identity, [])
        if len({_fingerprint(member) for member in group}) > 1:
            self._twin(answer, group, matches)
        elif entry is not None:
            self._tell(answer, f"It is machine {entry.name}; a person resolves it.", "6/weak-same-entry", entry.name, weak=True)
        elif owner is not None and owner in matches:
            self._own(answer, facts, owner)
        elif owner is not None:
            self._tell(answer, f"This is the address of machine {owner.name}, and another identity answers ({_words(identity)}): nothing is changed.",
                       "6/other-answer-at-known-address", owner.name, warn=True)
        elif matches:
            self._elsewhere(answer, facts, matches[0], group)
        else:
            self._unknown(answer, facts, identity, group)

    def _own(self, answer: Answer, facts: NodeFacts, machine: Record) -> None:
        row = row_of(state_of(machine), OWN)
        weak = self._weaknesses(facts.identity, machine)
        if cluster_of(machine) != self.request.cluster:
            self._tell(answer, f"It is machine {machine.name} of cluster {cluster_of(machine)}, whose record is not changed.",
                       "6/other-cluster", machine.name)
        elif not row.refresh:
            self._tell(answer, f"It is machine {machine.name} ({row.state}); discovery changes nothing of it.", row.rule, machine.name)
        elif weak:
            self._tell(answer, f"It looks like machine {machine.name}, but {weak[0].message}: nothing is changed.",
                       "6/refresh-needs-strong-identity", machine.name, weak=True, warn=True)
        elif facts.certificate.matches(text_at(machine.status, "maintenanceFingerprint")):
            self._untwin(machine)
            self._tell(answer, f"It is machine {machine.name}; its certificate is unchanged.", "6/unchanged-certificate", machine.name)
        else:
            self._untwin(machine)
            self._refresh(answer, facts, machine, {})
            self._tell(answer, f"It is machine {machine.name}; its certificate changed.", row.rule, machine.name)

    def _elsewhere(self, answer: Answer, facts: NodeFacts, machine: Record, group: list[Answer]) -> None:
        row = row_of(state_of(machine), OTHER)
        own = known_endpoints(machine)[:1]
        weak = self._weaknesses(facts.identity, machine)
        if cluster_of(machine) != self.request.cluster:
            self._tell(answer, f"It is machine {machine.name} of cluster {cluster_of(machine)}, whose record is not changed.",
                       "6/other-cluster", machine.name)
        elif not row.moves:
            self._tell(answer, f"It says that it is machine {machine.name} ({row.state}), which is known at another address: nothing is recorded.",
                       row.rule, machine.name, warn=True)
        elif any(member.probe.endpoint in own for member in group):
            self._tell(answer, f"It is machine {machine.name}, which answers at its own address too.", "6/own-address-answers", machine.name)
        elif weak:
            self._tell(answer, f"It looks like machine {machine.name}, but {weak[0].message}: nothing is recorded.",
                       "6/refresh-needs-strong-identity", machine.name, weak=True, warn=True)
        elif group[0] is not answer:
            self._tell(answer, f"It is machine {machine.name} at one more address.", "6/second-address", machine.name)
        else:
            moved: dict[str, Json] = {"observedEndpoint": endpoint_text(answer.probe.endpoint),
                                      "observedEndpointFor": text_at(machine.spec, "endpoint")}
            if row.refresh and not facts.certificate.matches(text_at(machine.status, "maintenanceFingerprint")):
                self._refresh(answer, facts, machine, moved)
            else:
                self._change(machine, moved, transitions=(_move(machine, answer),))
            self._tell(answer, f"It is machine {machine.name}, which no longer answers at its own address.", row.rule, machine.name)

    def _unknown(self, answer: Answer, facts: NodeFacts, identity: Identity, group: list[Answer]) -> None:
        weak = self._weaknesses(facts.identity, None)
        partly = next((machine for machine in self.by_uuid.get(identity.uuid, [])
                       if not weak and not contradicts(recorded_identity(machine.spec), identity)), None)
        if partly is not None:
            self._tell(answer, f"Machine {partly.name} has this UUID and records only a part of the identity ({_words(identity)}): nothing is changed.",
                       "6/partly-recorded", partly.name, warn=True)
        elif not self.request.register:
            self._tell(answer, "It is in no record." if self.request.cluster else "", "", weak=bool(weak))
        elif self.world.broken:
            self._tell(answer, f"{self.world.broken[0].source} cannot be read, so nobody knows whether this machine is recorded: nothing is created.",
                       "6/broken-records", warn=True)
        elif not weak and group[0] is not answer:
            self._tell(answer, "It is the same node at one more address.", "6/second-address")
        elif self.pending >= self.request.pending_limit:
            self.over_limit += 1
            self._tell(answer, "It is not recorded: too many machines are pending.", "6/pending-limit", weak=bool(weak))
        else:
            self._create(answer, facts, identity, weak)

    def _configured(self, answer: Answer) -> None:
        endpoint = answer.probe.endpoint
        owner = self.owners.get(endpoint)
        if owner is not None and state_of(owner) in ("sent", "approved-pinned", "approved-unpinned"):
            self._tell(answer, f"It is the address of machine {owner.name}, and a configured node answers.", "6/configured-own", owner.name)
            return
        name = answer.probe.certificate.common_name if answer.probe.certificate else ""
        message = (f"{endpoint} runs a configuration already{f' (its certificate is for {name})' if name else ''}: nothing is created. "
                   "Where it belongs to this cluster, ichor.talos.add_machine takes it in as it is; where it belongs to another one, "
                   "ichor.talos.reclaim resets it with consent.")
        self._tell(answer, message, "6/already-configured", owner.name if owner else "")
        if self.request.register and self.world.cluster is not None and not self._told_before(answer, message):
            self.events.append(Event(Ref(CLUSTER, self.request.cluster), "Warning", "AlreadyConfigured", message, moment(self.now)))

    def _told_before(self, answer: Answer, message: str) -> bool:
        """Whether the last thing that was noted about this address was just this."""
        last = max((seconds_of(event.time) or 0.0 for event in self.world.events
                    if event.reason == "AlreadyConfigured" and event.message == message), default=None)
        if last is None:
            return False
        here = f"{answer.probe.endpoint} "
        later = [seconds_of(event.time) or 0.0 for event in self.world.events
                 if event.reason == "AlreadyConfigured" and event.message.startswith(here) and event.message != message]
        for machine in self.world.machines:
            if answer.probe.endpoint in known_endpoints(machine):
                later.append(seconds_of(text_at(machine.status, "maintenanceFingerprintAt")) or 0.0)
        return all(time <= last for time in later)

    def _create(self, answer: Answer, facts: NodeFacts, identity: Identity, weak: tuple[Weakness, ...]) -> None:
        name = weak_name(answer.probe.endpoint, identity) if weak else strong_name(self.request.cluster, identity.uuid, self.names)
        record = pending_record(name, self.request.cluster, answer.probe.endpoint, facts, identity, weak, self.now)
        self.names.add(record.name)
        self.pending += 1
        uuid = "" if weak else identity.uuid
        target = Target(name=record.name, cluster=self.request.cluster, uuid=uuid, address=str(answer.probe.endpoint),
                        cluster_id=self.world.cluster.uid if self.world.cluster else "")
        why = f"it answers in maintenance mode at {answer.probe.endpoint} ({_words(facts.identity)}) with certificate {facts.certificate.fingerprint}"
        self.steps.append(CreateMachine(
            target, why, address=str(answer.probe.endpoint), uuid=uuid, macs=identity.macs, fingerprint=facts.certificate.fingerprint,
            weak=bool(weak), record=record, endpoint=answer.probe.endpoint, waits_for=(Wait(SECOND_READING, self.request.settle, record.name),)))
        message = f"It is a new machine, {record.name}, pending approval."
        if weak:
            message = f"It is recorded as {record.name} with a weak identity: {weak[0].message}."
            self.warnings.append(Warn(target, message + " Set spec.identity and approve it with accept_weak_identity.", weak[0].rule))
        self._tell(answer, message, weak[0].rule if weak else "6/new", record.name, weak=bool(weak))

    def _refresh(self, answer: Answer, facts: NodeFacts, machine: Record, moved: Mapping[str, Json]) -> None:
        if not self.request.register:
            return
        old, new = text_at(machine.status, "maintenanceFingerprint"), facts.certificate.fingerprint
        event = Event(machine.ref, "Normal", "MaintenanceIdentityRefreshed",
                      f"The certificate of {machine.name} at {answer.probe.endpoint} changed from {old or 'none'} to {new}.", moment(self.now))
        change = StatusChange(
            machine.ref, machine.uid, {**pin_values(facts.certificate, self.now), **hardware_values(facts), **moved,
                                       "stage": "maintenance", "stageObserved": True},
            conditions=(_pending(machine),), events=(event,), transitions=(_move(machine, answer),) if moved else ())
        self.steps.append(RefreshPin(
            _target(machine, self.world.cluster, answer), f"its certificate changed from {old or 'none'} to {new}; the identity is equal",
            fingerprint=new, previous=old, change=change, endpoint=answer.probe.endpoint,
            waits_for=(Wait(SECOND_READING, self.request.settle, machine.name),)))

    def _twin(self, answer: Answer, group: list[Answer], matches: list[Record]) -> None:
        told = "; ".join(f"{member.probe.endpoint} with {_fingerprint(member)}" for member in group)
        message = f"Two nodes say that they are one machine, with different certificates: {told}."
        mine = [machine for machine in matches if cluster_of(machine) == self.request.cluster]
        if mine and approval_state(mine[0]) == "pending":
            self._change(mine[0], {}, (Condition("WeakIdentity", "True", "TwinIdentity", message, mine[0].generation),))
        self._tell(answer, message + " Nothing is recorded.", "6/twin", mine[0].name if mine else "", weak=True, warn=group[0] is answer)

    def _untwin(self, machine: Record) -> None:
        condition = condition_of(machine, "WeakIdentity")
        if self.request.whole and condition is not None and condition.reason == "TwinIdentity":
            self._change(machine, {}, without=("WeakIdentity",))

    def _change(self, machine: Record, values: Mapping[str, Json], conditions: tuple[Condition, ...] = (),
                without: tuple[str, ...] = (), transitions: tuple[Transition, ...] = ()) -> None:
        if self.request.register:
            self.changes[machine.name] = StatusChange(machine.ref, machine.uid, values, conditions, without, transitions=transitions)

    def _tell(self, answer: Answer, message: str, rule: str, machine: str = "", *, weak: bool = False, warn: bool = False) -> None:
        self.found.append(Found(answer.probe.endpoint, answer.probe.kind, machine, message, rule, weak, answer.facts))
        if warn:
            self.warnings.append(Warn(Target(name=machine, cluster=self.request.cluster, address=str(answer.probe.endpoint)),
                                      f"{answer.probe.endpoint}: {message}", rule))

    def _weaknesses(self, identity: Identity, itself: Record | None) -> tuple[Weakness, ...]:
        """Why an identity is weak, held against those that share its UUID in either byte order."""
        uuid = meaningful(identity).uuid
        uuids = (uuid, swapped_uuid(uuid)) if uuid else ()
        live = tuple(other for name in uuids for other in self.live.get(name, []))
        recorded = tuple(machine for name in uuids for machine in self.by_uuid.get(name, []) if machine is not itself)
        return weaknesses(Suspect(identity, live, recorded))


def _few(warnings: list[Warn]) -> tuple[Warn, ...]:
    """The warnings, of each rule only the first ones: somebody who answers hundreds of addresses shall not bury the others."""
    counts: dict[str, int] = {}
    kept = []
    for warning in warnings:
        counts[warning.rule] = counts.get(warning.rule, 0) + 1
        if counts[warning.rule] <= WARNINGS_A_RULE:
            kept.append(warning)
    for rule, count in counts.items():
        if count > WARNINGS_A_RULE:
            kept.append(Warn(Target(kind=CLUSTER), f"{count - WARNINGS_A_RULE} more answers are like that ({rule}); the result lists them all.", rule))
    return tuple(kept)


def _fingerprint(answer: Answer) -> str:
    return answer.facts.certificate.fingerprint if answer.facts is not None else ""


def _words(identity: Identity) -> str:
    """The identity for a person: what is missing is not shown."""
    parts = [f"UUID {identity.uuid}" if identity.uuid else "no UUID", f"serial {identity.serial}" if identity.serial else "",
             f"MACs {', '.join(identity.macs)}" if identity.macs else ""]
    return ", ".join(part for part in parts if part)


def _pending(machine: Record) -> Condition:
    return Condition("Ready", "False", "PendingApproval", "A person approves or rejects this machine.", machine.generation)


def _target(machine: Record, cluster: Record | None, answer: Answer) -> Target:
    return Target(name=machine.name, cluster=cluster_of(machine), cluster_id=cluster.uid if cluster else "", uid=machine.uid,
                  uuid=recorded_identity(machine.spec).uuid, address=str(answer.probe.endpoint))


def _move(machine: Record, answer: Answer) -> Transition:
    return Transition(machine.name, "observedEndpoint", str(dial_endpoint(machine)), str(answer.probe.endpoint))
