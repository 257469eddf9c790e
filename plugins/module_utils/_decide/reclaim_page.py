# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person decides by before a machine is wiped: plain data and lines, without secrets (design section 16)."""

from __future__ import annotations

from dataclasses import replace

from .._model.observed import Absent, Observed, Present
from .._model.records import Json
from .reclaim import Verdict
from .reclaim_inspection import (
    after_leaving, etcd_problem, found_identity, goes, inspection, is_last, is_plane, own_cluster, own_member, owner_of, stays, unchecked, view_of, voters,
    whose,
)
from .reclaim_words import Reclaiming
from .stale_member import told

#: What is lost with each volume.
LOST = {"STATE": "its configuration and keys", "EPHEMERAL": "images, logs and what pods keep on this disk", "ETCD": "etcd's data",
        "CRI": "images and containers", "KUBELET": "what pods keep in the kubelet's folder", "LOG": "logs"}


def page(seen: Reclaiming, verdict: Verdict, foreseen: Verdict | None = None) -> dict[str, Json]:
    """The inspection of one machine as a result shows it. What is null could not be read, and `unchecked` says why. `foreseen`: the verdict
    where its UUID was typed, else what it would be then."""
    seen, identity = replace(seen, gone=verdict.gone), found_identity(seen)
    shown: dict[str, Json] = {
        "address": str(seen.target), "uuid": identity.value.uuid if isinstance(identity, Present) else None,
        "maintenance_mode": isinstance(seen.maintenance, Present), "unchecked": list(unchecked(seen)),
        "next": [*_next(seen, verdict, foreseen or verdict)],
    }
    if not isinstance(seen.node, Present):
        return shown
    look, owner, own = seen.node.value, owner_of(seen), own_cluster(seen)
    shown.update({
        "hostname": _value(look.hostname), "talos_version": _value(look.version), "stage": look.stage.value.stage if isinstance(look.stage, Present) else None,
        "role": owner.role or None,
        "cluster": {"name": owner.cluster_name, "id": owner.cluster_id, "endpoint": owner.endpoint,
                    "managed_as": own.value.name if isinstance(own, Present) else "" if isinstance(own, Absent) else None},
        "wipes": list(goes(seen)), "stays": list(stays(seen)),
    })
    if is_plane(seen):
        shown["etcd"] = _etcd(seen)
    return shown


def lines(seen: Reclaiming, verdict: Verdict, foreseen: Verdict | None = None) -> list[str]:
    """The same for a terminal, before the plan."""
    seen, identity = replace(seen, gone=verdict.gone), found_identity(seen)
    uuid = identity.value.uuid if isinstance(identity, Present) else ""
    if isinstance(seen.maintenance, Present):
        return [f"{seen.target}: in maintenance mode, UUID {uuid or 'not reported'}"]
    if not isinstance(seen.node, Present):
        return []
    look = inspection(seen)
    name, version = _value(look.hostname) or "no host name", _value(look.version) or "of unknown version"
    found = [f"{seen.target}: the machine with UUID {uuid or 'not read'} ({name}, Talos {version})", f"  whose: {_whose(seen)}"]
    found += [f"  etcd: {line}" for line in (_etcd_lines(seen) if is_plane(seen) else ["a worker has no member of it, so no quorum changes"])]
    if isinstance(look.partitions, Present):
        found += [f"  wiped: {label} ({_lost(seen, label)})" for label in goes(seen)]
        found += [f"  stays: {entry}" for entry in stays(seen) or ("nothing else is on its disks",)]
    found += [f"  not known: {entry}" for entry in (*unchecked(seen), "what its pods keep on its disks, which nobody looks at")]
    if foreseen is None or foreseen == verdict:
        return found
    # Nobody has agreed, so there is no plan that would tell this.
    found += [f"  warning: {warning.message}" for warning in foreseen.plan.warnings]
    return found + [f"  next: {entry}" for entry in _next(seen, verdict, foreseen)]


def _whose(seen: Reclaiming) -> str:
    owner = owner_of(seen)
    role = {"controlplane": "a control plane", "worker": "a worker"}.get(owner.role, "of unknown role, so taken for a control plane,")
    known = ", ".join(part for part in (f"endpoint {owner.endpoint}" if owner.endpoint else "", f"id {owner.cluster_id}" if owner.cluster_id else "") if part)
    return f"{role} of {whose(seen)}{f' ({known})' if known else ''}"


def _lost(seen: Reclaiming, label: str) -> str:
    etcd = " and etcd's data" if label == "EPHEMERAL" and is_plane(seen) and "ETCD" not in goes(seen) else ""
    return f"{LOST[label]}{etcd}"


def _etcd(seen: Reclaiming) -> dict[str, Json]:
    view, own = view_of(seen), own_member(seen)
    healthy, needed = after_leaving(seen)
    members: list[Json] = [{"id": member.id, "name": member.name, "learner": member.learner, "answers": member.id in view.healthy,
                            "own": own is not None and own.id == member.id} for member in view.members]
    problem = etcd_problem(seen)
    return {"problem": problem, "members": members, "voters": voters(seen), "needed_afterwards": None if problem else needed,
            "healthy_afterwards": None if problem else healthy}


def _etcd_lines(seen: Reclaiming) -> list[str]:
    view, own = view_of(seen), own_member(seen)
    found = [f"{told(member)}{', this node' if own is not None and own.id == member.id else ''}: "
             f"{'learner' if member.learner else 'answers' if member.id in view.healthy else 'does not answer'}" for member in view.members]
    if seen.gone:
        found.append("the members of the machines that go before it in this plan have left by then")
    return [*found, _quorum(seen)]


def _quorum(seen: Reclaiming) -> str:
    """What the reset does to the quorum of its cluster, in one line."""
    if etcd_problem(seen):
        return f"what the reset does to its quorum cannot be told (etcdProblem: {etcd_problem(seen)})"
    if own_member(seen) is None:
        return "which member is this node's cannot be told"
    if is_last(seen):
        return "this node is the only voter: without it that etcd is gone"
    healthy, needed = after_leaving(seen)
    left = (f"this node leaves it before the reset; {'1 voter answers' if healthy == 1 else f'{healthy} voters answer'} then and "
            f"{'1 is' if needed == 1 else f'{needed} are'} needed, so ")
    if healthy < needed:
        return f"{left}that etcd would lose its quorum"
    spare = healthy - needed
    return f"{left}it keeps its quorum, and {f'{spare} more of them may fail' if spare else 'none of them may fail'}"


def _value(found: Observed[str]) -> str | None:
    return found.value if isinstance(found, Present) else None


def _next(seen: Reclaiming, verdict: Verdict, foreseen: Verdict) -> list[str]:
    """What happens when a person agrees."""
    if verdict.refusal is not None and foreseen.refusal is not None:
        return [f"nothing: {foreseen.refusal.message}"]
    if verdict.done:
        return [f"nothing: {verdict.done}"]
    steps = ["nothing until somebody agrees, by its UUID in confirm"] if verdict.refusal is not None else []
    if foreseen.done:
        return [*steps, f"then nothing: {foreseen.done}"]
    reset = foreseen.reset
    if reset is not None:
        steps += [f"{'it leaves etcd, and ' if reset.graceful and is_plane(seen) else ''}the volumes {', '.join(reset.partitions)} are wiped",
                  "it restarts into maintenance mode"]
    if any(step.action == "RegisterMachine" for step in foreseen.plan.steps):
        steps += [f"it is written down as pending in cluster {seen.wish.cluster}", "a person approves it with talos_machine_approval"]
    return steps
