# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API server's refusals mean for the store (design section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..._kube.api import Api, ApiRefused, ApiSilent
from ..._model.errors import Failure, TalosError
from ..._model.records import ALLOW_DELETE
from ..._model.schema_rules import RULES, Immutable

#: How the messages of refused requests end where a policy of ours refused them.
POLICY, DELETION = "(4/policy-", "(4/policy-delete)"
_IMMUTABLE = tuple(f"({rule.id})" for rule in RULES if isinstance(rule, Immutable))


@contextmanager
def doing(what: str, api: Api) -> Iterator[None]:
    """Requests that are to do something (a verb and its object). Raises TalosError as `store_error` says."""
    try:
        yield
    except (ApiRefused, ApiSilent) as error:
        raise store_error(error, what, api.host) from None


def store_error(error: ApiRefused | ApiSilent, what: str, host: str) -> TalosError:
    """The error of a request that was to do something (a verb and its object), for a person."""
    if isinstance(error, ApiSilent):
        return TalosError("StoreUnreachable", f"The Kubernetes API server {host} did not answer while it was to {what}: {error.message}.",
                          "Look at the API server and the way to it, then run again; what was done is seen and not repeated.",
                          failure=Failure(node=host, code="UNAVAILABLE", retryable=True))
    told = error.message.rstrip(".")
    if error.status == 401:
        return TalosError("CredentialsInvalid", f"The Kubernetes API server {host} does not know the credential that was to {what}.",
                          "Log in again, or give another kubeconfig.", told)
    if error.status in (403, 409) and "being terminated" in told:
        return TalosError("StoreMissing", f"The Kubernetes API server {host} deletes the store's namespace, so it could not {what}: {told}.",
                          "Wait until the namespace is gone, then install the store again; what was in it is lost with it.")
    if error.status == 403 and DELETION in told:
        return TalosError("DeleteNotAllowed", f"The Kubernetes API server {host} refuses to {what}: {told}.",
                          f"Set the annotation {ALLOW_DELETE} to \"true\" first.")
    if error.status == 403 and POLICY in told:
        return TalosError("PermissionDenied", f"The Kubernetes API server {host} refuses to {what}: {told}.",
                          "Have it done by a person whose role has the verb approve.")
    if error.status == 403:
        return TalosError("PermissionDenied", f"The Kubernetes API server {host} does not let this account {what}: {told}.",
                          "Run it as an account that may, or have the role bound to this one.")
    if error.status == 404 and error.names_object and error.kind != "namespaces":
        return TalosError("RecordChanged", f"It was deleted while this run was to {what}.", "Run again, so that this is seen.", told)
    if error.status == 404:
        return TalosError("StoreMissing", f"The Kubernetes API server {host} has no store there, so it could not {what}: {told}.",
                          "Install it with the playbook runner_install or with talos_cluster, or correct the namespace.")
    if error.status == 409:
        return TalosError("RecordChanged", f"Something else changed it while this run was to {what}.", "Run again, so that the change is seen.", told)
    if error.status in (400, 422):
        if any(rule in told for rule in _IMMUTABLE):
            return TalosError("Immutable", f"The Kubernetes API server refuses to {what}: {told}.", "Leave it as it is, or make a new record.")
        if "unknown field" in told:  # what is written was held against this version's own schema before
            return TalosError("RecordInvalid", f"The Kubernetes API server has the definitions of another version of this collection, so it refuses to {what}: "
                              f"{told}.", "Install them anew with the playbook runner_install.")
        return TalosError("RecordInvalid", f"The Kubernetes API server refuses to {what}: {told}.", "Correct these values.")
    if error.status == 413 or "request is too large" in told:
        return TalosError("RecordInvalid", f"The Kubernetes API server takes no object of this size, so it could not {what}: {told}.", "Make it smaller.")
    return TalosError("StoreUnreachable", f"The Kubernetes API server {host} could not {what}: {told}.", "Run again when it is well.",
                      failure=Failure(node=host, code=str(error.status), retryable=True))
