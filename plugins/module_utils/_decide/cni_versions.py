# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions of Cilium: as the images of its agents have them, and which of two is older (design section 15)."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: A tag of the project's own; whoever builds images of their own tags them as they like.
_TAG = re.compile(r"/cilium/cilium:v([0-9]+\.[0-9]+\.[0-9]+(?:-(?:pre|rc|snapshot)\.[0-9]+)?)(?:@|\Z)")


def version_in(images: Iterable[str]) -> str:
    """The version of the agents by their images, '' where these do not tell it."""
    return next((found.group(1) for found in map(_TAG.search, images) if found is not None), "")


def order(version: str) -> tuple[int, ...]:
    """What versions are compared by; those of before a release count as it."""
    return tuple(int(part) if part.isdigit() else 0 for part in version.lstrip("v").split("-", 1)[0].split("+", 1)[0].split("."))
