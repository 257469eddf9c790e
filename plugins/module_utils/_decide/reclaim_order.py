# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineReclaim: an order to wipe, carried out once (design sections 3 and 16)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .._model.identity import Identity
from .._model.moments import moment, seconds_of
from .._model.observed import Present
from .._model.plan import Plan, Refusal, Target, Wait
from .._model.records import RECLAIM, Condition, Event, Json, Record, condition_of, list_at, text_at
from .conditions import Status, with_condition
from .reclaim import IN_MAINTENANCE, Verdict
from .reclaim_inspection import inspection, lease_of, uuid_of
from .reclaim_words import Reclaiming, ReclaimWish, RegisterMachine

#: The event that remembers a beginning where the status is lost.
STARTED = "ReclaimStarted"
#: What Velero puts on everything that it brings back; it brings back no status.
RESTORED = "velero.io/restore-name"
#: Refusals after which an order is over: it was carried out as far as it goes.
FINAL = frozenset({"16/restarted-unwiped", "16/kept", "16/no-maintenance", "16/order-late"})
#: What a node shows that goes down or comes up.
SILENT = frozenset({"16/unreachable", "16/identity-unread", "16/busy"})


def target_of(order: Record) -> Target:
    return Target(kind=RECLAIM, name=order.name, cluster=text_at(order.spec, "clusterRef"), uid=order.uid)


def wish_of(order: Record) -> ReclaimWish:
    """What the record asks for."""
    return ReclaimWish(text_at(order.spec, "address"), text_at(order.spec, "clusterRef"), text_at(order.spec, "confirmUUID"),
                       order.spec.get("forceUngraceful") is True)


def is_over(order: Record) -> bool:
    """It was carried out, or ended for good."""
    return bool(text_at(order.status, "outcome"))


def is_begun(order: Record) -> bool:
    """A reset went out for it, or was about to."""
    return bool(text_at(order.status, "startedAt"))


def order_refusal(order: Record, events: Iterable[Event], now: float) -> Refusal | None:
    """Why an order that is neither over nor under way is not carried out: what lost its status is not a new one."""
    until = seconds_of(text_at(order.spec, "notAfter"))
    if is_begun(order):
        return None
    if order.status_set_aside:
        return _missing(order, "its status is another record's of this name", "16/order-other-status")
    if any(event.reason == STARTED and order.uid and order.uid in event.message for event in events):
        return _missing(order, "it has begun before and its status is gone", "16/order-status-lost")
    if order.labels.get(RESTORED):
        return _missing(order, f"it came back from the restore {order.labels[RESTORED]} without its status", "16/order-restored")
    if until is None or now > until:
        return _missing(order, f"it has no status, and its time was over at {text_at(order.spec, 'notAfter') or 'no time that can be read'}",
                        "16/order-expired")
    held = condition_of(order, "Ready")
    if held is not None and held.reason == "StatusMissing":
        # What was written of that took the other status away.
        return _missing(order, "its status was another record's of this name", "16/order-other-status")
    return None


def begun_identity(order: Record) -> Identity:
    """The machine that the order has begun on."""
    macs = tuple(mac for mac in list_at(order.status, "inspection", "macs") if isinstance(mac, str))
    return Identity(text_at(order.status, "inspection", "uuid"), text_at(order.status, "inspection", "serial"), macs)


def begun_lease(order: Record) -> str:
    """The lease of that machine's own cluster."""
    return text_at(order.status, "inspection", "lease")


def begun_volumes(order: Record) -> tuple[str, ...]:
    """The volumes that were to go."""
    return tuple(label for label in list_at(order.status, "inspection", "wipes") if isinstance(label, str))


