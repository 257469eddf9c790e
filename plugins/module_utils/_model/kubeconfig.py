# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A kubeconfig that a person gives for the Kubernetes of managed clusters (design section 10)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kubeconfig:
    """Its text in clear, and the path of the file that it was read from, from whose folder the paths in it count; '' for none."""

    text: str = field(repr=False)
    path: str = ""
