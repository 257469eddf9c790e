# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Observing one machine for provisioning: the decision says what is read next (design section 9, steps 1 to 8)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from .._decide.approved import is_approved, is_control_plane
from .._decide.provisioning import decide
from .._decide.provisioning_words import Need, Provisioning, Settled, Verdict
from .._machineconfig.bring import BroughtConfig
from .._model.approval import was_sent
from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.identity import Identity
from .._model.machine import cluster_of, dial_endpoint, identity_of, known_endpoints, pin_of
from .._model.observations import Endpoint
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.plan import Target
from .._model.ports import Ports
from .._model.timing import Timing
from .compared_memory import ComparedMemory
from .etcd_reads import read_view
from .node_reads import read_certificate, read_maintenance, read_members, read_running
from .pass_store import PassStore
from .rendering import Renderer, brought
from .record_reads import MachineView, address_of, credentials_for, need_store, read_machine, rules_for


@dataclass(frozen=True)
class Job:
    """One machine and the configuration that is for it. `name` is the record's; without a store the rest says who it is.

    `render`: the configuration is rendered from the records, anew for each observation; `config` is what came of it last. `endpoint`, of
    a recorded machine: at which of its known addresses it is dialled. `rules`: the decision that judges it.
    """

    name: str = ""
    config: Observed[BroughtConfig] = Absent()
    render: bool = False
    endpoint: Endpoint | None = None
    identity: Identity = Identity()
    fingerprint: str = ""
    cluster: str = ""
    rules: Callable[[Provisioning, float], Verdict] = decide

    @property
    def label(self) -> str:
        """How the result calls it."""
        return self.name or str(self.endpoint)

    @property
    def hostname(self) -> str:
        return self.config.value.hostname if isinstance(self.config, Present) else ""


@dataclass(frozen=True)
class Seen:
    """The observation of a job with what reading it needs and decisions must not see."""

    job: Job
    observation: Provisioning
    view: MachineView | None = None
    endpoint: Endpoint | None = None
    credentials: Credentials | None = None


@dataclass(frozen=True)
class Surroundings:
    """What is the same for all jobs of a run."""

    ports: Ports
    timing: Timing
    allow_loopback: bool = False
    renderer: Renderer | None = None
    #: The records that this task sends to.
    names: tuple[str, ...] = ()
    #: Whether a change may reboot a running machine.
    allow_reboot: bool = True
    #: Whether the Node of a machine is drained before it is rebooted.
    drains: bool = False
    #: What was compared already, for machines that run.
    memory: ComparedMemory = field(default_factory=ComparedMemory)
    #: The cluster whose etcd a person gave up by typing its name (section 12), or ''.
    discard_etcd: str = ""

    def rendered(self, job: Job) -> Job:
        """The job with its configuration, where that is to be rendered from the records. Raises TalosError `RecordNotFound`."""
        if not job.render or self.renderer is None:
            return job
        return replace(job, config=brought(self.renderer.machine(read_machine(need_store(self.ports), job.name))))


def begin(around: Surroundings, job: Job, beside: tuple[tuple[str, str], ...], after: tuple[str, ...] = ()) -> Seen:
    """The observation before any node was asked. Raises TalosError `RecordNotFound`."""
    ports = around.ports
    if not job.name:
        return _without_store(around, job)
    view = read_machine(need_store(ports), job.name)
    cluster = cluster_of(view.machine)
    rendered = around.renderer.machine(view) if job.render and around.renderer is not None else None
    credentials = credentials_for(ports, cluster, view.cluster)
    address = address_of(view, around.allow_loopback)
    if job.endpoint is not None and isinstance(address, Present):
        address = _known(around, view, job.endpoint)
    observation = Provisioning(
        target=view.target, identity=identity_of(view.machine), pin=pin_of(view.machine),
        config=job.config if rendered is None else brought(rendered), rendered=rendered.value if isinstance(rendered, Present) else None,
        authority=Present(credentials.value.ca) if isinstance(credentials, Present) else credentials,
        endpoint=Present(str(address.value)) if isinstance(address, Present) else address,
        machine=view.machine, cluster=view.cluster, siblings=view.siblings, beside=tuple(one for one in beside if one[0] != job.name),
        named=around.renderer.names_beside(view) if around.renderer is not None else (),
        everybody=view.everybody, same_address=_same_address(around, view), after=after, holder=ports.holder, sending_fresh=around.timing.sending_counts,
        follow=around.timing.follow, discard_etcd=around.discard_etcd if around.names == (job.name,) else "")
    return Seen(job, observation, view, address.value if isinstance(address, Present) else None,
                credentials.value if isinstance(credentials, Present) else None)


