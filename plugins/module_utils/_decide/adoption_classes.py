# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The three classes of what differs between a node and the records, with the hints of class C (design section 15).

A is captured as patches. B is what the records own: versions, the endpoint, the cluster's name. The node's value is kept by a patch as well,
which then wins over the record, so a person has to agree. C cannot be put into a record, and blocks the machine: secrets, and whatever a
render cannot give.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._machineconfig.capture import Atom
from .._machineconfig.compare import Difference, path_key
from .._machineconfig.documents import Config, Document
from .._machineconfig.drift import IMAGES
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.schema import LEGACY
from .._machineconfig.secret_paths import secret_leaves
from .._machineconfig.url_passwords import without_url_passwords
from .._machineconfig.yaml_read import MAPPING, Node, read
from .._model.records import JsonMap, dig
from .adoption_words import Blocked

#: What the records own beside the images: document and path.
_OWNED = (
    (LEGACY, "cluster.controlPlane.endpoint"), (LEGACY, "cluster.clusterName"), ("KubeClusterConfig", "endpoint"), ("KubeClusterConfig", "clusterName"),
    ("KubeServiceAccountConfig", "issuer.issuerURL"),
)
#: What of the old section `cluster` is in documents of its own since.
_IN_DOCUMENTS = ("id", "secret", "ca", "aggregatorCA", "serviceAccount", "secretboxEncryptionSecret", "aescbcEncryptionSecret")
_MANIFESTS = ((LEGACY, ("cluster", "inlineManifests"), "contents"), ("KubeInlineManifestConfig", (), "manifest"))
#: Of the configuration of kubelet's credential providers, what is no secret.
_PROVIDERS = ("machine", "kubelet", "credentialProviderConfig")
_PUBLIC_OF_PROVIDERS = re.compile(r"apiVersion|kind|providers\.\d+\.(apiVersion|name|defaultCacheDuration|matchImages\.\d+|args\.\d+|env\.\d+\.name)")
_SECRET_OBJECT = re.compile(r"""(?m)["']?\bkind["']?\s*:\s*["']?Secret["']?\s*(?:[,}#]|$)""")

_IN_NO_RECORD = "A secret goes into no record, so the machine cannot be adopted while it is there"
#: Hints by the kind of a document and the beginning of a path; the first that fits.
_HINTS: tuple[tuple[str, str, str], ...] = (
    (LEGACY, "machine.registries", "take the credentials off the node (use a pull-through mirror without them, or imagePullSecrets)"),
    ("RegistryAuthConfig", "", "take the document off the node (use a pull-through mirror without credentials, or imagePullSecrets)"),
    ("RegistryTLSConfig", "", "take the client key off the node"),
    (LEGACY, "machine.network.interfaces", "take the key off the node, or leave the machine to talosctl"),
    ("WireguardConfig", "", "leave the machine to talosctl, or take WireGuard off the node"),
    (LEGACY, "machine.systemDiskEncryption", "use the keys nodeID, tpm or kms, which are no secrets in the configuration"),
    (LEGACY, "cluster.inlineManifests", "apply the Secret with kubectl or GitOps and take it out of the configuration"),
    ("KubeInlineManifestConfig", "", "apply the Secret with kubectl or GitOps and take it out of the configuration"),
    ("EnvironmentConfig", "", "use a proxy that asks for no password from these nodes"),
    (LEGACY, "machine.env", "use a proxy that asks for no password from these nodes"),
    ("VolumeConfig", "", "use the keys nodeID, tpm or kms, which are no secrets in the configuration"),
    ("UserVolumeConfig", "", "use the keys nodeID, tpm or kms, which are no secrets in the configuration"),
    ("SideroLinkConfig", "", "the machine is managed by Omni; take it out of Omni first"),
)


def owned(atom: Atom) -> bool:
    """Whether it is of class B."""
    return any(atom.kind == kind and atom.covers(atom.document, path) for kind, path in (*IMAGES, *_OWNED))


def secrets_beside(live: Config, base: Config) -> tuple[tuple[Blocked, ...], frozenset[str]]:
    """The secrets of a configuration that the records do not give, as paths that block, and every secret value that is in it."""
    known = {value for document in base.documents for dummy, value in _leaves(document)}
    found: dict[str, Blocked] = {}
    values: set[str] = set()
    for document in live.documents:
        for path, value in _leaves(document):
            values.add(value)
            if value not in known:
                where = without_url_passwords(f"{document.id}: {'.'.join(path_key(key) for key in path)}")
                found.setdefault(where, Blocked(where, "a secret", _secret_hint(document.kind.name, ".".join(path)), "15/secret"))
        for where in _secret_manifests(document):
            found.setdefault(where, Blocked(where, "the manifest of a Secret", _secret_hint(document.kind.name, "cluster.inlineManifests"), "15/secret"))
    return tuple(found.values()), frozenset(value for value in values if len(value) > 5)


def _leaves(document: Document) -> Iterator[tuple[tuple[str, ...], str]]:
    kind = "" if document.legacy else document.kind.name
    for path, value in secret_leaves(kind, document.output()):
        if path[:3] != _PROVIDERS or _PUBLIC_OF_PROVIDERS.fullmatch(".".join(path[3:])) is None:
            yield path, value


