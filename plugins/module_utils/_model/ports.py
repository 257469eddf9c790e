# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The three ports and the clock: what an operation needs of the world (architecture, "How data walks").

Nodes are async, store and cluster sync. `_node`, `_store` and `_kube` implement them; tests pass others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .errors import TalosError

if TYPE_CHECKING:  # each module imports what it uses of these; here they only stand in signatures
    from .container_network import Chart, KubeAccess, Live, NetworkSeen
    from .credentials import Credentials
    from .endpoint import Certificate, Endpoint, Probe
    from .identity import Identity
    from .observations import ApplyReply, Disk, EtcdAlarm, EtcdMember, EtcdStatus, Link, NodeFacts, NodePlace, Partition, ServiceState, StageReading
    from .observed import Observed
    from .plan import Plan
    from .records import Event, Json, JsonMap, Listing, Record, Ref
    from .workloads import Eviction, Hosting, Pod


class Clock(Protocol):
    """Time as the product sees it; tests pass their own."""

    def now(self) -> float:
        """UTC seconds since the epoch, for what is written down."""

    def monotonic(self) -> float:
        """Seconds that never jump, for deadlines and leases."""

    async def sleep(self, seconds: float) -> None: ...


class Progress(Protocol):
    """Tells a person what is being done, live. `line` is one sentence without secrets."""

    def __call__(self, line: str) -> None: ...


class Session(Protocol):
    """One connection to one node. Reads are cleaned and capped; each call has the deadline of its row (section 19).

    Every method raises TalosError; an answer that proves absence is `Absent`, a refusal or silence is raised
    (or `Unknown` inside `facts`).
    """

    @property
    def endpoint(self) -> Endpoint: ...

    @property
    def certificate(self) -> Certificate: ...

    @property
    def maintenance(self) -> bool: ...

    async def identity(self) -> Identity: ...

    async def facts(self) -> NodeFacts:
        """Identity, stage, disks, links, partitions, version, SecureBoot and host name, read over this connection."""

    async def stage(self) -> StageReading: ...

    async def disks(self) -> Observed[tuple[Disk, ...]]: ...

    async def links(self) -> Observed[tuple[Link, ...]]: ...

    async def partitions(self) -> Observed[tuple[Partition, ...]]: ...

    async def machine_config(self, persistent: bool = False) -> Observed[bytes]:
        """The configuration as stored (needs os:admin)."""

    async def boot_id(self) -> Observed[str]: ...

    async def hostname(self) -> Observed[str]: ...

    async def version(self) -> Observed[str]:
        """Talos's own version, as its resource tells it."""

    async def services(self) -> tuple[ServiceState, ...]: ...

    async def etcd_members(self, local: bool) -> tuple[EtcdMember, ...]: ...

    async def etcd_status(self, node: str = "") -> EtcdStatus:
        """What this node's member says of itself; with `node`, what the one at that address says, asked through this control plane."""

    async def etcd_alarms(self) -> tuple[EtcdAlarm, ...]: ...

    async def apply(self, config: bytes, mode: str) -> ApplyReply:
        """WRITE. ApplyConfiguration, mode AUTO, NO_REBOOT or STAGED; raises CheckModeWrite in check mode.

        Raises TalosError `ConfigRejected` for INVALID_ARGUMENT, `FailedPrecondition` for "another apply in progress",
        `ConnectionLost` or `TimedOut` where the answer is unknown (section 9, "No answer"); `failure.code` tells.
        """

    async def etcd_remove_member(self, member: str) -> None:
        """WRITE. Remove the member with this id (16 hexadecimal digits) through this control plane; raises `NotFound` when it is gone
        already, `NodeRefused` when etcd will not do without it, or what the transport says."""

    def etcd_snapshot(self) -> AsyncIterator[bytes]:
        """The database of this node's etcd in pieces, as it streams them, with the SHA-256 of all before at its end (32 bytes). No more
        of it than one piece is held; silence for the deadline of a call raises `TimedOut`."""

    async def etcd_recover(self, pieces: Iterable[bytes]) -> None:
        """WRITE. Put a snapshot beside the etcd of this control plane, for a bootstrap that recovers it. Pieces of at most 1 MiB; an OK
        says that they arrived, and nothing of what they hold (Talos fact)."""

    async def etcd_leave(self) -> None:
        """WRITE. The node's own member leaves etcd and its data is deleted; raises `NodeRefused` when etcd will not do without it."""

    async def reset(self, partitions: Sequence[str], graceful: bool = True) -> None:
        """WRITE. Leave etcd where that is to be left (`graceful`), wipe the partitions with these labels, restart. The call's OK says nothing
        of what follows: maintenance mode does (section 14)."""

    async def bootstrap(self, recover: bool = False, unverified: bool = False) -> None:
        """WRITE. Bootstrap, with the snapshot that was put there where it is to `recover`; `unverified`: that one has no hash at its end.
        Raises `AlreadyExists`, `BootstrapNotAvailable` (try again), or what the transport says."""

    async def reboot(self) -> None:
        """WRITE. Restart the node. The call's OK says nothing of what follows: another boot id does (section 13)."""


