# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters over machine configurations, as templates call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.ichor.talos.plugins.filter.talos_config import FilterModule
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
BUNDLE = read_bundle((VECTORS / "secrets.yaml").read_bytes())
FILTERS: dict[str, Any] = FilterModule().filters()
merge, diff, redact = FILTERS["talos_config_merge"], FILTERS["talos_config_diff"], FILTERS["talos_config_redact"]


def generated(version: str = "v1.13", role: str = "controlplane") -> str:
    for line in (VECTORS / "generate.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["id"] == f"v1.13.9/{version}/{role}/base":
            return str(row["output"])
    raise AssertionError("there is no such row")


@pytest.mark.parametrize("patch", [
    {"machine": {"sysctls": {"a.b": "1"}}}, [{"machine": {"sysctls": {"a.b": "1"}}}], "machine:\n  sysctls: {a.b: '1'}\n"])
def test_merge_takes_text_and_data(patch: object) -> None:
    merged = merge(generated(), patch, talos_version="v1.13.9")
    assert list(yaml.safe_load_all(merged))[0]["machine"]["sysctls"] == {"a.b": "1"}
    assert diff(merged, generated(), talos_version="v1.13.9") == [
        {"document": "v1alpha1", "path": "machine.sysctls.[a.b]", "secret": False, "running": None, "wanted": "1"}]


def test_merge_of_nothing_is_the_identity() -> None:
    assert diff(merge(generated()), generated()) == diff(merge(generated(), "", []), generated()) == []
    assert diff(list(yaml.safe_load_all(generated())), generated()) == []


def test_merge_deletes_and_goes_in_order() -> None:
    text = merge(generated(), {"machine": {"sysctls": {"a": "1"}}}, {"machine": {"sysctls": {"$patch": "delete"}}}, {"machine": {"sysctls": {"b": "2"}}})
    assert list(yaml.safe_load_all(text))[0]["machine"]["sysctls"] == {"b": "2"}


def test_diff_shows_secrets_as_fingerprints() -> None:
    found = diff(generated().replace(BUNDLE.trustd_token, "abcdef.0123456789abcdef"), generated())
    assert [(one["path"], one["secret"]) for one in found] == [("machine.token", True)]
    assert BUNDLE.trustd_token not in str(found) and "0123456789abcdef" not in str(found)


def test_redact_hides_every_secret_of_a_configuration_and_of_a_bundle() -> None:
    for text in (redact(generated()), redact((VECTORS / "secrets.yaml").read_text(encoding="utf-8"))):
        for secret in BUNDLE.secrets():
            assert secret not in text
        assert "token" in text


@pytest.mark.parametrize(("call", "told"), [
    (lambda: merge("machine: {typ: worker}"), "typ"), (lambda: merge(generated(), [{"op": "remove", "path": "/machine"}]), "JSON patches"),
    (lambda: merge(generated(), "a: ["), "line 2"), (lambda: merge(5), "dictionary"), (lambda: diff(generated(), generated(), talos_version="new"), "version"),
    (lambda: redact("a: ["), "line 2"), (lambda: merge(""), "no document"),
])
def test_what_is_wrong_is_one_sentence(call: Any, told: str) -> None:
    with pytest.raises(AnsibleFilterError, match=told):
        call()
