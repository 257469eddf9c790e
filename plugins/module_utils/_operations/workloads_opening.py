# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens what asks the Kubernetes of managed clusters. It is imported only where there is a store: a scan begins without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._model.ports import Clock, Store

if TYPE_CHECKING:
    from .._model.kubeconfig import Kubeconfig
    from .managed_workloads import ManagedWorkloads


def open_workloads(store: Store, clock: Clock, check: bool, given: Kubeconfig | None) -> ManagedWorkloads:
    """The ports `Whereabouts` and `Workloads`. `check`: nothing may be written; `given`: the kubeconfig that the task names."""
    from .managed_workloads import ManagedWorkloads

    return ManagedWorkloads(store, clock, check, given)
