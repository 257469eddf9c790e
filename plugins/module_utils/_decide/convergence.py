# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A converged machine: the gates of design section 11, in order, as one table.

`decide` walks the table. The first gate that applies and lacks a reading asks for it; the first gate whose condition holds says what
the machine is; past the last gate the drift is applied. The same table judges the readings made again before a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .._machineconfig.hardware_check import missing_links
from .._machineconfig.named import host_name, machine_authority
from .._machineconfig.render import Rendered
from .._model.machine import identity_of
from .._model.observed import Present, Unknown
from .._model.plan import Refusal
from .._model.records import HOLD_APPLY, condition_of, text_at
from .approved import has_converged, is_approved, is_control_plane
from .comparison import Compared
from .convergence_drain import drains_first, needs_reboot, other_node, unread
from .convergence_steps import apply_drift, drifted, takes_lock
from .convergence_words import ConfiguredNode, Converging, Found, Need, Verdict
from .hostnames import name_conflict
from .lock import Disruption, LockView, disruption_of, held_by_other, lock_refusals
from .reachability import nobody_answers, own_reboot_began, silence
from .reboot_quorum import members_change, quorum_problem
from .running_stage import busy, reason_of_stage
from .same_machine import other_machine
from .versions import older


@dataclass(frozen=True)
class Gate:
    """One row. `applies` is judged without the readings in `needs`, `when` with them; `found` gives what follows then."""

    id: str
    when: Callable[[Converging, float], bool]
    found: Callable[[Converging, float], Found]
    needs: tuple[str, ...] = ()
    applies: Callable[[Converging], bool] = lambda seen: True


def decide(seen: Converging, now: float, gates: tuple[Gate, ...] | None = None) -> Verdict:
    """What the observation calls for: a reading, or what the machine is and which steps follow."""
    for gate in GATES if gates is None else gates:
        if not gate.applies(seen):
            continue
        for reading in gate.needs:
            if getattr(seen, reading) is None:
                return Need(reading)
        if gate.when(seen, now):
            return gate.found(seen, now)
    return apply_drift(seen)


# What the rows look at.
def _rendered(seen: Converging) -> Rendered:
    if not isinstance(seen.wanted, Present):
        raise ValueError("the render is judged by an earlier gate")
    return seen.wanted.value


def _node(seen: Converging) -> ConfiguredNode:
    if not isinstance(seen.node, Present):
        raise ValueError("the authenticated read is judged by an earlier gate")
    return seen.node.value


def _compared(seen: Converging) -> Compared:
    if not isinstance(seen.compared, Present):
        raise ValueError("what the node runs is judged by an earlier gate")
    return seen.compared.value


def _refuse(seen: Converging, rule: str, reason: str, message: str, hint: str, *, ready: str = "", soon: bool = False) -> Found:
    """Nothing is sent. `ready`: the reason of the condition, where that is another one."""
    return Found(rule, False, ready or reason, f"{message} {hint}".strip(), refusals=(Refusal(seen.target, reason, message, hint, rule),), soon=soon,
                 settled=not soon)


def _held(seen: Converging, rule: str, reason: str, message: str, hint: str, *, soon: bool = False) -> Found:
    """It has drifted, and a hold keeps that from being applied."""
    return _refuse(seen, rule, reason, f"{drifted(seen)} {message}", hint, ready="Drifted", soon=soon)


def _unusable_render(seen: Converging, now: float) -> Found:
    if isinstance(seen.wanted, Unknown):
        return _refuse(seen, "11/render", seen.wanted.reason, seen.wanted.message, seen.wanted.source)
    return _refuse(seen, "11/render", "RenderFailed", "There is no configuration for this machine.", "Look at the cluster's record.")


def _foreign(seen: Converging, now: float) -> Found:
    """A configured node of another authority: its CA was replaced, or another cluster's node has its address."""
    why = seen.node.message.rstrip(".") if isinstance(seen.node, Unknown) else ""
    found = _refuse(seen, "11/foreign", "AuthorityMismatch",
                    f"What answers belongs to another authority ({why}): its CA was rotated, or another cluster's node has this address.",
                    "Put the node's own CA into the bundle or give its talosconfig; else edit spec.endpoint.")
    return replace(found, unread=True)


def _silent(seen: Converging, now: float) -> Found:
    endpoint = seen.endpoint.value if isinstance(seen.endpoint, Present) else ""
    why = (seen.node.message or seen.node.reason).rstrip(".") if isinstance(seen.node, Unknown) else "it gave no answer"
    found = silence(seen.machine, seen.cluster, endpoint, why, seen.told, seen.timing, now)
    message = found.message
    if not found.passing and not seen.told and nobody_answers(seen.machine, seen.siblings):
        message += " No control plane of the cluster answers: when all of them moved at once, edit spec.endpoint of each with talos_machine."
    return Found("11/silent", False, found.reason, message, soon=found.passing, settled=not found.passing, silent=True)


