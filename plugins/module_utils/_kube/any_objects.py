# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of whatever kind: where the API server has them, as they are, made and replaced (design section 15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from .._model.container_network import Live, Place, place_of
from .._model.errors import TalosError
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.records import Json, JsonMap, dig, list_at, text_at
from .api import Api, ApiRefused, ApiSilent
from .asking import failed
from .objects import FIELD_MANAGER

_DEFINITION = "CustomResourceDefinition"
_DEFINE = "Install the definition of that kind first, or give values without it."
_BY = {"fieldManager": FIELD_MANAGER}
#: How often, and after how many seconds, a kind is looked for that was defined just before.
_SERVED, _AGAIN = 60, 0.5
#: What an API server answers that would answer otherwise later.
_BUSY = (429, 503, 504)


class Objects:
    """The objects of one API server. What it says of its kinds is asked once for each version of a group; one that it does not know is asked again."""

    def __init__(self, api: Api, namespace: str = "default") -> None:
        self._api = api
        self._namespace = namespace
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}

    def live(self, wanted: Sequence[dict[str, Json]]) -> tuple[Live, ...]:
        """Each object as it is; Unknown for a kind that neither the API server knows nor a definition among them. Raises TalosError."""
        defined = {(text_at(one, "spec", "group"), text_at(one, "spec", "names", "kind")) for one in wanted if text_at(one, "kind") == _DEFINITION}
        return tuple(self._live(one, defined) for one in wanted)

    def create(self, wanted: JsonMap) -> None:
        """Make it; a kind that was defined just before is waited for. Raises TalosError `RecordChanged` where it is there."""
        for left in reversed(range(_SERVED)):
            if self._kind(wanted) is None and left:
                self._api.pause(_AGAIN)
                continue
            path = self._collection(wanted)
            try:
                self._api.request("POST", path, wanted, query=_BY)
                return
            except (ApiSilent, ApiRefused) as error:
                if isinstance(error, ApiRefused) and error.status == 404 and not error.names_object and left:
                    self._api.pause(_AGAIN)  # it is told of, and not served yet
                    continue
                if isinstance(error, ApiRefused) and error.status == 409:
                    raise _changed(place_of(wanted), "was made by somebody else meanwhile") from None
                raise failed(self._api, f"POST {path}", f"does not make {place_of(wanted)}", error) from None

    def replace(self, wanted: JsonMap) -> None:
        """Put it over the one of its resourceVersion. Raises TalosError `RecordChanged` where that is another one by now."""
        path = self._path(wanted)
        try:
            self._put(path, wanted, _BY)
        except (ApiSilent, ApiRefused) as error:
            if isinstance(error, ApiRefused) and error.status in (404, 409):
                raise _changed(place_of(wanted), "was changed by somebody else meanwhile") from None
            raise failed(self._api, f"PUT {path}", f"does not change {place_of(wanted)}", error) from None

    def tried(self, wanted: JsonMap) -> Observed[JsonMap]:
        """What `replace` would make of it, with nothing written; Absent where the API server, or a webhook, does not try. Raises TalosError."""
        path = self._path(wanted)
        try:
            return Present(self._put(path, wanted, {**_BY, "dryRun": "All"}))
        except (ApiSilent, ApiRefused) as error:
            if isinstance(error, ApiRefused) and error.status not in _BUSY:
                return Absent()
            raise failed(self._api, f"PUT {path}", f"does not tell what it would make of {place_of(wanted)}", error) from None

    def _path(self, wanted: JsonMap) -> str:
        return f"{self._collection(wanted)}/{text_at(wanted, 'metadata', 'name')}"

    def _put(self, path: str, wanted: JsonMap, query: Mapping[str, str]) -> JsonMap:
        metadata = dig(wanted, "metadata")
        kept = {key: value for key, value in metadata.items() if key != "managedFields"} if isinstance(metadata, dict) else {}
        return self._api.request("PUT", path, {**{key: value for key, value in wanted.items() if key != "status"}, "metadata": kept}, query=query)

    def _live(self, wanted: dict[str, Json], defined: Set[tuple[str, str]]) -> Live:
        found = self._kind(wanted)
        if found is None:
            place = place_of(wanted)
            return Live(wanted, Absent() if (place.group, place.kind) in defined else Unknown("ChartInvalid", "the cluster does not know its kind.", _DEFINE))
        placed = self._placed(wanted, found[1])
        path = self._path(placed)
        try:
            now = self._api.get(path)
        except (ApiSilent, ApiRefused) as error:
            raise failed(self._api, f"GET {path}", f"does not tell {place_of(placed)}", error) from None
        return Live(placed, Absent() if now is None else Present(now))

    def _placed(self, wanted: dict[str, Json], namespaced: bool) -> dict[str, Json]:
        """With its namespace where its kind has one, and without where not."""
        metadata = dig(wanted, "metadata")
        own: dict[str, Json] = {key: value for key, value in metadata.items() if key != "namespace"} if isinstance(metadata, dict) else {}
        if namespaced:
            own["namespace"] = text_at(wanted, "metadata", "namespace") or self._namespace
        return {**wanted, "metadata": own}

    def _collection(self, wanted: JsonMap) -> str:
        found = self._kind(wanted)
        if found is None:
            raise TalosError("ChartInvalid", f"The cluster does not know the kind of {place_of(wanted)}.",
                             _DEFINE)
        namespace = text_at(wanted, "metadata", "namespace")
        return f"{_root(text_at(wanted, 'apiVersion'))}{f'/namespaces/{namespace}' if found[1] else ''}/{found[0]}"

    def _kind(self, wanted: JsonMap) -> tuple[str, bool] | None:
        """(the name in paths, whether it has a namespace) of an object's kind, None where the API server does not know it."""
        version, kind = text_at(wanted, "apiVersion"), text_at(wanted, "kind")
        if (version, kind) not in self._kinds:
            self._learn(version)
        return self._kinds.get((version, kind))

    def _learn(self, version: str) -> None:
        path = _root(version)
        try:
            answer = self._api.request("GET", path)
        except (ApiSilent, ApiRefused) as error:
            if isinstance(error, ApiRefused) and error.status == 404:
                return
            raise failed(self._api, f"GET {path}", "does not tell its kinds", error) from None
        for entry in list_at(answer, "resources"):
            name = text_at(entry, "name")
            if name and "/" not in name:
                self._kinds[version, text_at(entry, "kind")] = (name, dig(entry, "namespaced") is True)


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _changed(place: Place, what: str) -> TalosError:
    return TalosError("RecordChanged", f"{place} {what}.", "Run this again, and look at what would be changed now.")
