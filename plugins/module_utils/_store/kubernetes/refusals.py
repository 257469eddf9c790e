# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API server's refusals mean for the store (design section 4)."""

from __future__ import annotations

from ..._kube.api import ApiRefused, ApiSilent
from ..._model.errors import Failure, TalosError
from ..._model.schema_rules import RULES, Immutable

_IMMUTABLE = tuple(f"({rule.id})" for rule in RULES if isinstance(rule, Immutable))


def store_error(error: ApiRefused | ApiSilent, doing: str, host: str) -> TalosError:
    """The error of a request that was `doing` something (a verb and its object), for a person."""
    if isinstance(error, ApiSilent):
        return TalosError("StoreUnreachable", f"The Kubernetes API server {host} did not answer while it was to {doing}: {error.message}.",
                          "Look at the API server and the way to it, then run again; what was done is seen and not repeated.",
                          failure=Failure(node=host, code="UNAVAILABLE", retryable=True))
    told = error.message.rstrip(".")
    if error.status == 401:
        return TalosError("CredentialsInvalid", f"The Kubernetes API server {host} does not know the credential that was to {doing}.",
                          "Log in again, or give another kubeconfig.", told)
    if error.status == 403:
        return TalosError("PermissionDenied", f"The Kubernetes API server {host} does not let this account {doing}: {told}.",
                          "Run it as an account that may, or have the role bound to this one.")
    if error.status == 404:
        return TalosError("StoreMissing", f"The Kubernetes API server {host} has no store there, so it could not {doing}: {told}.",
                          "Install it with the playbook runner_install or with talos_cluster, or correct the namespace.")
    if error.status == 409:
        return TalosError("RecordChanged", f"Something else changed it while this run was to {doing}.", "Run again, so that the change is seen.", told)
    if error.status in (400, 422):
        if any(rule in told for rule in _IMMUTABLE):
            return TalosError("Immutable", f"The Kubernetes API server refuses to {doing}: {told}.", "Leave it as it is, or make a new record.")
        return TalosError("RecordInvalid", f"The Kubernetes API server refuses to {doing}: {told}.", "Correct these values.")
    return TalosError("StoreUnreachable", f"The Kubernetes API server {host} could not {doing}: {told}.", "Run again when it is well.",
                      failure=Failure(node=host, code=str(error.status), retryable=True))
