# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of section 16: what refuses a reclaim, what a person is warned of, and what is let through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_words import Managed, Owner, Reclaiming
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity, swapped_uuid
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Partition, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Broken
from ansible_collections.ichor.talos.tests.unit._decide import reclaim_case as c
from ansible_collections.ichor.talos.tests.unit._operations import world as w

WIPE = ("ReclaimMachine", "RegisterMachine")
FORCED = "is treated as not existing, so its quorum cannot be checked and the reset is not graceful"


@dataclass(frozen=True)
class Case:
    """`rule` and `reason` of the refusal, or the actions. `warns`: rules of warnings that have to be there. `never`: of those that may
    not be. `says`: texts."""

    id: str
    seen: Callable[[], Reclaiming]
    rule: str = ""
    reason: str = ""
    actions: tuple[str, ...] = ()
    warns: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    graceful: bool = True
    never: tuple[str, ...] = ()


def _refused(name: str, seen: Callable[[], Reclaiming], rule: str, reason: str, *says: str) -> Case:
    return Case(f"16/{name}", seen, f"16/{rule}", reason, says=says)


def _allowed(name: str, seen: Callable[[], Reclaiming], *warns: str, says: tuple[str, ...] = (), actions: tuple[str, ...] = WIPE,
             graceful: bool = True, never: tuple[str, ...] = ()) -> Case:
    return Case(f"16/{name}", seen, actions=actions, warns=tuple(f"16/{rule}" for rule in warns), says=says, graceful=graceful,
                never=tuple(f"16/{rule}" for rule in never))


def _broken() -> Reclaiming:
    return replace(c.worker(), broken=(Broken(MACHINE, "m1", "machines/m1.yaml", 3, "it is no mapping"),))


def _unsure() -> Reclaiming:
    seen = c.worker()
    return replace(seen, managed=(Managed(c.store_of(seen), Unknown("BundleExposed", "others can read it")),))


def _two_disks() -> Reclaiming:
    return c.looking(c.worker(), partitions=Present((*c.SYSTEM, Partition("/dev/sdb1", "/dev/sdb", "STATE", "xfs"))))


def _apart() -> Reclaiming:
    return c.looking(c.plane(), partitions=Present((*c.SYSTEM, *(Partition(f"/dev/sda{number}", "/dev/sda", label, "xfs")
                                                                 for number, label in enumerate(("ETCD", "CRI", "KUBELET", "LOG", "u-data"), 5)))))


def _disrupted(machine: str) -> Reclaiming:
    return replace(c.managed(c.worker(), disruption={"machine": machine, "step": "reboot", "time": "2023-11-14T00:00:00Z"}), strict=True)


def _held(hold: str) -> Reclaiming:
    seen = c.managed(c.plane())
    held = replace(c.store_of(seen), spec={**c.store_of(seen).spec, "hold": hold})
    return replace(seen, managed=(Managed(held, Present("id-of-prod")),))


def _at_endpoint(url: str, seen: Reclaiming | None = None) -> Reclaiming:
    """The API of its cluster is reached at this url."""
    seen = seen or c.plane()
    assert isinstance(seen.node, Present) and isinstance(seen.node.value.owner, Present)
    return c.looking(seen, owner=Present(replace(seen.node.value.owner.value, endpoint=url)))


def _at_v6() -> Reclaiming:
    seen = c.wishing(_at_endpoint("https://[2001:DB8:0::1]:6443"), address="2001:db8::1")
    return replace(seen, target=replace(seen.target, address="[2001:db8::1]:50000"))


def _by_endpoint() -> Reclaiming:
    seen = c.managed(c.worker())
    return replace(seen, managed=(Managed(c.store_of(seen), Absent()),))


