# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows about the objects of a network: made, changed, left, and the gate before a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_words import Branch, CniCase, CniWish
from ansible_collections.ichor.talos.plugins.module_utils._model.container_network import Chart, Live, NetworkSeen, Place, Release
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown

CHART = Chart("cilium", "https://charts.example.org", "1.18.0")


def config(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cilium-config", "namespace": "kube-system"}, "data": {"ipam": "kubernetes", **data}}


def agent(image: str = "cilium:v1.18.0") -> dict[str, Any]:
    labels = {"k8s-app": "cilium"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "cilium", "namespace": "kube-system", "labels": labels},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
                "hostNetwork": True, "containers": [{"name": "agent", "image": image, "env": [{"name": "EMPTY", "value": ""}]}]}}}}


def keys(text: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cilium-ca", "namespace": "kube-system"}, "data": {"ca.key": text, "plain": "cGxhaW4="}}


def other_keys(text: str) -> dict[str, Any]:
    return {**keys(text), "metadata": {"name": "b"}}


def live(wanted: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """As an API server would have it, with what it fills in."""
    own = {"uid": "u-1", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [], **metadata}
    found = {**wanted, "metadata": {**wanted["metadata"], **own}}
    if wanted["kind"] == "DaemonSet":
        container = {**wanted["spec"]["template"]["spec"]["containers"][0], "env": [{"name": "EMPTY"}], "imagePullPolicy": "IfNotPresent", "resources": {},
                     "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
        template = {"metadata": {**wanted["spec"]["template"]["metadata"], "creationTimestamp": None}, "spec": {
            **wanted["spec"]["template"]["spec"], "containers": [container], "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {},
            "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30}}
        found = {**found, "spec": {**wanted["spec"], "template": template, "revisionHistoryLimit": 10,
                                   "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}},
                 "status": {"numberReady": 3}}
    return found


@dataclass(frozen=True)
class World:
    """Two renders, and the objects as they are."""

    first: tuple[dict[str, Any], ...]
    now: tuple[Observed[Any], ...]
    second: tuple[dict[str, Any], ...] = ()
    what: str = "take over"
    accept: bool = False
    ours: bool = False
    left: tuple[Place, ...] = ()
    kept: Any = None
    released: Any = None
    tried: tuple[Observed[Any], ...] = ()

    @property
    def case(self) -> CniCase:
        values = self.released
        found: Observed[Release] = Absent() if values is None else Present(Release("cilium", "kube-system", 3, "deployed", "cilium", "1.18.0", values))
        return CniCase("prod", CniWish("managed", accept=self.accept), kept=self.kept, seen=Present(NetworkSeen(release=found)))

    @property
    def branch(self) -> Branch:
        return Branch(self.what, {}, CHART, self.ours, self.left)

    @property
    def objects(self) -> tuple[Live, ...]:
        tried = self.tried or (Absent(),) * len(self.first)
        return tuple(map(Live, self.first, self.now, tried))


@dataclass(frozen=True)
class ObjectRow:
    """`rule` of the refusal; the steps by action and target; `warns`: rules; `says`: texts; `hides`: what stands in no text."""

    id: str
    world: Callable[[], World]
    rule: str = ""
    steps: tuple[str, ...] = ()
    warns: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    hides: tuple[str, ...] = field(default=())


CONFIG, AGENT, KEYS = "ConfigMap kube-system/cilium-config", "DaemonSet kube-system/cilium", "Secret kube-system/cilium-ca"
BOTH = (config(), agent())
SAME = (Present(live(config())), Present(live(agent())))
OTHER = (Present(live(config(debug="true"))), Present(live(agent("cilium:v1.17.0"))))
TRACKED = Present(live(config(debug="true"), labels={"argocd.argoproj.io/instance": "cilium"},
                       annotations={"argocd.argoproj.io/tracking-id": "cilium:/ConfigMap"}))
HOOKED = Present(live(config(hook="1")))
MARK = {"argocd.argoproj.io/tracking-id": "x"}
MARKED = {**config(), "metadata": {**config()["metadata"], "annotations": MARK}}
STABLE = "quay.io/cilium/cilium:v1.19.2"
RESTARTS = ("15/cni-restarts",)


def _world(now: tuple[Observed[Any], ...], first: tuple[dict[str, Any], ...] = BOTH, **more: Any) -> World:
    return replace(World(first, now, first), **more)


def _row(name: str, world: Callable[[], World], *steps: str, rule: str = "", warns: tuple[str, ...] = (), says: tuple[str, ...] = (),
         hides: tuple[str, ...] = ()) -> ObjectRow:
    return ObjectRow(f"15/cni-{name}", world, f"15/cni-{rule}" if rule else "", steps, warns, says, hides)


OBJECT_CASES: tuple[ObjectRow, ...] = (
    _row("all-alike", lambda: _world(SAME)),
    _row("diff-closed", lambda: _world(OTHER), f"ChangeObject {CONFIG}", f"ChangeObject {AGENT}", rule="diff", warns=RESTARTS,
         says=("data.debug", "spec.template.spec.containers[agent].image", "accept_cilium_diff: true", "the one thing in an adoption that restarts anything",
               f"the pods of {AGENT}", "cilium 1.18.0 renders")),
    _row("diff-accepted", lambda: _world(OTHER, accept=True), f"ChangeObject {CONFIG}", f"ChangeObject {AGENT}", warns=RESTARTS),
    _row("diff-of-a-config-alone", lambda: _world((OTHER[0], SAME[1]), accept=True), f"ChangeObject {CONFIG}", warns=RESTARTS,
         says=("restart no pod by themselves",)),
    _row("missing-object-closed", lambda: _world((Absent(), SAME[1])), f"CreateObject {CONFIG}", rule="diff", warns=RESTARTS, says=("(not there)",)),
    _row("ours-is-completed", lambda: _world((Absent(), SAME[1]), ours=True), f"CreateObject {CONFIG}", warns=RESTARTS),
    _row("ours-that-somebody-changed", lambda: _world(OTHER, ours=True), f"ChangeObject {CONFIG}", f"ChangeObject {AGENT}", rule="diff", warns=RESTARTS),
    _row("installed", lambda: _world((Absent(), Absent()), what="install"), f"CreateObject {CONFIG}", f"CreateObject {AGENT}"),
    _row("installed-over-what-was-left", lambda: _world((OTHER[0], Absent()), what="install"), f"ChangeObject {CONFIG}", f"CreateObject {AGENT}"),
    _row("in-git", lambda: _world((TRACKED, SAME[1]), accept=True), f"ChangeObject {CONFIG}", rule="tracked", warns=RESTARTS, says=("Argo CD",)),
    _row("in-git-and-alike", lambda: _world((Present(live(config(), annotations=MARK)), SAME[1]), (MARKED, agent()), accept=True)),
    _row("object-unread", lambda: _world((Unknown("TimedOut", "it did not answer.", "Look."), SAME[1])), rule="object-unread", says=("it did not answer",)),
    _row("left-over", lambda: _world(SAME, left=(Place("", "ConfigMap", "kube-system", "cilium-config"),
                                                 Place("apps", "Deployment", "kube-system", "hubble-ui"))),
         warns=("15/cni-left-over",), says=("Deployment kube-system/hubble-ui",)),
    _row("values-left-behind", lambda: _world(OTHER, kept={"a": 1}, released={"a": 1, "hubble": {"enabled": True}}), f"ChangeObject {CONFIG}",
         f"ChangeObject {AGENT}", rule="diff", warns=(*RESTARTS, "15/cni-left-behind"),
         says=("count: hubble.enabled.", "helm get values cilium -n kube-system", "put settings that are to stay into the record")),
    _row("values-that-the-record-has", lambda: _world(OTHER, kept={"a": 1}, released={"a": 1, "ipam": {"mode": "kubernetes"}}), f"ChangeObject {CONFIG}",
         f"ChangeObject {AGENT}", rule="diff", warns=RESTARTS),
    _row("values-that-change-nothing", lambda: _world(SAME, kept={}, released={"hubble": {"enabled": True}})),
    _row("keys-of-the-cluster-stay", lambda: _world((Present(live(keys("bGl2ZQ=="))), SAME[1]), (keys("b25l"), agent()), second=(keys("dHdv"), agent()))),
    _row("keys-that-are-missing", lambda: _world((Present(live(keys("bGl2ZQ=="))), Absent(), SAME[1]), (keys("b25l"), other_keys("b25l"), agent()),
                                                 second=(keys("dHdv"), other_keys("dHdv"), agent()), accept=True),
         f"ChangeObject {KEYS}", "CreateObject Secret b", warns=(*RESTARTS, "15/cni-keys-anew"), says=("data.ca.key",), hides=("b25l", "bGl2ZQ==")),
    _row("secret-that-differs", lambda: _world((Present(live(keys("bGl2ZQ=="))), SAME[1]), (keys("b25l"), agent())), f"ChangeObject {KEYS}", rule="diff",
         warns=(*RESTARTS, "15/cni-keys-anew"), says=("data.ca.key",), hides=("b25l", "bGl2ZQ==")),
    _row("no-agent-in-the-chart", lambda: _world((Absent(),), (config(),), what="install"), f"CreateObject {CONFIG}", rule="no-agent",
         says=("renders no DaemonSet of Cilium",)),
    _row("rendered-with-another-ipam", lambda: _world(SAME, (config(ipam="cluster-pool"), agent()), accept=True), f"ChangeObject {CONFIG}", rule="render-ipam",
         warns=RESTARTS, says=("renders ipam: cluster-pool", "extraConfig")),
    _row("rendered-without-ipam", lambda: _world(SAME, ({**config(), "data": {}}, agent()), accept=True), f"ChangeObject {CONFIG}", rule="render-ipam",
         warns=RESTARTS, says=("renders ipam: nothing",)),
    _row("installed-with-another-ipam", lambda: _world((Absent(), Absent()), (config(ipam="multi-pool"), agent()), what="install"), f"CreateObject {CONFIG}",
         f"CreateObject {AGENT}", rule="render-ipam", says=("multi-pool",)),
    _row("put-back-by-a-webhook", lambda: _world((HOOKED, SAME[1]), tried=(HOOKED, Absent()))),
    _row("put-back-beside-a-change", lambda: _world((Present(live(config(hook="1", mine="1"))), SAME[1]), tried=(HOOKED, Absent())), f"ChangeObject {CONFIG}",
         rule="diff", warns=RESTARTS, says=("(data.mine)",)),
    _row("put-back-otherwise", lambda: _world((HOOKED, SAME[1]), tried=(Present(live(config(hook="2"))), Absent())), f"ChangeObject {CONFIG}", rule="diff",
         warns=RESTARTS, says=("(data.hook)",)),
    _row("agents-become-older", lambda: _world((SAME[0], Present(live(agent("quay.io/cilium/cilium:v1.19.4@sha256:0a")))), (config(), agent(STABLE)),
                                               accept=True),
         f"ChangeObject {AGENT}", warns=(*RESTARTS, "15/cni-older-agents"), says=("from 1.19.4 to 1.19.2",)),
    _row("agents-become-newer", lambda: _world((SAME[0], Present(live(agent("quay.io/cilium/cilium:v1.9.9")))), (config(), agent(STABLE)), accept=True),
         f"ChangeObject {AGENT}", warns=RESTARTS),
    _row("other-names-each-time", lambda: _world((Absent(),), (config(),), second=({**config(), "metadata": {"name": "x-2"}},)), rule="names-of-chance"),
)
