# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of the paragraph on the container network in section 15 of docs/design.md, with the rows and tests that stand for them."""

from __future__ import annotations

from tests.unit._decide.sentences_sending import Sentence

OPERATION = "tests/unit/_operations/test_cni.py"


def _s(quote: str, *shown: str) -> Sentence:
    return Sentence(15, quote, shown)


def _rows(*names: str) -> tuple[str, ...]:
    return tuple(f"15/cni-{name}" for name in names)


SENTENCES: tuple[Sentence, ...] = (
    _s("Cilium is taken over with its Helm values (from the release record;", *_rows(
        "release-with-values", "release-sets-what-is-owned-alike", "release-sets-more-beside-what-is-owned", "release-without-values", "release-unread",
        "release-under-way", "release-failed", "other-chart-of-the-release",
        "other-chart-that-is-named", "other-chart-and-recorded", "version-named", "chart-named", "older-version", "secret-in-the-release",
        "release-elsewhere", "release-nowhere", "image-of-another-version-than-the-release", "ours-that-is-newer-than-its-release-stays", "repository-named")),
    _s("`cilium_values` when that carries none;", *_rows(
        "release-without-values-and-some-brought", "no-release-and-values-brought", "no-release-and-no-values", "secret-in-values",
        "release-elsewhere-and-values-brought", "image-of-one-s-own", "image-that-the-values-name")),
    _s("both → refused;", *_rows("both-values")),
    _s("owned keys refused;", *_rows("owned-key", "owned-key-set-alike", "owned-key-of-no-mapping", "owned-key-in-the-record", "release-sets-what-is-owned")),
    _s("refused on unmanaged),", *_rows(
        "values-without-managed", "values-and-unmanaged", "values-empty-and-unmanaged", "with-add-machine", "values-with-add-machine")),
    _s("kept as `spec.cni.cilium.values`,", *_rows(
        "values-left-behind", "values-that-the-record-has", "values-that-change-nothing",
        "recorded-is-compared", "recorded-and-the-same-brought", "other-values-than-recorded", "recorded-and-nothing-there",
        "release-elsewhere-and-recorded"),
       f"{OPERATION}::test_a_release_is_taken_over_with_its_values"),
    _s("only with `ipam.mode: kubernetes` (`cluster-pool` is refused: it would renumber the pods),", *_rows(
        "cluster-pool", "cluster-pool-and-values", "ipam-not-told", "rendered-with-another-ipam", "rendered-without-ipam",
        "installed-with-another-ipam")),
    _s("through a diff gate of live objects against the render (`accept_cilium_diff` passes it).", *_rows(
        "all-alike", "diff-closed", "diff-accepted", "diff-of-a-config-alone", "missing-object-closed", "ours-is-completed", "ours-that-somebody-changed",
        "ours-goes-on", "in-git", "in-git-and-alike", "object-unread", "left-over", "keys-of-the-cluster-stay", "keys-that-are-missing",
        "secret-that-differs", "other-names-each-time", "no-agent-in-the-chart",
        "ours-that-is-newer-stays", "ours-becomes-older-when-it-is-told", "agents-become-older", "agents-become-newer",
        "put-back-by-a-webhook", "put-back-beside-a-change", "put-back-otherwise")),
    _s("No CNI → the pinned Cilium is installed first, then adopted as managed (`cilium_values` allowed).", *_rows(
        "nothing-there", "nothing-there-and-values", "no-node-yet", "one-waits-and-one-is-silent", "no-proxy", "no-proxy-and-replaced", "installed",
        "installed-over-what-was-left", "repository-named-and-nothing-there",
        "chart-by-its-digest", "password-in-the-repository", "password-in-the-chart"), f"{OPERATION}::test_a_network_that_is_missing_comes_before_the_records"),
    _s("Any other CNI → only as `unmanaged`, immutable,", *_rows(
        "unmanaged", "unmanaged-again", "unmanaged-stays", "managed-stays", "none-stays", "none-becomes-managed-first", "not-asked",
        "managed-and-not-asked", "record-says-otherwise",
        "two-networks", "two-of-cilium", "unknown-installer", "recorded-and-foreign", "flannel-comes-back", "flannel-comes-back-beside-cilium")),
    _s("and the refusal says why no migration is offered and which three ways there are: leave it, a new cluster, a planned outage to no CNI (unverified).",
       *_rows("flannel-by-talos", "calico-there", "unknown-installer", "foreign-and-values", "ready-without-an-installer", "nodes-that-say-nothing",
              "unmanaged-stays")),
)

#: Rows that stand for other sections: silence is no absence.
ELSEWHERE = ("15/cni-silent",)
