# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of the branches of section 15 applies to a cluster's network, and what refuses it: one table, in order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from .._model.container_network import Chart, Installer, NetworkSeen, Place, Release
from .._model.observed import Absent, Present, Unknown
from .._model.plan import Refusal, Warn
from .._model.records import Json, dig, text_at
from .cni_values import owned_in, secret_paths, without_owned
from .cni_versions import order, version_in
from .cni_words import (
    CALICO, CILIUM, FLANNEL, INSTALL, NAMESPACE, NOTHING, OTHER, PINNED, RELEASE, REPOSITORY, SEVERAL, TAKE_OVER, UNTOLD, Branch, Choice, CniCase,
)

_GUIDE = "docs/container-network.md"
_WAYS = (f"There are three ways: leave it as it is (cni: unmanaged); make a new cluster and move the workloads there; or plan an outage, in which you "
         f"take it away until the cluster has no network, and run this again (nobody has verified that one). {_GUIDE} tells more.")
_WHY = ("A network is not migrated: the known way from another one to Cilium without an outage ends with ipam.mode cluster-pool, which cannot be "
        "managed, since going on to ipam.mode kubernetes would renumber the pods.")


#: The rule where no Node says anything of its network, as in the moments after it has joined.
UNTOLD_YET = "15/cni-untold-yet"


@dataclass(frozen=True)
class Network:
    """What is there: one of the words, and its installer where there is one."""

    kind: str
    what: str = ""
    installer: Installer | None = None


def network_of(seen: NetworkSeen) -> Network:
    """What the cluster has. `NOTHING` is proven where no Node is Ready and one says that it has no network, or where there is no Node at all;
    everything else without an installer is `UNTOLD`."""
    kinds = {_kind(one) for one in seen.installers}
    if len(kinds) > 1 or kinds == {CILIUM} and len(seen.installers) > 1:
        return Network(SEVERAL, " and ".join(str(one) for one in seen.installers))
    if seen.installers:
        one = seen.installers[0]
        return Network(_kind(one), str(one), one)
    if seen.ready:
        return Network(UNTOLD, f"the Nodes {', '.join(seen.ready[:5])} are Ready")
    if seen.silent and not seen.waiting:
        return Network(UNTOLD, f"the Nodes {', '.join(seen.silent[:5])} do not say that they have none")
    return Network(NOTHING)


def _kind(one: Installer) -> str:
    images = " ".join(one.images)
    if text_at(one.labels, "k8s-app") == "cilium" or "/cilium/cilium" in images:
        return CILIUM
    if "flannel" in one.name or "flannel" in images:
        return FLANNEL
    return CALICO if "calico" in one.name or "calico" in images else OTHER


@dataclass(frozen=True)
class _Look:
    """One case under decision. `network`: None where nothing was asked."""

    case: CniCase
    seen: NetworkSeen | None
    network: Network | None

    @property
    def managed(self) -> bool:
        return self.case.wish.preset == "managed"

    @property
    def release(self) -> Release | None:
        found = self.seen.release if self.seen is not None and self.is_there else Absent()
        return found.value if isinstance(found, Present) else None

    @property
    def is_there(self) -> bool:
        return self.network is not None and self.network.kind == CILIUM

    @property
    def carried(self) -> Mapping[str, Json]:
        """The values of the release."""
        return self.release.values if self.release is not None else {}

    @property
    def values(self) -> Mapping[str, Json]:
        """Those that apply: of the record, else that are brought, else of the release."""
        if self.case.kept is not None:
            return self.case.kept
        return self.case.wish.values if self.case.wish.values is not None else self.carried

    def refuse(self, rule: str, reason: str, message: str, hint: str) -> Refusal:
        return Refusal(self.case.target, reason, message, hint, rule)


def _unmanaged_values(look: _Look) -> Iterable[Refusal]:
    if look.case.wish.values is not None and not look.managed:
        yield look.refuse("15/cni-values-unmanaged", "InvalidInput", f"The network of {look.case.cluster} is not to be managed, so it takes no cilium_values.",
                          "Leave cilium_values out, or set cni: managed.")


def _not_by_record(look: _Look) -> Iterable[Refusal]:
    if look.case.wish.by_record and look.case.recorded != "managed":
        yield look.refuse("15/cni-not-managed", "InvalidInput", f"The network of {look.case.cluster} is not managed: its record says {look.case.recorded}.",
                          "Only cni: managed has this product install one (talos_cluster).")


