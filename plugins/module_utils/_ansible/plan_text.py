# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan as lines for a person (design section 20, "The plan is shown")."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping

from .._model.plan import Plan, Refusal, Step, Wait
from .._model.records import Json

SHORT_ID = 12
WIDTH = 116
_LONGEST_VALUE = 32
#: Parameters of steps that a person knows by another word than the field's name.
_PARAMETERS = {"config": "the configuration", "fingerprint": "the certificate", "acceptedFingerprint": "the certificate"}


def plan_lines(plan: Plan, check: bool, *, withheld: bool = False) -> list[str]:
    """Steps with their reasons, refusals, warnings and waits, wrapped so that they can be read in a terminal.

    `withheld`: it is not the approved plan, so it is only shown.
    """
    lines = [_head(plan, check, withheld)] if plan.steps or plan == Plan() else []
    for number, step in enumerate(plan.steps, 1):
        lines += _wrapped(f"  {number}. ", step_line(step))
        if step.why:
            lines += _wrapped("     because ", step.why)
        for wait in step.waits_for:
            lines += _wrapped("     waits for ", wait_text(wait))
    for refusal in plan.refusals:
        lines += _wrapped("  refused: ", refusal_line(refusal))
    if plan.refusals and plan.steps and not withheld:
        lines += _wrapped("  ", _despite(plan, "a real run" if check else "this run"))
    for warning in plan.warnings:
        lines += _wrapped("  warning: ", f"{_of(str(warning.target))}{warning.message}")
    for wait in plan.waits:
        lines += _wrapped("  would wait for " if check else "  waits for ", wait_text(wait))
    return lines


def _despite(plan: Plan, run: str) -> str:
    """What becomes of the steps of a plan of which something is refused."""
    if any(refusal.whole for refusal in plan.refusals):
        return f"As long as that is refused, {run} does none of the steps above."
    return f"What is refused is left out; {run} does the steps above all the same."


def _wrapped(head: str, text: str) -> list[str]:
    """Head and text, its further lines indented; a fingerprint or an address is never cut, and lines of a text stay lines."""
    indent = " " * (len(head) - len(head.lstrip()) + 2)
    first, *rest = text.splitlines() or [""]
    lines = textwrap.wrap(first, WIDTH, initial_indent=head, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines + [f"{indent}  {line}" for line in rest]


def _head(plan: Plan, check: bool, withheld: bool) -> str:
    if not plan.steps:
        return "Nothing to do."
    count = "1 step" if len(plan.steps) == 1 else f"{len(plan.steps)} steps"
    if withheld:
        return f"The plan now would be {plan.id[:SHORT_ID]}, {count} (nothing is done):"
    return f"Plan {plan.id[:SHORT_ID]}, {count}{' (check mode: nothing is done)' if check else ''}:"


def step_line(step: Step) -> str:
    """What a step does to what, and what it interrupts or cannot take back."""
    marks = []
    if step.disruption != "none":
        marks.append(step.disruption)
    if not step.reversible:
        marks.append("cannot be undone")
    target = step.target
    where = f" at {target.address}" if target.address and target.address != str(target) else ""
    return f"{action_words(step.action)}: {target}{where}{' [' + ', '.join(marks) + ']' if marks else ''}"


def saved_step_line(step: Mapping[str, Json]) -> str:
    """The same for a step that was read from a saved plan."""
    return f"{action_words(str(step.get('action') or ''))}: {step.get('target') or ''}"


def parameter_difference(new: Json, old: Json) -> str:
    """What two steps of equal action and target differ in, in words; digests and fingerprints are shortened.

    Both are canonical forms as a saved plan keeps them.
    """
    return "; ".join(_differences(_parameters(new), _parameters(old)))


def _differences(new: Mapping[str, Json], old: Mapping[str, Json]) -> list[str]:
    found: list[str] = []
    for name in sorted({**new, **old}):
        now, then = new.get(name), old.get(name)
        if isinstance(now, dict) and isinstance(then, dict):
            found += _differences(now, then)
        elif now != then:
            found.append(f"{_PARAMETERS.get(name, f'the {action_words(name)}')} differs ({_short(now)} now, {_short(then)} in the plan)")
    return found


def _parameters(canonical: Json) -> Mapping[str, Json]:
    found = canonical.get("parameters") if isinstance(canonical, dict) else None
    return found if isinstance(found, dict) else {}


def _short(value: Json) -> str:
    if value in (None, "", [], {}):
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:SHORT_ID]}…"


def refusal_line(refusal: Refusal) -> str:
    return f"{_of(str(refusal.target))}{refusal.message} {refusal.hint}".rstrip() + f" [{refusal.reason}]"


def wait_text(wait: Wait) -> str:
    deadline = f" (up to {duration(wait.deadline)})" if wait.deadline is not None else ""
    return f"{_of(wait.target)}{wait.what}{deadline}"


def duration(seconds: float) -> str:
    """`45 s`, `10 min`, `2 h 5 min`."""
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    whole = int(round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 120:
        return f"{minutes} min" if rest == 0 else f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def action_words(action: str) -> str:
    """`ApplyConfig` and `apply_config` as `apply config`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", action).replace("_", " ").replace("-", " ").lower()


def _of(target: str) -> str:
    return f"{target}: " if target else ""
