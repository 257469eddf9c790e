# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which kubeconfig applies: one that is named, the files of KUBECONFIG as kubectl reads them, or that of the home folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.kubeconfig import read_kubeconfig
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError


@pytest.fixture(autouse=True)
def nobody_s_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


def written(path: Path, name: str, current: str | None = None, **user: Any) -> Path:
    """A kubeconfig of one context with that name, in which paths are relative."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.org", "certificate-authority": "ca.crt"}}],
        "users": [{"name": name, "user": user}], "contexts": [{"name": name, "context": {"cluster": name, "user": name}}]}
    path.write_text(yaml.safe_dump({**told, **({"current-context": current} if current else {})}), encoding="utf-8")
    return path


def servers(found: Any) -> list[str]:
    return [entry["cluster"]["server"] for entry in found["clusters"]]


def refused(path: str = "") -> str:
    with pytest.raises(TalosError) as caught:
        open_api(Access(path))
    assert caught.value.reason == "CredentialsInvalid"
    return caught.value.message


def test_several_files_are_one_and_the_first_of_a_name_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = written(tmp_path / "a" / "config", "one"), written(tmp_path / "b" / "config", "two", "two", tokenFile="token")
    again = written(tmp_path / "c" / "config", "one", "one")
    again.write_text(again.read_text(encoding="utf-8").replace("one.example.org", "other.example.org"), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (one, tmp_path / "none", "", two, again))))
    found: Any = read_kubeconfig("")
    assert servers(found) == ["https://one.example.org", "https://two.example.org"] and found["current-context"] == "two"
    assert [entry["cluster"]["certificate-authority"] for entry in found["clusters"]] == [str(tmp_path / "a" / "ca.crt"), str(tmp_path / "b" / "ca.crt")]
    assert found["users"][1]["user"]["tokenFile"] == str(tmp_path / "b" / "token")
    assert servers(read_kubeconfig(str(again))) == ["https://other.example.org"]


def test_paths_count_from_the_folder_of_the_file_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login = {"command": "./login", "apiVersion": "client.authentication.k8s.io/v1"}
    for path in (tmp_path / "a" / "config", tmp_path / ".kube" / "config"):
        written(path, "one", "one", **{"client-certificate": "one.crt", "client-key": "/keys/one.key", "exec": login})
    for named, folder in ((str(tmp_path / "a" / "config"), tmp_path / "a"), ("../a/config", tmp_path / "a"), ("", tmp_path / ".kube")):
        monkeypatch.setenv("KUBECONFIG", named)
        found: Any = read_kubeconfig("")
        user = found["users"][0]["user"]
        assert (os.path.normpath(user["client-certificate"]), user["client-key"], os.path.normpath(user["exec"]["command"])) == (
            str(folder / "one.crt"), "/keys/one.key", str(folder / "login"))


def test_a_token_beside_the_file_is_read_wherever_this_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a" / "config", "one", "one", tokenFile="token")
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    del config["clusters"][0]["cluster"]["certificate-authority"]
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert f"The token in {tmp_path / 'a' / 'token'} cannot be read" in refused()
    (tmp_path / "a" / "token").write_text("abc\n", encoding="utf-8")
    assert open_api(Access()).host == "https://one.example.org"


def test_what_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "The kubeconfig ~/.kube/config cannot be read" in refused()
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(("/nowhere/a", "/nowhere/b")))
    assert "The kubeconfig /nowhere/a cannot be read" in refused()
    (tmp_path / "empty").write_text("", encoding="utf-8")
    assert "it is no kubeconfig" in refused(str(tmp_path / "empty"))


def test_in_a_pod_its_own_account_counts_unless_a_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    written(tmp_path / ".kube" / "config", "one", "one")
    assert read_kubeconfig("") is None
    monkeypatch.setenv("KUBECONFIG", str(written(tmp_path / "a" / "config", "two", "two")))
    assert servers(read_kubeconfig("")) == ["https://two.example.org"]
