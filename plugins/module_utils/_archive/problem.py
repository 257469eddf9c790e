# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can go wrong with an archive, as errors with a reason."""

from __future__ import annotations

import errno

from .._model.errors import TalosError

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


def of_system(error: OSError, what: str, where: str) -> TalosError:
    """The refusal of an operating system; `what` is e.g. 'written'."""
    detail = error.strerror or str(error)
    if error.errno in _FULL:
        return TalosError("ArchiveRefused", f"{where} cannot be {what}: the file system is full.", "Make room there, and run this again.", detail)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return TalosError("ArchiveRefused", f"{where} cannot be {what}: permission is missing.", "Make it accessible for the user of this run.", detail)
    return TalosError("ArchiveUnreachable", f"{where} cannot be {what}: {detail}.", "See to the place of the backups, and run this again.", detail)


def refused(where: str, why: str, detail: str = "") -> TalosError:
    """The store answers, and does not do it."""
    return TalosError("ArchiveRefused", f"The {where} refuses it: {why}.", "Check bucket, credentials and their rights.", detail)


def unreachable(where: str, detail: str) -> TalosError:
    """The store does not answer."""
    return TalosError("ArchiveUnreachable", f"The {where} does not answer.", "Check the endpoint and the network, and run this again.", detail)


def not_found(name: str, where: str) -> TalosError:
    return TalosError("SnapshotNotFound", f"There is no snapshot {name} in the {where}.", "Check the name; etcd_backup tells the names that it gives.")
