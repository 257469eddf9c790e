# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of adoption: an observation, the rules that it is refused, blocked or warned with, and the reasons (design section 15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_words import AdoptSeen
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity, swapped_uuid
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Broken, Record
from tests.unit._decide import adoption_world as w

IMAGE = "machine:\n  kubelet:\n    image: registry.example.org/kubelet:v1.35.0\n"
PROXY = "machine:\n  env:\n    HTTPS_PROXY: http://ci:passw0rd-of-it@proxy.example.org:3128\n"
WIREGUARD = ("machine:\n  network:\n    interfaces:\n      - interface: wg0\n        wireguard:\n"
             "          privateKey: 2KAWbX5i3eUzIrGnP5DGRK4YBgY7mRqfJGZS5CgM3n4=\n")
PASSPHRASE = ("apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning:\n  diskSelector:\n    match: \"true\"\n  minSize: 1GiB\n"
              "encryption:\n  provider: luks2\n  keys:\n    - slot: 0\n      static: {passphrase: correct-horse-battery}\n")
MANIFEST = "cluster:\n  inlineManifests:\n    - name: pull\n      contents: |\n        apiVersion: v1\n        kind: \"Secret\"\n        data: {x: eQ==}\n"
LISTED = "cluster:\n  inlineManifests:\n    - name: pull\n      contents: '{\"kind\": \"List\", \"items\": [{\"kind\": \"Secret\"}]}'\n"
REPEATED = ("machine:\n  token: ka3zcb.evq5u77cyoys7r1k\n  files:\n    - content: token is ka3zcb.evq5u77cyoys7r1k\n      path: /var/x\n      op: create\n"
            "      permissions: 0o600\n")
MIRROR = "machine:\n  registries:\n    mirrors:\n      https://ci:passw0rd-of-it@docker.io: {endpoints: [https://mirror.example.org]}\n"
ROOTS = ("apiVersion: v1alpha1\nkind: TrustedRootsConfig\nname: own\ncertificates: |\n  -----BEGIN CERTIFICATE-----\n  YQ==\n  -----END CERTIFICATE-----\n"
         "  -----BEGIN PRIVATE KEY-----\n  bm90LWEta2V5LWJ1dC1hLXNlY3JldA==\n  -----END PRIVATE KEY-----\n")
ACCEPTED = "machine:\n  acceptedCAs:\n    - crt: YQ==\n"
OTHER_ID = "cluster:\n  id: VGhpcyBpcyBhbm90aGVyIGNsdXN0ZXI=\n"
OTHER_TOKEN = "cluster:\n  token: abcdef.0123456789abcdef\n"
OMNI = "apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: https://omni.example.org/?jointoken=abcdefghij\n"
UNKNOWN = "---\napiVersion: v1alpha1\nkind: NobodyKnowsConfig\nname: x\n"
OLD = ("cluster:\n  apiServer:\n    image: registry.k8s.io/kube-apiserver:v1.29.1\n  controllerManager:\n"
       "    image: registry.k8s.io/kube-controller-manager:v1.29.1\n  scheduler:\n    image: registry.k8s.io/kube-scheduler:v1.29.1\n"
       "  proxy:\n    image: registry.k8s.io/kube-proxy:v1.29.1\nmachine:\n  kubelet:\n    image: ghcr.io/siderolabs/kubelet:v1.29.1\n")
HELD = {"conditions": [{"type": "Ready", "status": "False", "reason": "AdoptionHeld", "message": ""}]}
MACS = {"macs": ["3c:ec:ef:00:00:04"]}
JOINED = {"appliedConfigHash": "x", "configStoredAt": "2023-11-14T00:00:00Z"}


@dataclass(frozen=True)
class Row:
    """`says`: rule and reason of every refusal, and the rule of every warning with '' behind it. `steps`: whether something would be written."""

    id: str
    says: frozenset[tuple[str, str]]
    seen: Callable[[], AdoptSeen]
    steps: bool = False
    wish: Mapping[str, Any] = field(default_factory=dict)


def row(name: str, *says: tuple[str, str], seen: Callable[[], AdoptSeen], steps: bool = False, **wish: Any) -> Row:
    return Row(f"15/{name}", frozenset(says), seen, steps, wish)


ADD = {"add": True}
ALL = ("15/all-blocked", "BlockedMachines")


def managed(*nodes: Any, **more: Any) -> AdoptSeen:
    return w.seen(*nodes, stored=Present(w.bundle()), **{"cluster": w.cluster(), **more})


