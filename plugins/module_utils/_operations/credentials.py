# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Issue a talosconfig or a kubeconfig from a secrets bundle (design sections 5 and 18)."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass, replace
from pathlib import Path

from .._decide.approved import approved_control_planes, in_cluster
from .._decide.credentials import CredentialSeen, CredentialWish, IssueCredentials, decide_credentials
from .._machineconfig.client_certificate import issue_client
from .._machineconfig.credential_files import KUBECONFIG, CredentialFile, read_credential_file
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.secrets import Pair, read_bundle
from .._model.errors import TalosError
from .._model.machine import dial_endpoint
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.outcome import Outcome, refused_by
from .._model.plain_files import read_given
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER, MACHINE, Json, Record, text_at
from .._store import files
from .record_reads import need_store
from .rendering import bundle_of

#: Hours; nobody's CA is valid for longer.
LONGEST = 876_000


@dataclass(frozen=True)
class Request:
    """What is issued and where it is written. `bundle`: its content, where it is not the store's. Times in hours."""

    kind: str
    path: str
    cluster: str = ""
    bundle: bytes | None = None
    source: str = ""
    roles: tuple[str, ...] = ("os:admin",)
    endpoints: tuple[str, ...] = ()
    server: str = ""
    lifetime: float = 8760.0
    renew_before: float = 720.0
    replace: bool = False


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read bundle, records and the file, decide, show the plan, write the file."""
    if not 0 < request.lifetime <= LONGEST or not 0 <= request.renew_before < request.lifetime:
        raise TalosError("InvalidInput", f"The lifetime has to be above 0, at most {LONGEST} hours, and longer than renew_before.",
                         "Correct lifetime and renew_before (hours).")
    if not Path(request.path).parent.is_dir():
        raise TalosError("InvalidInput", f"The folder of {request.path} is not there.", "Create it, or give another path.")
    now = datetime.datetime.fromtimestamp(ports.clock.now(), datetime.timezone.utc)
    record = need_store(ports).get(CLUSTER, request.cluster) if request.bundle is None else None
    if record is None and request.bundle is None:
        raise TalosError("RecordNotFound", f"There is no cluster {request.cluster}.", "Create it with talos_cluster, or give bundle_file.")
    wish = _wish(request, ports, record)
    authority = _authority(request, ports, record)
    there, private = _there(request)
    plan = decide_credentials(wish, CredentialSeen(authority, there, private), now)
    granted = gate(plan)
    if plan.refusals:
        return replace(refused_by(plan), blocked=(request.path,))
    found = there.value if isinstance(there, Present) else None
    executed = []
    for step in granted.steps:
        if isinstance(step, IssueCredentials) and isinstance(authority, Present):
            client = issue_client(authority.value, wish.organizations, wish.common_name, now, datetime.timedelta(hours=request.lifetime), os.urandom)
            found = CredentialFile(wish.kind, wish.cluster, authority.value.crt, client, wish.endpoints, wish.server)
            files.write_atomically(Path(request.path), found.text().encode(), 0o600)
            executed.append(step.id)
    told: dict[str, Json] = {"kind": request.kind, "path": request.path, "cluster": wish.cluster, "roles": list(wish.organizations),
                             "endpoints": list(wish.endpoints), "server": wish.server}
    if found is not None and (executed or not plan.steps):
        told["not_after"] = f"{found.client.not_after:%Y-%m-%dT%H:%M:%SZ}"
    return Outcome(plan=plan, executed=tuple(executed), message="" if plan.steps else f"The {request.kind} {request.path} is good.",
                   extra={"credentials": told})


def _wish(request: Request, ports: Ports, record: Record | None) -> CredentialWish:
    cluster = record.name if record is not None else request.cluster or "talos"
    renew = datetime.timedelta(hours=request.renew_before)
    if request.kind == KUBECONFIG:
        server = request.server or (text_at(record.spec, "endpoint") if record is not None else "")
        return CredentialWish(request.kind, request.path, cluster, ("system:masters",), "admin", server=server, renew_before=renew, replace=request.replace)
    endpoints = request.endpoints or (_control_planes(ports, record) if record is not None else ())
    return CredentialWish(request.kind, request.path, cluster, request.roles, endpoints=endpoints, renew_before=renew, replace=request.replace)


def _control_planes(ports: Ports, cluster: Record) -> tuple[str, ...]:
    """Where the approved control planes are dialled, as a talosconfig has it: without the usual port."""
    found = []
    for machine in approved_control_planes(in_cluster(need_store(ports).list(MACHINE).records, cluster.name)):
        try:
            endpoint = dial_endpoint(machine)
        except TalosError:
            continue
        found.append(endpoint.host if endpoint.port == 50000 else str(endpoint))
    return tuple(found)


def _authority(request: Request, ports: Ports, record: Record | None) -> Observed[Pair]:
    try:
        if record is not None:
            bundle = bundle_of(need_store(ports), record)
        else:
            bundle = read_bundle(request.bundle or b"", source=request.source)
        pair = bundle.k8s if request.kind == KUBECONFIG else bundle.os
    except ConfigProblem as error:
        return Unknown("BundleInvalid", error.message, error.hint)
    except TalosError as error:
        return Unknown(error.reason, error.message, error.hint)
    if not pair.crt or not pair.key:
        return Unknown("BundleInvalid", "The bundle lacks the CA or its key.", "Give the whole bundle.")
    return Present(pair)


def _there(request: Request) -> tuple[Observed[CredentialFile], bool]:
    """What is at the path, and whether only its owner can read it."""
    path = Path(request.path)
    if not files.is_there(path):
        return Absent(request.path), True
    data = read_given(path, "path")
    private = not path.stat().st_mode & 0o077
    try:
        return Present(read_credential_file(data, request.kind), request.path), private
    except ValueError as error:
        return Unknown("RecordExists", f"{str(error).rstrip('.')}."), private
