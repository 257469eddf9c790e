# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""First lives under random kills and random faults, by module processes against the lab, until they have ended well."""

from __future__ import annotations

import random
from typing import Any

from tests.crash.life import LATER, MACHINE, NAMES, STEPS, Life, Place, Step
from tests.crash.test_kills import kill_and_restart
from tests.hostile.saying import plain
from tests.lab.faults import ANSWER_KINDS, CALL_KINDS, CONNECT_KINDS, HANDSHAKE_KINDS

#: Not those that only cost time, and not the answers of many megabytes, which cost the lab's.
FAULTS = tuple(kind for kind in (*CONNECT_KINDS, *HANDSHAKE_KINDS, *CALL_KINDS, *ANSWER_KINDS) if kind not in ("answer-huge", "answer-endless"))
RPCS = ("*", "ApplyConfiguration", "Bootstrap", "Get", "List", "ServiceList", "EtcdStatus", "EtcdMemberList")
SHORT = {"settle": 0.02, "follow": 0.05, "call": 0.5, "apply": 0.5, "maintenance_probe": 0.5, "connect": 0.5, "lock_wait": 1.0, "lock_renewal": 1.0}
BAD_ROUNDS, GOOD_ROUNDS = 6, 30


def kill(life: Life, chance: random.Random) -> int:
    """One kill at a random boundary of a random step, the whole of what `tests/crash` asks of it."""
    step = chance.choice(STEPS)
    kill_and_restart(life, step, chance.choice(life.traces[step.name]))
    return 1


def schedule(life: Life, chance: random.Random) -> int:
    """One life from a found machine to a joined one, through faults, kills and clocks; then without them, until it has joined."""
    place = life.before(STEPS[NAMES.index("apply")])
    for unused in range(chance.randint(1, BAD_ROUNDS)):
        disturb(life, place, chance)
        step = chance.choice([step for step in STEPS if step.name in ("discover", "apply", "apply", "follow", "bootstrap", "join")])
        boundary = chance.choice(life.traces[step.name]) if chance.random() < 0.3 else None
        run(life, place, step, kill=boundary, ahead=chance.choice((0.0, 0.0, 0.0, LATER)))
        prove(life, place)
    life.lab.clear(node=place.node)
    finish(life, place)
    prove(life, place)
    life.leave(place)
    return 1


def disturb(life: Life, place: Place, chance: random.Random) -> None:
    """One to three faults, or a new leaf, or a power cut."""
    for unused in range(chance.randint(1, 3)):
        what = chance.random()
        if what < 0.75:
            kind = chance.choice(FAULTS)
            value = "UNAVAILABLE: torture" if kind == "call-status" else None
            life.lab.fault(node=place.node, kind=kind, rpc=chance.choice(RPCS), times=chance.choice((1, 2, 5)), value=value)
        elif what < 0.85:
            life.lab.reissue(node=place.node)
        elif what < 0.95:
            life.lab.power(node=place.node, state="cycle")
        else:
            life.lab.clear(node=place.node)


def run(life: Life, place: Place, step: Step, **options: Any) -> dict[str, Any]:
    """One process of a module; what it says has to be plain, however it went."""
    arguments = {**step.arguments(place)}
    if "timing" in arguments:
        arguments["timing"] = SHORT
    if step.module == "talos_stage":
        arguments["timeout"] = 2.0
    ended = life.run(place, Step(step.name, step.module, lambda here: arguments, step.state), **options)
    if not ended.killed:
        plain(ended, life.secrets)
    elif options.get("kill") is None or ended.late:
        raise AssertionError(f"{step.module} hung: {ended.output} {ended.errors}")
    return ended.result


def finish(life: Life, place: Place) -> None:
    """Without faults, with a person who trusts the machine's new certificate, it joins."""
    said = {}
    for number in range(GOOD_ROUNDS):
        ahead = LATER * (number + 1)
        said["trust"] = trusted(life, place)
        for name in ("apply", "follow", "bootstrap", "join"):
            said[name] = run(life, place, STEPS[NAMES.index(name)], ahead=ahead)
        if said["join"].get("settled") and life.lab.state(node=place.node)["stage"] == "running":
            return
    raise AssertionError(f"it never joined: {({name: result.get('msg') for name, result in said.items()})}")


def trusted(life: Life, place: Place) -> dict[str, Any]:
    """A person looks at the console and names the fingerprint, where the machine waits in maintenance mode."""
    state = life.lab.state(node=place.node)
    if state["mode"] != "maintenance":
        return {}
    return life.nursery.run("talos_machine", machine=MACHINE, trust=True, fingerprint=state["fingerprint"], **place.nodes).result


def prove(life: Life, place: Place) -> None:
    """By the node's own log: one accepted configuration a wipe, one bootstrap."""
    if life.accepted(place, "ApplyConfiguration") > 1 or life.accepted(place, "Bootstrap") > 1:
        raise AssertionError(f"accepted more than once: {life.lab.log(node=place.node, event='done', kind='write')}")
