# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make, import and export the secrets bundle of a cluster (design sections 4, 8, 18)."""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from .._decide.bundle import decide_bundle
from .._decide.bundle_words import BundleSeen, BundleWish, ExportBundle, GenerateBundle, ImportBundle
from .._machineconfig.authorities import check_bundle, load_certificate, make_bundle
from .._machineconfig.bring import read_expanded
from .._machineconfig.compatibility import talos_tag
from .._machineconfig.contract import contract_of, schema_for
from .._machineconfig.documents import load
from .._machineconfig.pem import blocks
from .._machineconfig.placeholder import placeholder_bundle
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.schema import VERSIONS
from .._machineconfig.secrets import Bundle, bundle_of_config, read_bundle
from .._machineconfig.yaml_read import decode
from .._model.errors import TalosError
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.outcome import Outcome, refused_by
from .._model.plan import Plan
from .._model.ports import Gate, Ports
from .._model.records import BUNDLE, CLUSTER, MACHINE, Json, Record, text_at
from .bundle_file import BundleFile, BundlePlace, observe_bundle
from .record_reads import need_store


@dataclass(frozen=True)
class Request:
    """Which bundle: the one called `name`, the one of `cluster`, or (without a store) the file `path`.

    `bundle`: content of a bundle to import, `config`: content of a control plane's configuration to take it from; `source` names the
    file for messages. `decrypt` gives the clear text of a vaulted file.
    """

    name: str = ""
    cluster: str = ""
    path: str = ""
    bundle: bytes | None = None
    config: bytes | None = None
    source: str = ""
    talos_version: str = ""
    replace: bool = False
    export_path: str = ""
    decrypt: Callable[[str], bytes] | None = None


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read what is there, decide, show the plan, write."""
    place: BundlePlace = BundleFile(request.decrypt) if request.path else need_store(ports)
    record = _cluster(request, ports)
    name = request.path or request.name or _named(record)
    now = datetime.datetime.fromtimestamp(ports.clock.now(), datetime.timezone.utc)
    imported = _imported(request)
    faults = tuple(finding.message for finding in check_bundle(imported.value, now)) if isinstance(imported, Present) else ()
    wish = BundleWish(name, imported, request.source, faults, _contract(request, record), request.replace, request.export_path)
    seen = _observe(request, place, name, ports)
    plan = decide_bundle(wish, seen)
    granted = gate(plan)
    bundle = imported.value if isinstance(imported, Present) else seen.bundle.value if isinstance(seen.bundle, Present) else None
    if plan.refusals:
        return replace(refused_by(plan), blocked=(name,))
    executed = []
    for step in granted.steps:
        if isinstance(step, GenerateBundle):
            ports.progress(f"{name}: making keys")
            bundle = make_bundle(now, os.urandom, contract=step.contract)
            _write_first(place, name, bundle)
        elif isinstance(step, ImportBundle) and bundle is not None:
            place.write_bundle(name, bundle.text().encode(), replace=step.replace)
        elif isinstance(step, ExportBundle) and bundle is not None:
            BundleFile(None).write_bundle(step.path, bundle.text().encode(), replace=step.replace)
        executed.append(step.id)
    return Outcome(
        plan=plan, executed=tuple(executed), message="" if plan.steps else f"The secrets bundle {name} is there.",
        would_be=_would_be(plan, name, now.year) if ports.check and not request.path else (),
        extra={"bundle": _shown(name, bundle)})


def _write_first(place: BundlePlace, name: str, bundle: Bundle) -> None:
    """New keys, only where none are. Raises TalosError `RecordExists`: those that are there now may be in use, so nothing replaces them."""
    try:
        place.write_bundle(name, bundle.text().encode())
    except TalosError as error:
        if error.reason != "RecordExists":
            raise
        raise TalosError("RecordExists", f"Another run made the secrets bundle {name} in the meantime.", "Run this again; that bundle is used then.") from None


def _cluster(request: Request, ports: Ports) -> Record | None:
    if not request.cluster:
        return None
    record = need_store(ports).get(CLUSTER, request.cluster)
    if record is None and not request.name:
        raise TalosError("RecordNotFound", f"There is no cluster {request.cluster}.", "Create it with talos_cluster, or give the bundle's name.")
    return record


def _named(record: Record | None) -> str:
    name = text_at(record.spec, "secretsRef", "name") if record is not None else ""
    if not name:
        raise TalosError("InvalidInput", "The cluster names no secrets bundle.", "Give name here, or bundle with talos_cluster.")
    return name


def _contract(request: Request, record: Record | None) -> str:
    version = request.talos_version or (text_at(record.spec, "talosVersion") if record is not None else "")
    if request.talos_version:
        talos_tag(request.talos_version)
    return contract_of(version) if version else VERSIONS[-1]


def _imported(request: Request) -> Observed[Bundle]:
    try:
        if request.bundle is not None:
            return Present(read_bundle(request.bundle, source=request.source), request.source)
        if request.config is not None:
            read_expanded(decode(request.config))
            # the newest schema has every kind of the older ones, and the keys stand where they stood
            config = load(request.config, schema_for(request.talos_version) if request.talos_version else VERSIONS[-1], source=request.source)
            return Present(bundle_of_config(config), request.source)
    except ConfigProblem as error:
        error.at(source=request.source)
        return Unknown(error.reason, error.message, error.hint)
    return Absent()


def _observe(request: Request, place: BundlePlace, name: str, ports: Ports) -> BundleSeen:
    form, bundle = observe_bundle(place, name)
    exported: Observed[Bundle] = Absent()
    if request.export_path:
        exported = observe_bundle(BundleFile(request.decrypt), request.export_path)[1]
    if request.path or ports.store is None:
        return BundleSeen(form, bundle, stored=False, exported=exported)
    clusters, machines = ports.store.list(CLUSTER), ports.store.list(MACHINE)
    return BundleSeen(form, bundle, clusters.records, machines.records, (*clusters.broken, *machines.broken), exported=exported)


def _would_be(plan: Plan, name: str, year: int) -> tuple[Record, ...]:
    """For the later tasks of a check run: a placeholder, since no key goes into a temporary file."""
    if not any(isinstance(step, (GenerateBundle, ImportBundle)) for step in plan.steps):
        return ()
    return (Record(BUNDLE, name, {"text": placeholder_bundle(name, year).text()}, uid=hashlib.sha256(name.encode()).hexdigest()),)


def _shown(name: str, bundle: Bundle | None) -> dict[str, Json]:
    """What may be told of a bundle: nothing of its keys. {} where it is not there yet."""
    if bundle is None:
        return {"name": name}
    told: dict[str, Json] = {"name": name, "cluster_id": bundle.cluster_id, "encryption": "aescbc" if bundle.aescbc else "secretbox"}
    for key, pem in (("talos_ca", bundle.os.crt), ("kubernetes_ca", bundle.k8s.crt), ("etcd_ca", bundle.etcd.crt)):
        try:
            certificate = load_certificate(pem)
        except ValueError:
            continue
        told[key] = {"sha256": hashlib.sha256(blocks(pem)[0][1]).hexdigest(), "not_after": f"{certificate.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"}
    return told