def _secret_manifests(document: Document) -> Iterator[str]:
    """Where a manifest that goes with the configuration is, or holds, a Secret of Kubernetes."""
    for kind, path, key in _MANIFESTS:
        if document.kind.name != kind:
            continue
        found: Any = document.data
        for step in path:
            found = (found or {}).get(step) if isinstance(found, Mapping) else None
        for index, entry in enumerate(found if isinstance(found, list) else [document.data] if not path else []):
            text = str(entry.get(key) or "") if isinstance(entry, Mapping) else ""
            if holds_secret_object(text):
                yield without_url_passwords(f"{document.id}: {'.'.join((*path, *([str(index)] if path else []), key))}")


def holds_secret_object(text: str) -> bool:
    """Whether a manifest has an object of kind Secret, also in a List. What cannot be read as YAML is judged by its text."""
    try:
        return any(_is_secret(node) for node in read(text))
    except ConfigProblem:
        return _SECRET_OBJECT.search(text) is not None


def _is_secret(node: Node) -> bool:
    if node.kind != MAPPING:
        return False
    kind = node.get("kind")
    if kind is not None and kind.value == "Secret":
        return True
    items = node.get("items")
    return items is not None and isinstance(items.value, list) and any(isinstance(item, Node) and _is_secret(item) for item in items.value)


def _secret_hint(kind: str, path: str) -> str:
    told = next((hint for of, begins, hint in _HINTS if kind == of and path.startswith(begins)), "take it off the node, or leave the machine to talosctl")
    return f"{_IN_NO_RECORD}: {told}."


def spilled(atoms: Iterable[Atom], values: frozenset[str]) -> tuple[Blocked, ...]:
    """Atoms that hold a secret of the same configuration somewhere else, a password that is repeated in a comment, say."""
    return tuple(Blocked(atom.where, "it repeats a secret", f"{_IN_NO_RECORD}: take it off the node, or leave the machine to talosctl.", "15/secret")
                 for atom in atoms if atom.value and any(value in atom.value for value in values))


def registries_apart(atoms: Iterable[Atom], cluster: JsonMap) -> tuple[Blocked, ...]:
    """Mirrors of the cluster's record that the node does not have so: the record is for all machines of the cluster."""
    mirrors = dig(cluster, "registries", "mirrors")
    hosts = mirrors if isinstance(mirrors, dict) else {}
    return tuple(Blocked(
        atom.where, f"the cluster's record has a mirror for {atom.name} and the node has none or another",
        "Add the cluster's mirrors to the node's configuration, or set spec.registries of the cluster to what the nodes have (talos_cluster).",
        "15/registries") for atom in atoms if atom.kind == "RegistryMirrorConfig" and atom.name in hosts)


def left_over(differences: Iterable[Difference]) -> tuple[Blocked, ...]:
    """What a render does not give, whatever the patches say."""
    return tuple(Blocked(one.where, "the records cannot say this", _hint_of(one), "15/not-representable") for one in differences)


def _hint_of(one: Difference) -> str:
    if one.running is None:
        return "The render sets it; set it on the node, too, with talosctl patch machineconfig."
    return "Take it off the node, or write it as the render has it, with talosctl patch machineconfig."


def drifted_since(differences: Iterable[Difference]) -> tuple[Blocked, ...]:
    """A machine that is held already, and whose node was changed by hand since."""
    return tuple(Blocked(one.where, "the node runs something else than the records of the held machine say",
                         "Put the node back; or delete the machine's record and its patch, and adopt it again.", "15/held-drifted", "Drifted")
                 for one in differences)


def authority_apart(differences: Iterable[Difference]) -> tuple[Blocked, ...]:
    """CAs, keys and tokens that are not those of the bundle."""
    return tuple(Blocked(one.where, "it is not that of the secrets bundle", "Give the bundle that this node's cluster was made with; a rotation under way "
                         "has to be finished first.", "15/authority", "AuthorityMismatch") for one in differences)


def shape_apart(config: Config, contract: str) -> tuple[Blocked, ...]:
    """The cluster's secrets in the places that they had before documents took them over: they go into no patch, and no render of a newer
    contract puts them there."""
    if contract in ("1.12", "1.13") or config.legacy is None:
        return ()
    cluster = config.legacy.data.get("cluster") or {}
    return tuple(Blocked(f"{LEGACY}: cluster.{key}", f"the cluster's configuration has the shape of Talos {contract}, and this one that of an earlier release",
                         f"Write this node's configuration anew for Talos {contract} (talosctl gen config with the cluster's secrets), or leave it out.",
                         "15/not-representable") for key in _IN_DOCUMENTS if cluster.get(key))


def unreadable(problem: ConfigProblem) -> Blocked:
    """A configuration, or a render of it, that this product does not understand."""
    where = without_url_passwords(": ".join(part for part in (problem.document, problem.path) if part))
    reason = problem.reason if problem.reason != "InvalidInput" else "ConfigInvalid"
    return Blocked(where, without_url_passwords(problem.what.rstrip(".")), problem.hint, "15/not-modelled", reason)
