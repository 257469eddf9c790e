# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people really have in their configurations, one entry an oddity, and what adoption makes of each (design section 15).

Talos's own machinery merges an oddity into what its generator gave and validates it. One without `blocks` is adopted with nothing left over; else
exactly these paths are named. Only key material and kinds that nobody models block.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import load
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.patch import apply_patches, load_patch
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.validate import validate
from tests.machinery.random_rows import base
from tests.parts.oracle import MACHINERY, Oracle

CONTRACTS = tuple(sorted(MACHINERY))
#: The contracts whose generator writes one document; the later one writes many, and refuses what is in both shapes.
ONE_DOCUMENT = ("1.12", "1.13")
KEY = "2KAWbX5i3eUzIrGnP5DGRK4YBgY7mRqfJGZS5CgM3n4="


@dataclass(frozen=True)
class Oddity:
    """`patches`: merged into what was generated. `edits`: what is replaced in the text afterwards. `shape`: of another contract's generator.
    `secret`: a value that no record, plan or file may show. `runs`: whether a node of these releases would start with it.
    """

    name: str
    patches: tuple[str, ...] = ()
    contracts: tuple[str, ...] = CONTRACTS
    blocks: tuple[str, ...] = ()
    role: str = "worker"
    edits: Mapping[str, str] = field(default_factory=dict)
    shape: str = ""
    secret: str = ""
    runs: bool = True


def document(kind: str, body: str = "", name: str = "") -> str:
    return f"apiVersion: v1alpha1\nkind: {kind}\n" + (f"name: {name}\n" if name else "") + body


def _volume(keys: str) -> str:
    return document("UserVolumeConfig", "provisioning:\n  diskSelector:\n    match: disk.transport == \"nvme\"\n  minSize: 10GiB\n"
                    f"encryption:\n  provider: luks2\n  keys:\n    - slot: 0\n      {keys}\n", "data")


def _unattended(match: str) -> str:
    return document("UnattendedInstallConfig", f"provisioning:\n  diskSelector:\n    match: {match}\n")


_LATER = ("1.14",)
_LOGIN = "s3cr3t-of-the-registry"
_PEER = "peers:\n  - publicKey: 7KAWbX5i3eUzIrGnP5DGRK4YBgY7mRqfJGZS5CgM3n4=\n    allowedIPs: [10.9.0.0/24]\n"

