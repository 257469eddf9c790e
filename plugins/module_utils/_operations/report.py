# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_report`: the fleet as one HTML page and as JSON (design section 18, "Report"). Nodes and records are only read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .._decide.fleet_report import CertificateSeen, FleetSeen, fleet_report
from .._decide.report_words import WriteReport
from .._machineconfig.authorities import load_certificate
from .._machineconfig.problem import ConfigProblem
from .._model.errors import TalosError
from .._model.moments import seconds_of
from .._model.observed import Present
from .._model.outcome import Outcome
from .._model.plan import Plan, Target
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER, Event, Json, Record, list_at, text_at
from .._model.timing import Timing
from .._store import files
from .._store.layout import store_around
from . import cluster_info, config_info, machine_info
from .record_reads import credentials_for, need_store
from .rendering import bundle_of
from .report_page import page
from .silent_nodes import SilentNodes


def _as_it_is(data: Json) -> Json:
    return data


@dataclass(frozen=True)
class Request:
    """`path`: the page; `json_path`: the same as data; '' leaves one out. `cluster` '' is all of the store. `plans`: entries of a saved plan.

    `mask` hides what is a secret of this run, wherever it is quoted. `compare`: read what the nodes run and hold it against their records.
    """

    path: str = ""
    json_path: str = ""
    cluster: str = ""
    title: str = ""
    read_nodes: bool = True
    compare: bool = True
    plans: tuple[Json, ...] | None = None
    allow_loopback: bool = False
    timing: Timing = field(default_factory=Timing)
    mask: Callable[[Json], Json] = _as_it_is


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read, put together, show the plan, write the files."""
    targets = [path for path in (request.path, request.json_path) if path]
    for path in targets:
        _refuse_place(Path(path))
    if len({os.path.realpath(path) for path in targets}) < len(targets):
        raise TalosError("InvalidInput", f"path and json_path are both {request.path}.", "Give two paths, or leave one out.")
    plan = Plan(steps=tuple(WriteReport(Target(kind="File", name=path), "it was asked for") for path in targets))
    granted = gate(plan)
    seen = await _read(request, ports)
    masked = request.mask(fleet_report(seen, ports.clock.now()))
    document: dict[str, Json] = masked if isinstance(masked, dict) else {}
    executed = []
    for step in granted.steps:
        text = page(document) if str(step.target) == request.path else json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        files.write_atomically(Path(str(step.target)), text.encode("utf-8", "replace"))
        executed.append(step.id)
    unreachable = tuple(text_at(row, "name") for row in list_at(document, "machines") if isinstance(row, dict) and row.get("answers") is False)
    totals = document.get("totals")
    return Outcome(plan=plan, executed=tuple(executed), unreachable=unreachable,
                   message=_message(totals, targets if executed else []), extra={"totals": totals, "path": request.path, "json_path": request.json_path})


def _refuse_place(path: Path) -> None:
    """Refuse a path at which no report may be written, before anything is read: it would be put in the place of what is there."""
    try:
        if not str(path).strip() or not path.parent.is_dir() or path.is_dir() or path.exists() and not path.is_file():
            raise TalosError("InvalidInput", f"The report cannot be written to {path}.", "Give the path of a file in a folder that exists.")
        around = store_around(path)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise TalosError("InvalidInput", f"The report cannot be written to {path}: {problem}.", "Give another path.") from None
    if around is not None:
        raise TalosError("InvalidInput", f"The report cannot be written to {path}, which is inside the store {around}.",
                         "Give a path outside of the folders of the records.")


async def _read(request: Request, ports: Ports) -> FleetSeen:
    """What the three modules show, told in a few lines; what cannot be read is a note on the page."""
    store = need_store(ports)
    notes: list[str] = []

    def gate(plan: Plan) -> Plan:
        notes.extend(" ".join(f"{warning.target} {warning.message}".split()) for warning in plan.warnings)
        return plan

    quiet = replace(ports, nodes=SilentNodes(ports.nodes), progress=lambda line: None)
    ports.progress("reading clusters and machines")
    named = (request.cluster,) if request.cluster else ()
    clusters = await cluster_info.run(cluster_info.Request(named, request.read_nodes, request.allow_loopback, request.timing), quiet, gate)
    machines = await machine_info.run(machine_info.Request(cluster=request.cluster, read_nodes=request.read_nodes, allow_loopback=request.allow_loopback,
                                                           timing=request.timing), quiet, gate)
    rows = list_at(machines.extra, "records")
    configs: tuple[Json, ...] = ()
    if request.read_nodes and request.compare:
        ports.progress(f"comparing what {len(rows)} machine{'' if len(rows) == 1 else 's'} run with their records")
        try:
            compared = await config_info.run(config_info.Request(cluster=request.cluster, allow_loopback=request.allow_loopback, timing=request.timing),
                                             quiet, gate)
            configs = list_at(compared.extra, "configs")
        except TalosError as error:
            notes.append(f"What the machines run was not compared. {error.text}")
    listing = store.list(CLUSTER)
    own = [record for record in listing.records if request.cluster in ("", record.name)]
    return FleetSeen(
        store.description, list_at(clusters.extra, "clusters"), rows, configs, _broken(clusters.extra, machines.extra),
        _events(ports, request.cluster, rows), _certificates(ports, own, rows), request.plans, request.title, tuple(dict.fromkeys(notes)))


def _events(ports: Ports, cluster: str, rows: Sequence[Json]) -> tuple[Event, ...]:
    found = need_store(ports).events()
    names = {cluster, *(text_at(row, "metadata", "name") for row in rows)}
    return tuple(event for event in found if not cluster or event.ref.name in names)


def _certificates(ports: Ports, clusters: Iterable[Record], rows: Sequence[Json]) -> tuple[CertificateSeen, ...]:
    """The CAs of the bundles, the client certificates that people gave, and the ones that the nodes show, which renew themselves."""
    found: list[CertificateSeen] = []
    for cluster in clusters:
        try:
            bundle = bundle_of(need_store(ports), cluster)
            pairs = (("CA of the Talos API", bundle.os), ("CA of Kubernetes", bundle.k8s), ("CA of etcd", bundle.etcd),
                     ("CA of the aggregator", bundle.aggregator))
            found += [CertificateSeen(what, cluster.name, end) for what, pair in pairs if (end := _end_of(pair.crt)) is not None]
        except (TalosError, ConfigProblem):
            pass  # a bundle that cannot be read is told where it is needed
        credentials = credentials_for(ports, cluster.name, cluster)
        if isinstance(credentials, Present) and "bundle" not in credentials.value.source and (end := _end_of(credentials.value.certificate)) is not None:
            found.append(CertificateSeen(f"client certificate of {credentials.value.source or 'the talosconfig'}", cluster.name, end))
    for row in rows:
        ends = seconds_of(text_at(row, "node", "certificate_ends"))
        if ends is not None:
            found.append(CertificateSeen(f"certificate of {text_at(row, 'metadata', 'name')}", text_at(row, "spec", "clusterRef"), ends, renews=True))
    return tuple(found)


def _end_of(pem: str) -> float | None:
    try:
        return float(load_certificate(pem).not_valid_after_utc.timestamp())
    except ValueError:
        return None


def _broken(*extras: object) -> tuple[Json, ...]:
    """Each record that cannot be read, once."""
    found: dict[str, Json] = {}
    for extra in extras:
        for entry in list_at(extra if isinstance(extra, dict) else {}, "broken"):
            found.setdefault(text_at(entry, "source") or text_at(entry, "name"), entry)
    return tuple(found.values())


def _message(totals: Json, written: Sequence[str]) -> str:
    count = totals if isinstance(totals, dict) else {}
    told = f"{count.get('ready', 0)} of {count.get('approved', 0)} approved machines are Ready, {count.get('attention', 0)} want attention."
    return f"{told} Written: {', '.join(written)}." if written else told
