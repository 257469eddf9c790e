# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive of a destination; what speaks S3 is imported only for one."""

from __future__ import annotations

import importlib.util
import sys

from .._model.backups import Archive, Destination, Keys
from .._model.errors import TalosError
from .folder import FolderArchive


def open_archive(destination: Destination, keys: Keys) -> Archive:
    """Raises TalosError `MissingLibrary`, `InvalidInput`, `SecretsUnavailable`."""
    if not destination.s3:
        return FolderArchive(destination.path)
    if importlib.util.find_spec("minio") is None:
        raise TalosError("MissingLibrary", f"Backups in a store that speaks S3 need the Python library minio, which {sys.executable} does not have.",
                         f"Install it with: {sys.executable} -m pip install minio; or set ansible_python_interpreter to an interpreter that has it.")
    if not keys.access or not keys.secret:
        raise TalosError("SecretsUnavailable", f"There are no credentials for the {destination}.",
                         "Give s3_access_key and s3_secret_key, or a backup record whose credentialsRef names them.")
    from .s3 import S3Archive

    return S3Archive(destination, keys)
