# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster of the lab with a Kubernetes of its own: a real API server that knows the bundle's CA, and kubelets that the test plays."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.control import Lab
from tests.lives.records import chosen
from tests.lives.running_cluster import Cluster
from tests.nursery.client import Nursery
from tests.parts.apiserver import ApiServer, running
from tests.parts.build import build
from tests.parts.kubelet import Kubelets, kubelets
from tests.scenarios.playing import Project, Run, network_of
from tests.scenarios.running import Kept
from tests.unit._operations.managed_world import BUNDLE, serving

WRITES = ("create", "patch", "update", "delete")


@dataclass
class Managed:
    """`kept`: the cluster and the folder that it is kept from."""

    kept: Kept
    server: ApiServer
    kubelets: Kubelets

    @property
    def lab(self) -> Lab:
        return self.kept.lab

    @property
    def cluster(self) -> Cluster:
        return self.kept.cluster

    @property
    def project(self) -> Project:
        return self.kept.project

    def register(self, host: str, ready: bool = True) -> None:
        """The Kubernetes Node of a machine, as its kubelet tells of it."""
        state = self.lab.state(node=host)
        self.kubelets.register(host, self.lab_address(host), str(state["uuid"]).upper(), ready)

    def lab_address(self, host: str) -> str:
        return str(self.lab.state(node=host)["address"])

    def run(self, module: str, *, checks: Sequence[bool], fails: bool = False, **options: Any) -> tuple[Run, list[dict[str, Any]]]:
        """One task for each entry, in check mode or for real, by one process of ansible-playbook; their results."""
        tasks = [{"name": f"Task {number}", f"ichor.talos.{module}": options, "check_mode": check, "ignore_errors": fails}
                 for number, check in enumerate(checks)]
        run = self.project.play("task", tasks)
        found = [run[f"Task {number}"] for number in range(len(checks))]
        assert {task.how for task in run.tasks if task.name.startswith("Task ")} == {"failed" if fails else "ok"}, run.output
        return run, found

    def mark(self) -> int:
        """Where the audit log stands."""
        return len(self.server.audit.read_text().splitlines())

    def asked(self, since: int, verbs: Sequence[str] = WRITES) -> list[tuple[float, str]]:
        """What was written to Kubernetes by the product: when, and what as `verb resource/name`."""
        found = []
        for line in self.server.audit.read_text().splitlines()[since:]:
            entry = json.loads(line)
            if entry["user"]["username"] == "ichor.talos" and entry["verb"] in verbs and entry["responseStatus"]["code"] < 400:
                reference = entry["objectRef"]
                what = f"{entry['verb']} {reference['resource']}{'/' + reference['subresource'] if 'subresource' in reference else ''}"
                at = datetime.datetime.fromisoformat(entry["requestReceivedTimestamp"].replace("Z", "+00:00")).timestamp()
                found.append((at, f"{what} {reference.get('namespace', '')}/{reference['name']}".replace(" /", " ")))
        return found

    def sent(self, since: int) -> list[tuple[float, str]]:
        """What nodes were told and accepted: when, and which call."""
        entries = self.lab.log(since=since, event="done", kind="write")
        return [(entry["time"], f"{str(entry['rpc']).rpartition('/')[2]} {entry['node']}") for entry in entries if entry.get("code") == "OK"]


@contextmanager
def managed(folder: Path, name: str, planes: int = 3, workers: int = 1) -> Iterator[Managed]:
    """A running cluster in an address range of its own, with a Node for each machine. Its records are in the chosen store, apart from that Kubernetes."""
    with (running(serving()) as server, Lab.start({"nodes": {}}, speed=20.0, etcd=str(build("etcd-3.6"))) as lab, Nursery() as nursery,
          chosen(folder / "ichor") as records):
        (server.folder / "certs").mkdir(exist_ok=True)
        (server.folder / "certs" / "apiserver.crt").write_text((server.folder / "serving-authority.pem").read_text())
        with kubelets(server) as played:
            project = Project(folder, environment=records.recorded, kept_in=records)
            cluster = Cluster(lab, nursery, folder, network_of(name), planes, workers, kept_in=records,
                              endpoint=f"https://127.0.0.1:{server.port}", bundle_file=str(BUNDLE))
            found = Managed(Kept(cluster, project), server, played)
            cluster.create()
            for host in cluster.names:
                found.register(host)
            yield found
