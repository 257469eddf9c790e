# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pictures of the documentation: `python -m tests.browser.pictures` writes docs/report.png and docs/plan.png anew.

The report is that of a made-up fleet; the plan is the one of the recorded demonstration (docs/demo.txt), as a terminal shows it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import jinja2

from ansible_collections.ichor.talos.plugins.module_utils._decide.fleet_report import CertificateSeen, FleetSeen, fleet_report
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Event, Ref
from ansible_collections.ichor.talos.plugins.module_utils._operations.report_page import page
from tests.browser.chromium import Browser
from tests.unit._operations.report_world import DAY, NOW, PLAN, cluster, drifted, machine

DOCS = Path(__file__).parents[2] / "docs"
WIDTH, HEIGHT = 1180, 1000
#: Cluster, name, host name, and which of the lives of `report_world` it has.
FLEET = (
    *(("prod", f"prod-{head}", f"cp-{number}", 0) for number, head in enumerate(("4c4c4544", "5a1f0c3e", "6b2f1d4e"), 1)),
    *(("prod", f"prod-{head}", f"worker-{number}", life) for number, (head, life) in enumerate(
        (("7be2944d", 0), ("8d4f3f6e", 0), ("9e5f4a7e", 0), ("a06e51b2", 0), ("b17f62c3", 3), ("c28073d4", 0), ("d39184e5", 4)), 1)),
    ("prod", "prod-e4a295f6", "", 7),
    *(("edge", f"edge-{head}", f"edge-{number}", life) for number, (head, life) in enumerate((("1f0c3e5a", 0), ("2f1d4e6b", 0), ("3c2e5d7f", 6)), 1)),
)
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body{margin:0;background:#0e1116;color:#d7dce4;font:14px/1.55 "DejaVu Sans Mono",monospace;padding:20px 26px;white-space:pre}
b{color:#7ee2a8;font-weight:600}i{color:#e9c46a;font-style:normal}u{color:#ff9a62;text-decoration:none}s{color:#8b96a5;text-decoration:none}
</style>{% for line in lines %}{% if line.startswith("$") %}<b>{{ line }}</b>
{% elif line.startswith("TASK") or line.startswith("changed") or line.startswith("ok") %}<s>{{ line }}</s>
{% elif "[wipe" in line or "cannot be undone" in line %}{{ line.split("[")[0] }}<u>[{{ line.split("[", 1)[1] }}</u>
{% elif line.strip().startswith("Plan ") %}<i>{{ line }}</i>
{% else %}{{ line }}
{% endif %}{% endfor %}"""


def fleet() -> FleetSeen:
    machines: list[Any] = []
    for number, (name, record, host, life) in enumerate(FLEET):
        entry: Any = machine(life, name)
        entry["metadata"]["name"] = record
        entry["metadata"]["annotations"] = {}
        entry["spec"] |= {"hostname": host, "role": "controlplane" if host.startswith("cp-") or name == "edge" else "worker" if host else ""}
        entry["dial_endpoint"] = f"192.0.2.{11 + number}:50000"
        machines.append(entry)
    told = {"prod": "It runs: 8 of 10 approved machines are Ready. 3 of 3 control planes are members of etcd that see a leader.",
            "edge": "It runs: 2 of 3 approved machines are Ready. 2 of 3 control planes are members of etcd that see a leader."}
    clusters: list[Any] = []
    for name in told:
        entry = cluster(name, 3)
        entry["doing"]["what"] = told[name]
        entry["spec"]["endpoint"] = f"https://{name}.example.com:6443"
        entry["lock"] = {"holder": "awx job 4117", "purpose": "keeping prod-b17f62c3"} if name == "prod" else None
        for one, row in zip(entry["etcd"], [row for row in FLEET if row[0] == name]):
            one["machine"] = row[1]
        clusters.append(entry)
    clusters[1]["etcd"][2] |= {"answers": False, "member": None, "db_size": None, "reason": "NodeUnreachable", "message": "It does not answer."}
    events = [Event(Ref(MACHINE, row[1]), "Normal", "NodeJoined", "The node runs and has joined its cluster.", moment(NOW - 900 * number - 60))
              for number, row in enumerate(FLEET) if row[3] == 0]
    certificates = [CertificateSeen("CA of the Talos API", name, NOW + 3300 * DAY) for name in told]
    return FleetSeen("kubernetes ichor-system", clusters, machines, [drifted("prod-b17f62c3", "prod")], events=events, certificates=certificates, plans=PLAN)


def plan() -> str:
    """The check run of the demonstration, as a terminal would show it."""
    lines = (DOCS / "demo.txt").read_text(encoding="utf-8").splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("$ ") and "provision.yml --check" in line)
    end = next(number for number, line in enumerate(lines) if number > begin and line.startswith("PLAY RECAP"))
    kept = [line for line in lines[begin:end - 1] if not line.startswith("PLAY")]
    return str(jinja2.Environment(autoescape=True).from_string(TERMINAL).render(lines=kept))


def main() -> None:
    with Browser() as browser, tempfile.TemporaryDirectory() as folder:
        for name, text, height in (("report", page(fleet_report(fleet(), NOW)), HEIGHT), ("plan", plan(), 0)):
            path = Path(folder) / f"{name}.html"
            path.write_text(text, encoding="utf-8")
            browser.open(path, WIDTH if name == "report" else 1060)
            browser.screenshot(DOCS / f"{name}.png", height)


if __name__ == "__main__":
    main()
