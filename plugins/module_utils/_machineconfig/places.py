# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where each field of a cluster, a machine and an approval goes in the configuration: one table, for the documentation and as data.

A test renders a configuration with each field changed and looks at exactly these places.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One field of a record. before: document and path on the contracts 1.12 and 1.13; since: on 1.14. "-" where it changes nothing.

    Documents are written as `Kind` or `Kind/name`, the one without a kind as `v1alpha1`.
    """

    record: str
    field: str
    before: str
    since: str
    meaning: str


CLUSTER = "TalosCluster"
MACHINE = "TalosMachine"

PLACES: tuple[Place, ...] = (
    Place(CLUSTER, "talosVersion", "every document; v1alpha1: machine.install.image", "every document; UnattendedInstallConfig: installer.image",
          "the contract, and the tag of the default installer"),
    Place(CLUSTER, "kubernetesVersion", "v1alpha1: machine.kubelet.image, cluster.apiServer.image, cluster.controllerManager.image, "
          "cluster.scheduler.image, cluster.proxy.image", "KubeletConfig: image; KubeAPIServerConfig: image; KubeControllerManagerConfig: image; "
          "KubeSchedulerConfig: image; KubeProxyConfig: image", "tags of the Kubernetes images"),
    Place(CLUSTER, "endpoint", "v1alpha1: cluster.controlPlane.endpoint", "KubeClusterConfig: endpoint; KubeServiceAccountConfig: issuer.issuerURL",
          "URL of the control plane"),
    Place(CLUSTER, "secretsRef.name", "v1alpha1: machine.token, machine.ca, cluster.id, cluster.secret, cluster.token, cluster.ca, "
          "cluster.aggregatorCA, cluster.serviceAccount, cluster.etcd.ca, cluster.secretboxEncryptionSecret",
          "v1alpha1: machine.token, machine.ca, cluster.token, cluster.etcd.ca; DiscoveryIdentityConfig; KubeAPIServerCAConfig; "
          "KubeAggregatorCAConfig; KubeEtcdEncryptionConfig; KubeServiceAccountConfig: issuer.privateKey", "the secrets bundle"),
    Place(CLUSTER, "network.podSubnets", "v1alpha1: cluster.network.podSubnets", "KubeNetworkConfig: podSubnets", "ranges of the pods"),
    Place(CLUSTER, "network.serviceSubnets", "v1alpha1: cluster.network.serviceSubnets", "KubeNetworkConfig: serviceSubnets", "ranges of the services"),
    Place(CLUSTER, "network.dnsDomain", "v1alpha1: cluster.network.dnsDomain", "KubeNetworkConfig: dnsDomain", "DNS domain"),
    Place(CLUSTER, "cni.preset: unmanaged", "-", "KubeFlannelCNIConfig", "Talos installs its own flannel"),
    Place(CLUSTER, "cni.preset: managed", "v1alpha1: cluster.network.cni.name", "no KubeFlannelCNIConfig", "this product installs Cilium"),
    Place(CLUSTER, "cni.preset: none", "v1alpha1: cluster.network.cni.name", "no KubeFlannelCNIConfig", "nothing installs a container network"),
    Place(CLUSTER, "registries.mirrors", "RegistryMirrorConfig/HOST", "RegistryMirrorConfig/HOST",
          "one document for each host; overridePath goes to each endpoint"),
    Place(CLUSTER, "certSANs", "v1alpha1: machine.certSANs, cluster.apiServer.certSANs", "v1alpha1: machine.certSANs; KubeAPIServerConfig: certExtraSANs",
          "names in the certificates of Talos's and of Kubernetes' API"),
    Place(CLUSTER, "install", "as install of the machine", "as install of the machine", "for machines that do not say"),
    Place(CLUSTER, "secureBoot", "v1alpha1: machine.install.image", "UnattendedInstallConfig: installer.image",
          "Required: the SecureBoot installer; Preferred: that one where the node booted with SecureBoot; Off: the plain one"),
    Place(CLUSTER, "allowSchedulingOnControlPlanes", "v1alpha1: cluster.allowSchedulingOnControlPlanes", "KubeNodeConfig: taints",
          "control planes run workloads: the flag, or no NoSchedule taint"),
    Place(CLUSTER, "controlPlane.count", "-", "-", "how many control planes there are to be"),
    Place(CLUSTER, "discovery", "-", "-", "where machines are looked for"),
    Place(CLUSTER, "driftPolicy", "-", "-", "what happens with drift"),
    Place(CLUSTER, "hold", "-", "-", "holds every send"),
    Place(MACHINE, "role", "v1alpha1: machine.type", "v1alpha1: machine.type", "and with it which documents there are"),
    Place(MACHINE, "hostname", "HostnameConfig: auto, hostname", "HostnameConfig: auto, hostname",
          "auto: off beside it; where a patch removed the document, v1alpha1: machine.network.hostname"),
    Place(MACHINE, "labels", "v1alpha1: machine.nodeLabels", "KubeNodeConfig: labels", "labels of the Kubernetes Node, key by key"),
    Place(MACHINE, "taints", "v1alpha1: machine.nodeTaints", "KubeNodeConfig: taints", "as value:effect, or effect alone"),
    Place(MACHINE, "install.disk", "v1alpha1: machine.install.disk", "UnattendedInstallConfig: provisioning.diskSelector.match",
          "on 1.14 an expression over the kernel path, or over the links for a path below /dev/disk"),
    Place(MACHINE, "install.diskSelector", "v1alpha1: machine.install.diskSelector", "UnattendedInstallConfig: provisioning.diskSelector.match",
          "on 1.14 as an expression; an expression (match) of the person's own needs contract 1.14"),
    Place(MACHINE, "install.image", "v1alpha1: machine.install.image", "UnattendedInstallConfig: installer.image", "the installer"),
    Place(MACHINE, "install.wipe", "v1alpha1: machine.install.wipe", "UnattendedInstallConfig: provisioning.wipe", "wipe the disk first; false unless said"),
    Place(MACHINE, "disks[].role: system", "as install.diskSelector", "as install.diskSelector", "the install disk, where install names none"),
    Place(MACHINE, "disks[].role: ephemeral", "VolumeConfig/EPHEMERAL: provisioning", "VolumeConfig/EPHEMERAL: provisioning",
          "container images, logs and pods' scratch space go to that disk"),
    Place(MACHINE, "disks[].role: storage", "RawVolumeConfig/storage", "RawVolumeConfig/storage",
          "an unformatted partition for a storage system; the second is storage-2, and so on"),
    Place(MACHINE, "disks[].role: userVolume", "UserVolumeConfig/data", "UserVolumeConfig/data",
          "a formatted partition, mounted at /var/mnt/data; the second is data-2, and so on"),
    Place(MACHINE, "disks[].role: unused", "-", "-", "Talos leaves the disk alone"),
    Place(MACHINE, "network.primary.interface", "the name of the documents below", "the name of the documents below", "the link by its name"),
    Place(MACHINE, "network.primary.mac", "LinkAliasConfig/net0: selector.match", "LinkAliasConfig/net0: selector.match",
          "the link by its permanent MAC; it is called net0 then"),
    Place(MACHINE, "network.primary.dhcp", "DHCPv4Config/LINK", "DHCPv4Config/LINK", "the address comes by DHCP; so it is too without addresses"),
    Place(MACHINE, "network.primary.addresses", "LinkConfig/LINK: addresses", "LinkConfig/LINK: addresses", "static addresses"),
    Place(MACHINE, "network.primary.gateway", "LinkConfig/LINK: routes", "LinkConfig/LINK: routes", "the default route"),
    Place(MACHINE, "network.primary.nameservers", "ResolverConfig: nameservers", "ResolverConfig: nameservers", "DNS servers, in place of all others"),
    Place(MACHINE, "network.primary.vlan", "VLANConfig/LINK.ID", "VLANConfig/LINK.ID",
          "addresses, routes and DHCP move to the VLAN; LinkConfig/LINK raises the link below it"),
    Place(MACHINE, "identity, endpoint, approval fields", "-", "-", "who the machine is and who let it in"),
)


@dataclass(frozen=True)
class Layer:
    """One step of rendering, in the order in which they apply; a later one wins."""

    name: str
    what: str


LAYERS: tuple[Layer, ...] = (
    Layer("generated", "what Talos's own generator gives for the bundle, the cluster, the role and the contract"),
    Layer("built-in: container network", "cni.preset none or managed: Talos installs no container network"),
    Layer("built-in: registries", "overridePath and skipFallback of the cluster's mirrors, which the generator does not know"),
    Layer("built-in: old encryption key", "a bundle with an AES-CBC key: the key under the provider aescbc, so that secrets in etcd stay readable"),
    Layer("cluster patches", "TalosConfigPatch records of layer cluster, by priority, then name"),
    Layer("machine patches", "TalosConfigPatch records of layer machine, by priority, then name"),
    Layer("machine", "host name, install settings, disks, network, labels and taints of the machine's record"),
)
