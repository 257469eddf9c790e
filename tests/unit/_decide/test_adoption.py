# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an adoption writes: the cluster, the patches, the machines, and that a run which ended early goes on (design section 15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide import adoption_told
from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_words import (
    AdoptCluster, Adoption, AdoptMachine, AdoptPatch, AdoptSeen, KeepBundle, ReleaseMachine,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from tests.unit._decide import adoption_world as w
from tests.unit._decide.rows_adoption import MIRROR, ROOTS

MODULES = "machine:\n  kernel:\n    modules:\n      - name: nvme_tcp\n"
SANS = "machine:\n  certSANs: [a.example.org]\ncluster:\n  apiServer:\n    certSANs: [a.example.org]\n"
NODE_SANS = "machine:\n  certSANs: [a.example.org]\n"
SUBNETS = "cluster:\n  network:\n    podSubnets: {$patch: delete}\n"
NAMED_SO = "apiVersion: v1alpha1\nkind: RegistryMirrorConfig\nname: https://ci:passw0rd-of-it@docker.io\nendpoints:\n  - url: https://mirror.example.org\n"
UNKNOWN_SO = f"{NAMED_SO}nobodyKnows: 1\n"
OTHER_SUBNETS = "cluster:\n  network:\n    podSubnets: [10.42.0.0/16]\n"


def cluster_of(found: Adoption) -> dict[str, object]:
    return dict(next(step.record.spec for step in found.plan.steps if isinstance(step, AdoptCluster)))


def patches_of(found: Adoption) -> dict[str, object]:
    return {step.record.name: step.record.spec["documents"] for step in found.plan.steps if isinstance(step, AdoptPatch)}


def machines_of(found: Adoption) -> dict[str, AdoptMachine]:
    return {step.record.name: step for step in found.plan.steps if isinstance(step, AdoptMachine)}


def test_versions_are_taken_as_they_run() -> None:
    newer = "cluster:\n  apiServer:\n    image: registry.k8s.io/kube-apiserver:v1.35.2\n"
    found = w.adopt(w.seen(w.plane(1, talos_version="v1.13.8"), w.plane(2, newer), w.worker()))
    assert cluster_of(found)["talosVersion"] == "v1.13.8" and cluster_of(found)["kubernetesVersion"] == "v1.35.0"
    assert cluster_of(found)["controlPlane"] == {"count": 3}
    assert not patches_of(found), "an image that is newer on a node is left to it, and follows the record again later"


@pytest.mark.parametrize(("contract", "running", "version"), [
    ("1.12", "v1.12.11", "v1.12.11"), ("1.12", "v1.14.0", "v1.12.0"), ("1.13", "v1.13.9", "v1.13.9"), ("1.13", "v1.14.0", "v1.13.0"),
    ("1.14", "v1.14.0", "v1.14.0")])
def test_the_contract_is_that_of_the_configuration(contract: str, running: str, version: str) -> None:
    found = w.adopt(w.seen(w.node(1, w.generated("controlplane", contract), talos_version=running)))
    assert cluster_of(found)["talosVersion"] == version and not patches_of(found) and not found.plan.refusals


def test_role_and_install_settings_are_the_nodes_own() -> None:
    by_id = "machine:\n  install:\n    disk: /dev/disk/by-id/x\n    image: example.org/installer:v1\n    wipe: true\n"
    found = w.adopt(w.seen(w.plane(), w.worker(4, by_id)))
    step = machines_of(found)["c1-5a1f0c04"]
    assert step.record.spec["install"] == {"disk": "/dev/disk/by-id/x", "image": "example.org/installer:v1", "wipe": True}
    assert step.record.spec["role"] == "worker" and "worker at 192.0.2.4:50000, installed to /dev/disk/by-id/x" in step.why
    assert machines_of(found)["c1-5a1f0c01"].record.spec["approvedDisk"] == {"wwid": "wwid-1", "size": 10 ** 11}
    assert not patches_of(found)


def test_a_selector_beside_a_disk_is_kept_by_a_patch() -> None:
    found = w.adopt(w.seen(w.plane(), w.worker(4, "machine:\n  install:\n    diskSelector: {size: '>= 100GB'}\n")))
    assert not found.plan.refusals and "disk" not in dict(machines_of(found)["c1-5a1f0c04"].record.spec["install"])  # type: ignore[arg-type]
    assert patches_of(found)["c1-5a1f0c04-adopted"] == [{"machine": {"install": {"disk": "/dev/sda", "diskSelector": {"size": ">= 100GB"}}}}]


def test_what_is_shared_is_in_one_patch() -> None:
    own = "machine:\n  sysctls:\n    vm.swappiness: 1\n"
    found = w.adopt(w.seen(w.plane(1, w.SYSCTL), w.worker(4, w.SYSCTL, MODULES), w.worker(5, w.SYSCTL, MODULES, own)))
    assert patches_of(found) == {
        "c1-adopted": [{"machine": {"sysctls": {"net.core.somaxconn": "4096"}}}],
        "c1-adopted-worker": [{"machine": {"kernel": {"modules": [{"name": "nvme_tcp"}]}}}],
        "c1-5a1f0c05-adopted": [{"machine": {"sysctls": {"vm.swappiness": "1"}}}]}


def test_a_single_machine_shares_nothing() -> None:
    """What one node has is not laid on machines that join later."""
    assert set(patches_of(w.adopt(w.seen(w.plane(1, w.SYSCTL))))) == {"c1-5a1f0c01-adopted"}


def test_consent_is_asked_for_once_a_path_and_holds_the_whole_plan() -> None:
    image = "machine:\n  kubelet:\n    image: registry.example.org/kubelet:v1.35.0\n"
    found = w.adopt(w.seen(*(w.plane(number, image) for number in (1, 2, 3)), *(w.worker(number, image) for number in (4, 5, 6))))
    [refusal], [warning] = found.plan.refusals, found.plan.warnings
    named = "c1-5a1f0c01, c1-5a1f0c02, c1-5a1f0c03, c1-5a1f0c04 and 2 more"
    assert refusal.whole and found.plan.steps and refusal.message.startswith("Class B: ")
    assert refusal.message.count("machine.kubelet.image") == 1 and f"machine.kubelet.image ({named})" in refusal.message
    assert warning.message.startswith("Class B: ") and "machine.kubelet.image" in warning.message and warning.message.endswith(f"on {named}.")


@pytest.mark.parametrize(("reason", "hint"), [("EndpointRefused", "allow_loopback is for a lab"), ("TimedOut", "Check the addresses and the talosconfig")])
def test_where_no_node_could_be_read_the_hint_says_what_to_look_at(reason: str, hint: str) -> None:
    assert hint in w.adopt(w.seen(silent={"127.0.0.1:50000": reason})).plan.refusals[0].hint


def test_a_node_of_another_authority_may_wait_in_maintenance_mode_and_the_command_needs_its_talosconfig() -> None:
    [refusal] = w.adopt(w.seen(w.plane(), silent={"192.0.2.4:50000": "UnknownAuthority"})).plan.refusals
    assert "maintenance mode" in refusal.message and "talos_discover" in refusal.hint
    assert "-e ichor_address=192.0.2.4:50000" in refusal.hint and "-e ichor_talosconfig=FILE" in refusal.hint


def test_what_the_cluster_s_record_can_say_is_said_there() -> None:
    found = w.adopt(w.seen(w.plane(1, SANS, SUBNETS, OTHER_SUBNETS), w.worker(4, NODE_SANS, SUBNETS, OTHER_SUBNETS)))
    spec = cluster_of(found)
    assert spec["certSANs"] == ["a.example.org"] and not patches_of(found)
    assert spec["network"] == {"podSubnets": ["10.42.0.0/16"], "serviceSubnets": ["10.96.0.0/12"]}
    assert found.cluster is not None and found.cluster.status["bootstrappedAt"]


def test_no_network_of_talos_s_own_is_none() -> None:
    found = w.adopt(w.seen(w.plane(1, "cluster:\n  network:\n    cni: {name: none}\n"), w.worker(4, "cluster:\n  network:\n    cni: {name: none}\n")))
    assert cluster_of(found)["cni"] == {"preset": "none"} and not patches_of(found)


def test_a_pending_record_is_completed() -> None:
    pending = w.record(4, "pending", name="found-by-discovery", labels={"rack": "a"})
    observed = w.seen(w.worker(), cluster=w.cluster(), stored=Present(w.bundle()), machines=(pending,))
    step = machines_of(w.adopt(observed, add=True))["found-by-discovery"]
    assert step.before is pending and step.record.spec["labels"] == {"rack": "a"} and step.record.spec["approvalState"] == "approved"
    assert [entry["reason"] for entry in step.record.status["conditions"]] == ["AdoptionHeld"]  # type: ignore[union-attr,index,call-overload]


def test_the_order_and_the_waits() -> None:
    found = w.adopt(w.seen(w.worker(4), w.plane(1), w.plane(2)))
    kinds = [type(step) for step in found.plan.steps]
    assert kinds == [KeepBundle, AdoptCluster, AdoptMachine, AdoptMachine, AdoptMachine, ReleaseMachine, ReleaseMachine, ReleaseMachine]
    released = [step for step in found.plan.steps if isinstance(step, ReleaseMachine)]
    assert [step.target.name for step in released] == ["c1-5a1f0c01", "c1-5a1f0c02", "c1-5a1f0c04"]
    assert [[wait.target for wait in step.waits_for if wait.target] for step in released] == [[], ["c1-5a1f0c01"], ["c1-5a1f0c02"]]
    assert not any(isinstance(step, ReleaseMachine) for step in w.adopt(w.seen(w.plane()), release=False).plan.steps)


def test_once_everything_is_written_only_the_releases_are_left_and_are_the_same_steps() -> None:
    observed = w.seen(w.plane(1, w.SYSCTL), w.worker(4, w.SYSCTL))
    first = w.adopt(observed)
    after = w.adopt(w.carried_out(first, observed))
    assert [step.id for step in after.plan.steps] == [step.id for step in first.plan.steps if isinstance(step, ReleaseMachine)]


@pytest.mark.parametrize("written", range(5))
def test_a_run_that_ended_after_any_step_goes_on_with_the_rest(written: int) -> None:
    observed = w.seen(w.plane(1, w.SYSCTL), w.worker(4, w.SYSCTL, MODULES), w.worker(5, w.SYSCTL, MODULES))
    first = w.adopt(observed)
    begun = replace(first, plan=replace(first.plan, steps=first.plan.steps[:written + 1]))
    assert [step.id for step in w.adopt(w.carried_out(begun, observed)).plan.steps] == [step.id for step in first.plan.steps[written + 1:]]


def test_a_change_of_the_node_is_another_plan() -> None:
    def plan(*patches: str) -> str:
        return w.adopt(w.seen(w.plane(1, *patches))).plan.id

    assert plan() == plan() != plan(w.SYSCTL)


def test_comments_anchors_and_line_ends_are_no_difference() -> None:
    text = w.config().replace("debug: false", "debug: &off false").replace("persist: true", "persist: true # kept by hand\n")
    found = w.adopt(w.seen(w.plane(), w.node(4, f"# mine\n{text}".replace("\n", "\r\n"))))
    assert not found.plan.refusals and not patches_of(found)


@pytest.mark.parametrize(("patch", "secret"), [(w.LOGIN, "s3cr3t-of-the-registry"), (MIRROR, "passw0rd-of-it"), (NAMED_SO, "passw0rd-of-it"),
                                               (UNKNOWN_SO, "passw0rd-of-it"), (ROOTS, "bm90LWEta2V5LWJ1dC1hLXNlY3JldA==")])
def test_nothing_secret_is_in_what_is_written_or_told(patch: str, secret: str) -> None:
    """Neither a value nor a name: documents and keys are called by URLs."""
    other = w.node(4, f"{w.config()}---\n{patch}") if patch == UNKNOWN_SO else w.worker(4, patch)
    observed = w.seen(w.plane(1, w.SYSCTL), other, w.worker(5))
    found = w.adopt(observed)
    told = str([step.canonical() for step in found.plan.steps]) + str([step.describe() for step in found.plan.steps]) + str(found.plan)
    told += str([step.record for step in found.plan.steps if isinstance(step, (AdoptCluster, AdoptPatch, AdoptMachine))]) + repr(found)
    told += str(adoption_told.told(found, set()))
    assert not [value for value in (*w.bundle().secrets(), secret) if value in told]
    assert found.plan.refusals
    assert isinstance(observed, AdoptSeen)


ODDITIES = {
    "old key": ("controlplane", "cluster:\n  secretboxEncryptionSecret: {$patch: delete}\n"
                "  aescbcEncryptionSecret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"),
    "no install section": ("worker", "machine:\n  install: {$patch: delete}\n"),
    "legacy host name": ("worker", "apiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete\n", "machine:\n  network: {hostname: node-4}\n"),
    "a host name that is no DNS name": ("worker", "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\nhostname: Node_4\n"),
    "legacy mirrors": ("worker", "machine:\n  registries:\n    mirrors:\n      docker.io: {endpoints: [https://mirror.example.org], overridePath: true}\n"),
    "kubelet": ("worker", "machine:\n  kubelet:\n    extraArgs: {rotate-server-certificates: true}\n    nodeIP: {validSubnets: [192.0.2.0/24]}\n"),
    "labels and taints": ("worker", "machine:\n  nodeLabels: {rack: a, empty: ''}\n  nodeTaints: {dedicated: 'x:NoSchedule'}\n"),
    "system disk by key of the node": ("worker", "machine:\n  systemDiskEncryption:\n    state: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}\n"),
    "switched off": ("controlplane", "cluster:\n  proxy: {disabled: true}\n  coreDNS: {disabled: true}\n  discovery: {enabled: false}\n"),
    "another network": ("controlplane", "cluster:\n  network:\n    cni: {name: custom, urls: [https://example.org/cni.yaml]}\n"),
    "files": ("worker", "machine:\n  files:\n    - {content: hello, path: /var/x, op: create, permissions: 0o644}\n"),
    "workloads on control planes": ("controlplane", "cluster: {allowSchedulingOnControlPlanes: true}\n"),
}


@pytest.mark.parametrize("name", ODDITIES)
def test_what_people_have_is_no_obstacle(name: str) -> None:
    role, *patches = ODDITIES[name]
    odd = w.node(4, w.config(role, *patches))
    found = w.adopt(w.seen(odd) if role == "controlplane" else w.seen(w.plane(), odd))
    assert not found.plan.refusals, [one.message for one in found.plan.refusals]
    assert f"{w.CLUSTER}-5a1f0c04" in machines_of(found)
