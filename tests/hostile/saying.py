# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for every module run in a hostile world, and the places where such runs happen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import ALL_REASONS
from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab
from tests.nursery.client import Ended, Nursery
from tests.nursery.network import Network

#: Deadlines that cost the tests little. A run that has no deadline of its own is killed after `Nursery`'s much longer one.
SHORT = {"settle": 0.02, "follow": 0.05, "call": 1.0, "apply": 1.0, "maintenance_probe": 1.0, "connect": 1.0, "inspection": 1.0, "lock_wait": 1.0}
_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]")


@dataclass(frozen=True)
class World:
    """A lab, a nursery, the keys of one cluster, and a folder for files."""

    lab: Lab
    nursery: Nursery
    network: str
    folder: Path
    secrets: ClusterSecrets

    def file(self, name: str, text: str) -> str:
        """A private file."""
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def node(self, name: str, host: int, **description: Any) -> str:
        """A node in maintenance mode; its address. An earlier one of that name is gone then."""
        if any(node["name"] == name for node in self.lab.nodes()):
            self.lab.remove(node=name)
        address = f"{self.network}.{host // 256}.{host % 256}"
        self.lab.add(name=name, description={"address": address, **description})
        self.lab.wait(node=name, stage="maintenance")
        return address

    def run(self, module: str, **arguments: Any) -> Ended:
        """One module with short deadlines; what holds for every run is checked."""
        ended = self.nursery.run(module, **{"allow_loopback": True, "timing": SHORT, **arguments})
        plain(ended, self.secrets)
        return ended

    def applied(self, name: str, address: str, **more: Any) -> Ended:
        """A configuration sent to a node without a record, pinned to what the lab says of it."""
        state = self.lab.state(node=name)
        return self.run("talos_maintenance_apply", **{
            "address": address, "uuid": state["uuid"], "fingerprint": state["fingerprint"], "config_content": self.secrets.config("worker", "w-1"),
            "talosconfig_content": self.secrets.talosconfig([]), **more})


@contextmanager
def world(folder: Path) -> Iterator[World]:
    with Lab.start({"nodes": {}}, speed=50) as lab, Nursery() as nursery, closing(Network()) as network:
        yield World(lab, nursery, network.prefix, folder, ClusterSecrets(name="prod"))


def plain(ended: Ended, secrets: ClusterSecrets) -> None:
    """It ended by itself, with a result and nothing else on its streams, without a secret and without what is not seen."""
    assert not ended.late and ended.status in (0, 1), (ended.status, ended.output, ended.errors)
    assert ended.result and not ended.errors, (ended.output, ended.errors)
    assert "Traceback" not in ended.output
    for secret in (secrets.token, secrets.bootstrap_token, secrets.secret, secrets.secretbox):
        assert secret not in ended.output
    assert "PRIVATE KEY" not in ended.output.replace("-----BEGIN ED25519 PRIVATE KEY-----\n...", "")
    for text in strings(ended.result):
        assert not _UNSEEN.search(text), repr(text)


def strings(value: Any) -> Iterator[str]:
    """Every text in a result."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key != "invocation":
                yield from strings(key)
                yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def refusal(ended: Ended) -> tuple[str, str]:
    """Reason and message of a failed run: a reason of the closed list, what is wrong, and what to do."""
    result = ended.result
    assert ended.status == 1 and result["failed"] is True, json.dumps(result)
    two_sentences(result["msg"])
    assert result["reason"] in ALL_REASONS
    return result["reason"], result["msg"]


def two_sentences(text: str) -> None:
    """One that says what is wrong, and one that says what to do."""
    assert len(re.findall(r"[.;:)] +[A-Z]", text)) >= 1 and text.endswith("."), text
    assert ".." not in text.replace("...", "") and " 0 s" not in text, text
