# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parsed options, typed where they are read, so that a module's `build_request` needs no `Any`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields

from .._model.errors import TalosError
from .._model.plain_files import read_given
from .._model.records import Json
from .._model.timing import LONGEST, Timing, contradictions
from .given import check_given
from .redaction import Redactor

#: The head of a file that ansible-vault encrypted.
VAULT_HEADER = b"$ANSIBLE_VAULT;"


class Options:
    """The options of one task. A name that the spec does not know is a KeyError: a fault of ours.

    Raises TalosError `InvalidInput` for what `check_given` refuses.
    """

    def __init__(self, values: Mapping[str, object], redactor: Redactor,
                 clear_text: Callable[[str], bytes] | None = None) -> None:
        check_given(values)
        self._values = values
        self._redactor = redactor
        self._clear_text = clear_text

    def __contains__(self, name: str) -> bool:
        """Whether the option exists and was given."""
        return self._values.get(name) is not None

    @property
    def clear_text(self) -> Callable[[str], bytes] | None:
        """Gives the clear text of a vaulted file by its path; None without the action plugin."""
        return self._clear_text

    def given(self, name: str) -> bool:
        """Whether the person set the option, to whatever value."""
        return self._values[name] is not None

    def raw(self, name: str) -> object:
        return self._values[name]

    def text(self, name: str, default: str = "") -> str:
        value = self._values[name]
        return default if value is None else str(value)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._values[name]
        return default if value is None else bool(value)

    def integer(self, name: str, default: int = 0) -> int:
        value = self._values[name]
        return int(value) if isinstance(value, (int, float, str)) else default

    def number(self, name: str, default: float = 0.0) -> float:
        value = self._values[name]
        return float(value) if isinstance(value, (int, float, str)) else default

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; () when it was not given."""
        value = self._values[name]
        return tuple(str(item) for item in value) if isinstance(value, (list, tuple)) else ()

    def maps(self, name: str) -> tuple[Mapping[str, object], ...]:
        """A list of dictionaries; () when it was not given."""
        value = self._values[name]
        return tuple(item for item in value if isinstance(item, Mapping)) if isinstance(value, (list, tuple)) else ()

    def mapping(self, name: str) -> Mapping[str, object]:
        """A dictionary; empty when it was not given."""
        value = self._values[name]
        return value if isinstance(value, Mapping) else {}

    def machines(self) -> tuple[str, ...]:
        """The names of `machine` and `machines`, in order, each once."""
        names = ([self.text("machine")] if "machine" in self else []) + (list(self.texts("machines")) if "machines" in self else [])
        return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))

    def timing(self) -> Timing:
        """The option `timing` with the defaults of design section 19."""
        given = self.mapping("timing") if "timing" in self else {}
        known = {entry.name for entry in fields(Timing)}
        values: dict[str, float] = {}
        for name, value in given.items():
            if name not in known:
                raise TalosError("InvalidInput", f"timing has no {str(name)[:100]!r}.", f"It has {', '.join(sorted(known))}.")
            if value is not None:
                values[name] = _seconds(name, value)
        timing = Timing(**values)
        for problem in contradictions(timing):
            raise TalosError("InvalidInput", *problem)
        return timing

    def remember(self, text: str) -> None:
        """Remember the secrets of a YAML or JSON text that came in an ordinary option, so that they are masked in what leaves the module."""
        self._redactor.add_document(text)

    def masked(self, data: Json) -> Json:
        """The data as it may leave the module: what quotes a secret of this run, wholly or in part, is masked."""
        return self._redactor.data(data, foreign=True)

    def secret_content(self, content: str, file: str) -> bytes | None:
        """The text of the option `content`, else of the file that the option `file` names, in clear; None without both.

        Its secrets are remembered, so that they are masked in everything that leaves the module.
        """
        if self._values.get(content) is not None:
            data = self.text(content).encode("utf-8", "surrogateescape")
            if data.startswith(VAULT_HEADER):
                raise TalosError("SecretsUnavailable", f"The value of {content} is still encrypted with ansible-vault.",
                                 "Give it as a !vault value or a decrypted variable.")
        elif self._values.get(file) is not None:
            data = self.read_file(self.text(file), file)
        else:
            return None
        self._redactor.add_document(data.decode("utf-8", "replace"))
        return data

    def secret_file(self, path: str, what: str) -> bytes:
        """A person's file with secrets, as `read_file` gives it; its secrets are remembered for masking."""
        data = self.read_file(path, what)
        self._redactor.add_document(data.decode("utf-8", "replace"))
        return data

    def read_file(self, path: str, what: str) -> bytes:
        """A person's file, decrypted by the action plugin when it is vaulted; the errors name the option `what`."""
        data = read_given(os.path.expanduser(path), what)
        if not data.startswith(VAULT_HEADER):
            return data
        if self._clear_text is None:
            raise TalosError("SecretsUnavailable", f"{what} {path} is encrypted with ansible-vault.",
                             "Run the module as a task of ansible-playbook with its vault password, or give it in clear.")
        return self._clear_text(path)


def _seconds(name: str, value: object) -> float:
    """A number of seconds, also where a template made a text of it. Raises TalosError `InvalidInput`."""
    try:
        seconds = float("nan") if isinstance(value, bool) or not isinstance(value, (int, float, str)) else float(value)
    except ValueError:
        seconds = float("nan")
    if not 0 < seconds <= LONGEST:
        raise TalosError("InvalidInput", f"timing.{name} is {str(value)[:100]}.", f"Give a number of seconds above 0 and of at most {LONGEST:.0f} (a week).")
    return seconds