def decide_begun(order: Record, seen: Reclaiming, verdict: Verdict, now: float, patience: float) -> Verdict:
    """What a machine calls for on which the order has begun: a reset is never sent twice without a look, and silence is waited for."""
    if verdict.reset is not None:
        refusal = begun_refusal(order, seen, now)
        return Verdict(Plan(refusals=(refusal,))) if refusal is not None else verdict
    if verdict.refusal is None or verdict.refusal.rule not in SILENT:
        return verdict
    since = seconds_of(text_at(order.status, "startedAt")) or 0.0
    if now - since > patience:
        return Verdict(Plan(refusals=(Refusal(
            seen.target, "ResetFailed", f"{seen.target} was told to reset and has not reached maintenance mode within {patience:g} s.",
            "Look at the node's console. It may have another address now: talos_discover finds it there.", "16/no-maintenance"),)))
    wait = Wait(IN_MAINTENANCE, patience, str(seen.target))
    step = RegisterMachine(replace(seen.target, uuid=begun_identity(order).uuid), "it was reset", machine_uuid=begun_identity(order).uuid, waits_for=(wait,))
    return Verdict(Plan((step,)), under_way=True)


def begun_refusal(order: Record, seen: Reclaiming, now: float) -> Refusal | None:
    """Why an order that has begun is not sent again: the node restarted since, or the time is over."""
    look, boot = inspection(seen), text_at(order.status, "inspection", "bootID")
    if isinstance(look.boot_id, Present) and boot and look.boot_id.value != boot:
        return Refusal(seen.target, "ResetFailed", f"{seen.target} restarted and kept its data: the reset failed after its OK.",
                       "Look at the node's console, then give a new order.", "16/restarted-unwiped")
    until = seconds_of(text_at(order.spec, "notAfter"))
    if until is None or now > until:
        return Refusal(target_of(order), "StatusMissing", f"The order {order.name} had begun, and its time is over.", "Give a new order.", "16/order-late")
    return None


def _missing(order: Record, why: str, rule: str) -> Refusal:
    return Refusal(target_of(order), "StatusMissing", f"The order {order.name} is not carried out: {why}.",
                   "Look at the machine; where it is to be wiped, delete this record and give a new order under another name.", rule)


def with_begin(status: Status, order: Record, seen: Reclaiming, shown: dict[str, Json], now: float) -> Status:
    """Before the reset goes out: what was found, and since when."""
    look = inspection(seen)
    boot = look.boot_id.value if isinstance(look.boot_id, Present) else ""
    identity = look.identity.value if isinstance(look.identity, Present) else None
    kept = {**shown, "lease": lease_of(seen), "bootID": boot, "serial": identity.serial if identity else "", "macs": list(identity.macs) if identity else []}
    since = text_at(order.status, "startedAt") or moment(now)
    return with_condition({**status, "inspection": kept, "startedAt": since}, Condition(
        "Ready", "False", "OperationInProgress", f"The machine with UUID {uuid_of(seen)} is being reset.", order.generation), now)


def with_outcome(status: Status, order: Record, machine: str, refusal: Refusal | None, now: float) -> Status:
    """How it ended."""
    if refusal is not None:
        told = f"{refusal.message} {refusal.hint}".strip()
        condition = Condition("Ready", "False", refusal.reason, told, order.generation)
        outcome = f"{refusal.reason}: {refusal.message}"
    else:
        outcome = f"Pending as {machine}." if machine else "In maintenance mode; its record stays as it is."
        condition = Condition("Ready", "True", "Converged", outcome, order.generation)
    return with_condition({**status, "outcome": outcome, "startedAt": str(status.get("startedAt") or moment(now)), "finishedAt": moment(now)}, condition, now)


def with_refusal(status: Status, order: Record, refusal: Refusal, now: float) -> Status:
    """What holds it now."""
    return with_condition(status, Condition("Ready", "False", refusal.reason, f"{refusal.message} {refusal.hint}".strip(), order.generation), now)


def started_event(order: Record, seen: Reclaiming, now: float) -> Event:
    told = f"The machine at {seen.target} with UUID {uuid_of(seen)} is being reset for the order {order.uid}."
    return Event(order.ref, "Warning", STARTED, told, moment(now))
