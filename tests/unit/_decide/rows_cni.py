# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of the paragraph on the container network in section 15: what refuses, what is told, and what is let through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_words import CniCase, CniWish
from ansible_collections.ichor.talos.plugins.module_utils._model.container_network import Chart, Installer, NetworkSeen, Release
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown

HUBBLE: dict[str, Any] = {"hubble": {"enabled": True}}
WAYS = ("There are three ways", "leave it as it is (cni: unmanaged)", "make a new cluster", "plan an outage", "nobody has verified")
WHY = ("is not migrated", "cluster-pool", "renumber the pods")
CILIUM = Installer("kube-system", "cilium", {"k8s-app": "cilium"}, ("quay.io/cilium/cilium:v1.18.0",))
RELEASED = replace(CILIUM, release=("kube-system", "cilium"))
FLANNEL = Installer("kube-system", "kube-flannel", {"k8s-app": "flannel", "tier": "node"}, ("ghcr.io/siderolabs/flannel:v0.27.4",))
CALICO = Installer("calico-system", "calico-node", {"k8s-app": "calico-node"}, ("quay.io/calico/node:v3.30.0",))
ANTREA = Installer("kube-system", "antrea-agent", {}, ("antrea/antrea-agent-ubuntu:v2.4.0",))


@dataclass(frozen=True)
class Row:
    """`rule` and `reason` of the refusal, else what is done ('' for nothing), with which values and chart. `warns`: rules. `says`: texts."""

    id: str
    case: Callable[[], CniCase]
    rule: str = ""
    reason: str = ""
    what: str = ""
    values: Mapping[str, Any] | None = None
    chart: str = ""
    warns: tuple[str, ...] = ()
    says: tuple[str, ...] = ()


def release(values: Mapping[str, Any] | None = None, **more: Any) -> Observed[Release]:
    return Present(replace(Release("cilium", "kube-system", 3, "deployed", "cilium", "1.18.0", HUBBLE if values is None else values), **more))


def cilium(found: Observed[Release] = Absent(), ipam: Observed[str] = Present("kubernetes"), **more: Any) -> NetworkSeen:
    installer = RELEASED if isinstance(found, Present) else CILIUM
    return replace(NetworkSeen((installer,), found, ipam, (), ("cp-1",), (), True, "v1.35.2"), **more)


def agents(version: str, ours: bool = False) -> Installer:
    return replace(CILIUM, images=("example.org/x:1", f"registry.example.org/cilium/cilium:v{version}"), ours=ours)


def away(namespace: str) -> NetworkSeen:
    """Of a Helm release whose record is in another namespace, or in none."""
    return cilium(installers=(RELEASED,), elsewhere=namespace)


NOTHING = NetworkSeen(waiting=("cp-1",), proxy=True, kubernetes="v1.35.2")


def managed(seen: NetworkSeen | Unknown, *, recorded: str = "", kept: Any = None, **wish: Any) -> CniCase:
    found: Observed[NetworkSeen] = seen if isinstance(seen, Unknown) else Present(seen)
    return CniCase("prod", CniWish("managed", **wish), recorded, kept, found)


def plain(preset: str = "", *, recorded: str = "", kept: Any = None, **wish: Any) -> CniCase:
    return CniCase("prod", CniWish(preset, **wish), recorded, kept)


def _refused(name: str, case: Callable[[], CniCase], rule: str, reason: str, *says: str) -> Row:
    return Row(f"15/cni-{name}", case, f"15/cni-{rule}", reason, says=says)


def _done(name: str, case: Callable[[], CniCase], what: str, values: Mapping[str, Any], chart: str, *warns: str, says: tuple[str, ...] = ()) -> Row:
    return Row(f"15/cni-{name}", case, what=what, values=values, chart=chart, warns=tuple(f"15/cni-{rule}" for rule in warns), says=says)


TAGGED: dict[str, Any] = {"image": {"tag": "v1.20.7"}}
OWN: dict[str, Any] = {"ipam": {"mode": "kubernetes"}, "cgroup": {"autoMount": {"enabled": False}, "hostRoot": "/sys/fs/cgroup"}}

