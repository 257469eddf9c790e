# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of provisioning: what is observed, what can be decided, and the two steps (design section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Union

from .._machineconfig.bring import BroughtConfig
from .._machineconfig.render import Rendered
from .._model.identity import Identity
from .._model.observations import Certificate, EtcdMember, NodeFacts
from .._model.observed import Observed
from .._model.plan import Refusal, Step, Target, Warn
from .._model.records import Record
from .etcd_words import EtcdView, RemoveEtcdMember
from .running_words import RunningNode


@dataclass(frozen=True)
class Settled:
    """The certificate of a second unpinned connection, a settle interval after the first."""

    certificate: Certificate


@dataclass(frozen=True)
class Provisioning:
    """One observation of one machine. A reading that is None was not made yet; the decision asks for it.

    `machine` None is a run without a store: then `identity` and `pin` come from the options. `config` is what the person
    brought, or why it cannot be used. `authority` is the CA text of the credentials, Absent where a store-less run has none.
    `running` is the authenticated read, `maintenance` the insecure one, `settled` the second look at a certificate,
    `members` the etcd members as another control plane lists them, `etcd` the same with who answers healthy. `holder` is this run.
    """

    target: Target
    identity: Identity
    pin: str
    config: Observed[BroughtConfig]
    authority: Observed[str]
    endpoint: Observed[str]
    machine: Record | None = None
    cluster: Record | None = None
    siblings: tuple[Record, ...] = ()
    running: Observed[RunningNode] | None = None
    maintenance: Observed[NodeFacts] | None = None
    settled: Observed[Settled] | None = None
    members: Observed[tuple[EtcdMember, ...]] | None = None
    etcd: Observed[EtcdView] | None = None
    #: Machines of this very pass that have to go first, in a bootstrapped cluster.
    after: tuple[str, ...] = ()
    #: Every machine of the store, of any cluster.
    everybody: tuple[Record, ...] = ()
    #: Other machines of the same task that are dialled at the same address.
    same_address: tuple[str, ...] = ()
    #: Host names of the configurations that the same task brings for other machines: (machine, host name).
    beside: tuple[tuple[str, str], ...] = ()
    #: Host names that patches give other approved machines, whose records say none: (machine, host name).
    named: tuple[tuple[str, str], ...] = ()
    holder: str = ""
    sending_fresh: float = 90.0
    #: Where `config` was rendered from the records: the same as documents.
    rendered: Rendered | None = None
    #: Seconds between two readings that have to agree.
    follow: float = 15.0
    #: The cluster whose etcd a person gave up for this machine, by typing its name, or ''.
    discard_etcd: str = ""


#: The readings that a decision can ask for, each the name of a field of the observation.
READINGS = ("running", "maintenance", "settled", "members", "etcd")


@dataclass(frozen=True)
class RecordPin(Step):
    """Write the certificate of a settled node as the pin of an approved machine that has none."""

    action: ClassVar[str] = "RecordPin"

    fingerprint: str = ""


@dataclass(frozen=True)
class ApplyConfig(Step):
    """Send the configuration over the insecure API, once. The install overwrites the disk."""

    action: ClassVar[str] = "ApplyConfig"
    disruption: ClassVar[str] = "wipe"
    reversible: ClassVar[bool] = False

    config: str = field(default="", metadata={"plan": "digest"})
    fingerprint: str = ""
    role: str = ""


@dataclass(frozen=True)
class Need:
    """Read this next."""

    reading: str


@dataclass(frozen=True)
class Refused:
    """Nothing is sent. `unreachable`: because nobody answers."""

    refusal: Refusal
    unreachable: bool = False


@dataclass(frozen=True)
class Follow:
    """Nothing is sent: a configuration was, or counts as stored. `settle`: a left-over `sending` becomes stored now."""

    message: str
    rule: str
    settle: bool = False


@dataclass(frozen=True)
class Unchanged:
    """Nothing is to do here."""

    message: str
    rule: str
    warnings: tuple[Warn, ...] = ()


@dataclass(frozen=True)
class Pin:
    """This round records the pin; `send` is the step of a later round, shown in the plan with what it waits for."""

    record: RecordPin
    send: ApplyConfig
    warnings: tuple[Warn, ...] = ()


@dataclass(frozen=True)
class Send:
    """The gates are passed. A step that waits for something is shown and not executed in this pass."""

    step: ApplyConfig
    attempt: int = 1
    warnings: tuple[Warn, ...] = ()


@dataclass(frozen=True)
class Remove:
    """The stale etcd member goes first; `send` is the step that follows it."""

    step: RemoveEtcdMember
    send: ApplyConfig
    warnings: tuple[Warn, ...] = ()


Verdict = Union[Need, Refused, Follow, Unchanged, Pin, Send, Remove]