def _known(around: Surroundings, view: MachineView, endpoint: Endpoint) -> Observed[Endpoint]:
    """That address, where the machine is known at it (section 6) and may be dialled there."""
    if endpoint not in known_endpoints(view.machine):
        return Unknown("EndpointRefused", f"Machine {view.machine.name} is not known at {endpoint}.")
    try:
        rules_for(view.cluster, around.allow_loopback, endpoint)
    except TalosError as error:
        return Unknown("EndpointRefused", error.message)
    return Present(endpoint)


def _same_address(around: Surroundings, view: MachineView) -> tuple[str, ...]:
    """Other machines of this task that are dialled where this one is."""
    if isinstance(around.ports.store, PassStore):
        with suppress(TalosError):
            return tuple(name for name in around.ports.store.dialled_at(dial_endpoint(view.machine)) if name != view.machine.name)
        return ()
    found = []
    for other in view.everybody:
        if other.name in around.names and other.name != view.machine.name:
            with suppress(TalosError):
                if dial_endpoint(other) == dial_endpoint(view.machine):
                    found.append(other.name)
    return tuple(found)


def _without_store(around: Surroundings, job: Job) -> Seen:
    credentials = credentials_for(around.ports, job.cluster, None)
    if isinstance(credentials, Unknown) and credentials.reason == "SecretsUnavailable":
        credentials = Absent("no credentials were given")
    address: Observed[str] = Absent("no address was given")
    if job.endpoint is not None:
        try:
            rules_for(None, around.allow_loopback, job.endpoint)
            address = Present(str(job.endpoint))
        except TalosError as error:
            address = Unknown(error.reason, error.message)
    observation = Provisioning(
        target=Target(kind="Node", name=job.label, uuid=job.identity.uuid, address=str(job.endpoint)), identity=job.identity,
        pin=job.fingerprint, config=job.config,
        authority=Present(credentials.value.ca) if isinstance(credentials, Present) else credentials, endpoint=address,
        holder=around.ports.holder, sending_fresh=around.timing.sending_counts)
    return Seen(job, observation, None, job.endpoint, credentials.value if isinstance(credentials, Present) else None)


async def observe(around: Surroundings, seen: Seen) -> tuple[Seen, Verdict]:
    """Read what the decision asks for until it has decided."""
    while True:
        verdict = seen.job.rules(seen.observation, around.ports.clock.now())
        if not isinstance(verdict, Need):
            return seen, verdict
        seen = replace(seen, observation=await _read(around, seen, verdict.reading))


async def _read(around: Surroundings, seen: Seen, reading: str) -> Provisioning:
    ports, observation, endpoint = around.ports, seen.observation, seen.endpoint
    if endpoint is None:
        raise ValueError("the gate of the address comes before every reading")
    if reading == "running":
        return replace(observation, running=await read_running(ports, endpoint, seen.credentials))
    if reading == "maintenance":
        return as_booted(around, seen, replace(observation, maintenance=await read_maintenance(ports, endpoint)))
    if reading == "settled":
        await ports.clock.sleep(around.timing.settle)
        again = await read_certificate(ports, endpoint)
        return replace(observation, settled=Present(Settled(again.value)) if isinstance(again, Present) else again)
    return await read_etcd(around, seen, observation, reading)


async def read_etcd(around: Surroundings, seen: Seen, observation: Provisioning, reading: str) -> Provisioning:
    """The observation with etcd's members as another control plane lists them, or (`etcd`) as all of them do and who answers healthy."""
    if reading == "members":
        return replace(observation, members=await read_members(around.ports, members_at(seen), seen.credentials))
    machine = observation.machine
    return replace(observation, etcd=await read_view(around.ports, members_at(seen), seen.credentials, seen.endpoint, machine))


def as_booted(around: Surroundings, seen: Seen, observation: Provisioning) -> Provisioning:
    """The observation with the render for how the node booted: its SecureBoot state decides the installer (section 8)."""
    facts = observation.maintenance
    if not seen.job.render or around.renderer is None or seen.view is None or not isinstance(facts, Present):
        return observation
    secure = facts.value.secure_boot
    rendered = around.renderer.machine(seen.view, secure.value if isinstance(secure, Present) else None)
    return replace(observation, config=brought(rendered), rendered=rendered.value if isinstance(rendered, Present) else None)


def members_at(seen: Seen) -> tuple[Endpoint, ...]:
    """Where the members of the cluster can be read: at the other control planes that were sent a configuration."""
    from_records: list[Endpoint] = []
    for other in seen.view.siblings if seen.view else ():
        if other.name == seen.job.name or not (is_approved(other) and is_control_plane(other) and was_sent(other)):
            continue
        try:
            from_records.append(dial_endpoint(other))
        except TalosError:
            continue
    return tuple(from_records)
