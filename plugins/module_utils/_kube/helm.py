# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program helm, which renders charts: values go in through its standard input, objects come out (design section 15)."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Sequence

from .._model.container_network import Chart
from .._model.errors import TalosError
from .._model.records import Json, JsonMap
from .manifests import objects_of
from .programs import call

#: Seconds for one render, a chart's download included.
RENDER_TIMEOUT = 120.0
#: No chart renders to more bytes; that of Cilium comes to 200 kB.
LARGEST = 8 << 20
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


def arguments(chart: Chart, kubernetes: str, apis: Sequence[str] = ()) -> list[str]:
    """How helm is called. No value stands here: everybody on the machine can read the arguments of a process."""
    command = ["template", "--namespace", chart.namespace, "--include-crds", "--no-hooks", "--skip-tests", "--values", "-"]
    command += ["--repo", chart.repository] if chart.repository else []
    command += ["--version", chart.version] if chart.version else []
    command += ["--kube-version", kubernetes] if kubernetes else []
    command += [f"--api-versions={one}" for one in apis]
    # Behind the dashes nothing is an option, whatever a cluster says that its release is called.
    return [*command, "--", chart.release, chart.reference]


async def render(chart: Chart, values: JsonMap, kubernetes: str, apis: Sequence[str] = (), timeout: float = RENDER_TIMEOUT) -> tuple[dict[str, Json], ...]:
    """The objects of a chart for an API server of that version which serves those `apis`, in the order in which Helm makes them. Raises TalosError
    `HelmMissing`, `ChartInvalid`, `TimedOut`.

    A run that is told to stop ends helm with it, and whatever helm started.
    """
    path = program()
    try:
        ended = await call((path, *arguments(chart, kubernetes, apis)), json.dumps(dict(values)).encode(), timeout, LARGEST)
    except asyncio.TimeoutError:
        raise TalosError("TimedOut", f"helm did not render {chart} within {timeout:g} s.", "Look at whether its repository answers, or give the chart as a "
                         "folder or an archive.") from None
    except OSError as error:
        raise TalosError("HelmMissing", f"The program {path}, which renders charts, cannot be started: {error.strerror}.", _INSTALL) from None
    except ValueError:
        raise TalosError("ChartInvalid", f"helm cannot be told to render {str(chart)!r}.", "Look at the chart's reference and at its release.") from None
    if len(ended.out) > LARGEST:
        raise TalosError("ChartInvalid", f"helm renders more than {LARGEST >> 20} MiB of {chart}.", "Look at the chart and at the values.")
    if ended.status:
        raise TalosError("ChartInvalid", f"helm does not render {chart}: {_reason(ended.said)}.", "Look at the chart's reference and at the values.")
    return objects_of(ended.out.decode("utf-8", "replace"), chart)


def _reason(said: bytes) -> str:
    """Helm's last error, in one line."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip() and not line.startswith(("WARNING", "Use --debug"))]
    first = max((number for number, line in enumerate(lines) if line.startswith("Error: ")), default=0)
    return " ".join(lines[first:]).removeprefix("Error: ").rstrip(".")[:400] or "it says nothing"