def _chart_login(look: _Look) -> Iterable[Refusal]:
    named = look.case.wish.chart
    if named is not None and (_has_login(named.reference) or _has_login(named.repository)):
        yield look.refuse("15/cni-chart-login", "InvalidInput", "The address of the chart holds a password, which everybody on the machine could read.",
                          "Log in with helm registry login or helm repo add where the playbook runs, or give the chart as a folder or an archive.")


def _has_login(address: str) -> bool:
    dummy, scheme, rest = address.partition("://")
    return bool(scheme) and "@" in rest.partition("/")[0]


def _adding(look: _Look) -> Iterable[Refusal]:
    if look.case.wish.add and (look.case.wish.preset or look.case.wish.values is not None):
        yield look.refuse("15/cni-add-machine", "InvalidInput", "The network is decided for a cluster, not for machines that are added to it.",
                          "Leave out cni and cilium_values.")


def _recorded(look: _Look) -> Iterable[Refusal]:
    recorded, wanted = look.case.recorded, look.case.wish.preset
    if not recorded or not wanted or recorded == wanted:
        return
    if recorded == "none" and wanted == "managed":
        yield look.refuse("15/cni-none-first", "Immutable", f"The record of {look.case.cluster} says that it has no network.",
                          "Let it become managed first (talos_cluster, cni: managed, with what its Helm release has, where there is one, as cilium_values); "
                          "that can be done once.")
    else:
        yield look.refuse("15/cni-preset-stays", "Immutable", f"cni.preset of {look.case.cluster} is {recorded} and cannot become {wanted}.",
                          f"Leave cni out. {_WAYS}" if wanted == "managed" else "Leave cni out.")


def _other_values(look: _Look) -> Iterable[Refusal]:
    brought = look.case.wish.values
    if look.managed and look.case.kept is not None and brought is not None and dict(brought) != dict(look.case.kept):
        yield look.refuse("15/cni-other-values", "InvalidInput", f"The record of {look.case.cluster} has other Helm values than cilium_values.",
                          "Leave cilium_values out, or change the record first (talos_cluster, cilium_values).")


def _owned(look: _Look) -> Iterable[Refusal]:
    brought = look.case.wish.values if look.case.wish.values is not None else look.case.kept
    keys = [key for key, dummy in owned_in(brought or {})]
    if look.managed and keys:
        yield look.refuse("15/cni-owned", "InvalidInput", f"The Helm values set {', '.join(keys)}, which this product sets.", "Take it out of the values.")


def _secret(look: _Look) -> Iterable[Refusal]:
    paths = sorted(secret_paths(look.values))
    if look.managed and paths:
        yield look.refuse("15/cni-secret", "ConfigInvalid", f"The Helm values hold secrets, which no record can hold: {', '.join(paths[:12])}.",
                          "Put them into a Secret of Kubernetes, and name that in the values.")


def _unread(look: _Look) -> Iterable[Refusal]:
    if look.managed and isinstance(look.case.seen, Unknown):
        why = look.case.seen
        yield look.refuse("15/cni-unread", why.reason, f"What network {look.case.cluster} has cannot be told: {why.message}", why.source or
                          "Look at the cluster's endpoint; its Kubernetes has to answer.")


def _several(look: _Look) -> Iterable[Refusal]:
    if look.network is not None and look.network.kind == SEVERAL:
        yield look.refuse("15/cni-several", "NetworkForeign", f"{look.case.cluster} has more than one network: {look.network.what}.",
                          f"Take away the ones that are not used. {_WAYS}")


def _foreign(kind: str, name: str) -> Callable[[_Look], Iterable[Refusal]]:
    def gate(look: _Look) -> Iterable[Refusal]:
        if look.network is not None and look.network.kind == kind:
            yield look.refuse(f"15/cni-{kind}", "NetworkForeign", f"The network of {look.case.cluster} is {name} ({look.network.what}). {_WHY}", _WAYS)

    return gate


def _untold(look: _Look) -> Iterable[Refusal]:
    if look.seen is not None and look.network is not None and look.network.kind == UNTOLD:
        yield look.refuse("15/cni-untold" if look.seen.ready else UNTOLD_YET, "NetworkUnknown", "No workload that makes a network was found, and "
                          f"{look.network.what}: something unknown may be there, so nothing is installed. {_WHY}", _WAYS)


def _comes_back(look: _Look) -> Iterable[Refusal]:
    if look.managed and look.network is not None and look.case.flannel:
        where = ", ".join(look.case.flannel)
        yield look.refuse("15/cni-comes-back", "NetworkForeign", f"By the configuration of {where} Talos makes flannel, at the latest when it starts again: "
                          "there would be two networks.",
                          "Set cluster.network.cni.name to none there with talosctl, or delete the document KubeFlannelCNIConfig.")


