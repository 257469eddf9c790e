# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every refusal, warning and exception of sections 3, 6 and 7 of docs/design.md, with the rows that stand for it.

`rows` are ids of the table tests. `elsewhere` names the test file where a sentence is shown that no decision alone can show.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """A few words of the design, as they stand in that section."""

    section: int
    quote: str
    rows: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def _s(section: int, quote: str, *rows: str, elsewhere: str = "") -> Sentence:
    return Sentence(section, quote, rows, (elsewhere,) if elsewhere else ())


SENTENCES: tuple[Sentence, ...] = (
    # 3, records
    _s(3, "the keys are never in the record", "3/keys-never-in-the-record"),
    _s(3, "immutable once set, except that `none` may become `managed` once", "3/cni-immutable", "3/cni-none-to-managed", "3/cni-managed-to-none", "3/edit-cluster-cni"),
    _s(3, "(1, 3, 5 or 7)", "3/count-is-odd", "3/edit-cluster-schema"),
    _s(3, "a person announces what is under way", "3/hold-and-back"),
    _s(3, "a person can clear it by name", "13/clear-by-name", "13/clear-another-name", "13/clear-twice"),
    _s(3, "permanent MACs only", "6/mac-permanent-not-current"),
    _s(3, "port 50000 unless said", "3/dial-spec", "3/dial-port"),
    _s(3, "`install` (`disk` or `diskSelector`", "3/disk-or-selector"),
    _s(3, "(`interface` or `mac`, `dhcp` or `addresses`+`gateway`+`nameservers`", "3/interface-or-mac", "3/dhcp-or-static", "7/dhcp-and-static"),
    _s(3, "There is no raw\ntext escape hatch: each document is checked against the schema of the cluster's Talos version.",
       elsewhere="tests/unit/_machineconfig/test_vectors.py"),
    _s(3, "In the sparse document `machine`, `cluster`, `machine.type` and `machine.certSANs` are optional;\nwhat is required inside a block stays required once the block is there.",
       elsewhere="tests/unit/_machineconfig/test_vectors.py"),
    _s(3, "`spec` (immutable): `address`", "3/reclaim-immutable"),
    _s(3, "`notAfter` is required, and an order without status that is expired or came back from a restore or a fresh clone is `StatusMissing`, not a new one.",
       "3/reclaim-needs-not-after"),
    _s(3, "Names are DNS-1123.", "3/name-dns-1123", "3/name-good"),
    _s(3, "`clusterRef` is immutable once the machine is approved", "3/cluster-ref-immutable", "3/cluster-ref-of-a-pending"),
    _s(3, "`secretsRef` once the cluster has a machine", "3/secrets-ref-immutable", "3/secrets-ref-before-machines", "3/edit-cluster-secrets"),
    _s(3, "Status carries the record's uid (directory: the identity's digest); a status that does not match its record is set aside and reported, never inherited.",
       "3/uid-is-the-identity", "3/uid-of-other-hardware", elsewhere="tests/unit/_store/test_directory.py"),
    _s(3, "A discovered machine is `<cluster>-<first 8 of the UUID>`, longer on a clash", "3/name-of-a-machine", "3/name-longer-on-a-clash", "3/name-longer-where-taken"),
    _s(3, "one of weak identity is `weak-<hash of address, MACs, serial>`, so that the next pass finds the same entry", "3/weak-name-finds-itself"),
    _s(3, "is not edited by a module unless `override: true`; the refusal says to change it in git", "3/gitops-cluster", "3/gitops-cluster-overridden", "3/gitops-approval",
       "3/gitops-approval-overridden", "3/edit-gitops", "3/edit-gitops-overridden", "4/delete-gitops"),
    _s(3, "`ichor.maesh.dev/hold-apply: \"true\"` (nothing is applied to this machine)", "3/edit-hold", "3/edit-hold-again"),
    _s(3, "`ichor.maesh.dev/trust-maintenance-fingerprint: <fingerprint>` (the person has verified this one)", "5/trust-silent-named", "6/trust-pending-annotates"),
    _s(3, "`ichor.maesh.dev/allow-delete: \"true\"` (deleting this record is meant)", "4/delete-by-annotation", "4/delete-needs-allow-delete"),
    _s(3, "else `spec.endpoint`; so a person who edits `spec.endpoint` overrides what was seen", "3/dial-spec", "3/dial-observed", "3/dial-edited"),
    _s(3, "Every dial, in every module, uses it.", elsewhere="tests/unit/_operations/test_machine_info.py"),
    _s(3, "loopback (unless the option for a lab says so)", "3/refuses-loopback", "3/refuses-loopback-6", "3/refuses-mapped-loopback", "3/refuses-localhost",
       "3/allows-loopback-in-a-lab"),
    _s(3, "unspecified, multicast", "3/refuses-unspecified", "3/refuses-unspecified-6", "3/refuses-unspecified-in-a-lab", "3/refuses-multicast", "3/refuses-multicast-6",
       "3/refuses-broadcast", "3/refuses-link-local-without-a-link", "3/allows-link-local-with-a-link"),
    _s(3, "the cluster's endpoint or VIP", "3/refuses-the-endpoint", "3/refuses-the-endpoint-by-name", "3/refuses-the-endpoint-6"),
    _s(3, "inside the pod or service ranges is refused before dialling (`EndpointRefused`)", "3/refuses-pods", "3/refuses-services", "3/refuses-declared-pods",
       "3/declared-pods-replace-the-usual", "3/dials-the-rest", "3/refused-address-in-a-range", "3/refused-address-named", "3/endpoint-refused-approval",
       "3/endpoint-refused-by-the-resolver", "3/edit-endpoint-refused"),
    _s(3, "The list is closed", "3/reasons-are-closed", "3/reasons-of-conditions", "3/status-is-closed"),
    _s(3, "only False; removed by the first good read", elsewhere="tests/unit/docs/test_reasons_page.py"),
    _s(3, "lock refusals", "3/reasons-of-conditions"),
    _s(3, "and the refusals of the lock", "3/reasons-of-conditions"),
    _s(3, "(on the cluster; once per address and change, not each pass)", "6/configured-once", "6/configured-again-after-change", "6/configured-again-after-maintenance"),
    # 6, discovery
    _s(6, "(CIDR and `a-b`)", "6/discovery-too-large", elsewhere="tests/unit/_model/test_addresses.py"),
    _s(6, "(under 256 unresolved at once on an on-link range, 1,000 new connections a second unless asked)", elsewhere="tests/unit/_operations/test_discover.py"),
    _s(6, "For each address: `NotListening`", "6/silent"),
    _s(6, "(wants a client certificate; nothing is\ncreated; the hint names both ways in: adopt `--add-machine` when it belongs to this cluster, reclaim when it does not)",
       "6/configured-creates-nothing", "6/configured-own-is-no-news"),
    _s(6, "the reads are all read-only", elsewhere="tests/unit/_operations/test_discover.py"),
    _s(6, "equal means all three", "6/equal-means-all-three", "6/other-serial-is-another", "6/other-macs-are-another", "6/other-uuid-is-another", "6/no-uuid-equals-nobody"),
    _s(6, "an empty or well-known placeholder\nUUID (all zeros, all ones, the vendor defaults that whole batches of boards share)", "6/weak-empty", "6/weak-zeros", "6/weak-ones",
       "6/weak-vendor-default"),
    _s(6, "one that a live machine already has", "6/weak-live"),
    _s(6, "one that is recorded with another serial or other MACs", "6/weak-recorded-other-serial", "6/weak-recorded-other-macs", "6/partly-recorded"),
    _s(6, "the entry is pending, marked `WeakIdentity`, shows address, MACs and serial", "6/weak-entry-is-pending-and-marked"),
    _s(6, "(sets `spec.identity`, of which at least one part must be real and unique in the store, and approves with `accept_weak_identity`",
       "6/weak-is-resolved-by-hand", "7/weak-unresolved", "7/weak-unresolved-even-if-accepted", "7/weak-parts-not-unique", "7/weak-not-accepted", "7/weak-accepted"),
    _s(6, "such a machine is re-provisioned only after `trust`", "6/trust-weak-converged", "5/trust-weak", "5/trust-weak-named"),
    _s(6, "the machine that was there first keeps its record untouched", "6/weak-first-keeps-its-record"),
    _s(6, "UUIDs compare in canonical lower case", "6/upper-case-uuid-is-equal"),
    _s(6, "are reported as probably one board, never accepted silently", "6/byte-swapped-recorded", "6/byte-swapped-live", "6/byte-swapped-not-silently"),
    _s(6, "count as absent on both sides", "6/placeholder-serial-is-absent", "6/placeholder-serials-are-equal", "6/repeated-character-serial-is-absent",
       "6/counted-serial-is-absent", "6/real-serial-counts"),
    _s(6, "MACs are the permanent addresses of physical Ethernet links: no bond, VLAN, bridge or dummy, no\nlocally administered address, no USB management NIC.",
       "6/mac-physical", "6/mac-permanent-not-current", "6/mac-not-virtual", "6/mac-not-local", "6/mac-not-usb"),
    _s(6, "Identity is looked up over all clusters of the store; another cluster's record is never changed.", "6/over-all-clusters", "6/other-cluster-own-address"),
    _s(6, "(none: create pending, pin the fingerprint)", "6/new-is-pending-and-pinned", "6/only-looking", "6/broken-record"),
    _s(6, "refresh fingerprint, disks, links (status only) with event `MaintenanceIdentityRefreshed` naming old and new", "6/pending-own", "6/pending-own-probed", elsewhere="tests/unit/_operations/test_discover.py"),
    _s(6, "an unchanged certificate writes nothing", "6/pending-own-unchanged"),
    _s(6, "| record `observedEndpoint`, refresh the same |", "6/pending-other", "6/pending-other-refreshes"),
    _s(6, "| rejected | not probed | record `observedEndpoint`, nothing else |", "6/rejected-own-not-probed", "6/rejected-own-writes-nothing", "6/rejected-other",
       "6/rejected-is-not-asked-either"),
    _s(6, "| host of a Kubernetes Node without the reset marker | not probed |", "6/node-host-not-probed"),
    _s(6, "| approved, never sent a configuration, pinned | not probed by discovery | record `observedEndpoint` (provisioning still refuses another certificate) |",
       "6/approved-pinned-own-not-probed", "6/approved-pinned-own-writes-nothing", "6/approved-pinned-other"),
    _s(6, "| approved, never sent, no pin | nothing | nothing |", "6/approved-unpinned-own", "6/approved-unpinned-own-not-probed", "6/approved-unpinned-other"),
    _s(6, "| approved and sent or converged | nothing | **nothing, ever**: a twin must not redirect it |", "6/sent-own", "6/sent-own-not-probed", "6/sent-other",
       "6/converged-other", "6/sending-other", "6/lost-status-other"),
    _s(6, "Another address is recorded only when the machine's own did not answer as that machine in the same pass.", "6/own-address-is-asked-first", "6/own-address-answers",
       "6/own-address-answers-approved"),
    _s(6, "One identity answering with two certificates at once is a twin: nothing is recorded, `WeakIdentity`, approval refused", "6/twin-of-a-pending", "6/twin-of-nobody",
       "6/twin-of-an-approved", "6/twin-not-approved", "6/twin-gone", "6/twin-not-gone-by-a-narrow-look", "7/redirected-twin"),
    _s(6, "(with one certificate it is a node with two addresses)", "6/two-addresses-one-certificate", "6/moved-to-two-addresses"),
    _s(6, "At most 100 pending machines a cluster (an option), then one warning: somebody who answers many addresses with invented UUIDs fills no store.", "6/pending-limit", "6/pending-limit-is-an-option", "6/pending-limit-counts-the-pass"),
    _s(6, "An address that a person names is always probed.", "6/named-is-always-probed"),
    _s(6, "Refreshing a pending machine needs a strong identity and the same UUID, serial and permanent MACs as recorded", "6/weak-first-keeps-its-record",
       "6/known-address-other-uuid", "6/known-address-other-serial", "6/known-address-other-macs"),
    _s(6, "every other answer at a known address changes nothing and creates nothing", "6/known-address-other-uuid", "6/known-address-weak"),
    _s(6, "A pending machine whose address has left `spec.discovery` is not probed and keeps its pin; the annotation is the way out.", "6/left-discovery", "6/trust-pending-annotates"),
    _s(6, "the host of a marked Node is probed, so that a removed or reclaimed machine comes back as pending", "6/marked-node-host-is-probed"),
    # 7, approval
    _s(7, "A pending machine does nothing until a person approves or rejects it", "7/approves", "7/rejects"),
    _s(7, "exact names, no globs", "7/exact-names", "7/no-such-record", "7/record-broken", "7/other-cluster", "7/cluster-missing"),
    _s(7, "Approval sets role, labels, install disk and roles of the other disks, primary interface\n(DHCP or static, optional VLAN), hostname, and who and when", "7/sets-role",
       "7/sets-labels", "7/sets-install", "7/sets-other-disks", "7/sets-static-network", "7/sets-dhcp", "7/sets-hostname", "7/sets-who", "7/sets-when", "7/role-missing",
       "7/link-unknown", "7/other-disk-not-found", "7/other-disk-is-the-install-disk"),
    _s(7, "it shows and records the fingerprint that it accepts", "7/approves", "7/records-the-fingerprint"),
    _s(7, "the node is probed, a changed pin of equal identity shows old and new", "7/changed-pin-shows-both", "7/another-machine-answers", "7/redirected-machine"),
    _s(7, "with `fingerprint` or `expect_plan_id` given any other is refused", "7/named-fingerprint-fits", "7/named-fingerprint-differs", "7/silent-and-another-named",
       "7/plan-id-holds-the-fingerprint", "7/plan-id-is-stable"),
    _s(7, "a silent node leaves the recorded pin, with a warning", "7/silent-keeps-the-pin", "7/silent-records-the-pin", "7/silent-without-a-pin", "7/configured-node"),
    _s(7, "It is refused when it would leave more approved control planes than\n`spec.controlPlane.count` + 1", "7/cap-allows-one-more", "7/cap-refuses-two-more", "7/cap-counts-this-cluster",
       "7/cap-counts-only-approvals", "7/cap-is-not-for-workers"),
    _s(7, "when the identity is weak and was not resolved", "7/weak-unresolved", "7/weak-not-accepted", "7/weak-by-what-the-store-says"),
    _s(7, "when the disk (or selector) matches none or several of the discovered ones", "7/disk-matches-none", "7/selector-matches-none", "7/selector-matches-several",
       "7/selector-matches-one", "7/selector-is-none", "7/disk-by-link", "7/disks-unknown"),
    _s(7, "or the boot medium", "7/disk-boot-medium", "7/disk-optical"),
    _s(7, "or a read-only or USB disk that was not named outright", "7/disk-read-only", "7/disk-read-only-outright", "7/disk-usb", "7/disk-usb-outright"),
    _s(7, "when a control plane of the cluster has the host name already", "7/hostname-taken", "7/hostname-of-another-cluster", "7/edit-hostname-taken"),
    _s(7, "when the record changed since it was read", elsewhere="tests/unit/_operations/test_machine_approval.py"),
    _s(7, "Approval records the picked disk in `approvedDisk`.", "7/records-the-disk"),
    _s(7, "A disk that already carries Talos or another file system is a warning in the plan, with what is on it.", "7/disk-in-use", "7/disk-in-use-otherwise"),
    _s(7, "`install` can be set later (`InstallDiskUnknown`), and only there: not on a pending machine, not on one with an applied configuration.", "7/late-install",
       "7/late-install-pending", "7/late-install-applied", "7/late-install-stored", "7/late-install-has-the-disk-gates"),
    _s(7, "Approved → rejected is possible only before a configuration was sent", "7/reject-before-a-send", "7/reject-after-a-send", "7/reject-while-sending",
       "7/reject-with-lost-status"),
    _s(7, "role and identity are immutable after that", "7/role-immutable", "7/role-immutable-in-the-store", "7/identity-immutable", "7/identity-immutable-in-the-store",
       "7/approve-after-a-send", "7/approve-again-before-a-send", "7/identity-before-a-send"),
    _s(7, "(refused whenever a schedule variable or a launch type of schedule is there, whatever user is named: scheduled jobs have none, so an inventory could forge it)",
       "7/schedule", "7/schedule-rejects-nothing", "7/nobody"),
    _s(7, "A hand-written `approved` without `approvedBy` and `approvedAt` counts as pending.", "7/hand-written-counts-as-pending", "6/hand-written-approval-is-pending",
       "7/approved-by-hand", "7/approval-fields-together", "7/approval-by-hand-is-read"),
)

#: Words that a refusal, a warning or an exception is told with. What of the three sections stands in no quote holds none of them.
WORDS = (r"refus\w*", "never", "nothing", "unless", "except", "exception", r"warn\w*", "immutable", "only", "not", "no", "cannot", "closed", "ever", "must", "at most", "without")

#: Sentences with such a word that state no rule of these sections, with the reason.
NO_RULE: tuple[tuple[int, str, str], ...] = (
    (3, "creating one needs the verb `approve` on `machinereclaims`", "access control of the Kubernetes store"),
    (3, "Warning `NodeReinstalled`", "names of events"),
    (6, "Talos announces nothing, so finding means probing", "how Talos is"),
)
