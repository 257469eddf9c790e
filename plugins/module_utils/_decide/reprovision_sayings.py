# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sentences of section 12 that more than one row says."""

from __future__ import annotations

STATE_THERE = "The STATE partition is there with its file system: the disk was not wiped, this boot did not find the configuration on it."
STATE_HINT = "Nothing is sent; restart the machine, and look at its disk when that does not help."
UNCLEAR_LABELS = "Whether the disk was wiped cannot be told: its partitions cannot be read, or STATE is encrypted or has no file system."
UNCLEAR_HINT = ("A control plane is left alone then: restart it; when its data is lost for good, wipe the disk, or remove the machine with "
                "talos_machine_removal.")
RESTORE = "Restore etcd from a backup, or give it up for this machine alone: discard_etcd with the name of the cluster."
