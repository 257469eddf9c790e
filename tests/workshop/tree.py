# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The path ansible_collections/ichor/talos that Ansible wants: a link to the checkout, or a copy of its files."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.workshop.environments import BUILD, ROOT

NAME = Path("ansible_collections/ichor/talos")
LEFT_OUT = {".build", ".git", ".ansible", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__"}


def link() -> Path:
    """The folder to put on the collections path, with a link to this checkout in it."""
    place = BUILD / "link"
    target = place / NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(os.path.relpath(ROOT, target.parent), target_is_directory=True)
    except FileExistsError:
        pass
    return place


def copy(name: str) -> Path:
    """A folder of that name with a true copy of the files; ansible-test walks real folders and goes by what is in them."""
    place = BUILD / "copies" / name
    target = place / NAME
    wanted = files()
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.is_symlink() or str(path.relative_to(target)) not in wanted:  # a link cannot be copied over another
            path.unlink()
    for file in sorted(wanted):
        destination = target / file
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, destination, follow_symlinks=False)
    return place


def files() -> set[str]:
    """What belongs to the collection: files that git tracks or would track; without git, all but the build's leftovers."""
    try:
        answer = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True)
        names = {os.fsdecode(name) for name in answer.stdout.split(b"\0") if name}
    except (OSError, subprocess.CalledProcessError):
        names = set()
        for folder, folders, leaves in os.walk(ROOT):
            folders[:] = [entry for entry in folders if entry not in LEFT_OUT]
            names.update(os.path.relpath(os.path.join(folder, leaf), ROOT) for leaf in leaves if not leaf.endswith(".tar.gz"))
    return {name for name in names if os.path.lexists(ROOT / name)}
