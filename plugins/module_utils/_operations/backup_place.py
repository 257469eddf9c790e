# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where backups of a task or a record lie, and what opens that place (design sections 3 and 17)."""

from __future__ import annotations

from .._archive.opening import open_archive
from .._model.backups import Archive, Destination, Keys, Stored, destination_of
from .._model.errors import TalosError
from .._model.observed import Observed, Present, Unknown
from .._model.ports import Ports
from .._model.records import BACKUP, Record, text_at
from .in_thread import in_thread

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment]

#: Keys of the document that `credentialsRef` names, as Amazon's tools call them.
_ACCESS, _SECRET, _SESSION = "accessKeyId", "secretAccessKey", "sessionToken"


def read_backup(ports: Ports, name: str) -> Record | None:
    """The record of that name, None where none is named. Raises TalosError `RecordNotFound` or `StoreMissing`."""
    if not name:
        return None
    if ports.store is None:
        raise TalosError("StoreMissing", f"Backup record {name} was named, and there is no store.", "Set store and store_path.")
    record = ports.store.get(BACKUP, name)
    if record is None:
        raise TalosError("RecordNotFound", f"There is no TalosEtcdBackup {name} in {ports.store.description}.", "Check the name.")
    return record


def place_of(record: Record | None, given: Destination) -> Destination:
    """What the task says, else what the record says."""
    return given if given.s3 or given.path or record is None else destination_of(record.spec)


def open_place(ports: Ports, place: Destination, keys: Keys) -> Archive:
    """The archive; without keys of the task those that the record's `credentialsRef` names. Raises TalosError."""
    if place.s3 and place.credentials and not keys.secret:
        keys = _keys(ports, place.credentials)
    return open_archive(place, keys)


async def read_place(archive: Archive) -> Observed[tuple[Stored, ...]]:
    """What lies there."""
    try:
        return Present(await in_thread(archive.stored))
    except TalosError as error:
        detail = f" ({error.detail})" if error.detail else ""
        return Unknown(error.reason, f"{error.message.rstrip('.')}{detail}. {error.hint}")


def _keys(ports: Ports, name: str) -> Keys:
    if ports.store is None:
        raise TalosError("SecretsUnavailable", f"The credentials {name} are in a store, and there is none.", "Give s3_access_key and s3_secret_key.")
    try:
        found = yaml.safe_load(ports.store.bundle(name))
    except yaml.YAMLError:
        found = None
    keys = Keys(text_at(found, _ACCESS), text_at(found, _SECRET), text_at(found, _SESSION)) if isinstance(found, dict) else Keys()
    if not keys.access or not keys.secret:
        raise TalosError("SecretsUnavailable", f"The credentials {name} do not hold {_ACCESS} and {_SECRET}.", "Put them there as two lines of YAML.")
    return keys
