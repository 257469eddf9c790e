# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Install the loop in a cluster, or write its manifests into a folder (design section 18, role `runner`)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment, unused-ignore]

from .._decide.runner_install import ApplyObject, Seen, WriteManifest, decide_install, meaning
from .._kube.access import Access, open_api
from .._kube.api import Api
from .._kube.objects import apply, as_applied, read
from .._model.errors import TalosError
from .._model.observed import Absent, Observed, Present
from .._model.outcome import Difference, Outcome, refused_by
from .._model.plan import Plan
from .._model.ports import Gate, Ports
from .._model.records import JsonMap
from .._model.runner_manifests import RunnerSettings, file_of, manifests
from .._store.kubernetes.opening import wait_until_served
from .._store.kubernetes.refusals import doing


@dataclass(frozen=True)
class Request:
    """Into which cluster, or into which folder (`manifests`). `override`: also over objects that a GitOps tool keeps."""

    settings: RunnerSettings
    access: Access = field(default_factory=Access)
    manifests: str = ""
    override: bool = False


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Look at each object, decide, show the plan, apply what differs. Raises TalosError as the store's requests do."""
    objects = manifests(request.settings)
    if request.manifests:
        return _done(_files(request, objects), request, ports, gate, None)
    api = open_api(request.access)
    try:
        return _done(tuple(_observed(api, wanted) for wanted in objects), request, ports, gate, api)
    finally:
        api.close()


def _done(seen: tuple[Seen, ...], request: Request, ports: Ports, gate: Gate, api: Api | None) -> Outcome:
    plan = decide_install(seen, request.override)
    granted = gate(plan)
    if plan.refusals:
        return refused_by(plan)
    executed = []
    for step in granted.steps:
        if isinstance(step, WriteManifest):
            _write(Path(step.file), step.wanted)
        elif isinstance(step, ApplyObject) and api is not None:
            ports.progress(f"applying {step.target}")
            with doing(f"apply {step.target}", api):
                apply(api, step.wanted)
        executed.append(step.id)
    if executed and api is not None:
        with doing("look for the store", api):
            wait_until_served(api, request.settings.namespace, ports.clock)
    where = request.manifests or f"namespace {request.settings.namespace}"
    return Outcome(plan=plan, executed=tuple(executed), differences=_differences(plan, seen),
                   message="" if plan.steps else f"The runner in {where} is as wanted already.", extra={"objects": [str(_name(one.wanted)) for one in seen]})


def _observed(api: Api, wanted: JsonMap) -> Seen:
    with doing(f"read {_name(wanted)}", api):
        now = read(api, wanted)
        return Seen(wanted, Absent() if now is None else Present(now, api.host), as_applied(api, wanted) if now is not None else {})


def _files(request: Request, objects: tuple[JsonMap, ...]) -> tuple[Seen, ...]:
    folder = Path(os.path.abspath(os.path.expanduser(request.manifests)))
    found = []
    for number, wanted in enumerate(objects):
        path = folder / f"{number:02d}-{file_of(wanted)}"
        found.append(Seen(wanted, _file(path), file=str(path)))
    return tuple(found)


def _file(path: Path) -> Observed[JsonMap]:
    try:
        found = yaml.safe_load(path.read_bytes())
    except FileNotFoundError:
        return Absent()
    except (OSError, yaml.YAMLError) as error:
        raise TalosError("InvalidInput", f"The manifest {path} cannot be read: {' '.join(str(error).split())[:200]}.",
                         "Remove it, or give another folder.") from None
    return Present(found if isinstance(found, dict) else {}, str(path))


def _write(path: Path, wanted: JsonMap) -> None:
    # Through JSON: what stands in two places of it would be an anchor and an alias, which not every tool that overlays manifests takes.
    text = yaml.safe_dump(json.loads(json.dumps(wanted)), sort_keys=False, width=120, allow_unicode=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(f"---\n{text}", encoding="utf-8")
        os.replace(fresh, path)
    except OSError as error:
        raise TalosError("InvalidInput", f"The manifest {path} cannot be written: {error.strerror or error}.", "Give a folder that can be written.") from None


def _differences(plan: Plan, seen: tuple[Seen, ...]) -> tuple[Difference, ...]:
    changed = {id(step.wanted) for step in plan.steps if isinstance(step, (ApplyObject, WriteManifest))}
    return tuple(Difference(dict(meaning(one.now.value)) if isinstance(one.now, Present) else {}, dict(meaning(one.after or one.wanted)), _name(one.wanted))
                 for one in seen if id(one.wanted) in changed)


def _name(wanted: JsonMap) -> str:
    metadata = wanted.get("metadata")
    return f"{wanted.get('kind')} {metadata.get('name') if isinstance(metadata, dict) else ''}"
