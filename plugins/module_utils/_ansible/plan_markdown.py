# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saved plans as Markdown, for a pull request or a wiki (design section 20, "Saved plans").

Whoever reads only this can say what will happen to which machine, whether it restarts or is wiped, what is left out and why, and
what is still waited for. Texts of nodes and people are escaped, so that they cannot draw, link or call anybody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .._model.records import Json, dig, list_at, text_at
from .plan_text import SHORT_ID, action_words

#: The first line, by which such a file is known.
MARK = "<!-- ichor.talos plan: written beside its JSON, which is what runs -->"
#: What a person has to know of a step before agreeing.
DISRUPTION = {"drain": "moves its pods away", "reboot": "restarts the machine", "wipe": "wipes the machine"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#|~!&$+\-])")
_LONGEST = 800


def markdown(short_id: str, file_name: str, plans: Sequence[Mapping[str, Json]]) -> str:
    """The readable form of the plans of one file, `short_id` being the beginning of their common id."""
    steps = [step for plan in plans for step in list_at(plan, "steps")]
    lines = [MARK, f"# Plan `{short_id}`: {_count(len(steps), 'step') if steps else 'nothing to do'}", ""]
    lines += _summary(steps, plans)
    number = 0
    for plan in plans:
        done = list_at(plan, "done")
        for step in list_at(plan, "steps"):
            number += 1
            lines += _step(number, dig(step, "description"), text_at(step, "id") in done)
    for key, head in (("refusals", "Refused, and left out"), ("warnings", "Read this before you agree"), ("waits", "Waited for")):
        told = list(dict.fromkeys(str(note) for plan in plans for note in list_at(plan, key)))
        lines += [f"## {head}", "", *(f"- {escaped(note)}" for note in told), ""] if told else []
    lines += ["## Which plan this is", "", "| task | plan | steps |", "| --- | --- | --- |"]
    lines += [f"| {escaped(text_at(plan, 'module'))} | `{text_at(plan, 'plan_id')[:SHORT_ID]}` | {len(list_at(plan, 'steps'))} |" for plan in plans]
    lines += ["", f"A run that is given {_code(file_name)} does these steps and no others, or refuses with `PlanChanged` when the world has changed since.", ""]
    return "\n".join(lines)


def _summary(steps: Sequence[Json], plans: Sequence[Mapping[str, Json]]) -> list[str]:
    """How much it disturbs, in one sentence."""
    refused = sum(len(list_at(plan, "refusals")) for plan in plans)
    left = f"{_count(refused, 'thing')} {'is' if refused == 1 else 'are'} refused and left out. " if refused else ""
    if not steps:
        return [f"{left}The machines are as the records say, as far as this plan looks." if not refused else left.strip(), ""]
    counted = [(sum(dig(step, "description", "disruption") == kind for step in steps), text) for kind, text in
               (("wipe", "wipe a machine"), ("reboot", "restart a machine"), ("drain", "move pods away"))]
    final = sum(dig(step, "description", "reversible") is False for step in steps)
    parts = [f"{number} {text if number != 1 else _one(text)}" for number, text in counted if number]
    parts += [f"{final} cannot be undone"] if final else []
    told = f"Of these, {', '.join(parts)}." if parts else "None of them restarts or wipes a machine."
    return [f"**{told}** {left}Nothing else is done.".replace("  ", " "), ""]


def _one(text: str) -> str:
    verb, rest = text.split(" ", 1)
    return f"{verb}s {rest}"


def _step(number: int, step: Json, done: bool) -> list[str]:
    marks = [DISRUPTION[kind]] if (kind := text_at(step, "disruption")) in DISRUPTION else []
    marks += ["cannot be undone"] if dig(step, "reversible") is False else []
    marks += ["done"] if done else []
    target, address = text_at(step, "target"), text_at(step, "address")
    where = f" at {_code(address)}" if address and address != target else ""
    lines = [f"{number}. **{escaped(action_words(text_at(step, 'action')))}**: {_code(target) if target else 'no machine'}{where}"
             + (f" (**{', '.join(marks)}**)" if marks else "")]
    indent = " " * (len(str(number)) + 2)
    lines += [f"{indent}<br>because {escaped(why)}"] if (why := text_at(step, "why")) else []
    lines += [f"{indent}<br>waits for {escaped(str(wait))}" for wait in list_at(step, "waits_for")]
    return [*lines, ""]


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def escaped(text: str) -> str:
    """A text that means nothing to Markdown, in one line; a name behind an @ is nobody's name, and a link is no link."""
    flat = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    cut = flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST - 1]}…"
    return re.sub(r"(@|:(?=//)|(?<=\bwww)\.)", "\\1&#8203;", _SPECIAL.sub(r"\\\1", cut))


def _code(text: str) -> str:
    """A name or an address as code; a fence longer than any in it."""
    flat = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    fence = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    return f"{fence} {flat} {fence}" if len(fence) > 1 else f"`{flat}`"
