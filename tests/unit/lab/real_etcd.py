# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lab nodes with real etcd members, and the calls of the Talos API about them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.lab.control import Lab
from tests.lab.wire import message
from tests.parts.build import build
from tests.unit.lab.lab_nodes import Nodes

ADMIN = "os:admin"


def start(speed: float = 20) -> Lab:
    """A lab whose control planes have real members."""
    return Lab.start(speed=speed, etcd=str(build("etcd-3.6")), etcd_restore=str(build("etcd-restore-3.6")))


def until(wanted: Callable[[], Any], what: str, seconds: float = 40.0) -> Any:
    """What `wanted` gives once it is true."""
    end = time.monotonic() + seconds
    while not (found := wanted()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {seconds} s")
        time.sleep(0.05)
    return found


class Members:
    """The members behind some nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    def ask(self, name: str, method: str, request: str | None = None, deadline: float = 5.0, **fields: Any) -> Any:
        """The first answer; AssertionError with code and text when the call fails."""
        data = message(f"machine.{request}")(**fields) if request else b""
        outcome = self.nodes.call(name, method, data, ADMIN, deadline=deadline)
        while outcome.details.endswith("etcdserver: leader changed"):  # what was under way when a new leader was chosen is asked again
            outcome = self.nodes.call(name, method, data, ADMIN, deadline=deadline)
        if outcome.code != "OK":
            raise AssertionError(f"{outcome.code}: {outcome.details}")
        return message(f"machine.{method}Response").FromString(outcome.messages[0]).messages[0]

    def list(self, name: str, local: bool = True) -> dict[str, Any]:
        """Members by name, as a node's own etcd sees them."""
        found = self.ask(name, "EtcdMemberList", "EtcdMemberListRequest", query_local=local)
        return {member.hostname: member for member in found.members}

    def voters(self, name: str) -> set[str]:
        """Names of the members that vote; empty while nothing answers."""
        with suppress(AssertionError):
            return {member.hostname for member in self.list(name).values() if not member.is_learner}
        return set()

    def status(self, name: str) -> Any:
        return self.ask(name, "EtcdStatus").member_status

    def identifier(self, name: str) -> int:
        """The id of a node's member as its machine knows it."""
        return int(self.status(name).member_id)

    def remove(self, name: str, identifier: int) -> None:
        """Removes a member; etcd refuses while a voter is connected for less than five seconds."""
        request = message("machine.EtcdRemoveMemberByIDRequest")(member_id=identifier)

        def removed() -> bool:
            outcome = self.nodes.call(name, "EtcdRemoveMemberByID", request, ADMIN)
            assert outcome.code == "OK" or outcome.details.endswith("etcdserver: unhealthy cluster"), outcome.details
            return outcome.code == "OK"

        until(removed, f"{identifier:x} is removed")

    def whole(self, *names: str) -> None:
        """Waits until each of these nodes is a voter by its own account, and no other member is there."""
        for name in names:
            until(lambda name=name: self.voters(name) == set(names), f"{name} sees {', '.join(names)}")
            self.nodes.member(name)

    def provision(self, name: str) -> None:
        """From maintenance until the installed control plane waits for etcd data: a bootstrap, or members to join."""
        boots = self.nodes.state(name)["boots"]
        assert self.nodes.apply(name, self.nodes.config("controlplane", name)).code == "OK"

        def waits() -> bool:
            state = self.nodes.state(name)
            return bool(state["boots"] > boots and state["stage"] == "booting" and [item["reason"] for item in state["unmet"]] == ["etcd not running"])

        until(waits, f"{name} waits for etcd")
