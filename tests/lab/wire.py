# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Protobuf messages of the Talos API: the one thing that the lab shares with the product, its descriptors."""

from __future__ import annotations

from typing import Any

from plugins.module_utils._node import messages


def message(name: str) -> Any:
    """A message class by full name."""
    return messages.message_class(name)


def method(service: str, name: str) -> messages.Method | None:
    """The method's types, or None when the descriptors leave it out."""
    try:
        return messages.method(service, name)
    except KeyError:
        return None
