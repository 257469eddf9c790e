# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of section 8 of docs/design.md, with the rows and tests that stand for them."""

from __future__ import annotations

from tests.unit._decide.sentence import Sentence, sentence

RENDER = "tests/unit/_machineconfig/test_render.py"
COMPARE = "tests/unit/_machineconfig/test_compare.py"
VECTORS = "tests/unit/_machineconfig/test_vectors.py"
GATES = "tests/unit/_decide/test_provisioning_gates.py"
LIFE = "tests/scenarios/test_rendered_life.py"

CONFIGURATION_SENTENCES: tuple[Sentence, ...] = (
    sentence(8, "patches (cluster layer, then machine layer, by priority, then name)", elsewhere=RENDER),
    sentence(8, "the spec wins over patches", "8/spec-wins-over-a-patch"),
    sentence(8, "semantically equal to what Talos's own generator gives for the same inputs", elsewhere=VECTORS),
    sentence(8, "Same inputs, same bytes", elsewhere=RENDER),
    sentence(8, "unknown keys and kinds are refused by name, with the Talos version that knows them", "8/unknown-key", "8/unknown-kind",
             "8/kind-of-a-newer-talos", "8/unknown-key-in-a-file"),
    sentence(8, "the contract against the Talos version that the node runs", elsewhere=GATES),
    sentence(8, "and the links and disks that it names against those that the node has, before anything is sent", elsewhere=GATES),
    sentence(8, "RFC 6902 patches are refused, with the strategic-merge form that says the same where it is a plain add or replace", "8/json-patch",
             "8/json-patch-without-a-form", "8/json-patch-in-a-file"),
    sentence(8, "empty and comment-only patches are no change", "8/patch-empty", "8/patch-only-comments"),
    sentence(8, "the `HostnameConfig` document with `auto: off` on all three contracts (Talos refuses the legacy key beside it, and each of these contracts "
             "generates the document; `machine.network.hostname` is used only where the result has no such document)", elsewhere=RENDER),
    sentence(8, "A changed host name counts as reboot-required", "8/patch-hostname-reboots"),
    sentence(8, "Patches are Talos strategic merges (with `$patch: delete`), multi-document, matched by kind and name", elsewhere=VECTORS),
    sentence(8, "**A patch that cannot render is refused when it is written**, with the render error in full", "8/patch-breaks"),
    sentence(8, "it is rendered for every approved machine that it selects, with and without the patch", "8/patch-breaks-selected", "8/patch-breaks-nobody",
             "8/patch-selector-role", "8/patch-selects-nobody", "8/patch-unknown-name"),
    sentence(8, "and refused only when\n  the render fails with it and not without it", "8/patch-broken-before", "8/patch-broken-before-and-with-it",
             "8/patch-mends-itself", "8/patch-created", "8/patch-changed", "8/patch-unchanged"),
    sentence(8, "Not checked: a missing cluster, an unreadable bundle, a delete", "8/patch-no-cluster", "8/patch-no-bundle", "8/patch-deleted",
             "8/patch-delete-missing", "8/patch-deleted-by-annotation", "8/patch-delete-not-meant", "8/patch-delete-broken", "8/patch-delete-tracked"),
    sentence(8, "The same check tells which machines would reboot (and says \"no reboot\" for, say, an API server flag)", "8/patch-reboots",
             "8/patch-api-server-flag", "8/patch-later", "8/patch-never"),
    sentence(8, "Empty and null leaves and `version` do not count as set; a path nobody knows counts as reboot-required", elsewhere=COMPARE),
    sentence(8, "A patch that breaks rendering anyway (written behind the module's back) sets `RenderFailed` with the error in the message, applies nothing, "
             "and holds only the machines that it selects", "8/render-failed", elsewhere=LIFE),
    sentence(8, "Drift that is never reverted, only shown: Kubernetes image tags that are newer than the record", "8/newer-images", "8/older-images"),
    sentence(8, "Since Talos takes only whole configurations, what is sent to a running node is the render with the node's own values at these paths",
             elsewhere=COMPARE),
    sentence(8, "Any CA, key or token that differs from the bundle (a rotation) is `AuthorityMismatch`: nothing is sent", "8/another-token"),
)

#: Rows that carry out what sections 3, 4, 11 and 18 say of bundles, patches and comparing.
ELSEWHERE = ("8/bundle-", "8/patch-broken-file", "8/patch-tracked", "8/patch-without-documents", "8/patch-secret", "8/patch-template",
             "8/renders", "8/in-sync", "8/drifted", "8/unreadable")