def blocked(*patches: str, number: int = 4) -> Callable[[], AdoptSeen]:
    return lambda: w.seen(w.plane(), w.worker(number, *patches))


ADOPTION: tuple[Row, ...] = (
    row("a-cluster-is-adopted", seen=lambda: w.seen(w.plane(), w.worker()), steps=True),
    row("a-bundle-is-given", seen=lambda: w.seen(w.plane(), w.worker()), steps=True, imported=Present(w.bundle())),
    row("a-bundle-in-the-store", seen=lambda: w.seen(w.plane(), stored=Present(w.bundle())), steps=True),
    row("another-bundle-in-the-store", ("15/bundle-differs", "BundleInvalid"), seen=lambda: w.seen(w.plane(), stored=Present(w.bundle())),
        imported=Present(replace(w.bundle(), bootstrap_token="another"))),
    row("a-bundle-that-cannot-be-read", ("15/bundle-unreadable", "BundleInvalid"), seen=lambda: w.seen(w.plane()),
        imported=Unknown("BundleInvalid", "It is no base64.", "Give another.")),
    row("a-bundle-with-faults", ("15/bundle-faulty", "BundleInvalid"), seen=lambda: w.seen(w.plane()), imported=Present(w.bundle()), faults=("it is expired",)),
    row("no-bundle-and-only-workers", ("15/no-control-plane", "ControlPlaneNeeded"), seen=lambda: w.seen(w.worker())),
    row("no-bundle-for-a-managed-cluster", ("15/no-bundle", "SecretsUnavailable"), seen=lambda: w.seen(w.worker(), cluster=w.cluster()), **ADD),
    row("older-than-the-floor", ("15/version-floor", "VersionUnsupported"), seen=lambda: w.seen(w.plane(talos_version="v1.11.5"))),
    row("newer-than-known", ("15/version-unknown", "VersionUnsupported"), seen=lambda: w.seen(w.plane(talos_version="v1.99.0"))),
    row("no-version", ("15/version-unknown", "VersionUnsupported"), seen=lambda: w.seen(w.plane(talos_version=""))),
    row("an-old-kubernetes", ("15/incompatible-pair", ""), seen=lambda: w.seen(w.plane(1, OLD)), steps=True),
    row("no-kubernetes-version", ("15/kubernetes-unknown", "InvalidInput"), seen=lambda: w.seen(w.node(1, w.config(
        "controlplane", "cluster:\n  apiServer:\n    image: {$patch: delete}\nmachine:\n  kubelet:\n    image: {$patch: delete}\n")))),
    row("of-class-b", ("15/consent", "ConfirmationMissing"), ("15/class-b", ""), seen=lambda: w.seen(w.plane(1, IMAGE)), steps=True),
    row("of-class-b-with-consent", ("15/class-b", ""), seen=lambda: w.seen(w.plane(1, IMAGE)), steps=True, consent=True),
    row("a-registry-login", ("15/secret", "ConfigInvalid"), seen=blocked(w.LOGIN), steps=True),
    row("a-wireguard-key", ("15/secret", "ConfigInvalid"), seen=blocked(WIREGUARD), steps=True),
    row("a-passphrase", ("15/secret", "ConfigInvalid"), seen=blocked(PASSPHRASE), steps=True),
    row("a-secret-as-a-manifest", ("15/secret", "ConfigInvalid"), seen=lambda: w.seen(w.plane(1, MANIFEST), w.plane(2)), steps=True),
    row("a-secret-in-a-list", ("15/secret", "ConfigInvalid"), seen=lambda: w.seen(w.plane(1, LISTED), w.plane(2)), steps=True),
    row("a-proxy-with-a-password", ("15/secret", "ConfigInvalid"), seen=blocked(PROXY), steps=True),
    row("a-token-repeated-in-a-file", ("15/secret", "ConfigInvalid"), seen=blocked(REPEATED), steps=True),
    row("a-kind-that-nobody-knows", ("15/not-modelled", "ConfigInvalid"), seen=lambda: w.seen(w.plane(), w.node(4, w.config() + UNKNOWN)), steps=True),
    row("no-plane-that-is-understood", ("15/no-control-plane", "ControlPlaneNeeded"), ("15/not-modelled", "ConfigInvalid"),
        seen=lambda: w.seen(w.node(1, w.config("controlplane") + UNKNOWN), w.worker())),
    row("another-token", ("15/authority", "AuthorityMismatch"), seen=blocked(OTHER_TOKEN), steps=True),
    row("staged-for-the-next-boot", ("15/staged", "ConfigInvalid"), steps=True,
        seen=lambda: w.seen(w.plane(), replace(w.worker(), kept=w.config("worker", w.SYSCTL).encode()))),
    row("at-the-cluster's-endpoint", ("15/address", "EndpointRefused"), ALL,
        seen=lambda: managed(w.worker(4), cluster=w.cluster(endpoint="https://192.0.2.4:6443", controlPlane={"count": 3})), **ADD),
    row("mirrors-apart", ("15/registries", "ConfigInvalid"), ALL, seen=lambda: managed(w.worker(), cluster=w.cluster(
        registries={"mirrors": {"docker.io": {"endpoints": ["https://mirror.example.org"]}}})), **ADD),
    row("every-machine-blocked", ALL, ("15/secret", "ConfigInvalid"), seen=lambda: w.seen(w.plane(1, w.LOGIN))),
    row("every-new-machine-blocked-again", ("15/secret", "ConfigInvalid"), ("15/already-approved", ""), seen=lambda: managed(
        w.plane(), w.worker(4, w.LOGIN), machines=(w.record(1, role="controlplane", status=JOINED),))),
    row("one-silent", ("15/silent", ""), seen=lambda: w.seen(w.plane(), silent={"192.0.2.9:50000": "TimedOut"}), steps=True),
    row("all-silent", ("15/nothing-read", "TimedOut"), seen=lambda: w.seen(silent={"192.0.2.9:50000": "TimedOut"})),
    row("more-members-than-named", ("15/more-members", ""), seen=lambda: w.seen(w.plane(), members=Present(3)), steps=True),
    row("managed-by-omni", ("15/omni", "CredentialsInvalid"), seen=lambda: w.seen(w.plane(), w.worker(4, OMNI))),
    row("a-patch-of-the-same-name", ("15/name-taken", "RecordExists"), seen=lambda: w.seen(w.plane(1, w.SYSCTL), patches=(Record(
        "TalosConfigPatch", f"{w.CLUSTER}-5a1f0c01-adopted", {"clusterRef": "another", "layer": "machine", "documents": []}),))),
    row("a-patch-of-a-persons-with-the-same-name", ("15/name-taken", "RecordExists"), seen=lambda: w.seen(
        w.plane(1, w.SYSCTL), w.worker(4, w.SYSCTL), patches=(Record("TalosConfigPatch", f"{w.CLUSTER}-adopted", {
            "clusterRef": w.CLUSTER, "layer": "cluster", "documents": [{"machine": {"sysctls": {"a.b": "1"}}}]}),))),
    row("members-that-nobody-tells", ("15/members-unknown", ""), seen=lambda: w.seen(w.plane(), members=Unknown("TimedOut", "It gave no answer.")),
        steps=True),
    row("equal-host-names", ("15/equal-host-names", ""), seen=lambda: w.seen(w.plane(), w.worker(4, hostname="Same"), w.worker(5, hostname="same")),
        steps=True),
    row("at-the-address-of-another-record", ("15/address-taken", ""), seen=lambda: managed(
        w.worker(4), machines=(w.record(9, endpoint="192.0.2.4:50000", status=JOINED),)), steps=True, **ADD),
    row("a-password-in-the-name-of-a-mirror", ("15/secret", "ConfigInvalid"), seen=blocked(MIRROR), steps=True),
    row("a-private-key-among-certificates", ("15/secret", "ConfigInvalid"), seen=blocked(ROOTS), steps=True),
    row("by-a-schedule", ("15/schedule", "ScheduleCannotApprove"), seen=lambda: w.seen(w.plane()), actor=Actor("ada", "awx", True)),
    row("by-nobody", ("15/nobody", "ApproverUnknown"), seen=lambda: w.seen(w.plane()), actor=Actor("", "")),
    row("a-record-that-is-broken", ("15/record-broken", "RecordBroken"),
        seen=lambda: w.seen(w.plane(), broken=(Broken("TalosMachine", "x", "x.yaml", 3, "It is no mapping."),))),
    row("a-machine-is-added", seen=lambda: managed(w.worker()), steps=True, **ADD),
    row("added-to-no-cluster", ("15/no-cluster", "RecordNotFound"), seen=lambda: w.seen(w.worker()), **ADD),
    row("added-from-another-cluster", ("15/foreign-node", "AuthorityMismatch"), seen=lambda: managed(w.worker(4, OTHER_ID)), **ADD),
    row("added-of-an-unknown-authority", ("15/unknown-authority", "UnknownAuthority"),
        seen=lambda: managed(silent={"192.0.2.4:50000": "UnknownAuthority"}), **ADD),
    row("added-in-a-rotation", ("15/ca-rotation", "CARotation"), seen=lambda: managed(w.worker(4, ACCEPTED)), **ADD),
    row("added-in-an-announced-rotation", ("15/ca-rotation", "CARotation"), seen=lambda: managed(w.worker(), cluster=w.cluster(hold="caRotation")), **ADD),
    row("added-that-is-approved", ("15/already-approved", ""), seen=lambda: managed(w.worker(), machines=(w.record(4, status=JOINED),)), **ADD),
    row("added-that-is-pending", seen=lambda: managed(w.worker(), machines=(w.record(4, "pending"),)), steps=True, **ADD),
    row("added-that-was-rejected", ("15/rejected", "Rejected"), seen=lambda: managed(w.worker(), machines=(w.record(4, "rejected"),)), **ADD),
    row("added-that-is-another-cluster's", ("15/elsewhere", "RecordExists"),
        seen=lambda: managed(w.worker(), machines=(w.record(4, clusterRef="other"),)), **ADD),
    row("added-over-the-count", ("15/over-the-count", "TooManyControlPlanes"), seen=lambda: managed(
        w.plane(2), machines=(w.record(1, role="controlplane", status=JOINED),)), **ADD),
    row("added-within-the-count", seen=lambda: managed(w.plane(2), cluster=w.cluster(controlPlane={"count": 3}), machines=(
        w.record(1, role="controlplane", status=JOINED),)), steps=True, **ADD),
    row("added-without-a-uuid", ("15/weak-identity", "WeakIdentity"), seen=lambda: managed(w.worker(identity=Identity())), **ADD),
    row("two-with-one-uuid", ("15/weak-identity", "WeakIdentity"), seen=lambda: managed(
        w.worker(4), w.worker(5, identity=Identity(w.UUID.format(4, 4), "ANOTHER"))), **ADD),
    row("clones-with-one-uuid", ("15/weak-identity", "WeakIdentity"), seen=lambda: managed(
        w.worker(4, identity=Identity(w.UUID.format(4, 4), "", ("3c:ec:ef:00:00:04",))),
        w.worker(5, identity=Identity(w.UUID.format(4, 4), "", ("3c:ec:ef:00:00:05",))))),
    row("two-of-one-record", ("15/weak-identity", "WeakIdentity"), seen=lambda: managed(
        w.worker(4, identity=Identity(w.UUID.format(4, 4), "CHASSIS")), w.worker(5, identity=Identity(w.UUID.format(5, 5), "CHASSIS")),
        machines=(w.record(4, "pending", identity={"serial": "CHASSIS"}),)), **ADD),
    row("added-that-is-pending-by-its-macs", seen=lambda: managed(w.worker(), machines=(w.record(4, "pending", identity=MACS),)), steps=True, **ADD),
    row("added-that-was-rejected-by-its-macs", ("15/rejected", "Rejected"),
        seen=lambda: managed(w.worker(), machines=(w.record(4, "rejected", identity=MACS),)), **ADD),
    row("added-that-was-rejected-in-the-other-byte-order", ("15/rejected", "Rejected"), seen=lambda: managed(
        w.worker(), machines=(w.record(4, "rejected", identity={"uuid": swapped_uuid(w.UUID.format(4, 4))}),)), **ADD),
    row("added-that-has-a-rejected-and-a-pending-record", ("15/rejected", "Rejected"), seen=lambda: managed(
        w.worker(), machines=(w.record(4, "pending", name="a"), w.record(4, "rejected", name="b"))), **ADD),
    row("added-that-has-an-approved-and-a-pending-record", ("15/already-approved", ""), seen=lambda: managed(
        w.worker(), machines=(w.record(4, "pending", name="a"), w.record(4, name="b", status=JOINED))), **ADD),
    row("added-that-is-recorded-with-another-uuid", ("15/twin", "RecordExists"), seen=lambda: managed(
        w.worker(), machines=(w.record(4, status=JOINED, identity={"uuid": w.UUID.format(7, 7), **MACS}),)), **ADD),
    row("held-and-drifted", ("15/held-drifted", "Drifted"), seen=lambda: managed(w.worker(4, w.SYSCTL), machines=(
        w.record(4, status=HELD, install={"disk": "/dev/sda", "image": "factory.talos.dev/metal-installer/x:v1"}),))),
)
