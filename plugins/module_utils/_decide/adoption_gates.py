# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What refuses an adoption before anything is written: one table, in order (design section 15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from .._model.hardware import is_placeholder_uuid
from .._model.identity import Identity, canonical_uuid
from .._model.observed import Absent, Present, Unknown
from .._model.plan import Refusal
from .._model.records import dig, text_at
from .adoption_case import ADOPTED, ELSEWHERE, HELD, REJECTED, TWIN, Case
from .adoption_reading import cluster_name, document, role_of, section
from .approved import approved_control_planes
from .record_twin import TWIN_HINT, one_machine

Row = tuple[str, Callable[[Case], Iterable[Refusal]]]


def _schedule(case: Case) -> Iterable[Refusal]:
    if case.wish.actor.schedule:
        yield Refusal(case.target, "ScheduleCannotApprove", "A scheduled job adopts nothing: adoption approves machines, which is for a person.",
                      "Launch it by hand.", "15/schedule")


def _nobody(case: Case) -> Iterable[Refusal]:
    if not case.wish.actor.by:
        yield Refusal(case.target, "ApproverUnknown", "It is not known who adopts these machines.", "Run it as a user that has a name.", "15/nobody")


def _broken(case: Case) -> Iterable[Refusal]:
    for broken in case.seen.broken:
        yield Refusal(case.target, "RecordBroken", f"{broken.kind} {broken.name} cannot be read ({broken.where}): {broken.sentence}", "Mend the file.",
                      "15/record-broken")


def _no_cluster(case: Case) -> Iterable[Refusal]:
    if case.wish.add and case.seen.cluster is None:
        yield Refusal(case.target, "RecordNotFound", f"There is no cluster {case.wish.cluster} to which a machine could be added.",
                      "Adopt the cluster first, with its control planes.", "15/no-cluster")


def _command(case: Case, address: str) -> str:
    return (f"ansible-playbook ichor.talos.reclaim -e ichor_address={address} -e ichor_cluster={case.wish.cluster} -e ichor_talosconfig=FILE, where FILE is "
            "the talosconfig of the cluster that it is of now")


def _unknown_authority(case: Case) -> Iterable[Refusal]:
    for address, why in case.silent:
        if why.reason == "UnknownAuthority":
            yield Refusal(case.at(address), "UnknownAuthority",
                          f"The node at {address} belongs to another cluster than the talosconfig, or the talosconfig may be the wrong one, or it waits in "
                          "maintenance mode and belongs to none.",
                          "Give the talosconfig of its cluster. One in maintenance mode is not adopted: leave its address out, and find it with "
                          f"talos_discover. To take it out of another cluster, reset it: {_command(case, address)}.",
                          "15/unknown-authority")


def _nothing_read(case: Case) -> Iterable[Refusal]:
    if not case.live and case.wish.addresses and not any(why.reason == "UnknownAuthority" for dummy, why in case.silent):
        told = "; ".join(f"{address}: {(why.message or why.reason).rstrip('.')}" for address, why in case.silent)
        reason = case.silent[0][1].reason if case.silent else "CurrentConfigUnavailable"
        hint = "Name the addresses of the nodes themselves; allow_loopback is for a lab." if reason == "EndpointRefused" else (
            "Check the addresses and the talosconfig.")
        yield Refusal(case.target, reason, f"No node could be read ({told}).", hint, "15/nothing-read")


def _versions(case: Case) -> Iterable[Refusal]:
    for node in case.live:
        fault, version = case.version_fault(node), node.facts.talos_version or "an unknown version"
        if fault == "old":
            yield Refusal(case.at(node.address), "VersionUnsupported", f"The node at {node.address} runs Talos {version}, which is older than v1.12.",
                          "Upgrade it with talosctl first.", "15/version-floor")
        elif fault:
            yield Refusal(case.at(node.address), "VersionUnsupported", f"The node at {node.address} runs Talos {version}, which this release does not know.",
                          "Use a release of this collection that knows it.", "15/version-unknown")


