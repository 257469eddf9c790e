# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adoption of a running cluster, or of machines that carry a managed cluster's CAs (design section 15).

The plan is: the secrets, the cluster's record, the patches, the machines' records (held), and the releases, control planes first. Nothing of
it is sent to a node. Every step is skipped where the store has it already, so that a run which ended early goes on when it is run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .._machineconfig.compatibility import kubernetes_problem
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.render import PatchRecord
from .._machineconfig.secrets import Bundle
from .._model.moments import moment
from .._model.observed import Absent, Present, Unknown
from .._model.plan import Plan, Refusal, Step, Wait, Warn
from .._model.records import CAPTURED, CLUSTER, CONFIG_PATCH, MACHINE, Condition, Json, JsonMap, Record, dig, text_at
from .._model.schema import validate
from . import adoption_gates
from .adoption_case import ADOPTED, HELD, NEW, PENDING, Case, capture_mark, is_captured
from .adoption_members import Sharing, looked_at, own_patch, patch_spec, remainder, shared
from .adoption_reading import cluster_spec, count_for, kubernetes_version, talos_version
from .adoption_words import (
    AdoptCluster, Adoption, AdoptMachine, AdoptPatch, AdoptSeen, AdoptWish, KeepBundle, LiveNode, Member, ReleaseMachine,
)
from .adoption_beside import beside
from .approved import approved_control_planes, has_converged, held_for_adoption
from .by_hand import RESET
from .conditions import Status, with_condition
from .disk_words import install_words

#: What an approval sets, or set: the machine is approved anew.
_APPROVAL = ("approvalState", "approvedBy", "approvedVia", "approvedAt", "acceptedFingerprint")
#: What tells whose patch it is.
_WHOSE = ("clusterRef", "layer", "machineSelector")
#: How many paths a line names.
_NAMED = 12
#: How many machines are named for each of them.
_MACHINES = 4
_RELEASED = "from then on it is kept as the records say; its configuration is what they render, so the first look at it changes nothing"
_WIPE = ("Take off the nodes what the paths name (talosctl edit machineconfig), and run this again. A node of which nothing is needed can be wiped instead "
         f"({RESET}), one after the other; it is found in maintenance mode then.")


def decide_adoption(wish: AdoptWish, seen: AdoptSeen, now: float) -> Adoption:
    """What the observation calls for. Raises ConfigProblem where the cluster's own record cannot be rendered at all."""
    case = Case(wish, seen)
    refused = adoption_gates.refusals(case)
    silent = tuple((address, why.message or why.reason) for address, why in case.silent)
    if refused:
        return Adoption(Plan(refusals=refused), silent=silent, cluster=seen.cluster)
    bundle = case.bundle
    nodes = [node for node in case.live if case.state(node) in (NEW, PENDING, HELD)]
    skipped = tuple((node.address, case.names[node.address]) for node in case.live if case.state(node) == ADOPTED)
    if not isinstance(bundle, Present) or not case.live:
        return Adoption(Plan(warnings=_skipped(case, skipped)), skipped=skipped, silent=silent, cluster=seen.cluster)
    cluster = seen.cluster if seen.cluster is not None else _new_cluster(case, now)
    if cluster is None:
        refusal = Refusal(case.target, "InvalidInput", "The configurations name no version of Kubernetes.", "Give kubernetes_version.", "15/kubernetes-unknown")
        return Adoption(Plan(refusals=(refusal,)), silent=silent)
    members = tuple(looked_at(case, node, cluster.spec, bundle.value) for node in nodes)
    plan = _plan(case, cluster, members, bundle.value, now)
    warnings = (*_skipped(case, skipped), *_silent(case, silent), *_warnings(case, cluster, members))
    return Adoption(replace(plan, warnings=warnings), members, skipped, silent, cluster)


