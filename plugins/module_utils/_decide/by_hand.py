# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person types where this product does not wipe a machine itself."""

from __future__ import annotations

#: Without --reboot the node is switched off afterwards, and without the labels its boot partitions are wiped as well: then it starts into
#: maintenance mode from a medium or over the network alone (what `talosctl reset` does by default).
RESET = "talosctl reset --reboot --system-labels-to-wipe STATE --system-labels-to-wipe EPHEMERAL"
#: The same without leaving etcd first, which the last member cannot.
RESET_LAST = RESET.replace("--reboot", "--graceful=false --reboot", 1)
