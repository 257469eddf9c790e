# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person decides by before a machine is wiped: plain data and lines, without secrets (design section 16)."""

from __future__ import annotations

from .._model.observed import Absent, Observed, Present
from .._model.records import Json
from .reclaim import Verdict
from .reclaim_inspection import (
    after_leaving, cluster_words, etcd_problem, found_identity, goes, inspection, is_plane, own_cluster, own_member, owner_of, stays, unchecked, view_of,
    voters,
)
from .reclaim_words import Reclaiming
from .stale_member import told


def page(seen: Reclaiming, verdict: Verdict) -> dict[str, Json]:
    """The inspection of one machine as a result shows it. What is null could not be read, and `unchecked` says why."""
    identity = found_identity(seen)
    shown: dict[str, Json] = {
        "address": str(seen.target), "uuid": identity.value.uuid if isinstance(identity, Present) else None,
        "maintenance_mode": isinstance(seen.maintenance, Present), "unchecked": list(unchecked(seen)), "next": _next(seen, verdict),
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


def lines(seen: Reclaiming, verdict: Verdict) -> list[str]:
    """The same for a terminal, before the plan."""
    identity = found_identity(seen)
    uuid = identity.value.uuid if isinstance(identity, Present) else ""
    if isinstance(seen.maintenance, Present):
        return [f"{seen.target}: in maintenance mode, UUID {uuid or 'not reported'}"]
    if not isinstance(seen.node, Present):
        return []
    look = inspection(seen)
    name, version = _value(look.hostname) or "without a host name", _value(look.version) or "of unknown version"
    told_lines = [f"{seen.target}: {name}, UUID {uuid or 'not read'}, Talos {version}, {owner_of(seen).role or 'of unknown role'} of {cluster_words(seen)}"]
    if is_plane(seen):
        told_lines += [f"  etcd: {line}" for line in _etcd_lines(seen)]
    told_lines += [f"  wipes {', '.join(goes(seen)) or 'nothing'}"] + [f"  stays: {entry}" for entry in stays(seen)]
    return told_lines + [f"  not checked: {entry}" for entry in unchecked(seen)]


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
    if etcd_problem(seen):
        return [*found, f"etcdProblem: {etcd_problem(seen)}"]
    healthy, needed = after_leaving(seen)
    return [*found, f"once it has left, {healthy} answer and {needed} are needed"]


def _value(found: Observed[str]) -> str | None:
    return found.value if isinstance(found, Present) else None


def _next(seen: Reclaiming, verdict: Verdict) -> list[Json]:
    """What happens when a person agrees."""
    if verdict.refusal is not None:
        return [f"nothing: {verdict.refusal.message}"]
    if verdict.done:
        return [f"nothing: {verdict.done}"]
    steps: list[Json] = []
    if verdict.reset is not None:
        steps += [f"{'it leaves etcd, and ' if verdict.reset.graceful and is_plane(seen) else ''}the volumes {', '.join(verdict.reset.partitions)} are wiped",
                  "it restarts into maintenance mode"]
    if any(step.action == "RegisterMachine" for step in verdict.plan.steps):
        steps += [f"it is written down as pending in cluster {seen.wish.cluster}", "a person approves it with talos_machine_approval"]
    return steps
