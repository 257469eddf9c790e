# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a machine's record says about its approval and its past (design sections 3, 4, 7)."""

from __future__ import annotations

from .records import MACHINE, Record, text_at

#: Labels and annotations by which Argo CD and Flux mark what they keep in step with git, and their name.
_TRACKING = {
    "app.kubernetes.io/instance": "Argo CD",  # its own default; Helm sets it too, and undoes changes likewise
    "argocd.argoproj.io/instance": "Argo CD",
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}


def approval_state(record: Record) -> str:
    """pending, approved or rejected. `approved` without approvedBy and approvedAt counts as pending (section 7)."""
    state = text_at(record.spec, "approvalState")
    if state == "approved":
        complete = text_at(record.spec, "approvedBy") and text_at(record.spec, "approvedAt")
        return "approved" if complete else "pending"
    return "rejected" if state == "rejected" else "pending"


def was_sent(record: Record) -> bool:
    """Whether a configuration was, or may have been, sent to the machine (section 9: `sending` counts)."""
    return any(record.status.get(key) for key in ("sending", "configStoredAt", "storedConfigHash", "appliedConfigHash"))


def status_missing(record: Record) -> bool:
    """An approved machine without a status of its own: lost status is no licence to send (section 4)."""
    return record.kind == MACHINE and approval_state(record) == "approved" and not record.status


def status_lost(record: Record) -> bool:
    """An approved machine whose status is gone, or found to be another record's: nobody knows what was sent to it."""
    return status_missing(record) or record.status_set_aside and approval_state(record) == "approved"


def tracked_by(record: Record) -> str:
    """'Argo CD' or 'Flux' where one of them keeps this record in step with git, else ''."""
    for key, tool in _TRACKING.items():
        if record.labels.get(key) or record.annotations.get(key):
            return tool
    return ""
