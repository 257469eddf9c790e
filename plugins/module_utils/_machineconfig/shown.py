# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations and differences as they may be shown: secrets as fingerprints, by path and by value."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .bring import plain, read_expanded
from .compare import Difference
from .documents import Config
from .masking import MASK, Mask, fingerprint
from .schema import LEGACY
from .secret_paths import bundle_leaves, secret_leaves, sensitive
from .yaml_read import MAPPING, decode, read
from .yaml_write import write_documents


def secrets_of(config: Config) -> frozenset[str]:
    """Every secret leaf value of a configuration, for masking by value in any text."""
    return frozenset(value for document in config.documents for value in _secrets("" if document.legacy else document.kind.name, document.output()))


def _secrets(kind: str, data: Any) -> Iterable[str]:
    return (value for dummy, value in secret_leaves(kind, data))


def masked_text(config: Config) -> str:
    """The configuration as YAML with every secret replaced by its fingerprint; two that are equal stay equal."""
    return _masked([(document.kind.name, document.output()) for document in config.documents])


def redact(text: bytes | str) -> str:
    """The same for the text of any configuration or secrets bundle, of any Talos version. Comments and formatting go.

    Raises ConfigProblem when it is no YAML.
    """
    nodes = read(decode(text))
    documents = [(str(_word(node.get("kind")) or LEGACY), plain(node)) for node in nodes if node.kind == MAPPING]
    if len(documents) == 1 and "certs" in documents[0][1]:
        return Mask(value for dummy, value in bundle_leaves(documents[0][1]))(write_documents([documents[0][1]]))
    return _masked(documents)


def shown_document(kind: str, data: dict[str, Any]) -> str:
    """One document as plain data (kind "" is the legacy document), as the same text."""
    return _masked([(kind or LEGACY, data)])


def _word(node: Any) -> str:
    return node.value if node is not None and isinstance(node.value, str) else ""


def _masked(documents: list[tuple[str, dict[str, Any]]]) -> str:
    found: set[str] = set()
    shown = []
    for kind, data in documents:
        found.update(_secrets("" if kind == LEGACY else kind, data))
        shown.append(_cover(data, "" if kind == LEGACY else kind, ()))
    # what is a secret at one place is one at every other
    return Mask(found)(write_documents(shown))


def _cover(value: Any, kind: str, path: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _cover(inner, kind, (*path, str(key))) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cover(inner, kind, (*path, str(index))) for index, inner in enumerate(value)]
    if value in ("", None) or not sensitive(kind, path):
        return value
    return f"{MASK} {fingerprint(str(value))}"


def difference_lines(found: Iterable[Difference]) -> list[str]:
    """One line a difference, `document: path: running -> wanted`, secrets as fingerprints."""
    return [difference.sentence for difference in found]


def secrets_in(text: bytes | str) -> frozenset[str]:
    """Every secret leaf value of the text of a configuration of any version. Raises ConfigProblem when it is no YAML."""
    result: set[str] = set()
    for node in read_expanded(decode(text)):
        if node.kind == MAPPING:
            result.update(_secrets(str(_word(node.get("kind"))), plain(node)))
    return frozenset(result)