def _new_cluster(case: Case, now: float) -> Record | None:
    """The cluster's record as the control planes' configurations have it; None where they name no version of Kubernetes."""
    planes = [config for dummy, config in case.planes]
    kubernetes = case.wish.kubernetes_version or kubernetes_version(planes)
    if not kubernetes or not planes:
        return None
    everybody = [config for node in case.known if (config := case.config(node)) is not None]
    spec = cluster_spec(planes[0], everybody, case.wish.cluster, case.bundle_name)
    members = case.seen.members.value if isinstance(case.seen.members, Present) else 0
    spec.update(
        talosVersion=talos_version(case.contract, [node.facts.talos_version for node in case.known]), kubernetesVersion=kubernetes,
        controlPlane={"count": case.wish.count or count_for(max(len(planes), members))},
        discovery={"addresses": [node.address for node in case.live]}, **_secure_boot(case))
    if case.wish.network:
        spec["cni"] = dict(case.wish.network)
    return Record(CLUSTER, case.wish.cluster, spec, {"bootstrappedAt": moment(now)})


def _secure_boot(case: Case) -> dict[str, Json]:
    """Off, where a node that booted with SecureBoot names an installer that is not for it: the render would name another one."""
    booted = any(isinstance(node.facts.secure_boot, Present) and node.facts.secure_boot.value for node in case.known)
    return {"secureBoot": "Off"} if booted and any(b"-secureboot" not in node.text for node in case.known) else {}


def _plan(case: Case, cluster: Record, members: Sequence[Member], bundle: Bundle, now: float) -> Plan:
    good = [member for member in members if not member.blocked]
    blocked = tuple(refusal for member in members for refusal in _blocked(case, member))
    new = [member for member in good if case.state(member.node) != HELD]
    if blocked and not good and not _recorded(case):
        return Plan(refusals=(Refusal(case.target, "BlockedMachines", "Every machine is blocked; nothing was written.", _WIPE, "15/all-blocked"), *blocked))
    sharings = shared(case, new, cluster.spec, bundle)
    steps: list[Step] = []
    if new:
        if isinstance(case.seen.bundle, Absent):
            steps.append(KeepBundle(replace(case.target, kind="SecretsBundle", name=case.bundle_name), _bundle_why(case), authority=_authority(bundle),
                                    bundle=bundle))
        if case.seen.cluster is None:
            steps.append(AdoptCluster(case.target, _cluster_why(cluster), settings=dict(cluster.spec), record=cluster))
        steps.extend(_patches(case, new, sharings))
        steps.extend(_machine(case, member, now) for member in new)
    consent = _consent(case, good)
    invalid = tuple(_invalid(case, steps))
    if case.wish.release:
        steps.extend(_releases(case, good, bool(_held_planes(case, good))))
    if invalid:
        return Plan(refusals=(*invalid, *blocked))
    return Plan(tuple(steps), (*consent, *blocked))


def _recorded(case: Case) -> bool:
    return any(case.state(node) in (HELD, ADOPTED) for node in case.live)


def _is_plane(member: Member) -> bool:
    return member.role == "controlplane"


def _blocked(case: Case, member: Member) -> Iterable[Refusal]:
    target = case.at(member.node.address)
    for one in member.blocked:
        yield Refusal(target, one.reason, f"{one.sentence}.", one.hint, one.rule)


def _consent(case: Case, members: Iterable[Member]) -> tuple[Refusal, ...]:
    if case.wish.consent:
        return ()
    asked = _owned(members)
    if not asked:
        return ()
    told = "; ".join(f"{path} ({_listed(names, _MACHINES)})" for path, names in list(asked.items())[:_NAMED])
    rest = len(asked) - _NAMED
    return (Refusal(case.target, "ConfirmationMissing", "Class B: what the records own is kept by patches as the nodes have it, so that a later change of the "
                    f"record does not reach it: {told}{f'; and {rest} more' if rest > 0 else ''}.",
                    "Agree with consent_class_b: true, or run this very plan with expect_plan_id or plan_file.", "15/consent", whole=True),)


def _owned(members: Iterable[Member]) -> dict[str, list[str]]:
    """The machines that have something of class B, by its path."""
    found: dict[str, list[str]] = {}
    for member in members:
        for path in sorted({atom.where for atom in member.owned}):
            found.setdefault(path, []).append(member.name)
    return dict(sorted(found.items()))


def _listed(texts: Sequence[str], most: int = _NAMED) -> str:
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")


