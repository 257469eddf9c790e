# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asking the API server of a managed cluster: whole lists, and what goes wrong as one error (design section 10)."""

from __future__ import annotations

from collections.abc import Mapping

from .._model.errors import Failure, TalosError
from .._model.records import JsonMap, list_at, text_at
from .api import Api, ApiRefused, ApiSilent
from .paging import pages


def listed(api: Api, path: str, what: str, query: Mapping[str, str] | None = None) -> list[JsonMap]:
    """Every object of a list, page after page. Raises TalosError where the API server does not answer or does not tell `what`."""
    try:
        return [item for answer in pages(api, path, query) for item in list_at(answer, "items") if isinstance(item, dict)]
    except (ApiSilent, ApiRefused) as error:
        raise failed(api, f"GET {path}", f"does not tell {what}", error) from None


def is_ready(item: JsonMap) -> bool:
    """Whether an object's condition `Ready` is True."""
    return any(text_at(entry, "type") == "Ready" and text_at(entry, "status") == "True" for entry in list_at(item, "status", "conditions"))


def failed(api: Api, call: str, what: str, error: ApiSilent | ApiRefused) -> TalosError:
    """`TimedOut`, `PermissionDenied` or `CallFailed`; `what` is what the API server does not do."""
    if isinstance(error, ApiSilent):
        return TalosError("TimedOut", f"The cluster's API server {api.host} did not answer: {error.message.rstrip('.')}.", "Look at the cluster's endpoint.",
                          failure=Failure(node=api.host, rpc=call, retryable=True))
    denied = error.status in (401, 403) and not _ends(error)
    return TalosError("PermissionDenied" if denied else "CallFailed", f"The cluster's API server {api.host} {what}: {error.message.rstrip('.')}.", _hint(error),
                      failure=Failure(node=api.host, rpc=call, code=str(error.status)))


def _ends(error: ApiRefused) -> bool:
    return error.status == 403 and "being terminated" in error.message


def _hint(error: ApiRefused) -> str:
    if _ends(error):
        return "Its namespace is being deleted: wait until it is gone, or see what keeps it."
    if error.status in (401, 403):
        return "Look at the cluster's endpoint and at its secrets bundle."
    if error.status in (400, 413, 422):
        return "Its own checks, or a webhook of the cluster, do not take the object: see what they say."
    return "Look at the cluster's endpoint, and run this again when it is well."
