# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Helm's record of a release, as it is unpacked, and what is not understood of one."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._kube import helm_release
from ansible_collections.ichor.talos.plugins.module_utils._kube.helm_release import read_release, release_of
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown

from tests.parts.network_chart import release_secret

RECORD: dict[str, Any] = {
    "name": "cilium", "namespace": "kube-system", "version": 3, "info": {"status": "deployed"}, "config": {"hubble": {"enabled": True}},
    "chart": {"metadata": {"name": "cilium", "version": "1.18.0"}, "values": {"a": 1}},
    "manifest": "---\n# Source: cilium/templates/a\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cilium-config\n  namespace: kube-system\n  labels:\n"
                "    name: not-this\ndata:\n  name: nor-this\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n"
                "  name: \"cilium\"\n"}


def test_a_release() -> None:
    found = release_of(release_secret(RECORD, 3))
    assert isinstance(found, Present)
    one = found.value
    assert (one.name, one.namespace, one.revision, one.status, one.chart, one.version) == ("cilium", "kube-system", 3, "deployed", "cilium", "1.18.0")
    assert one.values == {"hubble": {"enabled": True}}
    assert one.objects == (("v1", "ConfigMap", "kube-system", "cilium-config"), ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "cilium"))


@pytest.mark.parametrize("config", [None, {}, [], "x"])
def test_a_release_without_values(config: object) -> None:
    found = release_of(release_secret({**RECORD, "config": config}))
    assert isinstance(found, Present) and found.value.values == {}


def test_an_old_record_is_not_compressed() -> None:
    plain = base64.b64encode(base64.b64encode(b'{"name": "cilium", "version": 1, "info": {"status": "failed"}}')).decode()
    found = release_of({"metadata": {"name": "x"}, "data": {"release": plain}})
    assert isinstance(found, Present) and found.value.status == "failed"


@pytest.mark.parametrize("text", ["", "%%%", base64.b64encode(b"no base64").decode(), base64.b64encode(base64.b64encode(b"\x1f\x8bno gzip")).decode(),
                                  base64.b64encode(base64.b64encode(gzip.compress(b"{", mtime=0)[:-4])).decode(),
                                  base64.b64encode(base64.b64encode(gzip.compress(b"[]", mtime=0))).decode()])
def test_what_is_not_understood_is_unknown_and_quoted_nowhere(text: str) -> None:
    found = release_of({"metadata": {"name": "sh.helm.release.v1.cilium.v1"}, "data": {"release": text}})
    assert isinstance(found, Unknown) and "sh.helm.release.v1.cilium.v1" in found.message


def test_a_record_that_grows_without_end_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helm_release, "LARGEST", 1000)
    assert isinstance(release_of(release_secret({**RECORD, "manifest": "x" * 5000})), Unknown)


class Kept:
    """An API server that has these Secrets and ConfigMaps."""

    host = "https://kept"

    def __init__(self, **kept: list[dict[str, Any]]) -> None:
        self.kept = kept
        self.asked: list[str] = []

    def request(self, method: str, path: str, body: object = None, **options: Any) -> Any:
        assert options["query"]["labelSelector"] == "owner=helm,name=cilium"
        self.asked.append(path.rpartition("/")[2])
        return {"kind": "List", "items": self.kept.get(self.asked[-1], [])}


def test_the_newest_revision_counts_whatever_keeps_it() -> None:
    def config_map(record: dict[str, Any], revision: int) -> dict[str, Any]:
        secret = release_secret(record, revision)
        return {**secret, "data": {"release": base64.b64decode(secret["data"]["release"]).decode()}}

    older = {**RECORD, "version": 9, "info": {"status": "superseded"}}
    newer = {**RECORD, "version": 10, "info": {"status": "pending-upgrade"}}
    for kept in (Kept(secrets=[release_secret(newer, 10), release_secret(older, 9)], configmaps=[config_map(RECORD, 11)]),
                 Kept(configmaps=[config_map(older, 9), config_map(newer, 10)])):
        found = read_release(kept, "kube-system", "cilium")  # type: ignore[arg-type]
        assert isinstance(found, Present) and (found.value.revision, found.value.status) == (10, "pending-upgrade") and found.value.values == RECORD["config"]
    broken = read_release(Kept(configmaps=[release_secret(RECORD)]), "kube-system", "cilium")  # type: ignore[arg-type]
    assert isinstance(broken, Unknown) and "the ConfigMap sh.helm.release.v1.cilium.v1" in broken.message
    nothing = Kept()
    assert isinstance(read_release(nothing, "kube-system", "cilium"), Absent) and nothing.asked == ["secrets", "configmaps"]  # type: ignore[arg-type]
