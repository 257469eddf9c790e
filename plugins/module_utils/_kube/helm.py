# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program helm, which renders charts: values go in through its standard input, objects come out (design section 15)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment, unused-ignore]

from .._model.container_network import Chart
from .._model.errors import TalosError
from .._model.records import Json, JsonMap, text_at

#: Seconds for one render, a chart's download included.
RENDER_TIMEOUT = 120.0
#: A newer one may be named in HELM_BIN, as Helm's own plugins do.
_PROGRAM = "HELM_BIN"
_INSTALL = "Install Helm 3 (https://helm.sh/docs/intro/install/) where the playbook runs, or name it in HELM_BIN; the execution environment has it."


def program() -> str:
    """Where helm is. Raises TalosError `HelmMissing`."""
    named = os.environ.get(_PROGRAM, "")
    found = shutil.which(named or "helm")
    if found is None:
        raise TalosError("HelmMissing", f"The program {named or 'helm'}, which renders charts, is not there.", _INSTALL)
    return found


def arguments(chart: Chart, kubernetes: str) -> list[str]:
    """How helm is called. No value stands here: everybody on the machine can read the arguments of a process."""
    command = ["template", chart.release, chart.reference, "--namespace", chart.namespace, "--include-crds", "--no-hooks", "--skip-tests", "--values", "-"]
    command += ["--repo", chart.repository] if chart.repository else []
    command += ["--version", chart.version] if chart.version else []
    return command + (["--kube-version", kubernetes] if kubernetes else [])


async def render(chart: Chart, values: JsonMap, kubernetes: str, timeout: float = RENDER_TIMEOUT) -> tuple[dict[str, Json], ...]:
    """The objects of a chart, in the order in which Helm makes them. Raises TalosError `HelmMissing`, `ChartInvalid`, `TimedOut`.

    A run that is told to stop ends helm with it.
    """
    process = await asyncio.create_subprocess_exec(
        program(), *arguments(chart, kubernetes), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    try:
        out, said = await asyncio.wait_for(process.communicate(json.dumps(dict(values)).encode()), timeout)
    except asyncio.TimeoutError:
        raise TalosError("TimedOut", f"helm did not render {chart} within {timeout:g} s.", "Look at whether its repository answers, or give the chart as a "
                         "folder or an archive.") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise TalosError("ChartInvalid", f"helm does not render {chart}: {_reason(said)}.", "Look at the chart's reference and at the values.")
    return objects_of(out.decode("utf-8", "replace"), chart)


def objects_of(text: str, chart: Chart) -> tuple[dict[str, Json], ...]:
    """The objects of a stream of YAML; lists are taken apart. Raises TalosError `ChartInvalid`."""
    found: list[dict[str, Json]] = []
    try:
        documents = list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TalosError("ChartInvalid", f"What helm renders of {chart} is no YAML: {' '.join(str(error).split())[:200]}.", "Look at the values.") from None
    for document in documents:
        entries = document.get("items") if isinstance(document, dict) and str(document.get("kind", "")).endswith("List") else [document]
        for entry in entries if isinstance(entries, list) else []:
            if entry is None:
                continue
            plain = json.loads(json.dumps(entry, default=str)) if isinstance(entry, dict) else None
            if plain is None or not text_at(plain, "apiVersion") or not text_at(plain, "kind") or not text_at(plain, "metadata", "name"):
                raise TalosError("ChartInvalid", f"{chart} renders something that is no object of Kubernetes.", "Look at the values.")
            found.append(plain)
    if not found:
        raise TalosError("ChartInvalid", f"{chart} renders nothing with these values.", "Look at the values.")
    return tuple(found)


def _reason(said: bytes) -> str:
    """Helm's last error, in one line."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip() and not line.startswith(("WARNING", "Use --debug"))]
    first = max((number for number, line in enumerate(lines) if line.startswith("Error: ")), default=0)
    return " ".join(lines[first:]).removeprefix("Error: ").rstrip(".")[:400] or "it says nothing"
