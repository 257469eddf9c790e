# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shared options and results are documented as they are, in the fragments and in every module."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from ansible_collections.ichor.talos.plugins.doc_fragments.options import ModuleDocFragment
from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import COMMON_GROUPS, FILE_OPTIONS, GROUPS, PATH_OPTIONS, SECRET_OPTIONS, Spec
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing

ROOT = Path(__file__).parents[3]
MODULES = sorted((ROOT / "plugins" / "modules").glob("*.py"))
COMMON = yaml.safe_load(Path(__file__).with_name("common_returns.yml").read_text(encoding="utf-8"))
#: Names that sound like secrets; whoever adds one says by hand which it is.
SOUNDS_SECRET = re.compile(r"(?i)config|bundle|pass|secret|token|key|cred")
PUBLIC = frozenset({"pull_secrets", "passes", "talosconfig", "config_file", "bundle_file", "kubeconfig", "secrets_ref", "config_sha256",
                    "config_dir", "bundle"})


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"documented_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def differences(documented: Mapping[str, dict[str, object]], spec: Mapping[str, Mapping[str, object]], where: str) -> Iterator[str]:
    if documented.keys() != spec.keys():
        yield f"{where}: {sorted(documented.keys() ^ spec.keys())}"
    for name in documented.keys() & spec.keys():
        said, done = documented[name], spec[name]
        for key, default in (("type", "str"), ("elements", None), ("default", None), ("required", False)):
            if said.get(key, default) != done.get(key, default):
                yield f"{where}.{name}: {key} is {done.get(key)!r}, documented as {said.get(key)!r}"
        if list(said.get("choices") or []) != list(done.get("choices") or []):  # type: ignore[call-overload]
            yield f"{where}.{name}: choices"
        yield from differences(said.get("suboptions") or {}, done.get("options") or {}, f"{where}.{name}")  # type: ignore[arg-type]


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_each_group_of_options_is_documented_as_it_is(group: str) -> None:
    documented = yaml.safe_load(getattr(ModuleDocFragment, group.upper()))["options"]
    assert not list(differences(documented, GROUPS[group], group))
    for name, argument in GROUPS[group].items():
        text = "".join(documented[name]["description"])
        for variable in (argument["fallback"][1] if "fallback" in argument else ()):  # type: ignore[index]
            assert f"E({variable})" in text, name


def test_each_timeout_and_interval_is_documented_with_its_default_and_no_other() -> None:
    (option,) = yaml.safe_load(ModuleDocFragment.TIMING)["options"].values()
    names = {entry.name: entry.default for entry in fields(Timing)}
    text = " ".join(option["description"][1:])
    assert set(re.findall(r"V\((\w+)\)", text)) == names.keys()
    told = {name: float(default) for name, default in re.findall(r"V\((\w+)\) (\d+)", text)}
    assert told == names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_each_module_documents_what_every_module_returns(path: Path) -> None:
    module = load(path)
    returns = yaml.safe_load(module.RETURN)
    assert [key for key in COMMON if key not in returns] == []
    for key, entry in COMMON.items():
        assert returns[key]["type"] == entry["type"], key
    attributes = yaml.safe_load(module.DOCUMENTATION)["extends_documentation_fragment"]
    assert {"ichor.talos.attributes", "ichor.talos.attributes.info"} & set(attributes)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_each_option_of_each_module_is_a_secret_or_is_not(path: Path) -> None:
    module = load(path)
    spec = module.SPEC
    assert isinstance(spec, Spec)
    assert set(COMMON_GROUPS) <= set(spec.groups), "module_defaults of the action group set these for every module"
    for name, argument in spec.arguments().items():
        assert bool(argument.get("no_log")) == (name in SECRET_OPTIONS), f"{name}: no_log and SECRET_OPTIONS say different things"
        assert (argument.get("type") == "path") == (name in PATH_OPTIONS), f"{name}: the action plugin has to know every path"
        if SOUNDS_SECRET.search(name):
            assert name in SECRET_OPTIONS | FILE_OPTIONS | PUBLIC, f"{name} sounds like a secret: put it into one of the lists"