def _unreadable(seen: Converging, now: float) -> Found:
    found = seen.compared
    if isinstance(found, Unknown) and found.reason == "PermissionDenied":
        why, hint = "these credentials may not read it", "Give credentials of the role os:admin."
    else:
        why = found.message.rstrip(".") if isinstance(found, Unknown) else "the node holds no configuration"
        hint = "Look at it with talosctl get machineconfig."
    return _refuse(seen, "11/unreadable", "CurrentConfigUnavailable", f"What the node runs cannot be read: {why}.", hint)


def _other_authority(seen: Converging) -> bool:
    own = machine_authority(_rendered(seen).config)
    if not isinstance(seen.authority, Present) or not own:
        return False
    return "".join(own.split()) not in "".join(seen.authority.value.split())


def _starting(seen: Converging, now: float) -> Found:
    stage = _node(seen).stage
    return Found("11/starting", False, reason_of_stage(stage), f"The node runs what the records say, and is {stage.stage}.", soon=True, settled=False)


def _own_disruption(seen: Converging) -> Disruption | None:
    found = disruption_of(seen.cluster)
    return found if found is not None and found.machine == seen.machine.name else None


def _without_evidence(seen: Converging, now: float) -> Found:
    """In step with the records, and what was done to it has not shown its end (section 13)."""
    found = _own_disruption(seen)
    if found is None:
        raise ValueError("the row holds only where its own disruption is open")
    if found.step == "drain":
        return Found("11/evidence", False, "NodeStarting", f"The node runs what the records say; its Kubernetes Node {found.node} was cordoned at {found.time} "
                     "by a run that has not ended.", soon=True, settled=False)
    wanted = "that it booted anew" if found.step == "reboot" and not is_control_plane(seen.machine) else \
        "two readings that are ready, with etcd a voting member that sees a leader"
    return Found("11/evidence", False, reason_of_stage(_node(seen).stage) or "NodeStarting",
                 f"The node runs what the records say; since the {found.step} of {found.time} it has to show {wanted}.", soon=True, settled=False)


def _converged(seen: Converging, now: float) -> Found:
    unmet = _node(seen).stage.unmet
    told = "" if _node(seen).stage.ready or not unmet else f" Talos does not call it ready: {', '.join(unmet)}."
    return Found("11/converged", True, "Converged", f"{_compared(seen).state.message}{told}")


def _lock_row(seen: Converging) -> Refusal | None:
    """A hold of the whole cluster stops every send; the other rows of the lock stop what takes it."""
    found = lock_refusals(LockView(seen.cluster, seen.siblings), seen.target)
    kept = [row for row in found if takes_lock(seen) or row.reason in ("ClusterShuttingDown", "CARotation")]
    return kept[0] if kept else None


def _locked_out(seen: Converging, now: float) -> Found:
    row = _lock_row(seen)
    if row is None:
        raise ValueError("the row holds only where the lock refuses")
    return Found(row.rule, False, row.reason, f"{drifted(seen)} {row.message} {row.hint}", refusals=(row,))


def _removal(seen: Converging) -> bool:
    found = condition_of(seen.machine, "Removal")
    return found is not None and found.status != "False"


def _missing_links(seen: Converging) -> str:
    links = _node(seen).links
    if not isinstance(links, Present):
        return ""
    return "; ".join(missing_links(_rendered(seen).config, [link.name for link in links.value], [link.permanent_mac for link in links.value]))


def _names_members(seen: Converging) -> bool:
    """Talos evicts the etcd member of the same name, so a control plane's new name is held against every member."""
    return is_control_plane(seen.machine) and _compared(seen).renames


def _own_name(seen: Converging) -> str:
    return host_name(_rendered(seen).config) or text_at(seen.machine.spec, "hostname")


def _rendered_namesake(seen: Converging) -> str:
    """Another machine that a patch gives the same name."""
    wanted = _own_name(seen).lower()
    return next((name for name, hostname in seen.named or () if wanted and hostname.lower() == wanted), "")


def _conflict(seen: Converging) -> str:
    return name_conflict(seen.machine, _own_name(seen), seen.siblings, members=seen.members, among_members=_names_members(seen))


def _reboot_under_way(seen: Converging, now: float) -> bool:
    began, found, boot = own_reboot_began(seen.machine, seen.cluster), _own_disruption(seen), _node(seen).boot_id
    booted = found is not None and isinstance(boot, Present) and boot.value != found.boot_id
    return began is not None and not booted and now - began < seen.timing.follow_slow


