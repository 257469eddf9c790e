# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The secrets bundle of a directory store, `secrets/<name>.yaml` (design section 4).

It is either encrypted with ansible-vault, then anybody may read it and git may keep it, or in clear, then only its
owner may read it and git must not know it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from .._model.errors import TalosError
from .._model.plain_files import NotPlain, open_plain
from . import files
from .git_index import GitUnreadable, tracked_by_git

VAULT_HEADER = b"$ANSIBLE_VAULT;"
_LARGEST = 4 << 20

#: Gives the clear text of a vaulted file by its path; raises TalosError.
Decrypt = Callable[[str], bytes]


#: What stands at a bundle's place.
ABSENT, CLEAR, VAULTED = "absent", "clear", "vaulted"
_NOTE = b"""# Bundles in clear are kept out of git. After ansible-vault encrypted one: git add --force <name>.yaml
*
"""


def form(path: Path) -> str:
    """`absent`, `clear` or `vaulted`. Raises TalosError where that cannot be told."""
    try:
        with os.fdopen(open_plain(path), "rb") as stream:
            return VAULTED if stream.read(len(VAULT_HEADER)) == VAULT_HEADER else CLEAR
    except FileNotFoundError:
        return ABSENT
    except NotPlain as problem:
        raise _not_plain(path, problem) from None
    except OSError as error:
        raise files.store_error(error, "read", path) from error


def write(path: Path, data: bytes, *, replace: bool) -> None:
    """Put a bundle in clear at its place, mode 0600, where nothing is, or with `replace` over the one in clear that is there.

    Raises TalosError: RecordExists, SecretsUnavailable where git tracks the place, BundleExposed where the one there is vaulted.
    """
    _refuse_tracked(path)
    if not replace:
        files.create_exclusively(path, data, 0o600)
        return
    if form(path) == VAULTED:
        raise TalosError("BundleExposed", f"The secrets bundle {path} is encrypted with ansible-vault, and would be replaced by one in clear.",
                         "Move that file away, write the bundle, and encrypt it again.")
    files.write_atomically(path, data, 0o600)


def prepare_folder(folder: Path) -> None:
    """The folder of the bundles, closed to others, with a note to git; one that is there stays as it is. One that is closed and empty was left by a
    run that was killed before the note was there. Raises TalosError.
    """
    files.make_folder(folder, 0o700)
    try:
        left = stat.S_IMODE(folder.stat().st_mode) == 0o700 and all(name.endswith(files.TEMPORARY) for name in os.listdir(folder))
    except OSError as error:
        raise files.store_error(error, "read", folder) from error
    if left:
        files.write_atomically(folder / ".gitignore", _NOTE)


def read(path: Path, name: str, decrypt: Decrypt | None) -> bytes:
    """The bundle in clear. Raises TalosError `SecretsUnavailable`, also where others can read it; no message quotes the content."""
    try:
        descriptor = open_plain(path)
    except NotPlain as problem:
        raise _not_plain(path, problem) from None
    except FileNotFoundError:
        raise TalosError("SecretsUnavailable", f"The secrets bundle {name} is not in the store ({path}).",
                         "Put the bundle there with mode 0600, or create it with talos_secrets.") from None
    except OSError as error:
        raise TalosError("SecretsUnavailable", f"The secrets bundle {path} cannot be read: {error.strerror or error}.",
                         "Make it readable for the user of this run, and for nobody else.") from error
    mode = os.fstat(descriptor).st_mode
    with os.fdopen(descriptor, "rb") as stream:
        try:
            data = stream.read(_LARGEST + 1)
        except OSError as error:
            raise files.store_error(error, "read", path) from error
    if len(data) > _LARGEST:
        raise TalosError("BundleInvalid", f"The secrets bundle {path} is larger than {_LARGEST >> 20} MiB.", "Put the right file there.")
    if data.startswith(VAULT_HEADER):
        if decrypt is None:
            raise TalosError("SecretsUnavailable", f"The secrets bundle {path} is encrypted with ansible-vault.",
                             "Run the module as a task of ansible-playbook with its vault password.")
        return decrypt(str(path))
    _refuse_exposed(path, stat.S_IMODE(mode))
    return data


def _not_plain(path: Path, problem: NotPlain) -> TalosError:
    return TalosError("SecretsUnavailable", f"The secrets bundle {path} {problem}.", "Put the bundle there as a file.")


def _refuse_exposed(path: Path, mode: int) -> None:
    if mode & 0o077:
        raise TalosError("SecretsUnavailable", f"The secrets bundle {path} is in clear and has mode {mode:04o}, so that others on this machine can reach it.",
                         f"Run: chmod 600 {path}; or encrypt it with ansible-vault.")
    _refuse_tracked(path)


def _refuse_tracked(path: Path) -> None:
    hint = f"Encrypt it with ansible-vault, or run: git rm --cached {path}; and count its keys as known to whoever has the repository."
    try:
        repository = tracked_by_git(path)
    except GitUnreadable as problem:
        raise TalosError("SecretsUnavailable", f"The secrets bundle {path} is in clear, and whether git tracks it cannot be told ({problem}).",
                         "Encrypt it with ansible-vault, or repair the repository.") from None
    if repository:
        raise TalosError("SecretsUnavailable", f"The secrets bundle {path} is in clear and tracked by git ({repository}).", hint)
