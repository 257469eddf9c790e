# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running clusters of one machine at random, such as Talos's machinery accepts, and what adoption makes of them (design section 15).

A configuration is one that Talos's generator made, with random documents merged in by Talos's own merging. What is not accepted by its
validation is not counted. The oracle is trusted: adoption has to render what is equal, or to name the paths.
"""

from __future__ import annotations


import copy
from dataclasses import dataclass
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption import decide_adoption
from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_reading import read_node
from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_words import (
    AdoptMachine, AdoptPatch, AdoptSeen, AdoptWish, Adoption, KeepBundle, LiveNode,
)
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import Config, load
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.drift import drift
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.patch import apply_patches, load_patch
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.render import PatchRecord, RenderInput, render
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secret_paths import secret_leaves
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import Bundle, read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.validate import validate
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.yaml_write import write_documents
from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Certificate, Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import NodeFacts, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Observed, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, Record
from tests.machinery.random_rows import SECRETS, base
from tests.parts.oracle import MACHINERY, Oracle
from tests.unit._machineconfig.inputs import Inputs

NOW = 1_700_000_000.0
#: Why a random configuration may not be adopted: what the design names, and nothing else.
NAMED = frozenset({"15/secret", "15/omni", "15/kubernetes-unknown", "15/not-modelled", "15/not-representable", "15/authority", "15/ca-rotation",
                   "15/foreign-node", "15/record-invalid"})
CLUSTER_NAME = "vectors"


@dataclass(frozen=True)
class Tried:
    """One configuration and what came of it: `adopted`, or the rules that blocked it."""

    adopted: bool
    rules: tuple[str, ...]
    said: str = ""


def random_configuration(seed: int, oracle: Oracle) -> tuple[str, str] | None:
    """(role, configuration) that Talos accepts, or None where this seed gives none."""
    source = Inputs(seed, oracle.contract, wrong=0.0)
    role = source.random.choice(["controlplane", "worker"])
    newest = oracle.contract == "1.14"
    text = base("1.13" if newest else oracle.contract, role)
    taken: list[str] = []
    for dummy in range(source.random.choice((1, 2, 3, 4))):
        documents = [source.document(density=0.25)] if source.random.random() < 0.7 else [_legacy(source)]
        if source.random.random() < 0.95:
            documents = [_without_secrets(document) for document in documents]
        patch = write_documents(documents)
        said = oracle.ask(op="patch", config=text, patches=[patch])
        if said.get("error"):
            continue
        judged = oracle.ask(op="validate", config=said["output"], mode="metal", local=False)
        if not judged.get("error"):
            text = said["output"]
            taken.append(patch)
    if newest and taken:
        text = _in_the_newest_shape(role, taken)
    return (role, text) if taken and text else None


def _in_the_newest_shape(role: str, patches: list[str]) -> str:
    """The alpha that answers for 1.14 does not know all documents that its release generates. So what it takes on the shape of 1.13 is
    merged into what the release generated, by this product's merging and validation, which its vectors hold; "" where that refuses it.
    """
    try:
        config = apply_patches(load(base("1.14", role), "1.14"), [load_patch(patch, "1.14") for patch in patches])
        validate(config, "metal").refuse()
    except ConfigProblem:
        return ""
    return config.text()


def _legacy(source: Inputs) -> dict[str, object]:
    """A sparse document with few sections."""
    whole = source.document("v1alpha1", density=0.3)
    kept: dict[str, object] = {}
    for block in ("machine", "cluster"):
        inner = whole.get(block)
        if isinstance(inner, dict):
            names = [name for name in inner if name not in ("type", "token", "ca", "acceptedCAs", "id", "secret")]
            source.random.shuffle(names)
            if names:
                kept[block] = {name: inner[name] for name in names[:2]}
    return kept or {"machine": {"sysctls": {"a": "1"}}}


def _without_secrets(document: dict[str, Any]) -> dict[str, Any]:
    """The same without key material, which alone would block most of what is random."""
    copied = copy.deepcopy(document)
    for path, value in secret_leaves(str(document.get("kind") or ""), document):
        holder: Any = copied
        for key in path[:-1]:
            holder = holder[int(key)] if isinstance(holder, list) else (holder or {}).get(key)
        if isinstance(holder, dict):
            holder.pop(path[-1], None)
    cluster = copied.get("cluster")
    if isinstance(cluster, dict):
        for name in ("ca", "aggregatorCA", "serviceAccount", "etcd", "token", "aescbcEncryptionSecret", "secretboxEncryptionSecret"):
            cluster.pop(name, None)
    return copied


def bundle() -> Bundle:
    return read_bundle(SECRETS)


def node(text: str, role: str, contract: str, number: int = 1, running: str = "") -> LiveNode:
    endpoint = Endpoint(f"192.0.2.{number}", 50000)
    facts = NodeFacts(
        endpoint, Certificate("x", "y", 0.0, 0.0, ""), Identity(f"4c4c4544-0000-4000-8000-{number:012d}", f"S{number}", ()),
        Present(StageReading("running", True)), talos_version=running or MACHINERY[contract].split("-")[0], hostname=f"{role}-{number}")
    return LiveNode(str(endpoint), facts, text.encode())


def adopted(nodes: list[LiveNode], *, cluster: Record | None = None, imported: Observed[Bundle] | None = None) -> Adoption:
    """`imported`: the bundle that is brought, that of the vectors when left out."""
    given: Observed[Bundle] = Present(bundle(), "secrets") if imported is None else imported
    wish = AdoptWish(CLUSTER_NAME, tuple(one.address for one in nodes), consent=True, actor=Actor("ada", "ada"), imported=given)
    seen = AdoptSeen(cluster, nodes=tuple((one.address, Present(one)) for one in nodes))
    return decide_adoption(wish, seen, NOW)


def cluster_record(contract: str) -> Record:
    """For a worker alone."""
    return Record(CLUSTER, CLUSTER_NAME, {
        "talosVersion": f"v{contract}.0", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.0.0.10:6443", "secretsRef": {"name": CLUSTER_NAME},
        "cni": {"preset": "unmanaged"}, "controlPlane": {"count": 3}})


def judge(role: str, text: str, contract: str) -> Tried:
    """What adoption makes of it. Raises AssertionError where the plan would write something that renders anything else, or a secret."""
    live = node(text, role, contract)
    found = adopted([live], cluster=cluster_record(_shape(live, contract)) if role == "worker" else None)
    machine = next((step.record for step in found.plan.steps if isinstance(step, AdoptMachine)), None)
    if machine is None:
        refusals = found.plan.refusals
        assert refusals and all(one.message for one in refusals), "neither adopted nor refused"
        rules = tuple(sorted({one.rule for one in refusals} - {"15/all-blocked"}))
        return Tried(False, rules, "; ".join(f"{one.rule} {one.message}" for one in refusals[:4]))
    hold(found, machine, text)
    return Tried(True, ())


def hold(found: Adoption, machine: Record, text: str) -> None:
    """Raises AssertionError unless the records render what the node runs, and hold no secret of it."""
    records = [step.record for step in found.plan.steps if isinstance(step, AdoptPatch)]
    kept = next((step.bundle for step in found.plan.steps if isinstance(step, KeepBundle)), None)
    assert found.cluster is not None
    wanted = render(RenderInput(CLUSTER_NAME, found.cluster.spec, machine.name, machine.spec, kept or bundle(),
                                tuple(PatchRecord.of(record.name, record.spec) for record in records)))
    running = load(text, wanted.config.version)
    left = drift(wanted.config, running)
    assert left.none, [one.where for one in left.apply + left.authority]
    written = " ".join(str(record.spec) for record in (*records, machine, found.cluster))
    spilled = [value for value in _secrets(running) if len(value) > 5 and value in written]
    assert not spilled, f"{len(spilled)} secrets in the records"


def _shape(live: LiveNode, contract: str) -> str:
    try:
        return read_node(live)[1]
    except ConfigProblem:
        return contract


def _secrets(config: Config) -> list[str]:
    """All but the names of kubelet's credential providers, which are masked with their environment."""
    return [value for document in config.documents for path, value in secret_leaves("" if document.legacy else document.kind.name, document.output())
            if "credentialProviderConfig" not in path or not {"name", "kind", "apiVersion", "matchImages"} & set(path)]


def many(seeds: range, contract: str, oracle: Oracle) -> list[Tried]:
    found = []
    for seed in seeds:
        made = random_configuration(seed, oracle)
        if made is not None:
            try:
                found.append(judge(*made, contract))
            except (AssertionError, ConfigProblem) as error:
                raise AssertionError(f"contract {contract}, seed {seed}: {error}") from error
    return found