ODDITIES: tuple[Oddity, ...] = (
    Oddity("a disk by id", ("machine:\n  install:\n    disk: /dev/disk/by-id/wwn-0x5000c500a0b1c2d3\n",), ONE_DOCUMENT),
    Oddity("a disk by id in a document", (_unattended("'\"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3\" in disk.symlinks'"),), _LATER),
    Oddity("a disk by selector", ("machine:\n  install:\n    disk: {$patch: delete}\n", "machine:\n  install:\n    diskSelector: {type: ssd, model: 'WD*'}\n"),
           ONE_DOCUMENT),
    Oddity("a selector beside the generated disk", ("machine:\n  install:\n    diskSelector: {size: '>= 100GB', type: ssd}\n",), ONE_DOCUMENT),
    Oddity("a selector in a document", (_unattended("disk.size >= 100u * GB && disk.rotational == false"),), _LATER),
    Oddity("bond, VLANs and VIP", (
        "machine:\n  network:\n    interfaces:\n      - interface: bond0\n        dhcp: false\n"
        "        bond: {mode: 802.3ad, lacpRate: fast, interfaces: [eth0, eth1]}\n        routes: [{network: 0.0.0.0/0, gateway: 192.0.2.1}]\n"
        "        vlans:\n          - vlanId: 100\n            addresses: [192.0.2.11/24]\n            vip: {ip: 192.0.2.10}\n",), role="controlplane"),
    Oddity("bond, VLANs and VIP in documents", (
        document("BondConfig", "links: [eth0, eth1]\nbondMode: 802.3ad\nlacpRate: fast\nxmitHashPolicy: layer2+3\nmiimon: 100\n", "bond0"),
        document("VLANConfig", "vlanID: 100\nparent: bond0\naddresses:\n  - address: 192.0.2.11/24\n", "bond0.100"),
        document("Layer2VIPConfig", "link: bond0.100\n", "192.0.2.10")), role="controlplane"),
    Oddity("link aliases", (
        document("LinkAliasConfig", "selector:\n  match: mac(link.permanent_addr) == \"3c:ec:ef:00:00:03\"\n", "net0"),
        document("LinkConfig", "addresses:\n  - address: 192.0.2.14/24\nroutes:\n  - gateway: 192.0.2.1\n", "net0"))),
    Oddity("mirrors in the old block", (
        "machine:\n  registries:\n    mirrors:\n      docker.io: {endpoints: [https://mirror.example.org], overridePath: true}\n"
        "      '*': {endpoints: [https://all.example.org]}\n",)),
    Oddity("a mirror in a document", (document("RegistryMirrorConfig", "endpoints:\n  - url: https://mirror.example.org\n", "docker.io"),)),
    Oddity("kernel arguments", ("machine:\n  install:\n    grubUseUKICmdline: false\n    extraKernelArgs: [net.ifnames=0, console=ttyS0]\n",), ONE_DOCUMENT),
    Oddity("sysctls as numbers", ("machine:\n  sysctls:\n    net.core.somaxconn: 4096\n    vm.overcommit_memory: 1\n  sysfs:\n    a.b: 0\n",)),
    Oddity("extra manifests", (
        "cluster:\n  extraManifests: [https://example.org/metallb.yaml]\n"
        "  inlineManifests:\n    - name: ns\n      contents: |\n        apiVersion: v1\n        kind: Namespace\n        metadata: {name: x}\n",),
        role="controlplane"),
    Oddity("headers of extra manifests", (
        "cluster:\n  extraManifests: [https://example.org/metallb.yaml]\n  extraManifestHeaders: {Authorization: Bearer t0ken-of-a-person}\n",),
        CONTRACTS, ("v1alpha1: cluster.extraManifestHeaders.Authorization",), "controlplane", secret="t0ken-of-a-person"),
    Oddity("a user volume with keys of the node", (_volume("nodeID: {}"),)),
    Oddity("a user volume with a key in the TPM", (_volume("tpm: {}"),)),
    Oddity("system disks with keys of the node", (
        "machine:\n  systemDiskEncryption:\n    state: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}\n"
        "    ephemeral: {provider: luks2, keys: [{slot: 0, kms: {endpoint: 'https://kms.example.org:4050'}}]}\n",)),
    Oddity("old generations of the encryption key", (
        "cluster:\n  secretboxEncryptionSecret: {$patch: delete}\n  aescbcEncryptionSecret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n",),
        ONE_DOCUMENT, role="controlplane"),
    Oddity("both generations of the encryption key", ("cluster:\n  aescbcEncryptionSecret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n",),
           ONE_DOCUMENT, ("v1alpha1: cluster.aescbcEncryptionSecret",), "controlplane", secret="MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
    Oddity("the host name in the old block", (document("HostnameConfig", "$patch: delete\n"), "machine:\n  network: {hostname: old-name}\n")),
    Oddity("old blocks of a contract before", (), ("1.13",), shape="1.12"),
    Oddity("old blocks beside a control plane of documents", (), _LATER, tuple(f"v1alpha1: cluster.{key}" for key in ("id", "secret", "ca")), shape="1.13"),
    Oddity("comments, anchors and carriage returns", ("machine:\n  sysctls:\n    vm.swappiness: 1\n",), edits={
        "debug: false": "debug: &off false", "persist: true": "persist: true # kept by hand\n", "\n": "\r\n"}),
    Oddity("kubelet, labels and taints", (
        "machine:\n  kubelet:\n    extraArgs: {rotate-server-certificates: true}\n    nodeIP: {validSubnets: [192.0.2.0/24]}\n"
        "    extraMounts:\n      - {destination: /var/data, type: bind, source: /var/data, options: [bind, rshared, rw]}\n"
        "  nodeLabels: {rack: a, empty: ''}\n  nodeTaints: {dedicated: 'x:NoSchedule'}\n",), ONE_DOCUMENT),
    Oddity("a registry's credentials in a document", (document("RegistryAuthConfig", f"username: ci\npassword: {_LOGIN}\n", "registry.example.org"),),
           CONTRACTS, ("RegistryAuthConfig/registry.example.org: password",), secret=_LOGIN),
    Oddity("a registry's credentials in the old block", (
        f"machine:\n  registries:\n    config:\n      registry.example.org:\n        auth: {{username: ci, password: {_LOGIN}}}\n",),
        CONTRACTS, tuple(f"v1alpha1: machine.registries.config.[registry.example.org].auth.{key}" for key in ("username", "password")), secret=_LOGIN),
    Oddity("WireGuard in the old block", (
        f"machine:\n  network:\n    interfaces:\n      - interface: wg0\n        addresses: [10.9.0.1/24]\n        wireguard:\n          privateKey: {KEY}\n",),
        CONTRACTS, ("v1alpha1: machine.network.interfaces.0.wireguard.privateKey",), secret=KEY),
    Oddity("WireGuard in a document", (document("WireguardConfig", f"privateKey: {KEY}\naddresses: []\n{_PEER}", "wg0"),), CONTRACTS,
           ("WireguardConfig/wg0: privateKey",), secret=KEY),
    Oddity("a passphrase of a user volume", (_volume("static: {passphrase: correct-horse-battery}"),), CONTRACTS,
           ("UserVolumeConfig/data: encryption.keys.0.static.passphrase",), secret="correct-horse-battery"),
    Oddity("a Secret among the manifests", (
        "cluster:\n  inlineManifests:\n    - name: pull\n      contents: |\n        apiVersion: v1\n        kind: Secret\n"
        "        data: {x: dGhlLXNlY3JldA==}\n",),
        CONTRACTS, ("v1alpha1: cluster.inlineManifests.0.contents",), "controlplane", secret="dGhlLXNlY3JldA=="),
    Oddity("a proxy with a password", ("machine:\n  env:\n    HTTPS_PROXY: http://ci:pr0xy-passw0rd@proxy.example.org:3128\n",), CONTRACTS,
           ("v1alpha1: machine.env.HTTPS_PROXY",), secret="pr0xy-passw0rd"),
    Oddity("documents that nobody knows, and a key", (document("WireguardConfig", f"privateKey: {KEY}\naddresses: []\n{_PEER}", "wg0"),), CONTRACTS,
           ("v1alpha1: nobody", "NobodyKnowsConfig/x", "NobodyKnowsEither", "WireguardConfig/wg0: privateKey"), edits={
               "debug: false\n": "debug: false\nnobody: 1\n",
               "": f"\n---\n{document('NobodyKnowsConfig', name='x')}---\n{document('NobodyKnowsEither')}"},
           secret=KEY, runs=False),
)


def of_contract(contract: str) -> tuple[Oddity, ...]:
    return tuple(oddity for oddity in ODDITIES if contract in oddity.contracts)


def with_edits(text: str, oddity: Oddity) -> str:
    for before, after in oddity.edits.items():
        text = text.replace(before, after) if before else text.rstrip("\n") + after
    return text


@functools.cache
def _oracle(contract: str) -> Oracle:
    """One process for all questions; it ends with this one, whose end of the pipe it reads."""
    found = Oracle(contract)
    atexit.register(found.close)
    return found


@functools.cache
def made(contract: str, role: str, *patches: str, shape: str = "") -> str:
    """What the generator of a contract gave, with patches merged in by Talos's machinery and found valid by it.

    The alpha that answers for 1.14 does not know all documents of its own release; there this product merges and validates, as its vectors hold.
    Raises AssertionError for what is refused.
    """
    text = base(shape or contract, role)
    if (shape or contract) == "1.14":
        config = apply_patches(load(text, "1.14"), [load_patch(patch, "1.14") for patch in patches])
        validate(config, "metal").refuse()
        return config.text() if patches else text
    for patch in patches:
        said = _oracle(contract).ask(op="patch", config=text, patches=[patch])
        assert not said.get("error"), (patch, said)
        text = str(said["output"])
    judged = _oracle(contract).ask(op="validate", config=text, mode="metal", local=False)
    assert not judged.get("error"), (patches, judged)
    return text
