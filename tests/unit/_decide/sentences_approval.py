# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Section 7 of docs/design.md: every refusal, warning and exception in it."""

from __future__ import annotations

from tests.unit._decide.sentence import Sentence, sentence

APPROVAL_SENTENCES: tuple[Sentence, ...] = (
    sentence(7, "A pending machine does nothing until a person approves or rejects it", "7/approves", "7/rejects"),
    sentence(7, "exact names, no globs", "7/exact-names", "7/no-such-record", "7/record-broken", "7/other-cluster", "7/cluster-missing"),
    sentence(
        7,
        "Approval sets role, labels, install disk and roles of the other disks, primary interface\n(DHCP or static, optional VLAN), hostname, and who and when",
        "7/sets-role",
        "7/sets-labels",
        "7/sets-install",
        "7/sets-other-disks",
        "7/sets-static-network",
        "7/sets-dhcp",
        "7/sets-hostname",
        "7/sets-who",
        "7/sets-when",
        "7/role-missing",
        "7/link-unknown",
        "7/other-disk-not-found",
        "7/other-disk-is-the-install-disk",
    ),
    sentence(7, "it shows and records the fingerprint that it accepts", "7/approves", "7/records-the-fingerprint"),
    sentence(
        7,
        "the node is probed, a changed pin of equal identity shows old and new",
        "7/changed-pin-shows-both",
        "7/another-machine-answers",
        "7/redirected-machine",
    ),
    sentence(
        7,
        "with `fingerprint` or `expect_plan_id` given any other is refused",
        "7/named-fingerprint-fits",
        "7/named-fingerprint-differs",
        "7/silent-and-another-named",
        "7/plan-id-holds-the-fingerprint",
        "7/plan-id-is-stable",
    ),
    sentence(
        7,
        "a silent node leaves the recorded pin, with a warning",
        "7/silent-keeps-the-pin",
        "7/silent-records-the-pin",
        "7/silent-without-a-pin",
        "7/configured-node",
    ),
    sentence(
        7,
        "It is refused when it would leave more approved control planes than\n`spec.controlPlane.count` + 1",
        "7/cap-allows-one-more",
        "7/cap-refuses-two-more",
        "7/cap-counts-this-cluster",
        "7/cap-counts-only-approvals",
        "7/cap-is-not-for-workers",
    ),
    sentence(7, "when the identity is weak and was not resolved", "7/weak-unresolved", "7/weak-not-accepted", "7/weak-by-what-the-store-says"),
    sentence(
        7,
        "when the disk (or selector) matches none or several of the discovered ones",
        "7/disk-matches-none",
        "7/selector-matches-none",
        "7/selector-matches-several",
        "7/selector-matches-one",
        "7/selector-is-none",
        "7/disk-by-link",
        "7/disks-unknown",
    ),
    sentence(7, "or the boot medium", "7/disk-boot-medium", "7/disk-optical"),
    sentence(7, "or a read-only or USB disk that was not named outright", "7/disk-read-only", "7/disk-read-only-outright", "7/disk-usb", "7/disk-usb-outright"),
    sentence(7, "when a control plane of the cluster has the host name already", "7/hostname-taken", "7/hostname-of-another-cluster", "7/edit-hostname-taken"),
    sentence(7, "when the record changed since it was read", elsewhere="tests/unit/_operations/test_machine_approval.py"),
    sentence(7, "Approval records the picked disk in `approvedDisk`.", "7/records-the-disk"),
    sentence(
        7, "A disk that already carries Talos or another file system is a warning in the plan, with what is on it.", "7/disk-in-use", "7/disk-in-use-otherwise"
    ),
    sentence(
        7,
        "`install` can be set later (`InstallDiskUnknown`), and only there: not on a pending machine, not on one with an applied configuration.",
        "7/late-install",
        "7/late-install-pending",
        "7/late-install-applied",
        "7/late-install-stored",
        "7/late-install-has-the-disk-gates",
    ),
    sentence(
        7,
        "Approved → rejected is possible only before a configuration was sent",
        "7/reject-before-a-send",
        "7/reject-after-a-send",
        "7/reject-while-sending",
        "7/reject-with-lost-status",
        "7/approve-again-with-lost-status",
        "7/approve-again-with-the-status-of-another",
    ),
    sentence(
        7,
        "role and identity are immutable after that",
        "7/role-immutable",
        "7/role-immutable-in-the-store",
        "7/identity-immutable",
        "7/identity-immutable-in-the-store",
        "7/approve-after-a-send",
        "7/approve-again-before-a-send",
        "7/identity-before-a-send",
    ),
    sentence(
        7,
        "(refused whenever a schedule variable or a launch type of schedule is there, whatever user is named: scheduled jobs have none, so an "
        "inventory could forge it)",
        "7/schedule",
        "7/schedule-rejects-nothing",
        "7/nobody",
    ),
    sentence(
        7,
        "A hand-written `approved` without `approvedBy` and `approvedAt` counts as pending.",
        "7/hand-written-counts-as-pending",
        "6/hand-written-approval-is-pending",
        "7/approved-by-hand",
        "7/approval-fields-together",
        "7/approval-by-hand-is-read",
    ),
)
