# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of section 15 of docs/design.md, with the rows and tests that stand for them.

A row is named by its id, a test as `file::name`.
"""

from __future__ import annotations

from tests.unit._decide.sentences_sending import Sentence

PLANS = "tests/unit/_decide/test_adoption.py"
LIFE = "tests/unit/_operations/test_adopt.py"
LAB = "tests/scenarios/test_adopt.py::test_what_people_have_is_adopted_and_what_no_record_holds_is_named"
ADDED = "tests/scenarios/test_add_machine.py"


def _s(quote: str, *shown: str) -> Sentence:
    return Sentence(15, quote, shown)


SENTENCES: tuple[Sentence, ...] = (
    _s("**A cluster**: read-only plan, consent, held machines, zero-drift release.", "15/a-cluster-is-adopted", LAB),
    _s("Secrets from a bundle file, else the cluster's own `secretsRef`, else rebuilt from a control plane's configuration (stored 0600 or vaulted).",
       "15/a-bundle-is-given", "15/a-bundle-in-the-store", "15/another-bundle-in-the-store", "15/a-bundle-that-cannot-be-read", "15/a-bundle-with-faults",
       "15/no-bundle-and-only-workers", "15/no-bundle-for-a-managed-cluster", LAB),
    _s("Floor Talos v1.12; an unknown version is refused.", "15/older-than-the-floor", "15/newer-than-known", "15/no-version"),
    _s("Versions are taken as they run, the contract is read off the configuration, an incompatible Talos/Kubernetes pair is a warning.",
       f"{PLANS}::test_versions_are_taken_as_they_run", f"{PLANS}::test_the_contract_is_that_of_the_configuration", "15/an-old-kubernetes",
       "15/no-kubernetes-version"),
    _s("Role and install settings (disk, image, wipe) come from the node's own configuration, else they would be drift that can never be applied.",
       f"{PLANS}::test_role_and_install_settings_are_the_nodes_own"),
    _s("For each machine the live configuration is compared with a render and each difference is of class A (captured as patches: one of the cluster or of a "
       "role for what is equal there, plus at most one a machine: sysctls, kernel modules, install, registry mirrors, cert SANs, subnets, …), B (owned by the "
       "product: listed, needs consent) or C (cannot be represented: blocks that machine, no override; paths with hints; for registries both directions are "
       "told: add the mirrors to the node, or set `spec.registries`).", f"{PLANS}::test_what_is_shared_is_in_one_patch", "15/of-class-b",
       "15/of-class-b-with-consent", "15/a-kind-that-nobody-knows", "15/another-token", "15/staged-for-the-next-boot", "15/at-the-cluster's-endpoint",
       "15/mirrors-apart"),
    _s("A path that holds a secret (registry credentials, WireGuard keys, passphrases, inline manifests of Secrets, proxy URLs with a password) is never "
       "captured into a record: class C, until documents can refer to a secret beside the bundle.", "15/a-registry-login", "15/a-wireguard-key",
       "15/a-passphrase", "15/a-secret-as-a-manifest", "15/a-secret-in-a-list", "15/a-proxy-with-a-password", "15/a-token-repeated-in-a-file",
       "15/a-password-in-the-name-of-a-mirror", "15/a-private-key-among-certificates", f"{PLANS}::test_nothing_secret_is_in_what_is_written_or_told", LAB),
    _s("Then: records created approved and held (`Ready=False/AdoptionHeld`), patches created, `bootstrappedAt` set, each hold (only of machines without "
       "`appliedConfigHash`: a person's own hold stays) released only after a live zero-drift check, control planes first, each waiting for Ready (a worker's "
       "Kubernetes Node is not waited for).", f"{LIFE}::test_a_run_is_what_its_check_showed", f"{LIFE}::test_killed_at_every_boundary_and_run_again",
       f"{LIFE}::test_a_persons_own_hold_stays", f"{LIFE}::test_a_node_that_is_changed_before_its_release_stays_held",
       f"{LIFE}::test_control_planes_are_released_first", "15/held-and-drifted"),
    _s("Adoption writes nothing to a node and leaves workloads alone; the Cilium takeover is the only thing that restarts anything, and is announced.",
       f"{LIFE}::test_a_run_is_what_its_check_showed", LAB),
    _s("**One machine that already carries the cluster's CAs** (`--add-machine`): the same with a smaller input, dialled with the operator's talosconfig.",
       "15/a-machine-is-added", "15/added-to-no-cluster", f"{ADDED}::test_a_worker_is_added"),
    _s("Trust check: the node's own configuration must name the cluster id and OS CA of the bundle, else it is refused with nothing written, naming the node's "
       "own cluster and the reclaim command; an unknown-authority handshake gives the same refusal and adds that the talosconfig may be the wrong one.",
       "15/added-from-another-cluster", "15/added-of-an-unknown-authority", f"{ADDED}::test_what_is_refused_writes_nothing"),
    _s("A CA rotation under way refuses.", "15/added-in-a-rotation", "15/added-in-an-announced-rotation"),
    _s("A UUID that is an approved machine is reported and skipped; a pending record is completed (approved, held), never doubled; a rejected one is refused "
       "by name.", "15/added-that-is-approved", "15/added-that-is-pending", f"{PLANS}::test_a_pending_record_is_completed", "15/added-that-was-rejected",
       "15/added-that-is-another-cluster's", "15/added-that-is-pending-by-its-macs", "15/added-that-was-rejected-by-its-macs",
       "15/added-that-was-rejected-in-the-other-byte-order", "15/added-that-has-a-rejected-and-a-pending-record",
       "15/added-that-has-an-approved-and-a-pending-record"),
    _s("A control plane over the count is refused first: raise the count.", "15/added-over-the-count", "15/added-within-the-count"),
    _s("All machines blocked → the run refuses (\"every machine is blocked; nothing was written\") and says how to wipe; re-runs say \"nothing to adopt: X "
       "blocked\".", "15/every-machine-blocked", "15/every-new-machine-blocked-again", LAB),
    _s("The plan prints role and install disk.", f"{PLANS}::test_role_and_install_settings_are_the_nodes_own"),
)

#: The paragraph on container networks: a cluster's network is adopted as it is.
REST = "**CNI**: "

#: Rows of other sections that adoption keeps: approval, identity, reachability, records.
ELSEWHERE = (
    "15/by-a-schedule", "15/by-nobody", "15/a-record-that-is-broken", "15/one-silent", "15/all-silent", "15/no-plane-that-is-understood",
    "15/a-patch-of-the-same-name", "15/more-members-than-named", "15/managed-by-omni",
    "15/added-without-a-uuid", "15/two-with-one-uuid", "15/clones-with-one-uuid", "15/two-of-one-record",
    "15/added-that-is-recorded-with-another-uuid", "15/a-patch-of-a-persons-with-the-same-name", "15/members-that-nobody-tells",
    "15/equal-host-names", "15/at-the-address-of-another-record")
