# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Following a machine from the stored configuration to running (design section 9, "Following").

Pure: readings in, a stage with its condition out. `talos_stage` and the controller write what this decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .._model.identity import Identity
from .._model.moments import seconds_of
from .._model.observations import EtcdStatus, ServiceState, StageReading
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.records import Condition, Record, text_at
from .._model.timing import Timing
from .approved import has_converged, is_bootstrapped, is_control_plane
from .conditions import Status, with_condition, without_conditions
from .same_machine import difference


@dataclass(frozen=True)
class Answer:
    """A node that answered with authentication. `etcd` was read only where the stage calls for it (`wants_etcd`)."""

    identity: Identity
    stage: StageReading
    services: tuple[ServiceState, ...] = ()
    etcd: Observed[EtcdStatus] = field(default_factory=Absent)


@dataclass(frozen=True)
class Insecure:
    """A node that answered without authentication, in maintenance mode."""

    identity: Identity
    fingerprint: str


@dataclass(frozen=True)
class Following:
    """One look at one machine. `machine` None is a run without a store. `elsewhere` are the static addresses of the spec,
    asked with authentication only; `insecure` is Absent where it was not asked. Without credentials `answer` is Unknown
    `SecretsUnavailable`."""

    identity: Identity
    answer: Observed[Answer]
    insecure: Observed[Insecure]
    machine: Record | None = None
    cluster: Record | None = None
    elsewhere: tuple[tuple[str, Observed[Answer]], ...] = ()
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True)
class Life:
    """Where a machine is in its life. `settled`: nothing more happens without a person. `endpoint`: where its UUID answered,
    when that is not where it was dialled."""

    rule: str
    stage: str
    observed: bool
    reason: str
    message: str
    joined: bool = False
    settled: bool = False
    wrong: bool = False
    silent: bool = False
    endpoint: str = ""
    #: The fault is in the credentials of this run: it says nothing of the machine, and nothing is written.
    unread: bool = False


_REBOOTING = ("rebooting", "shuttingDown", "resetting")
#: Phases of v1.14's unattended install after which nothing of it is left to happen.
_INSTALL_OVER = ("", "installed")


def wants_services(stage: StageReading) -> bool:
    """Whether the state of etcd's service tells something: a control plane waits for its bootstrap in `booting`."""
    return stage.stage == "booting" and stage.unattended_install in _INSTALL_OVER


def wants_etcd(stage: StageReading) -> bool:
    """Whether etcd has to be asked: `running` and `ready` do not prove that it answers (Talos fact)."""
    return stage.stage == "running" and stage.unattended_install in _INSTALL_OVER


def is_member(etcd: Observed[EtcdStatus]) -> bool:
    """A started voting member that answers with a leader."""
    return isinstance(etcd, Present) and not etcd.value.learner and bool(etcd.value.leader.strip("0"))


def _answer(seen: Following) -> Answer | None:
    return seen.answer.value if isinstance(seen.answer, Present) else None


def _elsewhere(seen: Following) -> tuple[str, Answer] | None:
    """The static address at which the machine itself answers, or None."""
    for endpoint, answer in seen.elsewhere:
        if isinstance(answer, Present) and not difference(seen.identity, answer.value.identity):
            return endpoint, answer.value
    return None


def _node(seen: Following) -> Answer | None:
    """The machine's own answer, wherever it came from."""
    here = _answer(seen)
    if here is not None and not _is_other(seen, here.identity):
        return here
    found = _elsewhere(seen)
    return found[1] if found is not None else None


def _is_other(seen: Following, identity: Identity) -> bool:
    return seen.identity != Identity() and bool(difference(seen.identity, identity))


def _stage(seen: Following) -> StageReading:
    node = _node(seen)
    return node.stage if node is not None else StageReading("unknown")


def _control_plane(seen: Following) -> bool:
    """By the record, else by what the node shows."""
    if seen.machine is not None and text_at(seen.machine.spec, "role"):
        return is_control_plane(seen.machine)
    node = _node(seen)
    return node is not None and (any(service.id == "etcd" for service in node.services) or not isinstance(node.etcd, Absent))


def _waits_for_bootstrap(seen: Following) -> bool:
    """A control plane in `booting` whose etcd prepares and whose cluster was never bootstrapped."""
    node = _node(seen)
    if node is None or is_bootstrapped(seen.cluster) or not _control_plane(seen):
        return False
    return any(service.id == "etcd" and service.state == "Preparing" for service in node.services)


def _unmet(seen: Following) -> str:
    unmet = _stage(seen).unmet
    return f" It waits for {'; '.join(unmet)}." if unmet else ""


def _installing(seen: Following) -> str:
    phase = _stage(seen).unattended_install
    if phase == "failed":
        return "The unattended install failed; Talos tries it again by itself."
    return f"The unattended install is {phase}." if phase not in _INSTALL_OVER else "The node installs Talos to its disk."


