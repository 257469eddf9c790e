# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fleets for the report: what the three modules would show of so many machines, in every state that there is."""

from __future__ import annotations

from ansible_collections.ichor.talos.plugins.module_utils._decide.fleet_report import CertificateSeen, FleetSeen
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Event, Json, Ref

NOW = 1_796_040_000.0
DAY = 86_400.0
HOSTILE = "<script>fetch('//evil')</script>\"'{{ 7*7 }}{% raw %}</style></details>\u202e"
#: Of every ten machines: (approval, Ready, reason, stage, what, waits for, advice)
LIVES = (
    ("approved", "True", "Converged", "running", "It runs.", "", ""),
    ("approved", "True", "Converged", "running", "It runs.", "", ""),
    ("approved", "True", "Converged", "running", "It runs.", "", ""),
    ("approved", "False", "Drifted", "running", "It runs, and differs from its records in 2 paths.", "the next pass of the controller", ""),
    ("approved", "False", "NodeInstalling", "installing", "It installs Talos on /dev/nvme0n1.", "the reboot into the installed system", ""),
    ("approved", "True", "Converged", "running", "It runs.", "", ""),
    ("approved", "False", "NodeUnreachable", "running", "It does not answer.", "an answer", "Look at its power and its network."),
    ("pending", "", "", "maintenance", "It is pending: nothing is sent to it.", "a person's decision", "Approve or reject it with talos_machine_approval."),
    ("approved", "False", "RebootRequired", "running", "Its new configuration takes effect at the next boot.",
     "fleet-0001, which is restarted before it", "Nothing; it is restarted when its turn comes."),
    ("rejected", "", "", "maintenance", "It is rejected: nothing is ever sent to it.", "", "Nothing; approve it when it is wanted after all."),
)


def machine(number: int, cluster: str, hostile: str = "") -> Json:
    approval, ready, reason, stage, what, waits, advice = LIVES[number % len(LIVES)]
    since = moment(NOW - 60 * (number % 97) - 30)
    conditions: list[Json] = [{"type": "Ready", "status": ready, "reason": reason, "message": what, "lastTransitionTime": since}] if ready else []
    name = f"{cluster}-{number:04x}{'-' + hostile if hostile else ''}"
    return {
        "metadata": {"name": name, "annotations": {"ichor.maesh.dev/hold-apply": "true"} if number == 3 else {}, "labels": {}},
        "spec": {"clusterRef": cluster, "role": "controlplane" if number % 100 < 3 else "worker", "hostname": hostile or f"node-{number}",
                 "approvalState": approval},
        "status": {"stage": stage, "conditions": conditions, "talosVersion": "v1.13.9"}, "dial_endpoint": f"10.0.{number // 200}.{number % 200 + 10}:50000",
        "node": {"answers": reason != "NodeUnreachable", "stage": stage, "talos_version": "v1.13.9",
                 "certificate_ends": moment(NOW + DAY / 2)} if approval == "approved" else None,
        "doing": {"what": what, "since": since, "waiting_for": waits, "advice": advice},
    }


def cluster(name: str, planes: int, hostile: str = "") -> Json:
    etcd: list[Json] = [{"machine": f"{name}-{number:04x}", "answers": True, "member": True, "leader": number == 0, "learner": False,
                         "db_size": 23_000_000 + number, "reason": "", "message": ""} for number in range(planes)]
    return {
        "metadata": {"name": name}, "etcd": etcd, "lock": {"holder": f"awx job 41 {hostile}".strip(), "purpose": "converging", "since": moment(NOW - 40)},
        "spec": {"endpoint": f"https://10.0.0.5:6443{hostile}", "talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "controlPlane": {"count": planes}},
        "status": {"bootstrappedAt": moment(NOW - 90 * DAY)},
        "doing": {"what": "It runs: 2 of 3 approved machines are Ready. 3 of 3 control planes are members of etcd that see a leader.",
                  "since": moment(NOW - 90 * DAY), "waiting_for": "", "advice": ""},
    }


def drifted(name: str, cluster_name: str, hostile: str = "") -> Json:
    return {"name": name, "cluster": cluster_name, "reason": "Drifted", "message": "2 paths differ.", "authority": [],
            "reboot": ["machine.install.extraKernelArgs"],
            "differences": [{"document": "v1alpha1", "path": f"machine.sysctls.net.ipv4.ip_forward{hostile}", "running": "0", "wanted": "1",
                             "secret": False},
                            {"document": "TimeSyncConfig", "path": "ntp.servers.0", "running": hostile or "192.0.2.123", "wanted": None, "secret": False}]}


def step(number: int, action: str, target: str, why: str, disruption: str = "none", reversible: bool = True, *waits: str) -> Json:
    name = f"{action}-{number}"
    return {"id": name, "description": {"id": name, "action": action, "target": target, "why": why, "disruption": disruption, "reversible": reversible,
                                        "waits_for": [*waits]}}


PLAN: tuple[Json, ...] = ({
    "module": "talos_controller", "plan_id": "3f9c2ab1d07755aa", "done": ["ApplyDrift-1"], "warnings": [], "waits": [],
    "steps": [step(1, "ApplyDrift", "prod-0003", "2 paths differ from the records"),
              step(2, "Reboot", "prod-0008", "machine.install.extraKernelArgs needs a reboot", "reboot", True, "prod-0003 being Ready"),
              step(3, "ResetMachine", "prod-0009", "it was ordered by anna", "wipe", False, "the lock of prod")],
    "refusals": ["prod-0006: The node does not answer. Look at its power and its network. [NodeUnreachable]"]},)


def event(name: str, number: int, hostile: str) -> Event:
    kind, reason = ("Warning", "NodeReinstalled") if number % 7 == 3 else ("Normal", "ConfigApplied")
    return Event(Ref(MACHINE, name), kind, reason, f"The configuration was applied {hostile}".strip(), moment(NOW - 3000 * number - 90))


def fleet(count: int, hostile: str = "", plans: tuple[Json, ...] | None = PLAN) -> FleetSeen:
    """So many machines in as many clusters as they would be run in; none at all for 0."""
    names = [f"{name}{hostile}" for name in ("prod", "edge", "lab", "test", "build")[: -(-count // 100)]]
    machines = [machine(number, names[number % len(names)], hostile) for number in range(count)]
    configs = [drifted(one["metadata"]["name"], one["spec"]["clusterRef"], hostile) for number, one in enumerate(machines)  # type: ignore[index,call-overload]
               if LIVES[number % len(LIVES)][2] == "Drifted"]
    events = [event(str(one["metadata"]["name"]), number, hostile) for number, one in enumerate(machines)]  # type: ignore[index,call-overload]
    certificates = [CertificateSeen(what, name, NOW + days * DAY) for name in names
                    for what, days in (("CA of the Talos API", 3300), ("CA of etcd", 3300), ("client certificate of talosconfig context prod", 21))]
    certificates += [CertificateSeen(f"certificate of {number}", names[0], NOW + DAY / 2, renews=True) for number in range(count)]
    return FleetSeen("directory ./ichor", [cluster(name, min(3, count), hostile) for name in names], machines, configs,
                     [{"name": "broken", "source": "ichor/machines/broken.yaml", "line": 7, "message": f"no YAML {hostile}"}] if count > 3 else [],
                     events, certificates, plans if count else None)
