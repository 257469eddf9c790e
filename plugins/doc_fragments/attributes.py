# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attributes, requirements and notes that hold for every module."""

from __future__ import annotations


class ModuleDocFragment:
    """`ichor.talos.attributes` for modules that act, `ichor.talos.attributes.info` for those that only read."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: Shows in check mode the plan that a real run would execute, and writes nothing.
  diff_mode:
    support: full
    description: Returns the plan and the records before and after, with secrets masked.
  idempotent:
    support: full
    description: Run twice without a change in between, the second run reports C(changed=false).
  action:
    support: full
    description: An action plugin carries secrets to the module and shows its plan and progress live.
  async:
    support: none
    description: Supports being used with the C(async) keyword.
  action_group:
    support: full
    membership: [ichor.talos.talos]
    description: Use C(group/ichor.talos.talos) in C(module_defaults) to set common options once.
requirements:
  - python >= 3.11
notes:
  - The module runs on the controller, since Talos has neither SSH nor Python. Use C(hosts=localhost) or
    C(connection=local).
"""

    INFO = r"""
attributes:
  check_mode:
    support: full
    description: Only reads, and does so in check mode too.
  diff_mode:
    support: N/A
    description: Changes nothing, so there is no difference to show.
  idempotent:
    support: full
    description: Only reads.
  action:
    support: full
    description: An action plugin carries secrets to the module and shows its progress live.
  async:
    support: none
    description: Supports being used with the C(async) keyword.
  action_group:
    support: full
    membership: [ichor.talos.talos]
    description: Use C(group/ichor.talos.talos) in C(module_defaults) to set common options once.
requirements:
  - python >= 3.11
notes:
  - The module runs on the controller, since Talos has neither SSH nor Python. Use C(hosts=localhost) or
    C(connection=local).
"""
