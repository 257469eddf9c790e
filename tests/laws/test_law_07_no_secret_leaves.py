# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 7: no secret leaves by accident. Here the node itself quotes them, as Talos's own refusals do."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.hostile.saying import World, world

#: How a node says no: to the send, or to everything.
NO = (("INVALID_ARGUMENT", "ApplyConfiguration"), ("PERMISSION_DENIED", "ApplyConfiguration"), ("FAILED_PRECONDITION", "ApplyConfiguration"), ("INTERNAL", "*"))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("quoted")) as made:
        yield made


def secrets_of(text: str) -> list[str]:
    """Leaves of keys, tokens and secrets, and what base64 hides in them, line by line; apart from the product's own list."""
    found: list[str] = []

    def walk(value: object, key: str = "") -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(inner, str(name).lower())
        elif isinstance(value, list):
            for inner in value:
                walk(inner, key)
        elif isinstance(value, str) and len(value) >= 8 and (key == "key" or key.endswith(("token", "secret"))):
            found.append(value)
            try:
                clear = base64.b64decode(value, validate=True).decode("ascii")
            except ValueError:
                return
            found.extend(line for line in clear.splitlines() if line and not line.startswith("-----"))

    for document in yaml.safe_load_all(text):
        walk(document)
    return sorted(set(found))


def forms(secret: str) -> list[str]:
    return [secret, json.dumps(secret)[1:-1], yaml.safe_dump(secret).strip().strip("'\"")]


def nowhere(here: World, output: str, secret: str, store: Path, configs: set[Path]) -> None:
    for form in forms(secret):
        assert form not in output, form
        for path in store.rglob("*"):
            if path.is_file() and path not in configs:
                assert form.encode() not in path.read_bytes(), path


def test_what_a_node_quotes_in_its_refusals_is_masked_in_results_and_records(here: World) -> None:
    config = here.secrets.config("controlplane", "cp-1")
    secrets = secrets_of(config)
    assert len(secrets) > 10
    path = here.folder / "ichor"
    common = {"store_path": str(path), "talosconfig_content": here.secrets.talosconfig([])}
    address = here.node("quotes", 1)
    made = here.run("talos_cluster", name="prod", endpoint="https://192.0.2.10:6443", talos_version="v1.13.9", kubernetes_version="v1.35.0",
                    control_planes=1, discovery={"addresses": [address]}, store_path=str(path))
    assert made.status == 0, made.output
    assert here.run("talos_discover", cluster="prod", store_path=str(path)).status == 0
    (name,) = [file.stem for file in (path / "machines").glob("*.yaml")]
    approved = here.run("talos_machine_approval", machine=name, role="controlplane", hostname="cp-1", install={"disk": "/dev/sda"}, store_path=str(path))
    assert approved.status == 0, approved.output
    status = path / ".state" / "machines" / f"{name}.json"
    unsent = status.read_bytes()
    for number, secret in enumerate(secrets):
        code, rpc = NO[number % len(NO)]
        here.lab.clear(node="quotes")
        here.lab.fault(node="quotes", kind="call-status", rpc=rpc, value=f'{code}: cannot take "{secret}" (also {json.dumps({"key": secret})})')
        ended = here.run("talos_maintenance_apply", machine=name, config_content=config, _ansible_verbosity=3, _ansible_diff=True, **common)
        assert ended.status == 1
        nowhere(here, ended.output + ended.errors, secret, path, set())
        assert rpc == "*" or "cannot take" in ended.output, "what the node says is told, without the secret in it"
        status.write_bytes(unsent)


def test_the_arguments_that_come_back_hold_no_secret(here: World) -> None:
    """`invocation` repeats what a module was given; its secrets are not repeated."""
    config, talosconfig = here.secrets.config("worker", "w-1"), here.secrets.talosconfig([])
    ended = here.run("talos_maintenance_apply", address=f"{here.network}.0.99", uuid="5a1f0c3e-51c8-4f0e-8d39-3cecef000001", fingerprint="A" * 43 + "=",
                     config_content=config, talosconfig_content=talosconfig, _ansible_verbosity=4)
    assert ended.status == 1
    key = yaml.safe_load(talosconfig)["contexts"]["prod"]["key"]
    for secret in (*secrets_of(config), key):
        nowhere(here, ended.output + ended.errors, secret, here.folder / "nothing", set())


def test_a_check_run_shows_the_plan_and_no_secret(here: World) -> None:
    config = here.secrets.config("worker", "w-1")
    here.node("checked", 2)
    ended = here.applied("checked", f"{here.network}.0.2", check=True, _ansible_diff=True, _ansible_verbosity=3)
    assert ended.status == 0 and ended.result["plan"] and ended.result["changed"] is True
    for secret in secrets_of(config):
        nowhere(here, ended.output + ended.errors, secret, here.folder / "nothing", set())
