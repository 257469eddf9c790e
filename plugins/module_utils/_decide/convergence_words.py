# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of a converged machine: what is observed, what can be decided, and the two steps (design section 11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Union

from .._machineconfig.render import Rendered
from .._model.identity import Identity
from .._model.observations import EtcdMember, Link, StageReading
from .._model.observed import Absent, Observed
from .._model.plan import Refusal, Step, Target, Warn
from .._model.records import Record
from .._model.timing import Timing
from .._model.workloads import Hosting
from .comparison import Compared
from .machine_edit_words import Etcd


@dataclass(frozen=True)
class ConfiguredNode:
    """A node that answered with authentication. `at`: where. `version`, `links` and `boot_id` are read only where they are needed."""

    at: str
    identity: Identity
    stage: StageReading
    version: str = ""
    links: Observed[tuple[Link, ...]] = field(default_factory=Absent)
    boot_id: Observed[str] = field(default_factory=Absent)


@dataclass(frozen=True)
class Converging:
    """One observation of one machine. A reading that is None was not made yet; the decision asks for it.

    `wanted`: the render, or why there is none; None where it need not be made, since its inputs are those of what was applied last: then
    `expected` is the hash of its bytes. `authority`: the CA text of the credentials. `node`: the machine itself where it answered at one
    of its addresses, else whatever the address to dial gave. `compared`: Unknown where what the node runs cannot be read.
    `told`: where the Kubernetes Node says the machine is now, '' where it says nothing else. `quorum`: etcd without this machine.
    `maintained`: what answers there is in maintenance mode.
    `named`: other machines of the cluster with the host name that their renders have, where their records say none.
    `drains`: this run drains a Node before it reboots its machine; `hosting`: what is on it then.
    `members`: as another control plane lists them. `refused_at_once`: the node would take what is to be sent only with a reboot.
    """

    target: Target
    machine: Record
    wanted: Observed[Rendered] | None
    authority: Observed[str]
    endpoint: Observed[str]
    cluster: Record | None = None
    siblings: tuple[Record, ...] = ()
    node: Observed[ConfiguredNode] | None = None
    compared: Observed[Compared] = field(default_factory=Absent)
    maintained: bool = False
    told: str = ""
    quorum: Observed[Etcd] | None = None
    members: Observed[tuple[EtcdMember, ...]] | None = None
    named: tuple[tuple[str, str], ...] | None = None
    refused_at_once: bool = False
    allow_reboot: bool = True
    drains: bool = False
    hosting: Observed[Hosting] | None = None
    expected: str = ""
    timing: Timing = field(default_factory=Timing)


#: The readings that a decision can ask for, each the name of a field of the observation.
READINGS = ("wanted", "node", "named", "members", "quorum", "hosting")


@dataclass(frozen=True)
class ApplyDrift(Step):
    """Send the configuration to a node that runs: at once (NO_REBOOT), or for its next boot (STAGED)."""

    action: ClassVar[str] = "ApplyDrift"

    config: str = field(default="", metadata={"plan": "digest"})
    mode: str = "NO_REBOOT"


@dataclass(frozen=True)
class Reboot(Step):
    """Restart the machine, so that what it keeps becomes what it runs."""

    action: ClassVar[str] = "Reboot"
    disruption: ClassVar[str] = "reboot"

    config: str = field(default="", metadata={"plan": "digest"})


@dataclass(frozen=True)
class Need:
    """Read this next."""

    reading: str


@dataclass(frozen=True)
class Found:
    """What the observation says of the machine: its Ready condition, and the steps that it calls for.

    `soon`: something is under way, so the next look is a follow interval away. `settled`: nothing more happens without a person, or
    without a change of the world. `silent`: it did not answer. `unread`: it was not read, though something answers, so it may be in
    maintenance mode as well.
    """

    rule: str
    ready: bool
    reason: str
    message: str
    steps: tuple[Step, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[Warn, ...] = ()
    soon: bool = False
    settled: bool = True
    silent: bool = False
    unread: bool = False


Verdict = Union[Need, Found]