CASES: tuple[Row, ...] = (
    # taken over
    _done("release-with-values", lambda: managed(cilium(release())), "take over", HUBBLE, "cilium 1.18.0"),
    _done("release-sets-what-is-owned-alike", lambda: managed(cilium(release({**OWN, **HUBBLE}))), "take over", HUBBLE, "cilium 1.18.0"),
    _done("release-sets-more-beside-what-is-owned", lambda: managed(cilium(release({"ipam": {"mode": "kubernetes", "operator": {"a": 1}}}))), "take over",
          {"ipam": {"operator": {"a": 1}}}, "cilium 1.18.0"),
    _done("release-without-values", lambda: managed(cilium(release({}))), "take over", {}, "cilium 1.18.0"),
    _done("release-without-values-and-some-brought", lambda: managed(cilium(release({})), values=HUBBLE), "take over", HUBBLE, "cilium 1.18.0"),
    _done("no-release-and-values-brought", lambda: managed(cilium(), values=HUBBLE), "take over", HUBBLE, "cilium 1.18.0"),
    _done("no-release-and-no-values", lambda: managed(cilium()), "take over", {}, "cilium 1.18.0", "no-release", says=("cilium_values",)),
    _done("ours-goes-on", lambda: managed(cilium(installers=(replace(CILIUM, ours=True),))), "take over", {}, "cilium 1.18.0"),
    _done("ours-that-is-newer-stays", lambda: managed(cilium(installers=(agents("1.19.4@sha256:0a", ours=True),))), "take over", {}, "cilium 1.19.4"),
    _done("ours-that-is-newer-than-its-release-stays", lambda: managed(cilium(release(), installers=(agents("1.20.0-rc.1", ours=True),)), recorded="managed",
                                                                       kept=HUBBLE), "take over", HUBBLE, "cilium 1.20.0-rc.1"),
    _done("ours-becomes-older-when-it-is-told", lambda: managed(cilium(installers=(agents("1.19.4", ours=True),)), version="1.19.3"), "take over", {},
          "cilium 1.19.3"),
    _done("image-of-another-version-than-the-release", lambda: managed(cilium(release(), installers=(agents("1.18.7"),))), "take over", HUBBLE,
          "cilium 1.18.0"),
    _done("image-that-the-values-name", lambda: managed(cilium(installers=(agents("1.20.7", ours=True),)), recorded="managed", kept=TAGGED), "take over",
          TAGGED, "cilium 1.19.2"),
    _done("image-of-one-s-own", lambda: managed(cilium(installers=(agents("1.20.7-mine", ours=True),))), "take over", {}, "cilium 1.19.2"),
    _done("repository-named", lambda: managed(cilium(release()), chart=Chart("cilium", "https://charts.example.org")), "take over", HUBBLE, "cilium 1.18.0"),
    _done("repository-named-and-nothing-there", lambda: managed(NOTHING, chart=Chart("cilium", "https://charts.example.org")), "install", {},
          "cilium 1.19.2"),
    _done("version-named", lambda: managed(cilium(release()), version="1.19.0"), "take over", HUBBLE, "cilium 1.19.0"),
    _done("chart-named", lambda: managed(cilium(release()), chart=Chart("oci://example.org/charts/cilium")), "take over", HUBBLE,
          "oci://example.org/charts/cilium"),
    _done("chart-by-its-digest", lambda: managed(NOTHING, chart=Chart("oci://example.org/cilium@sha256:0a")), "install", {},
          "oci://example.org/cilium@sha256:0a"),
    _done("other-chart-that-is-named", lambda: managed(cilium(release(chart="my-cilium", version="7.0.0")), chart=Chart("charts/my-cilium")), "take over",
          HUBBLE, "charts/my-cilium"),
    _done("other-chart-and-recorded", lambda: managed(cilium(release(chart="my-cilium", version="7.0.0")), recorded="managed", kept={}), "take over", {},
          "cilium 1.18.0"),
    _done("recorded-is-compared", lambda: managed(cilium(release()), recorded="managed", kept={"a": 1}), "take over", {"a": 1}, "cilium 1.18.0"),
    _done("recorded-and-the-same-brought", lambda: managed(cilium(), recorded="managed", kept=HUBBLE, values=dict(HUBBLE)), "take over", HUBBLE,
          "cilium 1.18.0"),
    _done("release-elsewhere-and-values-brought", lambda: managed(away("flux-system"), values=HUBBLE), "take over", HUBBLE, "cilium 1.18.0"),
    _done("release-elsewhere-and-recorded", lambda: managed(away("flux-system"), recorded="managed", kept={}), "take over", {}, "cilium 1.18.0"),
    # installed
    _done("nothing-there", lambda: managed(NOTHING), "install", {}, "cilium 1.19.2"),
    _done("nothing-there-and-values", lambda: managed(NOTHING, values=HUBBLE), "install", HUBBLE, "cilium 1.19.2"),
    _done("no-node-yet", lambda: managed(NetworkSeen(proxy=True)), "install", {}, "cilium 1.19.2"),
    _done("one-waits-and-one-is-silent", lambda: managed(replace(NOTHING, silent=("w-1",))), "install", {}, "cilium 1.19.2"),
    _done("no-proxy", lambda: managed(replace(NOTHING, proxy=False)), "install", {}, "cilium 1.19.2", "no-proxy", says=("k8sServicePort: 7445",)),
    _done("no-proxy-and-replaced", lambda: managed(replace(NOTHING, proxy=False), values={"kubeProxyReplacement": True}), "install",
          {"kubeProxyReplacement": True}, "cilium 1.19.2"),
    _done("recorded-and-nothing-there", lambda: managed(NOTHING, recorded="managed", kept=HUBBLE), "install", HUBBLE, "cilium 1.19.2"),
    # left as it is
    Row("15/cni-not-asked", plain),
    Row("15/cni-unmanaged", lambda: plain("unmanaged")),
    Row("15/cni-unmanaged-again", lambda: plain("unmanaged", recorded="unmanaged")),
    Row("15/cni-managed-and-not-asked", lambda: plain(recorded="managed", kept=HUBBLE)),
    # refused for what is wanted
    _refused("values-without-managed", lambda: plain(values=HUBBLE), "values-unmanaged", "InvalidInput", "not to be managed"),
    _refused("values-and-unmanaged", lambda: plain("unmanaged", values=HUBBLE), "values-unmanaged", "InvalidInput"),
    _refused("values-empty-and-unmanaged", lambda: plain("unmanaged", values={}), "values-unmanaged", "InvalidInput"),
    _refused("with-add-machine", lambda: plain("unmanaged", add=True), "add-machine", "InvalidInput"),
    _refused("values-with-add-machine", lambda: plain(values=HUBBLE, add=True), "add-machine", "InvalidInput"),
    _refused("unmanaged-stays", lambda: managed(cilium(release()), recorded="unmanaged"), "preset-stays", "Immutable", *WAYS),
    _refused("managed-stays", lambda: plain("unmanaged", recorded="managed", kept={}), "preset-stays", "Immutable"),
    _refused("none-stays", lambda: plain("unmanaged", recorded="none"), "preset-stays", "Immutable"),
    _refused("none-becomes-managed-first", lambda: managed(NOTHING, recorded="none"), "none-first", "Immutable", "talos_cluster, cni: managed", "once"),
    _refused("other-values-than-recorded", lambda: managed(cilium(), recorded="managed", kept={"a": 1}, values=HUBBLE), "other-values", "InvalidInput"),
    _refused("owned-key", lambda: managed(cilium(), values={"ipam": {"mode": "cluster-pool"}}), "owned", "InvalidInput", "ipam.mode"),
    _refused("owned-key-set-alike", lambda: managed(NOTHING, values=OWN), "owned", "InvalidInput", "ipam.mode, cgroup.autoMount.enabled, cgroup.hostRoot"),
    _refused("owned-key-of-no-mapping", lambda: managed(NOTHING, values={"cgroup": "x"}), "owned", "InvalidInput", "cgroup.autoMount.enabled"),
    _refused("owned-key-in-the-record", lambda: managed(NOTHING, recorded="managed", kept=OWN), "owned", "InvalidInput"),
    _refused("secret-in-values", lambda: managed(NOTHING, values={"tls": {"ca": {"key": "LS0tLS1CRUdJTiBQUklWQVRF"}}}), "secret", "ConfigInvalid",
             "tls.ca.key"),
    _refused("secret-in-the-release", lambda: managed(cilium(release({"ui": {"password": "correct horse"}}))), "secret", "ConfigInvalid", "ui.password"),
    _refused("password-in-the-repository", lambda: managed(NOTHING, chart=Chart("cilium", "https://ada:hush@charts.example.org/x")), "chart-login",
             "InvalidInput", "helm repo add"),
    _refused("password-in-the-chart", lambda: managed(NOTHING, chart=Chart("oci://ada:hush@example.org/cilium")), "chart-login", "InvalidInput"),
    _refused("record-says-otherwise", lambda: managed(NOTHING, recorded="unmanaged", by_record=True), "not-managed", "InvalidInput",
             "its record says unmanaged"),
    # refused for what is there
    _refused("silent", lambda: managed(Unknown("TimedOut", "it did not answer.", "Look at it.")), "unread", "TimedOut", "it did not answer", "Look at it."),
    _refused("two-networks", lambda: managed(cilium(installers=(CILIUM, FLANNEL))), "several", "NetworkForeign", "kube-flannel", *WAYS),
    _refused("two-of-cilium", lambda: managed(cilium(installers=(CILIUM, replace(CILIUM, namespace="cilium")))), "several", "NetworkForeign", "cilium/cilium"),
    _refused("flannel-by-talos", lambda: managed(NetworkSeen((FLANNEL,), ready=("cp-1",))), "flannel", "NetworkForeign", *WHY, *WAYS),
    _refused("calico-there", lambda: managed(NetworkSeen((CALICO,), ready=("cp-1",))), "calico", "NetworkForeign", *WHY, *WAYS),
    _refused("unknown-installer", lambda: managed(NetworkSeen((ANTREA,), ready=("cp-1",))), "other", "NetworkForeign", "antrea-agent", *WHY, *WAYS),
    _refused("foreign-and-values", lambda: managed(NetworkSeen((FLANNEL,)), values=HUBBLE), "flannel", "NetworkForeign", *WAYS),
    _refused("recorded-and-foreign", lambda: managed(NetworkSeen((CALICO,)), recorded="managed", kept={}), "calico", "NetworkForeign", *WAYS),
    _refused("ready-without-an-installer", lambda: managed(NetworkSeen(waiting=("cp-1",), ready=("cp-2",))), "untold", "NetworkUnknown",
             "cp-2 are Ready", *WAYS),
    _refused("nodes-that-say-nothing", lambda: managed(NetworkSeen(silent=("cp-1",))), "untold-yet", "NetworkUnknown", "do not say", *WAYS),
    _refused("flannel-comes-back", lambda: replace(managed(NOTHING), flannel=("192.0.2.11",)), "comes-back", "NetworkForeign", "192.0.2.11", "two networks"),
    _refused("flannel-comes-back-beside-cilium", lambda: replace(managed(cilium(release())), flannel=("192.0.2.11",)), "comes-back", "NetworkForeign"),
    _refused("release-unread", lambda: managed(replace(cilium(), release=Unknown("ReleaseUnsettled", "it is not understood"))), "release-unread",
             "ReleaseUnsettled", "it is not understood"),
    _refused("release-elsewhere", lambda: managed(away("flux-system")), "release-elsewhere", "ReleaseUnsettled", "Helm release kube-system/cilium",
             "its record is in namespace flux-system", "helm get values cilium -n flux-system", "cilium_values"),
    _refused("release-nowhere", lambda: managed(away("")), "release-elsewhere", "ReleaseUnsettled", "no record of it is in namespace kube-system",
             "HELM_DRIVER=sql"),
    _refused("release-under-way", lambda: managed(cilium(release(status="pending-upgrade"))), "release-unsettled", "ReleaseUnsettled", "pending-upgrade"),
    _refused("release-failed", lambda: managed(cilium(release(status="failed"))), "release-unsettled", "ReleaseUnsettled", "failed", "Revision 3"),
    _refused("other-chart-of-the-release", lambda: managed(cilium(release(chart="my-cilium", version="7.0.0"))), "other-chart", "NetworkDiffers", "my-cilium",
             "cilium_chart"),
    _refused("both-values", lambda: managed(cilium(release()), values=HUBBLE), "two-values", "InvalidInput", "two sources", "Leave cilium_values out"),
    _refused("cluster-pool", lambda: managed(cilium(release({}), Present("cluster-pool"))), "ipam", "NetworkForeign", "cluster-pool", "renumber the pods"),
    _refused("cluster-pool-and-values", lambda: managed(cilium(ipam=Present("cluster-pool")), values=HUBBLE), "ipam", "NetworkForeign"),
    _refused("ipam-not-told", lambda: managed(cilium(release(), Absent())), "ipam-untold", "NetworkUnknown", "ipam: kubernetes"),
    _refused("release-sets-what-is-owned", lambda: managed(cilium(release({"cgroup": {"autoMount": {"enabled": True}}}))), "owned-by-release", "NetworkDiffers",
             "cgroup.autoMount.enabled"),
    _refused("older-version", lambda: managed(cilium(release()), version="1.17.9"), "older", "NetworkDiffers", "1.17.9 is older"),
)