class Nodes(Protocol):
    """All nodes, through one process."""

    def scan(self, targets: Sequence[Endpoint], *, rate: float, unresolved: int, timeout: float) -> AsyncIterator[Probe]:
        """Probe many addresses; yields one Probe an address, in order of arrival (section 6)."""

    async def probe(self, endpoint: Endpoint, timeout: float) -> Probe: ...

    def maintenance(self, endpoint: Endpoint, pin: str = "") -> AbstractAsyncContextManager[Session]:
        """An insecure session. With a pin, another certificate raises `MaintenanceIdentityChanged` before a byte of
        HTTP/2; a node that wants a client certificate raises `ClientCertificateRequired`."""

    def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AbstractAsyncContextManager[Session]: ...

    @property
    def written(self) -> bool:
        """Whether a node accepted a write."""

    def end_writes(self) -> None:
        """From now on a write that was not begun ends its task as cancelled; those under way go on (section 18)."""

    async def close(self) -> None: ...


@dataclass(frozen=True)
class LeaseView:
    """A lease as read. `holder` '' means free; times are UTC seconds and only for showing (section 13)."""

    name: str
    holder: str
    purpose: str
    acquired_at: float
    renewed_at: float
    duration: float
    version: str


class Leases(Protocol):
    """Locks of one store (section 13)."""

    def read(self, name: str) -> LeaseView | None: ...

    def acquire(self, name: str, holder: str, purpose: str, duration: float) -> LeaseView:
        """Take a free, own, expired or provably abandoned lease; else raise `LockHeld` that says who, since when, for what.

        Raises `NoLock` where the store cannot lock (section 4).
        """

    def renew(self, lease: LeaseView) -> LeaseView:
        """Renew; raises `LockHeld` when it was lost."""

    def release(self, lease: LeaseView) -> None:
        """Release if still held; never raises for a lost one."""

    def no_lock(self) -> str:
        """Why this place cannot lock the store, as a sentence, or '' where it can (section 4)."""

    def take_over(self) -> None:
        """Make this the place that locks the store, on a person's word: every other one has `NoLock` from then on (section 4)."""


@dataclass(frozen=True)
class Actor:
    """Who acts: `by` for approvedBy (a person), `via` for approvedVia (the account or tool), `schedule` when AWX started
    it by itself (such a run approves nothing, section 7)."""

    by: str
    via: str
    schedule: bool = False


class Store(Protocol):
    """Where records live (section 4). All methods raise TalosError."""

    @property
    def description(self) -> str:
        """For messages: e.g. `directory ./ichor`."""

    def account(self) -> str:
        """Who the store knows this run as: the user that the API server sees. '' where it knows nobody, as a folder does."""

    @property
    def leases(self) -> Leases: ...

    def get(self, kind: str, name: str) -> Record | None: ...

    def list(self, kind: str) -> Listing: ...

    def create(self, record: Record) -> Record:
        """Write a new spec (and `record.status` with it when given); `RecordExists` when the name is taken."""

    def update(self, record: Record, spec: JsonMap, *, annotations: Mapping[str, str] | None = None,
               labels: Mapping[str, str] | None = None, override: bool = False) -> Record:
        """Write a spec over the one that was read (`record`); `RecordChanged` when it is no longer that one.

        Only for people's modules: the controller never calls it (law 2). `RecordTracked` for GitOps-managed records.
        """

    def patch_status(self, ref: Ref, uid: str, change: Callable[[dict[str, object]], dict[str, object]], *,
                     expect: Record | None = None) -> Record:
        """Re-read, change, write, retried on conflict; `change` is pure. With `expect`, written only if spec and status are
        still the versions of that record, else `RecordChanged` (section 9, step 10).

        An approved machine whose status was lost (`approval.status_missing`) keeps none: `StatusMissing` is raised, unless
        the changed status carries `recordUID`, which only a person's trust sets (section 4).
        """

    def delete(self, record: Record) -> None: ...

    def record_event(self, event: Event) -> None: ...

    def events(self, ref: Ref | None = None) -> tuple[Event, ...]: ...

    def bundle(self, name: str) -> bytes:
        """The secrets bundle `secretsRef.name`; raises `SecretsUnavailable`, also where others can read it."""

    def bundle_form(self, name: str) -> str:
        """What stands at that bundle's place: `absent`, `clear` or `vaulted`."""

    def write_bundle(self, name: str, data: bytes, *, replace: bool = False) -> None:
        """Write a bundle in clear, for its owner only; `RecordExists` where one is, unless it is to be replaced."""


@runtime_checkable
class RecentListings(Protocol):
    """What a store has beside the port where it is told of changes: a listing that costs nothing, and may lag a little behind."""

    def recent(self, kind: str) -> Listing: ...


