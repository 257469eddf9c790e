# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The release of a held machine: only after a reading made for it shows no difference (design section 15)."""

from __future__ import annotations

from dataclasses import dataclass

from .._decide.adoption_words import ReleaseMachine
from .._decide.approved import has_converged, held_for_adoption, is_control_plane
from .._decide.comparison import compare
from .._decide.conditions import Status, with_condition
from .._decide.convergence_status import with_applied
from .._decide.comparison import Compared
from .._decide.same_machine import other_machine
from .._machineconfig.contract import contract_of
from .._machineconfig.documents import Config, load
from .._machineconfig.render import Rendered
from .._model.addresses import parse_endpoint
from .._model.errors import TalosError
from .._model.machine import cluster_of, identity_of
from .._model.moments import moment
from .._model.observed import Present, Unknown
from .._model.plan import Refusal
from .._model.ports import Ports, Store
from .._model.records import CLUSTER, MACHINE, Condition, Event, Record, text_at
from .adopt_reads import read_live
from .record_reads import MachineView, credentials_for
from .rendering import Renderer


@dataclass(frozen=True)
class Released:
    """What came of one release. `refusal`: why it stays held. `why`: what it waits for, '' where nothing."""

    name: str
    refusal: Refusal | None
    why: str = ""
    done: bool = False
    control_plane: bool = False
    events: tuple[Event, ...] = ()


async def release(step: ReleaseMachine, renderer: Renderer, ports: Ports, store: Store, allow_loopback: bool) -> Released:
    """Read the node once more, and let the machine go where it runs exactly what its records render."""
    view = _view(store, step.target.name)
    machine, plane = view.machine, is_control_plane(view.machine)
    if has_converged(machine) or not held_for_adoption(machine):
        return Released(machine.name, None, done=has_converged(machine), control_plane=plane)
    try:
        compared, wanted, stage, ready = await _compared(step, view, renderer, ports)
    except TalosError as error:
        return _stays(step, view, error.reason, error.message, error.hint, plane, ports, store)
    if not compared.in_sync:
        paths = [one.where for state in (compared.state, compared.kept) if state is not None and state.drift is not None
                 for one in (*state.drift.authority, *state.drift.apply)]
        return _stays(step, view, "AuthorityMismatch" if compared.authority else "Drifted",
                      f"{machine.name} stays held: what it runs is no longer what the records say ({', '.join(dict.fromkeys(paths))}).",
                      "Look at the difference with talos_config_info; adopt it again after its record and its patch are deleted, or put the node back.",
                      plane, ports, store)
    if stage != "running" or plane and not ready:
        return Released(machine.name, None, f"It is {stage}{'' if stage != 'running' else ' and not ready'}; it is let go once it runs. Run this again.",
                        control_plane=plane)
    now = ports.clock.now()
    store.patch_status(machine.ref, machine.uid, lambda status: _released(status, machine, compared, wanted, now))
    event = Event(machine.ref, "Normal", "NodeJoined", "Adopted: the node runs what the records say, and the hold is released.", moment(now))
    store.record_event(event)
    ports.progress(f"{machine.name}: released")
    return Released(machine.name, None, done=True, control_plane=plane, events=(event,))


def _view(store: Store, name: str) -> MachineView:
    """The machine and its cluster alone: a render needs no others, and reading all of them for each makes many machines slow."""
    machine = store.get(MACHINE, name)
    if machine is None:
        raise TalosError("RecordNotFound", f"There is no machine {name} in {store.description}.", "Run this again.")
    return MachineView(machine, store.get(CLUSTER, cluster_of(machine)), ())


async def _compared(step: ReleaseMachine, view: MachineView, renderer: Renderer, ports: Ports) -> tuple[Compared, Rendered, str, bool]:
    credentials = credentials_for(ports, text_at(view.machine.spec, "clusterRef"), view.cluster)
    if not isinstance(credentials, Present):
        raise TalosError("SecretsUnavailable", f"There are no credentials for {view.machine.name}.", "Give talosconfig.")
    async with ports.nodes.authenticated(parse_endpoint(step.at), credentials.value) as session:
        node = await read_live(session, step.at)
    other = other_machine(identity_of(view.machine), node.facts.identity)
    if other:
        raise TalosError("EndpointIdentityMismatch", f"Another machine answers at {step.at} now: {other}.", "Edit spec.endpoint, and run this again.")
    secure = node.facts.secure_boot
    wanted = renderer.machine(view, secure.value if isinstance(secure, Present) else None, keep=False)
    if not isinstance(wanted, Present):
        raise TalosError(wanted.reason if isinstance(wanted, Unknown) else "RenderFailed",
                         wanted.message if isinstance(wanted, Unknown) else "It does not render.", wanted.source)
    contract = contract_of(text_at(view.cluster.spec, "talosVersion")) if view.cluster is not None else ""
    active, kept = _load(node.text, contract), _load(node.kept, contract) if node.kept is not None else None
    stage = node.facts.stage.value if isinstance(node.facts.stage, Present) else None
    return compare(wanted.value, active, kept, node.facts.talos_version), wanted.value, stage.stage if stage else "unknown", bool(stage and stage.ready)


def _load(text: bytes, contract: str) -> Config:
    return load(text, contract)


def _released(status: dict[str, object], machine: Record, compared: Compared, wanted: Rendered, now: float) -> Status:
    """It counts as converged from now on (section 3)."""
    after = with_applied(dict(status), compared, wanted)
    after = {**after, "appliedConfigHash": after.get("appliedConfigHash") or wanted.sha256, "observedInputsHash": wanted.inputs_hash, "stage": "running",
             "stageObserved": True}
    joined = Condition("Provisioned", "True", "NodeJoined", "It was adopted.", machine.generation)
    return with_condition(with_condition(after, joined, now), Condition("Ready", "True", "Converged", "The node runs what the records say.",
                                                                        machine.generation), now)


def _stays(step: ReleaseMachine, view: MachineView, reason: str, message: str, hint: str, plane: bool, ports: Ports, store: Store) -> Released:
    """It stays held, and its record says why."""
    machine = view.machine
    now = ports.clock.now()
    condition = Condition("Ready", "False", "AdoptionHeld", f"{message} {hint}".strip(), machine.generation)
    store.patch_status(machine.ref, machine.uid, lambda status: with_condition(dict(status), condition, now))
    return Released(machine.name, Refusal(step.target, reason, message, hint, "15/drift-at-release"), control_plane=plane)
