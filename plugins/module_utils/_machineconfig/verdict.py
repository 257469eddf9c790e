# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What validation says of a configuration: errors and warnings with their place, and the text in which Talos would say it."""
from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import problem
from .problem import ConfigProblem


@dataclass(frozen=True)
class Finding:
    """One error or warning. document: `v1alpha1.Config`, `Kind` or `Kind/name`, "" for what concerns several documents.

    path: the offending path inside the document, as far as one key is to blame. message: Talos's own words.
    """

    document: str
    path: str
    message: str

    @property
    def sentence(self) -> str:
        where = ", ".join(part for part in (self.document, self.path) if part)
        return f"{where}: {self.message}" if where else self.message


@dataclass(frozen=True)
class Verdict:
    """All findings of one validation, in Talos's order."""

    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.errors

    def text(self) -> str:
        """Warnings, then `OK` or the errors, framed as Talos frames them."""
        lines = [f"WARN: {warning.message}\n" for warning in self.warnings]
        if not self.errors:
            return "".join(lines) + "OK\n"
        legacy = [error.message for error in self.errors if error.document == "v1alpha1.Config"]
        entries = [f"v1alpha1.Config: {multi(legacy)}"] if legacy else []
        grouped: dict[str, list[str]] = {}
        for error in self.errors:
            if error.document and error.document != "v1alpha1.Config":
                grouped.setdefault(error.document, []).append(error.message)
        entries.extend(f"{document}: " + "\n".join(messages) for document, messages in grouped.items())
        entries.extend(error.message for error in self.errors if not error.document)
        return "".join(lines) + f"ERR: {multi(entries)}\n"

    def refuse(self, *, source: str = "") -> None:
        """Raises ConfigProblem (RefusedByValidation) with the first error in full and how many follow."""
        if self.errors:
            first, more = self.errors[0], len(self.errors) - 1
            raise ConfigProblem(
                problem.REFUSED_BY_VALIDATION, " ".join(first.message.split()) + (f" (and {more} more)" if more else ""),
                document=first.document, path=first.path, source=source,
            )


def multi(messages: Iterable[str]) -> str:
    """Several errors in one text, as Talos joins them."""
    every = list(messages)
    head = "1 error occurred:" if len(every) == 1 else f"{len(every)} errors occurred:"
    return head + "".join(f"\n\t* {message}" for message in every) + "\n\n"


def quote(text: str) -> str:
    """Go's quoting of a text, for messages."""
    return json.dumps(text, ensure_ascii=False)


@dataclass
class Report:
    """Collects the findings of one document."""

    document: str
    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def error(self, path: str, message: str) -> None:
        self.errors.append(Finding(self.document, path, message))

    def warn(self, path: str, message: str) -> None:
        self.warnings.append(Finding(self.document, path, message))

    def need(self, value: Any, path: str, message: str) -> None:
        """An error when there is no value."""
        if not value:
            self.error(path, message)