def _invalid(case: Case, steps: Iterable[Step]) -> Iterable[Refusal]:
    """A record that the store would refuse is refused before the first write, and so is a patch that is somebody's own."""
    for step in steps:
        if isinstance(step, AdoptPatch) and step.before is not None:
            foreign = any(step.before.spec.get(key) != step.settings.get(key) for key in _WHOSE)
            if foreign or not is_captured(step.before):
                whose = "is for other machines than adoption's would be" if foreign else "was written, or edited since, by somebody else than adoption"
                yield Refusal(step.target, "RecordExists", f"There is a patch {step.record.name} already, and it {whose}.",
                              "Give it another name, or delete it.", "15/name-taken")
                continue
        if isinstance(step, (AdoptCluster, AdoptPatch, AdoptMachine)):
            for problem in validate(step.record, step.before if isinstance(step, (AdoptPatch, AdoptMachine)) else None):
                yield Refusal(step.target, "RecordInvalid", problem.message, "Change it on the node, or leave the machine out.", "15/record-invalid")


def _bundle_why(case: Case) -> str:
    brought = isinstance(case.wish.imported, Present)
    return "the bundle that is given, readable for its owner only" if brought else "rebuilt from a control plane's configuration, readable for its owner only"


def _authority(bundle: Bundle) -> str:
    return hashlib.sha256(f"{bundle.cluster_id}\n{bundle.os.crt}".encode()).hexdigest()


def _cluster_why(cluster: Record) -> str:
    count = dig(cluster.spec, "controlPlane", "count")
    return (f"Talos {text_at(cluster.spec, 'talosVersion')}, Kubernetes {text_at(cluster.spec, 'kubernetesVersion')}, {text_at(cluster.spec, 'endpoint')}, "
            f"{count} control plane{'' if count == 1 else 's'}; it counts as bootstrapped, so no bootstrap is sent to it")


def _patches(case: Case, members: Sequence[Member], sharings: Sequence[Sharing]) -> Iterable[Step]:
    wanted = [(sharing.patch, sharing.atoms, f"all machines of role {sharing.role}" if sharing.role else "all machines") for sharing in sharings]
    for member in members:
        atoms = remainder(member, sharings)
        wanted.extend((patch, atoms, member.name) for patch in own_patch(case, member, atoms))
    for patch, atoms, whom in wanted:
        step = _patch(case, patch, f"what {whom} {'have' if whom.startswith('all') else 'has'} beside the records: {_listed([atom.where for atom in atoms])}")
        if step is not None:
            yield step


def _patch(case: Case, patch: PatchRecord, why: str) -> AdoptPatch | None:
    spec = patch_spec(patch, case.wish.cluster)
    before = next((record for record in case.seen.patches if record.name == patch.name), None)
    if before is not None and before.spec == spec:
        return None
    target = replace(case.target, kind=CONFIG_PATCH, name=patch.name)
    marked = {**(before.annotations if before is not None else {}), CAPTURED: capture_mark(spec)}
    return AdoptPatch(target, why, settings=spec, before=before, record=Record(CONFIG_PATCH, patch.name, spec, annotations=marked))


def _machine(case: Case, member: Member, now: float) -> AdoptMachine:
    actor = case.wish.actor
    before = member.record
    kept_of = {key: value for key, value in (before.spec if before is not None else {}).items() if key not in _APPROVAL}
    spec: dict[str, Json] = {**kept_of, **member.spec}
    approved: dict[str, Json] = {**spec, "approvalState": "approved", "approvedBy": actor.by, "approvedVia": actor.via, "approvedAt": moment(now)}
    record = replace(before, spec=approved) if before is not None else Record(MACHINE, member.name, approved)
    told = install_words(spec.get("install")) or "no disk that its configuration names"
    own = _listed([atom.where for atom in member.kept])
    kept = f"what it has beside the records stays as it is ({own})" if own else "it has nothing beside the records"
    why = f"{member.role} at {member.node.address}, installed to {told}; it is only written down, and nothing is sent to it before it is released; {kept}"
    return AdoptMachine(case.at(member.node.address), why, settings=spec, before=before, record=replace(record, status=held_status(record, member.node, now)))