def _release_unread(look: _Look) -> Iterable[Refusal]:
    found = look.seen.release if look.seen is not None and look.is_there else Absent()
    if isinstance(found, Unknown):
        yield look.refuse("15/cni-release-unread", "ReleaseUnsettled", f"The record of the Helm release of Cilium cannot be read: {found.message}.",
                          "Look at it with helm get values.")


def _release_elsewhere(look: _Look) -> Iterable[Refusal]:
    """Helm says that it made this, so the values are kept somewhere, and those of the chart would be others."""
    installer = look.network.installer if look.network is not None and look.is_there else None
    if look.seen is None or installer is None or installer.ours or look.release is not None:
        return
    namespace, name = installer.release
    if namespace and name and look.case.kept is None and look.case.wish.values is None:
        where = f"its record is in namespace {look.seen.elsewhere}" if look.seen.elsewhere else f"no record of it is in namespace {namespace}"
        yield look.refuse("15/cni-release-elsewhere", "ReleaseUnsettled", f"{installer} is of the Helm release {namespace}/{name}, and {where}, as Flux "
                          "keeps one (storageNamespace), or HELM_DRIVER=sql: its values are not known.",
                          "Leave the network to what keeps it there (cni: unmanaged), or take it out of that, and give its values as cilium_values "
                          f"(helm get values {name}{f' -n {look.seen.elsewhere}' if look.seen.elsewhere else ''}).")


def _unsettled(look: _Look) -> Iterable[Refusal]:
    release = look.release
    if release is not None and release.status != "deployed":
        yield look.refuse("15/cni-release-unsettled", "ReleaseUnsettled", f"Revision {release.revision} of the Helm release "
                          f"{release.namespace}/{release.name} is {release.status or 'unknown'}.", "Finish it, or roll it back, with helm first.")


def _other_chart(look: _Look) -> Iterable[Refusal]:
    release = look.release
    if release is not None and release.chart != RELEASE and look.case.kept is None and look.case.wish.chart is None:
        yield look.refuse("15/cni-other-chart", "NetworkDiffers", f"The Helm release {release.namespace}/{release.name} is of the chart "
                          f"{release.chart or 'without a name'}, so its values are not those of {RELEASE}.",
                          "Name that chart (cilium_chart, cilium_version), or leave the network as it is (cni: unmanaged).")


def _two_sources(look: _Look) -> Iterable[Refusal]:
    if look.case.kept is None and look.carried and look.case.wish.values is not None:
        yield look.refuse("15/cni-two-values", "InvalidInput", "The Helm release of Cilium carries values already, so there would be two sources of them.",
                          "Leave cilium_values out.")


def _cluster_pool(look: _Look) -> Iterable[Refusal]:
    ipam = look.seen.ipam if look.seen is not None and look.is_there else Absent()
    if isinstance(ipam, Present) and ipam.value != "kubernetes":
        yield look.refuse("15/cni-ipam", "NetworkForeign", f"The Cilium of {look.case.cluster} runs with ipam.mode {ipam.value}, and a managed one runs with "
                          "kubernetes: taking it over would renumber the pods.",
                          f"Leave it as it is (cni: unmanaged), or make a new cluster. {_GUIDE} tells more.")


def _ipam_untold(look: _Look) -> Iterable[Refusal]:
    if look.seen is not None and look.is_there and not isinstance(look.seen.ipam, Present):
        why = f" ({look.seen.ipam.message})" if isinstance(look.seen.ipam, Unknown) and look.seen.ipam.message else ""
        yield look.refuse("15/cni-ipam-untold", "NetworkUnknown", f"How the Cilium of {look.case.cluster} numbers its pods cannot be told{why}.",
                          "Its ConfigMap cilium-config has to say ipam: kubernetes.")


def _owned_by_release(look: _Look) -> Iterable[Refusal]:
    keys = [key for key, alike in owned_in(look.carried) if not alike and key != "ipam.mode"]
    if look.case.kept is None and keys:
        yield look.refuse("15/cni-owned-by-release", "NetworkDiffers", f"The Helm release sets {', '.join(keys)}, which this product owns, in another "
                          "way.", "Change it with helm upgrade first, or leave the network as it is (cni: unmanaged).")


def _older(look: _Look) -> Iterable[Refusal]:
    release = look.release
    version = look.case.wish.version
    if release is not None and version and order(version) < order(release.version):
        yield look.refuse("15/cni-older", "NetworkDiffers", f"Cilium {release.version} is there, and {version} is older.", "Name a newer version, or none.")


