# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Section 6 of docs/design.md: every refusal, warning and exception in it."""

from __future__ import annotations

from tests.unit._decide.sentence import Sentence, sentence

DISCOVERY_SENTENCES: tuple[Sentence, ...] = (
    sentence(6, "(CIDR and `a-b`)", "6/discovery-too-large", elsewhere="tests/unit/_model/test_addresses.py"),
    sentence(
        6,
        "(under 256 unresolved at once on an on-link range, 1,000 new connections a second unless asked)",
        elsewhere="tests/unit/_operations/test_discover.py",
    ),
    sentence(6, "For each address: `NotListening`", "6/silent"),
    sentence(
        6,
        "(wants a client certificate; nothing is\ncreated; the hint names both ways in: adopt `--add-machine` when it belongs to this cluster, "
        "reclaim when it does not)",
        "6/configured-creates-nothing",
        "6/configured-own-is-no-news",
    ),
    sentence(6, "the reads are all read-only", elsewhere="tests/unit/_operations/test_discover.py"),
    sentence(
        6,
        "equal means all three",
        "6/equal-means-all-three",
        "6/other-serial-is-another",
        "6/other-macs-are-another",
        "6/other-uuid-is-another",
        "6/no-uuid-equals-nobody",
    ),
    sentence(
        6,
        "an empty or well-known placeholder\nUUID (all zeros, all ones, the vendor defaults that whole batches of boards share)",
        "6/weak-empty",
        "6/weak-zeros",
        "6/weak-ones",
        "6/weak-vendor-default",
    ),
    sentence(6, "one that a live machine already has", "6/weak-live"),
    sentence(6, "one that is recorded with another serial or other MACs", "6/weak-recorded-other-serial", "6/weak-recorded-other-macs", "6/partly-recorded"),
    sentence(6, "the entry is pending, marked `WeakIdentity`, shows address, MACs and serial", "6/weak-entry-is-pending-and-marked"),
    sentence(
        6,
        "(sets `spec.identity`, of which at least one part must be real and unique in the store, and approves with `accept_weak_identity`",
        "6/weak-is-resolved-by-hand",
        "7/weak-unresolved",
        "7/weak-unresolved-even-if-accepted",
        "7/weak-parts-not-unique",
        "7/weak-not-accepted",
        "7/weak-accepted",
    ),
    sentence(6, "such a machine is re-provisioned only after `trust`", "6/trust-weak-converged", "5/trust-weak", "5/trust-weak-named"),
    sentence(6, "the machine that was there first keeps its record untouched", "6/weak-first-keeps-its-record"),
    sentence(6, "UUIDs compare in canonical lower case", "6/upper-case-uuid-is-equal"),
    sentence(6, "are reported as probably one board, never accepted silently", "6/byte-swapped-recorded", "6/byte-swapped-live", "6/byte-swapped-not-silently"),
    sentence(
        6,
        "count as absent on both sides",
        "6/placeholder-serial-is-absent",
        "6/placeholder-serials-are-equal",
        "6/repeated-character-serial-is-absent",
        "6/counted-serial-is-absent",
        "6/real-serial-counts",
    ),
    sentence(
        6,
        "MACs are the permanent addresses of physical Ethernet links: no bond, VLAN, bridge or dummy, no\nlocally administered address, no USB management NIC.",
        "6/mac-physical",
        "6/mac-permanent-not-current",
        "6/mac-not-virtual",
        "6/mac-not-local",
        "6/mac-not-usb",
    ),
    sentence(
        6,
        "Identity is looked up over all clusters of the store; another cluster's record is never changed.",
        "6/over-all-clusters",
        "6/other-cluster-own-address",
    ),
    sentence(6, "(none: create pending, pin the fingerprint)", "6/new-is-pending-and-pinned", "6/only-looking", "6/broken-record"),
    sentence(
        6,
        "refresh fingerprint, disks, links (status only) with event `MaintenanceIdentityRefreshed` naming old and new",
        "6/pending-own",
        "6/pending-own-probed",
        elsewhere="tests/unit/_operations/test_discover.py",
    ),
    sentence(6, "an unchanged certificate writes nothing", "6/pending-own-unchanged"),
    sentence(6, "| record `observedEndpoint`, refresh the same |", "6/pending-other", "6/pending-other-refreshes"),
    sentence(
        6,
        "| rejected | not probed | record `observedEndpoint`, nothing else |",
        "6/rejected-own-not-probed",
        "6/rejected-own-writes-nothing",
        "6/rejected-other",
        "6/rejected-is-not-asked-either",
    ),
    sentence(6, "| host of a Kubernetes Node without the reset marker | not probed |", "6/node-host-not-probed"),
    sentence(
        6,
        "| approved, never sent a configuration, pinned | not probed by discovery | record `observedEndpoint` (provisioning still refuses another "
        "certificate) |",
        "6/approved-pinned-own-not-probed",
        "6/approved-pinned-own-writes-nothing",
        "6/approved-pinned-other",
    ),
    sentence(
        6, "| approved, never sent, no pin | nothing | nothing |", "6/approved-unpinned-own", "6/approved-unpinned-own-not-probed", "6/approved-unpinned-other"
    ),
    sentence(
        6,
        "| approved and sent or converged | nothing | **nothing, ever**: a twin must not redirect it |",
        "6/sent-own",
        "6/sent-own-not-probed",
        "6/sent-other",
        "6/converged-other",
        "6/sending-other",
        "6/lost-status-other",
    ),
    sentence(
        6,
        "Another address is recorded only when the machine's own did not answer as that machine in the same pass.",
        "6/own-address-is-asked-first",
        "6/own-address-answers",
        "6/own-address-answers-approved",
    ),
    sentence(
        6,
        "One identity answering with two certificates at once is a twin: nothing is recorded, `WeakIdentity`, approval refused",
        "6/twin-of-a-pending",
        "6/twin-of-nobody",
        "6/twin-of-an-approved",
        "6/twin-not-approved",
        "6/twin-gone",
        "6/twin-not-gone-by-a-narrow-look",
        "7/redirected-twin",
    ),
    sentence(6, "(with one certificate it is a node with two addresses)", "6/two-addresses-one-certificate", "6/moved-to-two-addresses"),
    sentence(
        6,
        "At most 100 pending machines a cluster (an option), then one warning: somebody who answers many addresses with invented UUIDs fills no store.",
        "6/pending-limit",
        "6/pending-limit-is-an-option",
        "6/pending-limit-counts-the-pass",
    ),
    sentence(6, "An address that a person names is always probed.", "6/named-is-always-probed"),
    sentence(
        6,
        "Refreshing a pending machine needs a strong identity and the same UUID, serial and permanent MACs as recorded",
        "6/weak-first-keeps-its-record",
        "6/known-address-other-uuid",
        "6/known-address-other-serial",
        "6/known-address-other-macs",
    ),
    sentence(6, "every other answer at a known address changes nothing and creates nothing", "6/known-address-other-uuid", "6/known-address-weak"),
    sentence(
        6,
        "A pending machine whose address has left `spec.discovery` is not probed and keeps its pin; the annotation is the way out.",
        "6/left-discovery",
        "6/trust-pending-annotates",
    ),
    sentence(6, "the host of a marked Node is probed, so that a removed or reclaimed machine comes back as pending", "6/marked-node-host-is-probed"),
)
