# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials as values. Their reprs show no key."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Credentials:
    """What an authenticated client needs: PEM texts of CA(s), certificate and key (design section 5).

    `source` says where they come from, for messages ("talosconfig context prod", "bundle prod").
    """

    ca: str = field(repr=False)
    certificate: str = field(repr=False)
    key: str = field(repr=False)
    source: str = ""
    endpoints: tuple[str, ...] = ()
