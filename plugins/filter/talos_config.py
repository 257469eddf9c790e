# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters over Talos machine configurations: merge, diff, redact."""

from __future__ import annotations

from collections.abc import Callable

from ansible.errors import AnsibleFilterError

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.compare import differences
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.contract import schema_for
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import Config, load
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.json_patch import refuse_json_patch
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.masking import Mask
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.patch import Patch, apply_patches, load_patch, patch_of_documents
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.plain_nodes import node_of
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import VERSIONS
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.shown import redact, secrets_of
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.yaml_write import write_documents
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError


class FilterModule:
    """The filters of this collection."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {"talos_config_merge": talos_config_merge, "talos_config_diff": talos_config_diff, "talos_config_redact": talos_config_redact}


def talos_config_merge(config: object, *patches: object, talos_version: str = "") -> str:
    """The configuration with the patches merged in, one after the other, as text."""
    try:
        version = _version(talos_version)
        return apply_patches(_config(config, version), [_patch(patch, version, number) for number, patch in enumerate(patches, 1)]).text()
    except TalosError as error:
        raise AnsibleFilterError(f"talos_config_merge: {error.text}") from None


def talos_config_diff(wanted: object, running: object, talos_version: str = "") -> list[dict[str, object]]:
    """What differs in meaning, one entry a path, secrets as fingerprints."""
    try:
        version = _version(talos_version)
        left, right = _config(wanted, version), _config(running, version)
        found = differences(left, right)
        mask = Mask(secrets_of(left) | secrets_of(right)) if found else Mask(())

        def shown(text: str, secret: bool) -> str:
            return text if secret else mask(text)

        return [{
            "document": one.document, "path": one.path, "secret": one.secret,
            "running": None if one.running is None else shown(one.shown(one.running), one.secret),
            "wanted": None if one.wanted is None else shown(one.shown(one.wanted), one.secret),
        } for one in found]
    except TalosError as error:
        raise AnsibleFilterError(f"talos_config_diff: {error.text}") from None


def talos_config_redact(config: object) -> str:
    """The text with every secret replaced by a fingerprint, or by a mask in a secrets bundle."""
    try:
        return redact(_text(config))
    except TalosError as error:
        raise AnsibleFilterError(f"talos_config_redact: {error.text}") from None


def _version(given: str) -> str:
    return schema_for(given) if given else VERSIONS[-1]


def _text(value: object) -> str:
    if isinstance(value, str):
        # A value of a playbook is a text of Ansible's own kind, which the YAML reader does not take.
        return "".join(value)
    documents = [value] if isinstance(value, dict) else value
    if not isinstance(documents, list) or not all(isinstance(document, dict) for document in documents):
        raise AnsibleFilterError("a configuration has to be a text, a dictionary or a list of dictionaries")
    return write_documents(documents)


def _config(value: object, version: str) -> Config:
    return load(_text(value), version)


def _patch(value: object, version: str, number: int) -> Patch:
    source = f"patch {number}"
    if isinstance(value, str):
        return load_patch(_text(value), version, source=source)
    refuse_json_patch([node_of(value)])
    return patch_of_documents(value if isinstance(value, list) else [value], version, source=source)
