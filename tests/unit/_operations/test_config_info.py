# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rendering, validating and comparing configurations over many machines (design sections 8 and 11)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._operations.config_info import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.record_reads import MachineView
from ansible_collections.ichor.talos.plugins.module_utils._operations.rendering import Renderer
from tests.unit._operations.configuration_world import VECTORS, World
from tests.unit._operations.world import OpenGate


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.put_bundle()
    world.machine("cp", 1, "controlplane")
    world.machine("w1", 2)
    world.machine("w2", 3)
    return world


def look(world: World, **request: Any) -> Outcome:
    return asyncio.run(run(Request(**{"cluster": "prod", **request}), world.ports(), OpenGate()))


def text_of(world: World, name: str) -> str:
    record = next(record for record in world.machines() if record.name == name)
    rendered = Renderer(world.store).machine(MachineView(record, world.cluster, ()))
    assert isinstance(rendered, Present)
    return rendered.value.text


def runs(world: World, name: str, number: int, text: str, version: str = "v1.13.9", board: int = 0) -> None:
    world.nodes.at[f"10.0.0.{number}"] = (text.encode(), board or number, version)


def shown(outcome: Outcome) -> dict[str, Any]:
    entries: Any = outcome.extra["configs"]
    return {entry["name"]: entry for entry in entries}


def reasons(outcome: Outcome) -> dict[str, str]:
    return {row.name: row.reason for row in outcome.machines}


def reordered(text: str) -> str:
    """The same in another order, other quotes, with comments gone and a default written out."""
    documents = list(yaml.safe_load_all(text))
    documents[0]["machine"].setdefault("time", {})["disabled"] = False
    return yaml.safe_dump_all(documents, sort_keys=True)


def test_what_says_the_same_is_no_drift(world: World) -> None:
    runs(world, "cp", 1, text_of(world, "cp"))
    runs(world, "w1", 2, "# edited by hand\n" + reordered(text_of(world, "w1")))
    runs(world, "w2", 3, text_of(world, "w2"), "v1.14.0")
    outcome = look(world)
    assert reasons(outcome) == {"cp": "Converged", "w1": "Converged", "w2": "Converged"}
    assert outcome.blocked == outcome.unreachable == () and not outcome.differences


def test_exactly_what_differs_is_shown_and_secrets_as_fingerprints(world: World) -> None:
    world.patch("auth", [{"apiVersion": "v1alpha1", "kind": "RegistryAuthConfig", "name": "r.lan", "username": "u", "password": "new-p4ssw0rd"}])
    text = text_of(world, "w1")
    runs(world, "w1", 2, text.replace("new-p4ssw0rd", "old-p4ssw0rd").replace("debug: false", "debug: true"))
    outcome = look(world, cluster="", machines=("w1",))
    entry = shown(outcome)["w1"]
    assert {(one["document"], one["path"], one["secret"]) for one in entry["differences"]} == {
        ("v1alpha1", "debug", False), ("RegistryAuthConfig/r.lan", "password", True)}
    assert re.fullmatch(r"sha256:[0-9a-f]{12}", next(one["wanted"] for one in entry["differences"] if one["secret"]))
    assert "p4ssw0rd" not in repr(outcome) and "p4ssw0rd" not in "".join(world.lines)
    assert outcome.differences[0].header == "configuration of w1"


def test_newer_images_stay_and_foreign_keys_stop(world: World) -> None:
    bundle = read_bundle((VECTORS / "secrets.yaml").read_bytes())
    runs(world, "cp", 1, text_of(world, "cp").replace("kube-scheduler:v1.35.0", "kube-scheduler:v1.35.2"))
    runs(world, "w1", 2, text_of(world, "w1").replace(bundle.trustd_token, "abcdef.0123456789abcdef"))
    outcome = look(world)
    assert reasons(outcome)["cp"] == "Converged" and reasons(outcome)["w1"] == "AuthorityMismatch"
    assert [one["path"] for one in shown(outcome)["cp"]["newer_images"]] == ["cluster.scheduler.image"] and shown(outcome)["cp"]["differences"] == []
    assert [one["path"] for one in shown(outcome)["w1"]["authority"]] == ["machine.token"]
    assert outcome.blocked == ("w1",) and outcome.unreachable == ("w2",)
    assert bundle.trustd_token not in repr(outcome)