def _omni(case: Case) -> Iterable[Refusal]:
    for address, config in case.loose.items():
        if document(config, "SideroLinkConfig"):
            yield Refusal(case.at(address), "CredentialsInvalid", f"The node at {address} is managed by Omni, which would undo what is done here.",
                          "Take the machine out of Omni first, and give a talosconfig with keys.", "15/omni")


def _no_bundle(case: Case) -> Iterable[Refusal]:
    bundle = case.bundle
    if isinstance(bundle, Unknown):
        yield Refusal(case.target, bundle.reason, bundle.message, bundle.source, "15/bundle-unreadable")
    elif isinstance(bundle, Absent) and case.live:
        yield Refusal(case.target, "SecretsUnavailable", "There is no secrets bundle, and no control plane answered from which it could be rebuilt.",
                      "Name a control plane too, or give bundle_file.", "15/no-bundle")
    for fault in case.wish.faults:
        yield Refusal(case.target, "BundleInvalid", f"The secrets bundle cannot be used: {fault}.", "Give the bundle that the cluster was made with.",
                      "15/bundle-faulty")


def _other_bundle(case: Case) -> Iterable[Refusal]:
    brought, stored = case.wish.imported, case.seen.bundle
    if isinstance(brought, Present) and isinstance(stored, Present) and brought.value != stored.value:
        yield Refusal(case.target, "BundleInvalid", f"The bundle that is given is another one than {case.bundle_name}, which is in the store.",
                      "Leave it out, or name another bundle.", "15/bundle-differs")


def _rotation(case: Case) -> Iterable[Refusal]:
    if case.seen.cluster is not None and text_at(case.seen.cluster.spec, "hold") == "caRotation":
        yield Refusal(case.target, "CARotation", f"Cluster {case.wish.cluster} is held for a rotation of its CAs.", "Finish the rotation first.",
                      "15/ca-rotation")
    for address, config in case.loose.items():
        if section(config, "machine", "acceptedCAs") or section(config, "cluster", "acceptedCAs"):
            yield Refusal(case.at(address), "CARotation", f"The node at {address} accepts CAs beside its own: a rotation is under way.",
                          "Finish the rotation first.", "15/ca-rotation")


def _foreign(case: Case) -> Iterable[Refusal]:
    for node in case.known:
        found = case.foreign(node)
        if found:
            config = case.loose[node.address]
            own = cluster_name(config) or "unnamed"
            of = f"cluster {own} (id {found})" if found != "?" else f"a cluster {own} with another CA"
            yield Refusal(case.at(node.address), "AuthorityMismatch",
                          f"The node at {node.address} belongs to {of}, not to {case.wish.cluster}: nothing was written.",
                          f"To take it out of that cluster, reset it: {_command(case, node.address)}.", "15/foreign-node")


def _rejected(case: Case) -> Iterable[Refusal]:
    for node in case.live:
        record = case.record_of(node)
        if record is not None and case.state(node) == REJECTED:
            yield Refusal(case.at(node.address), "Rejected", f"The machine at {node.address} is {record.name}, which was rejected.",
                          "Delete that record with talos_machine first, if it is wanted after all.", "15/rejected")


def _elsewhere(case: Case) -> Iterable[Refusal]:
    for node in case.live:
        record = case.record_of(node)
        if record is not None and case.state(node) == ELSEWHERE:
            yield Refusal(case.at(node.address), "RecordExists",
                          f"The machine at {node.address} is {record.name} of cluster {text_at(record.spec, 'clusterRef')}.",
                          "Remove it there first.", "15/elsewhere")


def _twin(case: Case) -> Iterable[Refusal]:
    for node in case.live:
        record = case.record_of(node)
        if record is not None and case.state(node) == TWIN:
            yield Refusal(case.at(node.address), "RecordExists",
                          f"The machine at {node.address} is the one of record {record.name} by what both have, and it has {case.unlike(node)}.",
                          TWIN_HINT, "15/twin")