def _waits_for_reboot(seen: Converging, now: float) -> Found:
    return Found("11/reboot-under-way", False, "NodeRebooting", "It was told to reboot and has not gone down yet.", soon=True, settled=False)


def _restarts_control_plane(seen: Converging) -> bool:
    """A step that waits for another machine is judged when that one is done."""
    waits = held_by_other(disruption_of(seen.cluster), seen.machine.name)
    return is_control_plane(seen.machine) and seen.allow_reboot and needs_reboot(seen) and not waits


GATES: tuple[Gate, ...] = (
    Gate("11/not-approved", lambda seen, now: not is_approved(seen.machine),
         lambda seen, now: _refuse(seen, "11/not-approved", "NotApproved", "The machine is not approved.", "Approve it with talos_machine_approval.",
                                   ready="PendingApproval")),
    Gate("11/not-converged", lambda seen, now: not has_converged(seen.machine),
         lambda seen, now: _refuse(seen, "11/not-converged", "RecordChanged", "The machine has not joined its cluster.", "Run this again.")),
    Gate("11/endpoint", lambda seen, now: not isinstance(seen.endpoint, Present),
         lambda seen, now: _refuse(seen, "11/endpoint", "EndpointRefused",
                                   seen.endpoint.message if isinstance(seen.endpoint, Unknown) else "The machine has no address to dial.",
                                   "Edit spec.endpoint with talos_machine.")),
    Gate("11/render", lambda seen, now: not isinstance(seen.wanted, Present), _unusable_render, needs=("wanted",),
         applies=lambda seen: not seen.expected),
    Gate("11/bundle", lambda seen, now: not isinstance(seen.authority, Present),
         lambda seen, now: _refuse(seen, "11/bundle", "SecretsUnavailable",
                                   seen.authority.message if isinstance(seen.authority, Unknown) else "There are no credentials.",
                                   "Give talosconfig, or a secrets bundle that can be read.")),
    Gate("11/foreign", lambda seen, now: isinstance(seen.node, Unknown) and seen.node.reason == "UnknownAuthority" and not seen.maintained, _foreign,
         needs=("node",)),
    Gate("11/silent", lambda seen, now: not isinstance(seen.node, Present), _silent, needs=("node",)),
    Gate("11/other-node", lambda seen, now: bool(other_machine(identity_of(seen.machine), _node(seen).identity)),
         lambda seen, now: _refuse(seen, "11/other-node", "EndpointIdentityMismatch",
                                   f"Another machine of the cluster answers at this address: {other_machine(identity_of(seen.machine), _node(seen).identity)}.",
                                   f"Edit spec.endpoint{f', perhaps to {seen.told}' if seen.told else ''}; when all control planes moved at once, "
                                   "edit each.")),
    Gate("11/unreadable", lambda seen, now: not isinstance(seen.compared, Present), _unreadable),
    Gate("11/rotation", lambda seen, now: _compared(seen).rotating,
         lambda seen, now: _refuse(seen, "11/rotation", "CARotation", "The node accepts CAs that are not in the secrets bundle: a rotation is under way.",
                                   "Finish the rotation, and put the new CA into the bundle.")),
    Gate("11/authority", lambda seen, now: bool(_compared(seen).authority),
         lambda seen, now: _refuse(seen, "11/authority", "AuthorityMismatch",
                                   "CAs, keys or tokens of the node differ from the secrets bundle "
                                   f"({', '.join(dict.fromkeys(one.where for one in _compared(seen).authority))}), and nothing is sent.",
                                   "Put the node's own into the bundle, or give the bundle of its cluster.")),
    Gate("11/evidence", lambda seen, now: _compared(seen).in_sync and _own_disruption(seen) is not None, _without_evidence),
    Gate("11/starting", lambda seen, now: _compared(seen).in_sync and bool(reason_of_stage(_node(seen).stage)), _starting),
    Gate("11/converged", lambda seen, now: _compared(seen).in_sync, _converged),
    Gate("11/authority-of-render", lambda seen, now: _other_authority(seen),
         lambda seen, now: _refuse(seen, "11/authority-of-render", "AuthorityMismatch",
                                   "The render's machine CA is not the one that the node was authenticated with, so the node would lock us out.",
                                   "Give the talosconfig or bundle of the cluster that the machine belongs to.")),
    Gate("11/report", lambda seen, now: text_at(seen.cluster.spec if seen.cluster else {}, "driftPolicy") == "report",
         lambda seen, now: Found("11/report", False, "Drifted", f"{drifted(seen)} The cluster's driftPolicy is report, so it is only shown.")),
    Gate("11/hold-apply", lambda seen, now: seen.machine.annotations.get(HOLD_APPLY, "").lower() == "true",
         lambda seen, now: _held(seen, "11/hold-apply", "HoldApply", f"The annotation {HOLD_APPLY} is set on the machine.",
                                 "Take the hold away with talos_machine.")),
    Gate("11/removal", lambda seen, now: _removal(seen),
         lambda seen, now: _held(seen, "11/removal", "RemovalInProgress", "The machine is being removed.", "Finish the removal, or lift it by name.")),
    Gate("11/operation", lambda seen, now: seen.cluster is not None and bool(seen.cluster.status.get("operation")),
         lambda seen, now: _held(seen, "11/operation", "OperationInProgress", "Something is being done to the whole cluster (status.operation).",
                                 "Wait for it, or clear it by name when it is no longer going on.")),
    Gate("11/lock", lambda seen, now: _lock_row(seen) is not None, _locked_out),
    Gate("11/contract", lambda seen, now: older(_node(seen).version, _rendered(seen).contract),
         lambda seen, now: _refuse(seen, "11/contract", "ContractTooNew",
                                   f"The node runs Talos {_node(seen).version or 'of an unknown version'}, and the configuration is for "
                                   f"{_rendered(seen).contract}.", "Upgrade Talos on the node, or lower the cluster's talosVersion.")),
    Gate("11/links", lambda seen, now: bool(_missing_links(seen)),
         lambda seen, now: _refuse(seen, "11/links", "RenderFailed", f"The configuration does not fit the node: {_missing_links(seen)}.",
                                   "Correct network.primary of the machine, or the patch that names the link.")),
    Gate("11/hostname-rendered", lambda seen, now: bool(_rendered_namesake(seen)),
         lambda seen, now: _refuse(seen, "11/hostname-rendered", "HostnameConflict",
                                   f"The host name {_own_name(seen)} is that of machine {_rendered_namesake(seen)} too, as a patch has it.",
                                   "Give each machine a host name of its own (spec.hostname)."),
         needs=("named",), applies=lambda seen: _compared(seen).renames),
    Gate("11/hostname", lambda seen, now: bool(_conflict(seen)),
         lambda seen, now: _refuse(seen, "11/hostname", "HostnameConflict", _conflict(seen), "Give this machine a host name of its own."),
         applies=lambda seen: not _names_members(seen)),
    Gate("11/hostname-members", lambda seen, now: bool(_conflict(seen)),
         lambda seen, now: _refuse(seen, "11/hostname-members", "HostnameConflict", _conflict(seen), "Give this machine a host name of its own."),
         needs=("members",), applies=_names_members),
    Gate("11/rejected", lambda seen, now: text_at(seen.machine.status, "rejectedInputsHash") == _compared(seen).sha256,
         lambda seen, now: _refuse(seen, "11/rejected", "ConfigRejected", "The node refused these very bytes before.",
                                   "Change the configuration; it is tried again only then.")),
    Gate("11/reboot-under-way", _reboot_under_way, _waits_for_reboot),
    Gate("11/busy", lambda seen, now: busy(_node(seen).stage),
         lambda seen, now: Found("11/busy", False, reason_of_stage(_node(seen).stage),
                                 f"{drifted(seen)} The node is {_node(seen).stage.stage}, so nothing is sent to it now.", soon=True, settled=False)),
    Gate("11/quorum", lambda seen, now: bool(quorum_problem(seen.quorum)[0]),
         lambda seen, now: _held(seen, "11/quorum", *quorum_problem(seen.quorum), "Bring the other control planes back first.",
                                 soon=members_change(seen.quorum, seen.siblings)),
         needs=("quorum",), applies=_restarts_control_plane),
    Gate("11/drain-unknown", lambda seen, now: isinstance(seen.hosting, Unknown),
         lambda seen, now: _held(seen, "11/drain-unknown", "DrainRequired", "Its Node is drained before a reboot, and what runs on it cannot be read: "
                                 f"{unread(seen)}.", "Run this again when Kubernetes answers, or with drain: false."),
         needs=("hosting",), applies=drains_first),
    Gate("11/drain-other-node", lambda seen, now: bool(other_node(seen)),
         lambda seen, now: _held(seen, "11/drain-other-node", "IdentityMismatch",
                                 f"The Kubernetes Node {other_node(seen)} is another machine, so it is not drained for this one.",
                                 "Correct spec.hostname with talos_machine, or run with drain: false."),
         needs=("hosting",), applies=drains_first),
)
