# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that bring a machine back to what the records say (design sections 11 and 13)."""

from __future__ import annotations

from .._machineconfig.compare import Difference
from .._model.observed import Present
from .._model.plan import Refusal, Step, Wait, Warn
from .approved import is_control_plane
from .comparison import Compared
from .convergence_drain import needs_reboot, told_of_drain, warnings_of_reboot
from .convergence_words import ApplyDrift, Converging, Found, Reboot
from .lock import disruption_of, held_by_other

#: How many paths a sentence names; the result shows them all.
_NAMED = 3


def _compared(seen: Converging) -> Compared:
    if not isinstance(seen.compared, Present):
        raise ValueError("what the node runs is judged by an earlier gate")
    return seen.compared.value


def takes_lock(seen: Converging) -> bool:
    """Every apply to a control plane takes the lock, a worker only to reboot."""
    return is_control_plane(seen.machine) or (needs_reboot(seen) and seen.allow_reboot)


def changes(compared: Compared) -> tuple[Difference, ...]:
    """What the node runs, or else keeps for its next boot, differently from the records."""
    return compared.state.differences or (compared.kept.differences if compared.kept is not None else ())


def drifted(seen: Converging) -> str:
    """What differs, in a sentence without values."""
    compared = _compared(seen)
    where = [one.where for one in changes(compared)]
    more = f" and {len(where) - _NAMED} more" if len(where) > _NAMED else ""
    told = f"{', '.join(where[:_NAMED])}{more} {'differs' if len(where) == 1 else 'differ'} from the records"
    if not compared.state.differences:
        return f"In what the node keeps for its next boot {told}."
    return f"{told[:1].upper()}{told[1:]}{', and only a reboot is left' if _reboot_is_left(seen) else ''}."


def _reboot_is_left(seen: Converging) -> bool:
    return _compared(seen).left and needs_reboot(seen)


def _goes_first(seen: Converging) -> tuple[Wait, ...]:
    """The machine whose evidence everything under the lock waits for."""
    found = disruption_of(seen.cluster)
    if found is None or not held_by_other(found, seen.machine.name):
        return ()
    return (Wait(f"the end of what {found.step} began there", target=found.machine),)


def apply_drift(seen: Converging) -> Found:
    """Every gate is passed: apply at once, or stage and reboot."""
    compared, locked = _compared(seen), is_control_plane(seen.machine)
    rebooting, first = needs_reboot(seen), _goes_first(seen)
    what = drifted(seen)
    steps: list[Step] = []
    if not _reboot_is_left(seen):
        steps.append(ApplyDrift(seen.target, _why_apply(what, rebooting), waits_for=first if locked else (), locked=locked, config=compared.sha256,
                                mode="STAGED" if rebooting else "NO_REBOOT"))
    refusals: tuple[Refusal, ...] = ()
    if rebooting and seen.allow_reboot:
        staged = (Wait("the configuration to be staged"),) if steps else ()
        steps.append(Reboot(seen.target, _why_reboot(seen), waits_for=(*first, *staged), locked=True, config=compared.sha256))
    elif rebooting:
        refusals = (Refusal(seen.target, "RebootRequired", "The change has effect only after a reboot, and this run may not reboot.",
                            "Run with allow_reboot: true, or reboot the machine yourself.", "11/reboot-not-allowed"),)
    reason = "RebootRequired" if _reboot_is_left(seen) else "Drifted"
    only_refused = not steps and bool(refusals)
    message = f"{what} {refusals[0].message} {refusals[0].hint}" if only_refused else what
    return Found("11/apply" if steps else "11/reboot-not-allowed", False, reason, message, tuple(steps), refusals, _warnings(seen),
                 soon=not only_refused, settled=only_refused)


def _why_apply(what: str, rebooting: bool) -> str:
    effect = "it is kept for the next boot, and changes nothing before that" if rebooting else "it is taken at once, without a reboot"
    return f"{what[:1].lower()}{what[1:].rstrip('.')}; {effect}"


def _why_reboot(seen: Converging) -> str:
    effect = _compared(seen).effect
    where = [one.where for one in effect.reboot] if effect is not None else []
    told = f"{', '.join(where[:_NAMED]) or 'what changed'} has effect only after a reboot, which leaves what is on its disks"
    return f"{told}{told_of_drain(seen)}"


def _warnings(seen: Converging) -> tuple[Warn, ...]:
    effect = _compared(seen).effect
    if needs_reboot(seen):
        return warnings_of_reboot(seen) if seen.allow_reboot else ()
    if effect is None:
        return ()
    found = []
    if effect.later:
        found.append(Warn(seen.target, f"{', '.join(one.where for one in effect.later[:_NAMED])}: taken at once, with effect only after a restart.",
                          "11/later"))
    if effect.never:
        found.append(Warn(seen.target, f"{', '.join(one.where for one in effect.never[:_NAMED])}: install settings, which an installed node "
                          "does not look at.", "11/never"))
    return tuple(found)