def held_status(record: Record, node: LiveNode, now: float) -> JsonMap:
    """The status of a machine that is adopted and not released yet."""
    stage = node.facts.stage.value.stage if isinstance(node.facts.stage, Present) else ""
    status: Status = {key: value for key, value in record.status.items() if key not in ("maintenanceFingerprint", "maintenanceFingerprintAt")}
    status.update({"stage": stage, "stageObserved": True} if stage else {})
    status.update({"nodeName": node.facts.hostname} if node.facts.hostname else {})
    status.update({"talosVersion": node.facts.talos_version})
    if isinstance(node.facts.secure_boot, Present):
        status["secureBoot"] = node.facts.secure_boot.value
    condition = Condition("Ready", "False", "AdoptionHeld", "It was adopted and waits for its release (talos_adopt): nothing is sent to it.",
                          max(record.generation, 1))
    found: dict[str, Json] = {}
    for key, value in with_condition(status, condition, now).items():
        if value is None or isinstance(value, (bool, int, float, str, list, dict)):
            found[key] = value
    return found


def _releases(case: Case, members: Sequence[Member], plane_blocked: bool) -> Iterable[Step]:
    """Control planes first; each waits for the ones before it. A held control plane that has drifted keeps the workers held."""
    before = ""
    for member in sorted(members, key=lambda member: 0 if _is_plane(member) else 1):
        if plane_blocked and not _is_plane(member):
            continue
        waits = (Wait("a reading made for it that shows no difference"), *((Wait(f"{before} is Ready", target=before),) if before else ()))
        yield ReleaseMachine(case.at(member.node.address), _RELEASED,
                             running=hashlib.sha256(member.node.text).hexdigest(), at=member.node.address, waits_for=waits)
        before = member.name if _is_plane(member) else before


def _held_planes(case: Case, let_go: Iterable[Member]) -> tuple[str, ...]:
    """The control planes that stay held: their nodes have drifted, gave no answer, or are not named."""
    names = {member.name for member in let_go}
    return tuple(record.name for record in approved_control_planes(case.siblings)
                 if held_for_adoption(record) and not has_converged(record) and record.name not in names)


def _skipped(case: Case, skipped: Iterable[tuple[str, str]]) -> tuple[Warn, ...]:
    return tuple(Warn(case.at(address), f"The node at {address} is {name}, which is approved already; it is left alone.", "15/already-approved")
                 for address, name in skipped)


def _silent(case: Case, silent: Iterable[tuple[str, str]]) -> tuple[Warn, ...]:
    return tuple(Warn(case.at(address), f"The node at {address} could not be read ({why.rstrip('.')}), and is left out.", "15/silent")
                 for address, why in silent)


def _warnings(case: Case, cluster: Record, members: Sequence[Member]) -> Iterable[Warn]:
    try:
        pair = kubernetes_problem(text_at(cluster.spec, "talosVersion"), text_at(cluster.spec, "kubernetesVersion"))
    except ConfigProblem:
        pair = ""
    if pair:
        yield Warn(case.target, f"{pair[0].upper()}{pair[1:]}.", "15/incompatible-pair")
    count, planes = case.seen.members, len(case.planes)
    read = f"{planes} control plane{'' if planes == 1 else 's'} could be read: name the others too"
    if isinstance(count, Present) and count.value > planes and case.seen.cluster is None:
        yield Warn(case.target, f"etcd has {count.value} members, and {read}.", "15/more-members")
    if isinstance(count, Unknown) and case.seen.cluster is None:
        yield Warn(case.target, f"No control plane says how many members etcd has ({count.message.rstrip('.')}); {read} if there are any.",
                   "15/members-unknown")
    held = _held_planes(case, (member for member in members if not member.blocked))
    if held and case.wish.release and any(not _is_plane(member) and not member.blocked for member in members):
        yield Warn(case.target, f"No worker is let go while a control plane is held: {_listed(held)}. Name it too, or delete its record if it is gone.",
                   "15/control-plane-held")
    yield from beside(case, members)
    for path, names in _owned(members).items():
        yield Warn(case.target, f"Class B: {path} stays as the node has it, whatever the record says from then on: on {_listed(names, _MACHINES)}.",
                   "15/class-b")