CASES: tuple[Case, ...] = (
    # Who is allowed.
    _allowed("worker", c.worker, "not-drained", says=("it is the worker n1 of cluster old", "wipes STATE, EPHEMERAL", "stays: EFI on /dev/sda1",
                                                      "/dev/sdb", "carries ext4")),
    _allowed("plane-of-three", c.plane, "not-drained", says=("control plane cp1 of cluster old", "leaves etcd, 2 voters stay")),
    _allowed("plane-of-five-one-down", lambda: c.plane(5, dead=(4,))),
    _allowed("plane-of-two", lambda: c.plane(2), "one-left"),
    _allowed("learner", lambda: c.plane(2, learners=(1,)), says=("1 voter stays",)),
    _allowed("at-the-endpoint", lambda: _at_endpoint("https://10.0.0.1:6443"), "endpoint-goes",
             says=("This machine's own address is the endpoint https://10.0.0.1:6443 of cluster old:", "move its endpoint first")),
    _allowed("at-the-endpoint-of-a-managed-cluster", lambda: _at_endpoint("https://10.0.0.1", c.managed(c.worker())), "endpoint-goes", "managed-unrecorded"),
    _allowed("at-an-endpoint-of-ipv6", _at_v6, "endpoint-goes"),
    *(_allowed(f"beside-an-endpoint-{name}", lambda url=url: _at_endpoint(url), "not-drained", never=("endpoint-goes",))  # type: ignore[misc]
      for name, url in (("next-to-it", "https://10.0.0.11:6443"), ("of-a-name", "https://old.example:6443"), ("that-is-none", ""),
                        ("that-is-broken", "https://[1"))),
    _allowed("volumes-apart", _apart, says=("wipes STATE, EPHEMERAL, ETCD, CRI, KUBELET, LOG", "u-data on /dev/sda9")),
    _allowed("two-disks", _two_disks, "two-disks", says=("STATE on /dev/sda3 and /dev/sdb1", "/dev/sdb (4000 GB")),
    _allowed("not-listed", lambda: replace(c.worker(), listed=False), "not-in-discovery", says=("Add the address there",)),
    _allowed("host-name-hangs", lambda: c.looking(c.worker(), hostname=c.LATE), "unchecked", says=("host name: it did not answer within 20 s",)),
    _allowed("version-hangs", lambda: c.looking(c.worker(), version=c.LATE), "unchecked", says=("Talos version: it did not answer",)),
    _allowed("stage-hangs", lambda: c.looking(c.worker(), stage=c.LATE), "unchecked", says=("stage: it did not answer",)),
    _allowed("disks-hang", lambda: c.looking(c.worker(), disks=c.LATE), "unchecked", says=("disks: it did not answer",)),
    _allowed("services-hang", lambda: c.looking(c.plane(), services=c.LATE), "unchecked", says=("services: it did not answer",)),
    _allowed("boot-id-hangs", lambda: c.looking(c.worker(), boot_id=c.LATE), "no-boot-id", "unchecked"),
    _allowed("etcd-of-a-worker-hangs", lambda: c.looking(c.worker(), etcd=c.LATE, members=c.LATE), "not-drained"),
    # A managed cluster.
    _allowed("managed-worker", lambda: c.managed(c.worker()), "managed-unrecorded", says=("add_machine", "cluster prod, which this store manages")),
    _allowed("managed-plane", lambda: c.managed(c.plane()), "managed-unrecorded"),
    _allowed("managed-by-its-endpoint", _by_endpoint, "managed-unrecorded"),
    _allowed("own-disruption-before-the-lease", lambda: replace(_disrupted("cp-2"), strict=False), "managed-unrecorded"),
    _allowed("own-disruption-is-this-one", lambda: _disrupted(f"reclaim-{w.uuid(1)}"), "managed-unrecorded"),
    # Records of the UUID.
    _allowed("pending", lambda: c.recorded(c.worker(), "pending"), "pending", says=("known is pending with this UUID: it stays",)),
    _allowed("pending-elsewhere", lambda: c.recorded(c.worker(), "pending", cluster="stage"), "pending-elsewhere", actions=("ReclaimMachine",)),
    _allowed("rejected", lambda: c.recorded(c.worker(), "rejected"), "rejected", actions=("ReclaimMachine",), says=("stays rejected",)),
    # etcd that is silent.
    _allowed("stopped-and-forced", lambda: c.forced(c.stopped()), "forced", says=(FORCED, "its service is Finished"), graceful=False),
    _allowed("hanging-and-forced", lambda: c.forced(c.hanging()), "forced", says=(FORCED, "within 20 s"), graceful=False),
    _allowed("no-leader-and-forced", lambda: c.forced(c.looking(c.plane(dead=(2, 3)), etcd=c.status(1, 0), members=c.LATE)), "forced", graceful=False),
    _allowed("only-its-own-is-stopped", lambda: c.forced(c.looking(c.plane(), etcd=c.LATE)), "member-stays", says=("stays listed",), graceful=False),
    _allowed("force-on-a-worker", lambda: c.forced(c.worker()), "force-not-needed", says=("it is a worker",)),
    _allowed("force-on-an-etcd-that-answers", lambda: c.forced(c.plane()), "force-not-needed", says=("it leaves gracefully",)),
    # In maintenance mode already, or on its way.
    Case("16/waits-already", lambda: c.recorded(c.waiting(c.worker(), "one"), "pending"), says=("in maintenance mode, pending as known",)),
    _allowed("waits-unrecorded", lambda: c.waiting(c.worker()), actions=("RegisterMachine",)),
    _allowed("waits-with-another-certificate", lambda: c.recorded(c.waiting(c.worker()), "pending"), "pending", actions=("RegisterMachine",)),
    _allowed("waits-unlisted", lambda: replace(c.waiting(c.worker()), listed=False), "not-in-discovery", actions=("RegisterMachine",)),
    Case("16/waits-rejected", lambda: c.recorded(c.waiting(c.worker()), "rejected"), warns=("16/rejected",)),
    Case("16/waits-elsewhere", lambda: c.recorded(c.waiting(c.worker()), "pending", cluster="stage"), warns=("16/pending-elsewhere",)),
    _allowed("resetting", lambda: c.looking(c.worker(), stage=Present(StageReading("resetting"))), actions=("RegisterMachine",)),
    # Refused: the node.
    _refused("no-cluster-record", lambda: replace(c.worker(), cluster=None), "no-cluster", "RecordNotFound"),
    _refused("another-authority", lambda: c.unread(c.worker(), "UnknownAuthority", "its certificate is of another CA"), "unknown-authority",
             "UnknownAuthority", "may be the one of another cluster", "the bundle of cluster prod is tried", "talos.experimental.wipe=system"),
    _refused("no-credential", lambda: c.unread(c.worker(), "SecretsUnavailable", "there is none"), "credential", "SecretsUnavailable"),
    _refused("not-dialled", lambda: c.unread(c.worker(), "EndpointRefused", "the address is not dialled"), "credential", "EndpointRefused",
             "Check the address."),
    _refused("clocks-apart", lambda: c.unread(c.worker(), "ClockSkew"), "credential", "ClockSkew", "Set the clock"),
    _refused("reader-s-credential", lambda: c.unread(c.worker(), "PermissionDenied"), "credential", "PermissionDenied", "os:admin"),
    _refused("silent", lambda: c.unread(c.worker(), "ConnectionRefused", "nothing listens"), "unreachable", "NodeUnreachable", "run this again then"),
    _refused("identity-hangs", lambda: c.looking(c.worker(), identity=c.LATE), "identity-unread", "CurrentConfigUnavailable", "within 20 s"),
    _refused("without-a-uuid", lambda: c.looking(c.worker(), identity=Present(Identity(serial="S"))), "no-uuid", "WeakIdentity"),
    _refused("nothing-typed", lambda: c.wishing(c.worker(), confirm=""), "not-confirmed", "ConfirmationMissing", w.uuid(1)),
    _refused("nothing-typed-and-waiting", lambda: c.wishing(c.waiting(c.worker()), confirm=""), "not-confirmed", "ConfirmationMissing",
             "there is nothing to reset", "talos_discover"),
    _refused("another-uuid-typed", lambda: c.wishing(c.worker(), confirm=w.uuid(2)), "uuid-differs", "IdentityMismatch", w.uuid(1), w.uuid(2)),
    _refused("blanks-typed", lambda: c.wishing(c.worker(), confirm=" \n"), "not-confirmed", "ConfirmationMissing"),
    _refused("a-file-typed", lambda: c.wishing(c.worker(), confirm="x" * 10 ** 6), "uuid-differs", "IdentityMismatch", f"and {'x' * 77}... was typed"),
    _allowed("typed-in-upper-case", lambda: c.wishing(c.worker(), confirm=f" {w.uuid(1).upper()}\n"), "not-drained"),
    *(_refused(f"typed-with-{name}", lambda typed=typed: c.wishing(c.worker(), confirm=typed), "uuid-differs", "IdentityMismatch",  # type: ignore[misc]
               "type the UUID as it is shown")
      for name, typed in (("braces", f"{{{w.uuid(1)}}}"), ("a-prefix", f"urn:uuid:{w.uuid(1)}"), ("no-dashes", w.uuid(1).replace("-", "")),
                          ("a-template", "{{ uuid }}"), ("another-script", "ü" * 36), ("the-other-byte-order", swapped_uuid(w.uuid(1))))),
    _refused("no-uuid-typed", lambda: c.wishing(c.worker(), confirm="yes"), "uuid-differs", "IdentityMismatch"),
    _refused("another-waits-there", lambda: c.waiting(c.worker(), identity=w.identity(2)), "uuid-differs", "IdentityMismatch"),
    _refused("records-unreadable", _broken, "broken-records", "RecordBroken", "machines/m1.yaml"),
    _refused("approved", lambda: c.recorded(c.worker(), "approved"), "approved", "MachineManaged", "known of cluster prod", "talos_machine_removal"),
    _refused("approved-of-another-cluster", lambda: c.recorded(c.worker(), "approved", cluster="stage"), "approved", "MachineManaged", "cluster stage"),
    _refused("approved-in-the-other-byte-order",
             lambda: c.recorded(c.worker(), "approved", identity={"uuid": swapped_uuid(w.uuid(1))}), "approved", "MachineManaged"),
    _refused("approved-and-waiting", lambda: c.recorded(c.waiting(c.worker()), "approved"), "approved", "MachineManaged"),
    # Refused: what it runs.
    _refused("configuration-hangs", lambda: c.looking(c.worker(), owner=c.LATE), "config-unread", "CurrentConfigUnavailable", "within 20 s"),
    _refused("bundle-unreadable", _unsure, "owner-unsure", "SecretsUnavailable", "others can read it"),
    _refused("force-on-a-managed-worker", lambda: c.forced(c.managed(c.worker())), "force-managed", "QuorumUnknown", "does exist"),
    _refused("force-on-a-managed-plane", lambda: c.forced(c.managed(c.plane())), "force-managed", "QuorumUnknown"),
    _refused("managed-and-shutting-down", lambda: _held("shutdown"), "own-held", "ClusterShuttingDown"),
    _refused("managed-and-rotating", lambda: _held("caRotation"), "own-held", "CARotation"),
    _refused("managed-and-restored", lambda: c.managed(c.worker(), operation={"what": "restore"}), "own-operation", "OperationInProgress"),
    _refused("managed-and-disrupted", lambda: _disrupted("cp-2"), "own-disruption", "OperationInProgress", "cp-2"),
    _refused("rebooting", lambda: c.looking(c.worker(), stage=Present(StageReading("rebooting"))), "busy", "OperationInProgress"),
    _refused("upgrading", lambda: c.looking(c.worker(), stage=Present(StageReading("upgrading"))), "busy", "OperationInProgress"),
    _refused("volumes-hang", lambda: c.looking(c.worker(), partitions=c.LATE), "volumes-unread", "CurrentConfigUnavailable", "within 20 s"),
    _refused("bare", lambda: c.looking(c.worker(), partitions=Present(c.SYSTEM[:2])), "nothing-to-wipe", "ResetFailed"),
    # Refused: etcd.
    _refused("etcd-stopped", c.stopped, "etcd-problem", "QuorumUnknown", "etcdProblem: etcd is not running (its service is Finished)", "force_ungraceful"),
    _refused("etcd-hanging", c.hanging, "etcd-problem", "QuorumUnknown", "etcdProblem: it did not answer within 20 s"),
    _refused("etcd-without-a-leader", lambda: c.looking(c.plane(), etcd=c.status(1, 0)), "etcd-problem", "QuorumUnknown", "sees no leader"),
    _refused("members-hang", lambda: c.looking(c.plane(), members=c.LATE), "etcd-problem", "QuorumUnknown", "within 20 s"),
    _refused("unlisted", lambda: c.looking(c.plane(), etcd=c.status(9)), "own-unlisted", "MemberUnclear"),
    _refused("last", lambda: c.plane(1), "last", "ControlPlaneNeeded", "talosctl reset --graceful=false --reboot --system-labels-to-wipe STATE"),
    _refused("last-that-is-forced", lambda: c.forced(c.plane(1)), "last", "ControlPlaneNeeded"),
    _refused("last-beside-a-learner", lambda: c.plane(2, learners=(2,)), "last", "ControlPlaneNeeded"),
    _refused("one-of-three-down", lambda: c.plane(dead=(2,)), "quorum", "QuorumAtRisk", "needs 2 healthy voters, and 1 answer"),
    _refused("one-of-three-down-and-forced", lambda: c.forced(c.plane(dead=(2,))), "quorum", "QuorumAtRisk"),
    _refused("other-of-two-down", lambda: c.plane(2, dead=(2,)), "quorum", "QuorumAtRisk"),
    _refused("three-of-four-with-one-before", lambda: replace(c.plane(dead=(3,)), gone=frozenset({c.hex_of(2)})), "quorum", "QuorumAtRisk"),
    _refused("forced-and-members-hang", lambda: c.forced(c.looking(c.plane(), members=c.LATE)), "forced-unlisted", "QuorumUnknown", "sees a leader"),
    _refused("forced-and-the-others-need-it", lambda: c.forced(c.looking(c.plane(dead=(2,)), etcd=c.LATE)), "forced-quorum", "QuorumAtRisk",
             "not one that answers"),
    _refused("forced-and-it-is-the-only-one", lambda: c.forced(c.looking(c.plane(1), etcd=c.LATE)), "forced-quorum", "QuorumAtRisk"),
    _refused("owner-without-a-role-is-a-plane", lambda: c.looking(c.plane(dead=(2,)), owner=Present(Owner("x", "old", "", "worker"))), "quorum",
             "QuorumAtRisk"),
)