def test_a_bad_patch_holds_exactly_whom_it_selects(world: World) -> None:
    for name, number in (("cp", 1), ("w1", 2), ("w2", 3)):
        runs(world, name, number, text_of(world, name))
    world.patch("bad", [{"machine": {"sysctl": {}}}], machineSelector={"names": ["w2"]})
    outcome = look(world)
    assert reasons(outcome) == {"cp": "Converged", "w1": "Converged", "w2": "RenderFailed"}
    assert "patch bad" in shown(outcome)["w2"]["message"] and outcome.blocked == ("w2",)


def test_a_patch_file_that_is_no_record_holds_everybody(world: World) -> None:
    (world.folder / "ichor" / "patches").mkdir()
    (world.folder / "ichor" / "patches" / "cut.yaml").write_text("spec: {", encoding="utf-8")
    outcome = look(world)
    assert set(reasons(outcome).values()) == {"RenderFailed"} and "cut.yaml" in shown(outcome)["cp"]["message"]


def test_a_broken_file_is_told_in_whole_sentences(world: World) -> None:
    (world.folder / "ichor" / "patches").mkdir(exist_ok=True)
    (world.folder / "ichor" / "patches" / "bad.yaml").write_text("a: 1\na: 2\n", encoding="utf-8")
    assert {row.message.rpartition(": ")[2] for row in look(world, compare=False).machines} == {"the key 'a' is there twice. Mend the file."}


def test_without_a_bundle_nobody_is_asked(world: World) -> None:
    (world.folder / "ichor" / "secrets" / "prod.yaml").unlink()
    outcome = look(world)
    assert set(reasons(outcome).values()) == {"SecretsUnavailable"} and world.nodes.most_open == 0


def test_another_machine_at_the_address_is_not_compared(world: World) -> None:
    runs(world, "w1", 2, text_of(world, "w1"), board=9)
    entry = shown(look(world))["w1"]
    assert (entry["reason"], entry["compared"], entry["in_sync"]) == ("CurrentConfigUnavailable", False, None) and "another machine" in entry["message"]


def test_machines_that_were_never_sent_are_only_rendered(world: World) -> None:
    world.machine("new", 4, joined=False)
    entry = shown(look(world, cluster="", machines=("new",)))["new"]
    assert (entry["reason"], entry["renders"], entry["compared"]) == ("", True, False) and world.nodes.most_open == 0


def test_pending_machines_are_named_or_left_out(world: World) -> None:
    world.machine("pending", 5, joined=False, approvalState="pending")
    assert "pending" not in reasons(look(world))
    assert reasons(look(world, machines=("pending",))) == {"pending": "PendingApproval"}
    for wrong in ({"machines": ("nobody",)}, {"cluster": "nobody"}):
        with pytest.raises(TalosError, match="RecordNotFound"):
            look(world, **wrong)


@pytest.mark.parametrize(("text", "reason", "told"), [
    ("machine:\n  type: worker\n  tokn: a\n", "ConfigInvalid", "x.yaml, line 3, v1alpha1, machine.tokn: "),
    ("machine:\n  type: worker\n  token: ${TOKEN}\n", "TemplateUnexpanded", "x.yaml, line 3, machine.token: "),
    ("machine:\n  type: worker\n  token: {{ token }}\n", "TemplateUnexpanded", "x.yaml, line 3: "),
    ("apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n", "", "x.yaml: It is valid."),
])
def test_a_configuration_that_is_brought_is_validated_without_any_machine(world: World, text: str, reason: str, told: str) -> None:
    outcome = look(world, cluster="", config=text.encode(), source="x.yaml", talos_version="v1.12.6")
    assert (outcome.reason, outcome.blocked) == (reason, ("x.yaml",) if reason else ())
    assert [line.startswith(told) for line in world.lines] == [True], world.lines


def test_a_cluster_without_approved_machines_is_told(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.machine("pending", 5, joined=False, approvalState="pending")
    assert look(world).machines == () and world.lines == ["Cluster prod has no approved machine."]


def test_the_configuration_is_shown_without_its_secrets(world: World) -> None:
    outcome = look(world, compare=False, show=True)
    text = shown(outcome)["cp"]["config"]
    assert yaml.safe_load(text.split("---")[0])["machine"]["type"] == "controlplane"
    for secret in read_bundle((VECTORS / "secrets.yaml").read_bytes()).secrets():
        assert secret not in text and secret not in repr(outcome)


def test_few_configurations_are_held_at_once(world: World) -> None:
    for number in range(10, 110):
        world.machine(f"m{number}", number)
        runs(world, f"m{number}", number, "")
    look(world)
    assert 1 <= world.nodes.most_open <= 16
