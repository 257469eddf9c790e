# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A store that is full, read-only or broken in the middle of a send, one of two folders, a bundle that git has (design section 4)."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.scenarios.playing import Project, lab_of, machine, network_of, tree_hash, wait_for, writes
from tests.scenarios.sending import MACHINE, NODE, apply_task, approved, generated, hold, wait_until_held

NETWORK = network_of(__name__)
#: Root is allowed to write where nobody may, unless that is taken from it.
PLAIN_USER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
#: Seconds for which the send of a run that ended counts as still under way.
FRESH = 3.0

Undo = Callable[[], None]


@pytest.fixture
def lab() -> Iterator[Lab]:
    yield from lab_of({NODE: machine(1, NETWORK, "5a1f0c3e")})


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("trouble") / "project", before=PLAIN_USER)
    approved(project, NETWORK)
    (project.folder / "cp.yaml").write_text(generated("controlplane"), encoding="utf-8")
    project.defaults["timing"] |= {"sending_fresh": FRESH, "apply": FRESH}
    return project


def full(project: Project) -> Undo:
    """The module's process can write no further byte to any file, as on a file system that is full."""
    modules = [pid for pid, line in project.processes().items() if "AnsiballZ" in line]
    assert modules
    for pid in modules:
        dummy, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    return lambda: None


def read_only(project: Project) -> Undo:
    """Nothing in the store can be made or renamed any more."""
    folders = [project.store, *(path for path in project.store.rglob("*") if path.is_dir())]
    modes = {folder: folder.stat().st_mode & 0o777 for folder in folders}
    for folder in folders:
        folder.chmod(0o555)

    def back() -> None:
        for folder, mode in modes.items():
            folder.chmod(mode)

    return back


def broken(path: str) -> Callable[[Project], Undo]:
    def break_it(project: Project) -> Undo:
        """A person's editor, or a disk, leaves half a file."""
        file = project.store / path
        good = file.read_bytes()
        half = good[:len(good) // 2] + b"\n\t{ <<<<<<< HEAD\n"
        file.write_bytes(half)

        def undo() -> None:
            assert file.read_bytes() == half, "nothing is written over what cannot be read"
            file.write_bytes(good)
        return undo
    return break_it


STATUS, SPEC = f".state/machines/{MACHINE}.json", f"machines/{MACHINE}.yaml"
TROUBLES: dict[str, tuple[Callable[[Project], Undo], str, str]] = {
    "full": (full, "StoreFull", "Make room"),
    "read-only": (read_only, "StoreReadOnly", "writable"),
    "broken-status": (broken(STATUS), "RecordBroken", STATUS.rpartition("/")[2]),
    "broken-spec": (broken(SPEC), "RecordBroken", SPEC),
}


def status(project: Project) -> dict[str, Any]:
    return dict(json.loads((project.store / STATUS).read_text(encoding="utf-8"))["status"])


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_store_that_fails_in_the_middle_of_a_send(lab: Lab, project: Project, trouble: str) -> None:
    """The node has the configuration, and the store cannot be told: the reason is clear, and the next run knows that it was sent."""
    make, reason, says = TROUBLES[trouble]
    hold(lab)
    process = project.start(project.write("apply", [apply_task(config_file="cp.yaml")]))
    wait_until_held(lab, project)
    began, undo = time.time(), make(project)
    lab.hold(node=NODE, phase="apply", held=False)
    failed = project.finish(process, rc=2)["Apply"]
    assert (failed["reason"], says in failed["msg"]) == (reason, True), failed["msg"]
    undo()
    assert status(project)["sending"]["attempt"] == 1 and "configStoredAt" not in status(project)

    wait_for(lambda: time.time() > began + 2 * FRESH, "the send of the run that failed to count as over")
    project.play("again", [apply_task(config_file="cp.yaml")])
    assert status(project)["configStoredAt"] and status(project)["storedConfigHash"] and "sending" not in status(project)
    assert lab.writes(accepted_only=True) == {"ApplyConfiguration": 1}
    assert not list(project.store.rglob("*.ichor-tmp"))


def test_of_two_folders_of_one_tree_only_one_can_lock(lab: Lab, project: Project) -> None:
    """A clone with a state folder of its own, and a copy with everything: neither sends to a control plane until a person takes it over."""
    apply = apply_task(config_file="cp.yaml")
    clone, copy = project.folder / "clone", project.folder / "copy"
    shutil.copytree(project.store, clone, ignore=shutil.ignore_patterns(".state"))
    shutil.copytree(project.store, copy)
    state = project.folder / "state-of-the-clone"
    shutil.copytree(project.store / ".state" / "machines", state / "machines")
    places = {"clone": {"store_path": str(clone), "state_path": str(state)}, "copy": {"store_path": str(copy)}}
    run = project.play("places", [{"name": name, "ichor.talos.talos_maintenance_apply": {
        **apply["ichor.talos.talos_maintenance_apply"], **place}, "ignore_errors": True} for name, place in places.items()])
    assert {name: run[name]["reason"] for name in places} == {"clone": "NoLock", "copy": "NoLock"}
    assert all("take_over" in run[name]["msg"] for name in places)
    assert writes(lab) == []

    taken = project.play("taken", [
        {"name": "Take over", "ichor.talos.talos_cluster": {"name": "prod", "take_over": True, **places["copy"]}},
        {"name": "Copy", "ichor.talos.talos_maintenance_apply": {**apply["ichor.talos.talos_maintenance_apply"], **places["copy"]}}])
    assert taken["Copy"]["changed"] is True
    assert lab.writes(accepted_only=True) == {"ApplyConfiguration": 1}


def git(folder: Path, *arguments: str) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, env={**clean, "GIT_CONFIG_GLOBAL": "/dev/null"})


def test_a_bundle_in_the_clear_that_git_tracks_is_refused(lab: Lab, project: Project) -> None:
    git(project.folder, "init", "--quiet")
    git(project.folder, "add", "--force", "ichor/secrets/prod.yaml")
    before = [tree_hash(project.store / part) for part in ("machines", "clusters", "secrets")]
    tasks = [{**apply_task(config_file="cp.yaml"), "ignore_errors": True},
             {"name": "Credentials", "ignore_errors": True,
              "ichor.talos.talos_credentials": {"kind": "talosconfig", "cluster": "prod", "path": "talosconfig"}},
             {"name": "Render", "ignore_errors": True, "ichor.talos.talos_config_info": {"cluster": "prod"}},
             {"name": "Keys", "ignore_errors": True, "ichor.talos.talos_secrets": {"cluster": "prod"}}]
    run = project.play("tracked", tasks)
    for name in ("Apply", "Credentials", "Keys"):
        assert (run[name]["reason"], "tracked by git" in run[name]["msg"]) == ("SecretsUnavailable", True), run[name]["msg"]
    assert {(entry["reason"], "tracked by git" in entry["message"]) for entry in run["Render"]["configs"]} == {("SecretsUnavailable", True)}
    assert [tree_hash(project.store / part) for part in ("machines", "clusters", "secrets")] == before
    assert writes(lab) == [] and not (project.folder / "talosconfig").exists()
    git(project.folder, "rm", "--cached", "--quiet", "ichor/secrets/prod.yaml")
    assert project.play("untracked", [apply_task(config_file="cp.yaml")])["Apply"]["changed"] is True