def _weak(case: Case) -> Iterable[Refusal]:
    of_uuid: dict[str, list[Identity]] = {}
    for dummy, node in case.seen.nodes:
        if isinstance(node, Present):
            of_uuid.setdefault(canonical_uuid(node.value.facts.identity.uuid), []).append(node.value.facts.identity)
    of_record = Counter(record.name for node in case.live if (record := case.record_of(node)) is not None)
    for live in case.live:
        uuid, record = canonical_uuid(live.facts.identity.uuid), case.record_of(live)
        alike = all(one_machine(live.facts.identity, other) for other in of_uuid.get(uuid, ()))
        if not uuid or is_placeholder_uuid(uuid) or not alike:
            yield Refusal(case.at(live.address), "WeakIdentity", f"The UUID of the machine at {live.address} does not single it out.",
                          "Give it a UUID of its own in its firmware.", "15/weak-identity")
        elif record is not None and of_record[record.name] > 1:
            yield Refusal(case.at(live.address), "WeakIdentity", f"The machine at {live.address} is not the only one that record {record.name} fits.",
                          "Put the UUID of its machine into spec.identity of that record.", "15/weak-identity")


def _over_the_count(case: Case) -> Iterable[Refusal]:
    wanted = dig(case.seen.cluster.spec, "controlPlane", "count") if case.seen.cluster is not None else case.wish.count
    if not isinstance(wanted, int) or not wanted:
        return
    there = {record.name for record in approved_control_planes(case.siblings)}
    new = [node for node, config in case.planes if case.state(node) not in (ADOPTED, HELD)]
    if new and len(there) + len(new) > wanted:
        yield Refusal(case.target, "TooManyControlPlanes", f"With {', '.join(node.address for node in new)} cluster {case.wish.cluster} would have "
                      f"{len(there) + len(new)} control planes, and its count is {wanted}.", "Raise the count first (talos_cluster, control_planes).",
                      "15/over-the-count")


def _no_plane(case: Case) -> Iterable[Refusal]:
    if case.seen.cluster is not None or not case.live or case.planes:
        return
    if case.unread:
        yield Refusal(case.target, "ControlPlaneNeeded", "No configuration of a control plane is understood, and the cluster has no record to go by; nothing "
                      "was written.", "Mend what is named, or name a control plane too.", "15/no-control-plane")
        for node, unread in case.unread:
            for one in unread.blocked:
                yield Refusal(case.at(node.address), one.reason, f"{one.sentence}.", one.hint, one.rule)
    elif not any(role_of(config) == "controlplane" for config in case.loose.values()):
        yield Refusal(case.target, "ControlPlaneNeeded", "None of the nodes that answered is a control plane, and the cluster has no record to go by.",
                      "Name a control plane too.", "15/no-control-plane")


#: One row a group of refusals. What is wrong with the whole run comes before what is wrong with a node.
GATES: tuple[Row, ...] = (
    ("15/schedule", _schedule), ("15/nobody", _nobody), ("15/record-broken", _broken), ("15/no-cluster", _no_cluster),
    ("15/unknown-authority", _unknown_authority), ("15/nothing-read", _nothing_read), ("15/versions", _versions), ("15/omni", _omni),
    ("15/no-control-plane", _no_plane), ("15/bundle", _no_bundle), ("15/bundle-differs", _other_bundle), ("15/ca-rotation", _rotation),
    ("15/foreign-node", _foreign), ("15/rejected", _rejected), ("15/elsewhere", _elsewhere), ("15/weak-identity", _weak), ("15/twin", _twin),
    ("15/over-the-count", _over_the_count),
)


def refusals(case: Case, gates: tuple[Row, ...] = GATES) -> tuple[Refusal, ...]:
    """Those of the first row that refuses."""
    for dummy, gate in gates:
        found = tuple(gate(case))
        if found:
            return found
    return ()
