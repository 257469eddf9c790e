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
import signal

from .._model.container_network import Chart
from .._model.errors import TalosError
from .._model.records import Json, JsonMap
from .manifests import objects_of

#: Seconds for one render, a chart's download included.
RENDER_TIMEOUT = 120.0
#: No chart renders to more bytes; that of Cilium comes to 200 kB.
LARGEST = 8 << 20
#: Seconds for a killed process to be gone. One that its own children keep open is not waited for any longer.
_GONE = 5.0
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
    command = ["template", "--namespace", chart.namespace, "--include-crds", "--no-hooks", "--skip-tests", "--values", "-"]
    command += ["--repo", chart.repository] if chart.repository else []
    command += ["--version", chart.version] if chart.version else []
    command += ["--kube-version", kubernetes] if kubernetes else []
    # Behind the dashes nothing is an option, whatever a cluster says that its release is called.
    return [*command, "--", chart.release, chart.reference]


async def render(chart: Chart, values: JsonMap, kubernetes: str, timeout: float = RENDER_TIMEOUT) -> tuple[dict[str, Json], ...]:
    """The objects of a chart, in the order in which Helm makes them. Raises TalosError `HelmMissing`, `ChartInvalid`, `TimedOut`.

    A run that is told to stop ends helm with it, and whatever helm started.
    """
    path = program()
    try:
        process = await asyncio.create_subprocess_exec(path, *arguments(chart, kubernetes), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                                                       stderr=asyncio.subprocess.PIPE, start_new_session=True)
    except OSError as error:
        raise TalosError("HelmMissing", f"The program {path}, which renders charts, cannot be started: {error.strerror}.", _INSTALL) from None
    except ValueError:
        raise TalosError("ChartInvalid", f"helm cannot be told to render {str(chart)!r}.", "Look at the chart's reference and at its release.") from None
    try:
        out, said = await asyncio.wait_for(_talk(process, json.dumps(dict(values)).encode()), timeout)
    except asyncio.TimeoutError:
        raise TalosError("TimedOut", f"helm did not render {chart} within {timeout:g} s.", "Look at whether its repository answers, or give the chart as a "
                         "folder or an archive.") from None
    finally:
        await _end(process)
    if len(out) > LARGEST:
        raise TalosError("ChartInvalid", f"helm renders more than {LARGEST >> 20} MiB of {chart}.", "Look at the chart and at the values.")
    if process.returncode:
        raise TalosError("ChartInvalid", f"helm does not render {chart}: {_reason(said)}.", "Look at the chart's reference and at the values.")
    return objects_of(out.decode("utf-8", "replace"), chart)


async def _talk(process: asyncio.subprocess.Process, values: bytes) -> tuple[bytes, bytes]:
    """What helm prints and what it complains of, once it has ended; each cut off beyond `LARGEST`."""
    out, said, dummy, dummy2 = await asyncio.gather(
        _read(process, process.stdout), _read(process, process.stderr), _give(process.stdin, values), process.wait())
    return out, said


async def _give(stream: asyncio.StreamWriter | None, values: bytes) -> None:
    """A helm that fails before it has read them closes its end."""
    if stream is not None:
        with contextlib.suppress(ConnectionError):
            stream.write(values)
            await stream.drain()
        stream.close()


async def _read(process: asyncio.subprocess.Process, stream: asyncio.StreamReader | None) -> bytes:
    found = bytearray()
    while stream is not None and (piece := await stream.read(1 << 16)):
        if len(found) > LARGEST:
            _kill(process)  # and read on: a pipe that nobody reads keeps it from being over
        else:
            found += piece
    return bytes(found)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Nothing of it is left, unless it took leave of its own process group."""
    if process.returncode is None or any(stream is not None and not stream.at_eof() for stream in (process.stdout, process.stderr)):
        _kill(process)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _GONE)


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _reason(said: bytes) -> str:
    """Helm's last error, in one line."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip() and not line.startswith(("WARNING", "Use --debug"))]
    first = max((number for number, line in enumerate(lines) if line.startswith("Error: ")), default=0)
    return " ".join(lines[first:]).removeprefix("Error: ").rstrip(".")[:400] or "it says nothing"