Row = tuple[str, Callable[[_Look], Iterable[Refusal]]]
#: What a person wants comes before what is there.
GATES: tuple[Row, ...] = (
    ("15/cni-not-managed", _not_by_record), ("15/cni-chart-login", _chart_login), ("15/cni-add-machine", _adding),
    ("15/cni-values-unmanaged", _unmanaged_values), ("15/cni-preset", _recorded), ("15/cni-other-values", _other_values),
    ("15/cni-owned", _owned), ("15/cni-unread", _unread), ("15/cni-several", _several), ("15/cni-flannel", _foreign(FLANNEL, "flannel")),
    ("15/cni-calico", _foreign(CALICO, "Calico")), ("15/cni-other", _foreign(OTHER, "one that this product does not know")),
    ("15/cni-untold", _untold), ("15/cni-comes-back", _comes_back), ("15/cni-release-unread", _release_unread),
    ("15/cni-release-elsewhere", _release_elsewhere), ("15/cni-release-unsettled", _unsettled),
    ("15/cni-other-chart", _other_chart), ("15/cni-two-values", _two_sources), ("15/cni-ipam", _cluster_pool), ("15/cni-ipam-untold", _ipam_untold),
    ("15/cni-owned-by-release", _owned_by_release), ("15/cni-secret", _secret), ("15/cni-older", _older),
)


def choose(case: CniCase, gates: tuple[Row, ...] = GATES) -> Choice:
    """The branch that applies; the refusals are those of the first row that refuses."""
    seen = case.seen.value if isinstance(case.seen, Present) and case.wish.preset == "managed" else None
    look = _Look(case, seen, network_of(seen) if seen is not None else None)
    for dummy, gate in gates:
        found = tuple(gate(look))
        if found:
            return Choice(refusals=found)
    if seen is None or look.network is None:
        return Choice()
    values = without_owned(dict(look.values)) if case.kept is None else dict(case.kept)
    if not look.is_there:
        return Choice(Branch(INSTALL, values, _chart(look), kubernetes=seen.kubernetes, apis=seen.apis), warnings=_no_proxy(look))
    installer = look.network.installer
    release = look.release
    left = tuple(Place(version.partition("/")[0] if "/" in version else "", kind, namespace, name)
                 for version, kind, namespace, name in (release.objects if release is not None else ()))
    namespace = installer.namespace if installer is not None else NAMESPACE
    chart = replace(_chart(look), namespace=namespace, release=release.name if release is not None else RELEASE)
    ours = installer is not None and installer.ours
    return Choice(Branch(TAKE_OVER, values, chart, ours, left, seen.kubernetes, seen.apis), warnings=_without_record(look))


def _chart(look: _Look) -> Chart:
    """The chart that is named, else the pinned one; Cilium's own keeps the version that is there unless another is named."""
    named, version = look.case.wish.chart, look.case.wish.version
    if named is not None and (named.reference != RELEASE or not named.repository):
        return replace(named, version=version or named.version)
    return Chart(RELEASE, named.repository if named is not None else REPOSITORY, version or _version_there(look) or PINNED)


def _version_there(look: _Look) -> str:
    """The version of the chart that made what is there: of its release, unless this product wrote the agents after it or it is of another chart; then
    as their image has it, where no value names another one."""
    installer, release = look.network.installer if look.network is not None else None, look.release
    of_release = release.version if release is not None and release.chart == RELEASE else ""
    named = dig(look.values, "image", "tag") or dig(look.values, "image", "override")
    of_image = version_in(installer.images) if installer is not None and not named else ""
    return of_image or of_release if installer is not None and installer.ours else of_release or of_image


def _no_proxy(look: _Look) -> tuple[Warn, ...]:
    if look.seen is None or look.seen.proxy or dig(look.values, "kubeProxyReplacement") in (True, "true", "strict"):
        return ()
    return (Warn(look.case.target, "No kube-proxy was found: where the configurations turn it off, Cilium has to do its work (cilium_values with "
                 "kubeProxyReplacement: true, k8sServiceHost: localhost and k8sServicePort: 7445).", "15/cni-no-proxy"),)


def _without_record(look: _Look) -> tuple[Warn, ...]:
    if look.release is not None or look.case.kept is not None or look.case.wish.values is not None:
        return ()
    if look.network is not None and look.network.installer is not None and look.network.installer.ours:
        return ()
    return (Warn(look.case.target, "The Cilium that is there has no Helm release, so nothing tells its values: it is compared with the chart's own. Give those "
                 "it was made with as cilium_values.", "15/cni-no-release"),)
