# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No secret leaves by accident: looked for everywhere while a configuration is being sent, and after the run was killed."""

from __future__ import annotations

import base64
import functools
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.lab.control import Lab
from tests.lives.records import Records
from tests.parts.apiserver import FOLDER
from tests.scenarios.playing import Project, lab_of, machine, network_of, wait_for
from tests.scenarios.sending import MACHINE, NODE, VECTORS, apply_task, approved, generated, hold, wait_until_held

NETWORK = network_of(__name__)
SHORTEST = 8
#: What tempfile puts after a prefix.
RANDOM_LETTERS = 8


@pytest.fixture
def lab() -> Iterator[Lab]:
    yield from lab_of({NODE: machine(1, NETWORK, "5a1f0c3e")})


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory, records: Records) -> Project:
    folder = tmp_path_factory.mktemp("secrets") / "project"
    return Project(folder, kept_in=records.another(folder / "ichor"))


def leaves(node: object, key: str = "") -> Iterator[str]:
    """Leaves of keys, tokens and secrets: written apart from the product's own list."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from leaves(value, str(name).lower())
    elif isinstance(node, list):
        for value in node:
            yield from leaves(value, key)
    elif isinstance(node, str) and len(node) >= SHORTEST and (key == "key" or key.endswith(("token", "secret"))):
        yield node


@functools.cache
def needles() -> list[bytes]:
    """Every secret of the configuration and the bundle, in every form."""
    found: set[str] = set()
    texts = [generated("controlplane"), (VECTORS / "secrets.yaml").read_text(encoding="utf-8")]
    for document in (document for text in texts for document in yaml.safe_load_all(text)):
        found.update(leaves(document))
    assert len(found) >= 9
    for secret in tuple(found):
        try:
            clear = base64.b64decode(secret, validate=True).decode("ascii")
        except ValueError:
            clear = ""
        found.update((clear, *(line for line in clear.splitlines() if not line.startswith("-----"))))
    forms = {form for secret in found for form in (secret, json.dumps(secret)[1:-1], yaml.safe_dump(secret).strip().strip("'\""),
                                                   shlex.quote(secret).strip("'"))}
    return sorted({form.encode() for form in forms if len(form) >= SHORTEST})


def places(project: Project, apart: set[Path]) -> Iterator[tuple[str, bytes]]:
    """Whatever a run leaves or shows: files of all temporary folders, the store but for its bundles, output, results, command lines, environments."""
    # Where the product puts its folders when the usual path is too long, beside the folders of the run itself. The labs of other
    # tests have longer names there, and hundreds of megabytes of etcd; their API servers have the bundles of stores in Kubernetes.
    shared = [path for path in Path("/dev/shm").glob("*") if not path.name.startswith(FOLDER)]
    folders = [project.folder, project.temporary, *Path("/tmp").glob(f"ichor-{'?' * RANDOM_LETTERS}"), *shared]
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            if path not in apart and path.is_file():
                try:
                    yield str(path), path.read_bytes()
                except OSError:
                    continue
    if not project.records.is_of_files:
        yield from ((name, text.encode()) for name, text in project.records.everything().items())
    for pid in project.processes():
        for name in ("cmdline", "environ"):
            try:
                yield f"/proc/{pid}/{name}", Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue


def hits(project: Project, apart: set[Path]) -> list[str]:
    wanted = needles()
    return sorted({where for where, content in places(project, apart) if any(needle in content for needle in wanted)})


@pytest.mark.parametrize("how", ["file", "variable"])
@pytest.mark.parametrize("ended", [signal.SIGTERM, signal.SIGKILL])
def test_secrets_while_a_call_is_held_and_after_a_kill(lab: Lab, project: Project, how: str, ended: signal.Signals) -> None:
    approved(project, NETWORK)
    config = project.folder / "cp.yaml"
    config.write_text(generated("controlplane"), encoding="utf-8")
    apart = {config, project.store / "secrets" / "prod.yaml"}
    task = apply_task(config_file="cp.yaml") if how == "file" else apply_task(config_content="{{ lookup('ansible.builtin.file', 'cp.yaml') }}")
    hold(lab)
    process = project.start(project.write("apply", [task]), "-vvv")
    wait_until_held(lab, project)
    assert hits(project, apart) == []
    os.kill(process.pid, ended)
    process.wait(30)
    wait_for(project.over, "the processes to end", 30)
    assert hits(project, apart) == []


def test_secrets_in_what_a_whole_run_shows(lab: Lab, project: Project) -> None:
    approved(project, NETWORK)
    config = project.folder / "cp.yaml"
    # A key that Talos does not know: the node quotes the configuration in its refusal.
    config.write_text(generated("controlplane").replace("machine:\n", "machine:\n    surprise: true\n", 1), encoding="utf-8")
    apart = {config, project.store / "secrets" / "prod.yaml"}
    for arguments in (("--check", "--diff", "-vvv"), ("--diff", "-vvv")):
        run = project.play("apply", [apply_task(config_file="cp.yaml")], *arguments, rc=None)
        assert hits(project, apart) == []
    assert run["Apply"]["reason"] == "ConfigRejected", run.output


def test_vaulted_configuration_and_bundle_are_read_and_stay_encrypted(lab: Lab, project: Project) -> None:
    approved(project, NETWORK)
    config, bundle = project.folder / "cp.yaml", project.store / "secrets" / "prod.yaml"
    config.write_text(generated("controlplane"), encoding="utf-8")
    encrypted = [config, bundle] if project.records.is_of_files else [config]
    password = project.folder / "password"
    password.write_text("correct horse", encoding="utf-8")
    program = str(Path(sys.executable).with_name("ansible-vault"))
    subprocess.run([program, "encrypt", "--vault-password-file", str(password), *map(str, encrypted)], check=True, capture_output=True,
                   env=project.variables(), timeout=60)
    play = project.write("apply", [apply_task(config_file="cp.yaml")])
    refused = project.run(play, "--check", rc=2)
    assert refused["Apply"]["reason"] == "SecretsUnavailable" and "vault" in refused["Apply"]["msg"]
    planned = project.run(play, "--check", "-vvv", "--vault-password-file", str(password))
    assert planned.steps == [("ApplyConfig", MACHINE)]
    assert hits(project, set()) == [], "not even the files themselves hold a secret in clear"