class Gate(Protocol):
    """Called with each plan after it was decided and before anything is done.

    It shows the plan, holds it against a saved one (raises `PlanChanged`), and gives back the part to execute now: the plan
    itself, the remainder of a saved plan, or a plan without steps in check mode. An operation acts on nothing else.
    """

    def __call__(self, plan: Plan) -> Plan: ...


class CredentialsSource(Protocol):
    """Gives what an authenticated client of one cluster needs (section 5)."""

    def __call__(self, cluster: str, bundle: str) -> Credentials:
        """The talosconfig of the options where one was given, else an `os:admin` certificate issued in memory from the
        bundle of that name (`spec.secretsRef.name`; '' where the cluster names none). `cluster` is for the context and for
        messages. Raises `SecretsUnavailable`, `CredentialsInvalid` or `CredentialsExpired`."""


class Whereabouts(Protocol):
    """Asks the Kubernetes of a managed cluster where its machines are now (section 10)."""

    def __call__(self, cluster: str, names: Sequence[str], uuid: str) -> Observed[NodePlace]:
        """The Kubernetes Node of one of these names, tried in order, else the one whose systemUUID is that.

        Absent where there is none; a Kubernetes that cannot be read is Unknown, never Absent.
        """


class Workloads(Protocol):
    """The Kubernetes of managed clusters: its Nodes, and what runs on them (sections 6, 11 and 14). Every call blocks, for seconds at most,
    and raises TalosError where the API server does not tell or does not do it: that is unknown, never absent. The last five write, and
    raise `CheckModeWrite` in check mode."""

    def nodes(self, cluster: str) -> tuple[NodePlace, ...]: ...

    def node(self, cluster: str, names: Sequence[str], uuid: str) -> Observed[NodePlace]:
        """The Node of one of these names, as `Whereabouts` finds it, as it is now."""

    def hosting(self, cluster: str, names: Sequence[str], uuid: str) -> Observed[Hosting]:
        """The Node of one of these names, tried in order, else the one whose systemUUID is that, and what is on it; Absent where there is none."""

    def pods(self, cluster: str, node: str) -> tuple[Pod, ...]: ...

    def cordon(self, cluster: str, node: NodePlace, at: str) -> None:
        """Keep new pods away, marked with the time; a Node that is cordoned already is left as it is."""

    def uncordon(self, cluster: str, node: NodePlace) -> None:
        """Take this product's own cordon away; somebody else's stays."""

    def evict(self, cluster: str, pod: Pod) -> Eviction: ...

    def mark_reset(self, cluster: str, node: NodePlace, at: str) -> None: ...

    def delete_node(self, cluster: str, node: NodePlace) -> None: ...


class Networks(Protocol):
    """The container networks of clusters (section 15): what is there, what a chart renders, and its objects. All but `render` block, for
    seconds at most. Every method raises TalosError; `create` and `replace` write, and raise `CheckModeWrite` in check mode."""

    def look(self, access: KubeAccess) -> NetworkSeen:
        """What there is of a network. Raises where the API server does not tell: unknown is never absent."""

    async def render(self, chart: Chart, values: JsonMap, kubernetes: str, apis: Sequence[str] = ()) -> tuple[dict[str, Json], ...]:
        """The objects of a chart with these values, for an API server of that version which serves those `apis`, in the order in which
        they are to be made. Raises `HelmMissing`, `ChartInvalid`, `TimedOut`."""

    def live(self, access: KubeAccess, wanted: Sequence[dict[str, Json]]) -> tuple[Live, ...]:
        """Each of these objects as it is in the cluster."""

    def tried(self, access: KubeAccess, wanted: JsonMap) -> Observed[JsonMap]:
        """What `replace` would make of the object, with nothing written; Absent where that is not tried."""

    def create(self, access: KubeAccess, wanted: JsonMap) -> None:
        """WRITE. Make an object that is not there; `RecordChanged` when it is."""

    def replace(self, access: KubeAccess, wanted: JsonMap) -> None:
        """WRITE. Put an object over the one of its resourceVersion; `RecordChanged` when that is no longer the one there."""


def no_credentials(cluster: str, bundle: str) -> Credentials:
    """The source of a run that was given none."""
    raise TalosError("SecretsUnavailable", f"There is no credential for the nodes of cluster {cluster or 'unnamed'}.",
                     "Give talosconfig or talosconfig_content, or a cluster whose spec.secretsRef names a secrets bundle.")


@dataclass(frozen=True)
class Ports:
    """What an operation is given. `check` is check mode; `store` None means store-less.

    `whereabouts`, `workloads` and `networks` are None where no Kubernetes can be asked.
    `recorded` gives a record (kind, name) as it really is, where the store shows what earlier tasks of a check run would have made
    of it; None outside of such a run.
    """

    nodes: Nodes
    store: Store | None
    clock: Clock
    progress: Progress
    actor: Actor
    check: bool = False
    holder: str = ""
    credentials: CredentialsSource = no_credentials
    recorded: Callable[[str, str], Record | None] | None = None
    whereabouts: Whereabouts | None = None
    workloads: Workloads | None = None
    networks: Networks | None = None