def _etcd_message(seen: Following) -> str:
    node = _node(seen)
    etcd = node.etcd if node is not None else Absent()
    if isinstance(etcd, Unknown):
        return f"The node runs, and its etcd does not answer yet: {etcd.message or etcd.reason}."
    if isinstance(etcd, Present) and etcd.value.learner:
        return "The node runs, and its etcd member is a learner that is not promoted yet."
    return "The node runs, and its etcd member sees no leader yet."


GIVE_CREDENTIALS = "Give talosconfig or talosconfig_content, or a cluster whose secrets bundle can be read."
OTHER_CLUSTER = ("The talosconfig or bundle is of another cluster, or the node was reset: give the talosconfig of the cluster that the node "
                 "belongs to.")

_WAYS_OUT = ("It is never sent again by itself: talos_machine with trust: true arms one more send, or delete the record "
             "(allow-delete) and approve it again.")


@dataclass(frozen=True)
class Row:
    """One row: what the readings show, and what that means. The first row that holds is the machine's life."""

    id: str
    when: Callable[[Following], bool]
    stage: Callable[[Following], str]
    observed: bool
    reason: str
    message: Callable[[Following], str]
    joined: bool = False
    settled: bool = False
    wrong: bool = False
    silent: bool = False
    unread: bool = False


def _other_answers(seen: Following) -> bool:
    here = _answer(seen)
    return here is not None and _node(seen) is None


def _other_insecure(seen: Following) -> bool:
    return _node(seen) is None and isinstance(seen.insecure, Present) and _is_other(seen, seen.insecure.value.identity)


def _locked_out(seen: Following) -> bool:
    if _node(seen) is not None or not isinstance(seen.insecure, Unknown) or seen.insecure.reason != "ClientCertificateRequired":
        return False
    return not (isinstance(seen.answer, Unknown) and seen.answer.reason in ("ConnectionRefused", "NotListening", "TimedOut", "ConnectionLost"))


def _locked_out_message(seen: Following) -> str:
    told = f"{seen.answer.message} " if isinstance(seen.answer, Unknown) else ""
    return f"The node wants a client certificate and does not take ours: {told}The talosconfig may be the wrong one."


def _no_access(seen: Following, *reasons: str) -> bool:
    """Nobody but somebody with other credentials could have read it: the maintenance API was not asked, or is not there."""
    asked = isinstance(seen.insecure, Unknown) and seen.insecure.reason != "ClientCertificateRequired"
    return (_node(seen) is None and isinstance(seen.answer, Unknown) and seen.answer.reason in reasons
            and not asked and not isinstance(seen.insecure, Present))


def _no_credentials_message(seen: Following) -> str:
    told = seen.answer.message if isinstance(seen.answer, Unknown) else ""
    return f"The node can only be read with authentication, and there are no credentials for it. {told or GIVE_CREDENTIALS}"


def _wrong_credentials_message(seen: Following) -> str:
    told = f"{seen.answer.message.rstrip('.')}. " if isinstance(seen.answer, Unknown) and seen.answer.message else ""
    return f"The node answers and is not read with these credentials: {told}{OTHER_CLUSTER}"


def _last_stage(seen: Following) -> str:
    return text_at(seen.machine.status, "stage") or "unknown" if seen.machine is not None else "unknown"


