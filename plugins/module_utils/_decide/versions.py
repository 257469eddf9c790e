# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Comparing Talos versions by major and minor."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v?(\d+)\.(\d+)")


def minor(version: str) -> tuple[int, int] | None:
    """(1, 13) of `v1.13.9` or `1.13`; None where it is no version."""
    found = _VERSION.match(version.strip())
    return (int(found[1]), int(found[2])) if found else None


def older(version: str, wanted: str) -> bool:
    """Whether `version` is of an older minor than `wanted`; an unknown version counts as older, an unknown wish as met."""
    have, need = minor(version), minor(wanted)
    return need is not None and (have is None or have < need)
