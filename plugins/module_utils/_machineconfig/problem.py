# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error of this room: what is wrong with a configuration, a patch or a bundle, and where.

Texts carry names of keys and kinds, never values, since values may be secrets (design section 2, law 7).
"""
from __future__ import annotations

from .._model.errors import TalosError
from .url_passwords import without_url_passwords

# Stable causes, finer than the reason of a result. Each belongs to one reason of the closed list.
INVALID_YAML = "InvalidYAML"
UNEXPANDED_TEMPLATE = "UnexpandedTemplate"
TOO_LARGE = "TooLarge"
UNKNOWN_KEY = "UnknownKey"
UNKNOWN_KIND = "UnknownKind"
WRONG_TYPE = "WrongType"
DUPLICATE_DOCUMENT = "DuplicateDocument"
CONFLICTING_DOCUMENTS = "ConflictingDocuments"
NO_DOCUMENT = "NoDocument"
PATCH_FAILED = "PatchFailed"
JSON_PATCH = "JSONPatchRefused"
REFUSED_BY_VALIDATION = "RefusedByValidation"
INVALID_INPUT = "InvalidInput"
SECRETS_INVALID = "SecretsInvalid"
CONTRACT_UNKNOWN = "ContractUnknown"
CONTRACT_TOO_NEW = "ContractTooNew"
MISSING_LIBRARY = "MissingLibrary"

_REASONS = {
    UNEXPANDED_TEMPLATE: "TemplateUnexpanded",
    INVALID_INPUT: "InvalidInput",
    SECRETS_INVALID: "BundleInvalid",
    CONTRACT_UNKNOWN: "InvalidInput",
    CONTRACT_TOO_NEW: "ContractTooNew",
    MISSING_LIBRARY: "MissingLibrary",
}

_HINT = "Correct it there and run again."


class ConfigProblem(TalosError):
    """One sentence of what is wrong, one of what to do, and the place.

    cause: one of the constants above. what: what is wrong, without the place; `message` has both. hint: what to do, where more can be said than to correct it.
    path: dotted path inside the document, e.g. `machine.network.hostname`. line: 1-based line of the text that was read,
    0 when there is none. document: `Kind/name` or `v1alpha1`. source: name of the file or record that the text came from.
    """

    def __init__(
        self, cause: str, what: str, *, hint: str = "", path: str = "", line: int = 0, document: str = "", source: str = "",
    ) -> None:
        super().__init__(_REASONS.get(cause, "ConfigInvalid"), what, hint or _HINT)
        self.cause = cause
        self.what = what
        self.path = path
        self.line = line
        self.document = document
        self.source = source
        self._place()

    def _place(self) -> None:
        parts = (self.source, f"line {self.line}" if self.line else "", self.document, self.path)
        where = ", ".join(part for part in parts if part)
        self.message = without_url_passwords(f"{where}: {self.what}" if where else self.what).rstrip(".") + "."

    def at(self, *, source: str = "", document: str = "", line: int = 0) -> ConfigProblem:
        """The same problem with places filled in that were not known where it was raised."""
        self.source = self.source or source
        self.document = self.document or document
        self.line = self.line or line
        self._place()
        return self

    def and_more(self, count: int) -> ConfigProblem:
        """The same problem as the first of several."""
        if count:
            self.what = f"{self.what} (and {count} more)"
            self._place()
        return self