ROWS: tuple[Row, ...] = (
    Row("9/follow-other-node", _other_answers, _last_stage, False, "EndpointIdentityMismatch",
        lambda seen: "Another machine of the cluster answers at this address; edit spec.endpoint.", wrong=True),
    Row("9/follow-other-machine", _other_insecure, _last_stage, False, "IdentityMismatch",
        lambda seen: "Another machine answers at this address in maintenance mode; correct spec.endpoint.", wrong=True),
    Row("9/follow-installing", lambda seen: _node(seen) is not None and (
        _stage(seen).stage == "installing" or _stage(seen).unattended_install not in _INSTALL_OVER),
        lambda seen: "installing", True, "NodeInstalling", _installing),
    Row("9/follow-rebooting", lambda seen: _stage(seen).stage in _REBOOTING, lambda seen: _stage(seen).stage, True, "NodeRebooting",
        lambda seen: f"The node is {_stage(seen).stage}."),
    Row("9/follow-maintenance", lambda seen: _node(seen) is not None and _stage(seen).stage == "maintenance", lambda seen: "maintenance", True,
        "AwaitingInstall", lambda seen: f"The node is in maintenance mode. {_WAYS_OUT}"),
    Row("9/follow-etcd", lambda seen: _stage(seen).stage == "running" and _control_plane(seen) and not is_member(
        (node.etcd if (node := _node(seen)) is not None else Absent())), lambda seen: "running", True, "NodeStarting", _etcd_message),
    Row("9/follow-worker-before-bootstrap", lambda seen: _stage(seen).stage == "running" and not _control_plane(seen)
        and seen.cluster is not None and not is_bootstrapped(seen.cluster), lambda seen: "running", True, "NodeStarting",
        lambda seen: "The node runs, and its cluster is not bootstrapped yet: name a control plane to talos_bootstrap.", settled=True),
    Row("9/follow-joined", lambda seen: _stage(seen).stage == "running", lambda seen: "running", True, "NodeJoined",
        lambda seen: "The node runs and has joined its cluster.", joined=True, settled=True),
    Row("9/follow-waits-for-bootstrap", _waits_for_bootstrap, lambda seen: "booting", True, "NodeStarting",
        lambda seen: "The control plane is up and waits for the bootstrap of etcd: run talos_bootstrap once, for one control plane.", settled=True),
    Row("9/follow-starting", lambda seen: _node(seen) is not None, lambda seen: _stage(seen).stage, True, "NodeStarting",
        lambda seen: f"The node is {_stage(seen).stage}.{_unmet(seen)}"),
    Row("9/follow-awaiting", lambda seen: isinstance(seen.insecure, Present), lambda seen: "maintenance", False, "AwaitingInstall",
        lambda seen: f"The node answers in maintenance mode and has not begun to install. {_WAYS_OUT}"),
    Row("9/follow-no-credentials", lambda seen: _no_access(seen, "SecretsUnavailable"), _last_stage, False, "SecretsUnavailable",
        _no_credentials_message, settled=True, wrong=True, unread=True),
    Row("9/follow-other-authority", lambda seen: _no_access(seen, "UnknownAuthority"), _last_stage, False, "UnknownAuthority",
        _wrong_credentials_message, settled=True, wrong=True, unread=True),
    Row("9/follow-locked-out", _locked_out, lambda seen: "unknown", False, "NodeStarting",
        _locked_out_message),
    Row("9/follow-silent", lambda seen: True, lambda seen: "rebooting", False, "NodeRebooting",
        lambda seen: "Neither API answers: it installs, reboots or starts, and a worker opens its port only when a control plane is up.",
        silent=True),
)


def follow(seen: Following, now: float, rows: tuple[Row, ...] = ROWS) -> Life:
    """The life of a machine that was sent a configuration."""
    row = next(row for row in rows if row.when(seen))
    message = row.message(seen) if row.settled else f"{row.message(seen)}{_how_long(seen, now)}"
    here = _answer(seen)
    moved = _elsewhere(seen) if here is None or _is_other(seen, here.identity) else None
    return Life(row.id, row.stage(seen), row.observed, row.reason, message, row.joined, row.settled, row.wrong, row.silent,
                moved[0] if moved is not None else "", row.unread)


def _how_long(seen: Following, now: float) -> str:
    """Slow after 10 minutes, perhaps stuck after 30, with the MACs to look for (section 9)."""
    began = seconds_of(text_at(seen.machine.status, "configStoredAt")) if seen.machine is not None else None
    if began is None or now - began < seen.timing.follow_slow:
        return ""
    minutes = int((now - began) // 60)
    if now - began < seen.timing.follow_stuck:
        return f" This is slow: {minutes} min since the configuration was stored."
    macs = ", ".join(seen.identity.macs) or "that are not recorded"
    return (f" It may be stuck, {minutes} min after the configuration was stored. Its DHCP lease may have changed: look for the "
            f"MAC addresses {macs}.")


def with_life(status: Status, life: Life, machine: Record, now: float) -> Status:
    """The status of a followed machine after this look. A wrong node changes conditions only."""
    generation = machine.generation
    if not life.wrong:
        status = {**status, "stage": life.stage, "stageObserved": life.observed}
    if life.endpoint:
        status = {**status, "observedEndpoint": life.endpoint, "observedEndpointFor": text_at(machine.spec, "endpoint")}
    if life.joined:
        status = without_conditions({**status, "appliedConfigHash": status.get("storedConfigHash") or ""}, ("NodeReachable",))
        status = with_condition(status, Condition("Provisioned", "True", "NodeJoined", life.message, generation), now)
        return with_condition(status, Condition("Ready", "True", "Converged", life.message, generation), now)
    if life.reason != "EndpointIdentityMismatch":
        status = with_condition(status, Condition("Provisioned", "False", life.reason, life.message, generation), now)
    return with_condition(status, Condition("Ready", "False", life.reason, life.message, generation), now)


def with_reading(status: Status, life: Life) -> Status:
    """The status of a converged machine after a good read: its stage. A first reading of a wiped disk is void then (section 12)."""
    if not life.observed:
        return status
    return {**{key: value for key, value in status.items() if key != "wipeSeen"}, "stage": life.stage, "stageObserved": True}


def is_settled(life: Life, machine: Record | None, until_running: bool) -> bool:
    """Whether following has come to its end: a converged machine when it runs, another as `Life.settled` says."""
    if machine is not None and has_converged(machine):
        return life.stage == "running"
    return life.joined if until_running else life.settled
