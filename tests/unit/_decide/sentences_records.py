# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Section 3 of docs/design.md: every refusal, warning and exception in it."""

from __future__ import annotations

from tests.unit._decide.sentence import Sentence, sentence

RECORDS_SENTENCES: tuple[Sentence, ...] = (
    sentence(3, "the keys are never in the record", "3/keys-never-in-the-record"),
    sentence(
        3,
        "immutable once set, except that `none` may become `managed` once",
        "3/cni-immutable",
        "3/cni-none-to-managed",
        "3/cni-managed-to-none",
        "3/edit-cluster-cni",
    ),
    sentence(3, "(1, 3, 5 or 7)", "3/count-is-odd", "3/edit-cluster-schema"),
    sentence(3, "a person announces what is under way", "3/hold-and-back"),
    sentence(3, "a person can clear it by name", "13/clear-by-name", "13/clear-another-name", "13/clear-twice"),
    sentence(3, "permanent MACs only", "6/mac-permanent-not-current"),
    sentence(3, "port 50000 unless said", "3/dial-spec", "3/dial-port"),
    sentence(3, "`install` (`disk` or `diskSelector`", "3/disk-or-selector"),
    sentence(3, "(`interface` or `mac`, `dhcp` or `addresses`+`gateway`+`nameservers`", "3/interface-or-mac", "3/dhcp-or-static", "7/dhcp-and-static"),
    sentence(
        3,
        "There is no raw\ntext escape hatch: each document is checked against the schema of the cluster's Talos version.",
        elsewhere="tests/unit/_machineconfig/test_vectors.py",
    ),
    sentence(
        3,
        "In the sparse document `machine`, `cluster`, `machine.type` and `machine.certSANs` are optional;\nwhat is required inside a block stays "
        "required once the block is there.",
        elsewhere="tests/unit/_machineconfig/test_vectors.py",
    ),
    sentence(3, "`spec` (immutable): `address`", "3/reclaim-immutable"),
    sentence(
        3,
        "`notAfter` is required, and an order without status that is expired or came back from a restore or a fresh clone is `StatusMissing`, not a new one.",
        "3/reclaim-needs-not-after",
    ),
    sentence(3, "Names are DNS-1123.", "3/name-dns-1123", "3/name-good"),
    sentence(3, "`clusterRef` is immutable once the machine is approved", "3/cluster-ref-immutable", "3/cluster-ref-of-a-pending"),
    sentence(3, "`secretsRef` once the cluster has a machine", "3/secrets-ref-immutable", "3/secrets-ref-before-machines", "3/edit-cluster-secrets"),
    sentence(
        3,
        "Status carries the record's uid (directory: the identity's digest); a status that does not match its record is set aside and reported, never "
        "inherited.",
        "3/uid-is-the-identity",
        "3/uid-of-other-hardware",
        elsewhere="tests/unit/_store/test_directory.py",
    ),
    sentence(
        3,
        "A discovered machine is `<cluster>-<first 8 of the UUID>`, longer on a clash",
        "3/name-of-a-machine",
        "3/name-longer-on-a-clash",
        "3/name-longer-where-taken",
    ),
    sentence(3, "one of weak identity is `weak-<hash of address, MACs, serial>`, so that the next pass finds the same entry", "3/weak-name-finds-itself"),
    sentence(
        3,
        "is not edited by a module unless `override: true`; the refusal says to change it in git",
        "3/gitops-cluster",
        "3/gitops-cluster-overridden",
        "3/gitops-approval",
        "3/gitops-approval-overridden",
        "3/edit-gitops",
        "3/edit-gitops-overridden",
        "4/delete-gitops",
    ),
    sentence(3, '`ichor.maesh.dev/hold-apply: "true"` (nothing is applied to this machine)', "3/edit-hold", "3/edit-hold-again"),
    sentence(
        3,
        "`ichor.maesh.dev/trust-maintenance-fingerprint: <fingerprint>` (the person has verified this one)",
        "5/trust-silent-named",
        "6/trust-pending-annotates",
    ),
    sentence(3, '`ichor.maesh.dev/allow-delete: "true"` (deleting this record is meant)', "4/delete-by-annotation", "4/delete-needs-allow-delete"),
    sentence(3, "else `spec.endpoint`; so a person who edits `spec.endpoint` overrides what was seen", "3/dial-spec", "3/dial-observed", "3/dial-edited"),
    sentence(3, "Every dial, in every module, uses it.", elsewhere="tests/unit/_operations/test_machine_info.py"),
    sentence(
        3,
        "loopback (unless the option for a lab says so)",
        "3/refuses-loopback",
        "3/refuses-loopback-6",
        "3/refuses-mapped-loopback",
        "3/refuses-localhost",
        "3/allows-loopback-in-a-lab",
    ),
    sentence(
        3,
        "unspecified, multicast",
        "3/refuses-unspecified",
        "3/refuses-unspecified-6",
        "3/refuses-unspecified-in-a-lab",
        "3/refuses-multicast",
        "3/refuses-multicast-6",
        "3/refuses-broadcast",
        "3/refuses-link-local-without-a-link",
        "3/allows-link-local-with-a-link",
    ),
    sentence(3, "the cluster's endpoint or VIP", "3/refuses-the-endpoint", "3/refuses-the-endpoint-by-name", "3/refuses-the-endpoint-6"),
    sentence(3, "except with `controlPlane.count: 1`, where it is that machine's own address", "3/dials-the-endpoint-of-a-single-control-plane"),
    sentence(
        3,
        "inside the pod or service ranges is refused before dialling (`EndpointRefused`)",
        "3/refuses-pods",
        "3/refuses-services",
        "3/refuses-declared-pods",
        "3/declared-pods-replace-the-usual",
        "3/dials-the-rest",
        "3/refused-address-in-a-range",
        "3/refused-address-named",
        "3/endpoint-refused-approval",
        "3/endpoint-refused-by-the-resolver",
        "3/edit-endpoint-refused",
    ),
    sentence(3, "The list is closed", "3/reasons-are-closed", "3/reasons-of-conditions", "3/status-is-closed"),
    sentence(3, "only False; removed by the first good read", elsewhere="tests/unit/docs/test_reasons_page.py"),
    sentence(3, "lock refusals", "3/reasons-of-conditions"),
    sentence(3, "and the refusals of the lock", "3/reasons-of-conditions"),
    sentence(
        3,
        "(on the cluster; once per address and change, not each pass)",
        "6/configured-once",
        "6/configured-again-after-change",
        "6/configured-again-after-maintenance",
    ),
)
