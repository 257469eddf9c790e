# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Section 17 of the design, sentence by sentence, with the rows that stand for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit._decide.proofs import section
from tests.unit._decide import test_backup, test_restore
from tests.unit._decide.sentence import Sentence, sentence

ROOT = Path(__file__).parents[3]
BACKUP = "tests/unit/_operations/test_etcd_backup.py"
LAB = "tests/unit/_operations/test_etcd_restore_against_lab.py"
SENTENCES = (
    sentence(17, "Snapshot to a file or S3-compatible store", "17/backup", "17/backup-one-of-three-answers", "17/backup-without-a-place",
             "17/backup-place-silent", "17/backup-no-control-plane", "17/backup-without-credentials", "17/backup-other-cluster", "17/backup-all-silent",
             "17/backup-only-a-learner", "17/backup-no-leader"),
    sentence(17, "with its hash verified", "17/restore-cut-off", "17/restore-not-what-was-saved", "17/restore-not-found", "17/restore-unverified",
             elsewhere=BACKUP),
    sentence(17, "restore onto a fresh first control plane", "17/restore", "17/restore-wiped", "17/restore-after-one-that-failed",
             "17/restore-again-on-the-same", "17/restore-lost-answer", "17/restore-beside-two-that-wait", elsewhere=LAB),
    sentence(17, "with the gates of a bootstrap", "17/restore-asks", "17/restore-pending", "17/restore-worker", "17/restore-status-lost",
             "17/restore-never-sent", "17/restore-of-another-under-way", "17/restore-bootstrapping", "17/restore-during-a-disruption",
             "17/restore-without-credentials", "17/restore-other-cluster", "17/restore-another-node", "17/restore-silent-itself",
             "17/restore-beside-one-that-installs", "17/restore-installing", "17/restore-no-etcd-service", "17/restore-shutdown", "17/restore-even"),
    sentence(17, "except that control planes that do not answer are typed in `lost: […]`", "17/restore-with-two-lost", "17/restore-beside-a-silent-one",
             "17/restore-lost-nobody", "17/restore-lost-itself", "17/restore-lost-that-waits"),
    sentence(17, "is refused for a restore, whatever override", "17/restore-from-inside", "17/restore-from-inside-whatever-is-typed"),
    sentence(17, "is a warning condition `StoreInCluster` on a backup", elsewhere="tests/unit/_decide/test_backup.py"),
    sentence(17, "Restore is never idempotent: it takes `confirm`", "17/restore-no-confirm", "17/restore-another-name"),
    sentence(17, "it is refused with the way to do it by hand", "17/restore-onto-itself-running", "17/restore-beside-a-living-one",
             "17/restore-beside-one-without-a-leader"),
)


@pytest.mark.parametrize("entry", SENTENCES, ids=lambda entry: entry.quote)
def test_a_sentence_stands_in_its_section_and_has_rows(entry: Sentence) -> None:
    text = section(17)
    rows = {case.id for case in (*test_backup.CASES, *test_restore.CASES)}
    assert entry.quote in text and set(entry.rows) <= rows and (entry.rows or entry.elsewhere) and all((ROOT / path).is_file() for path in entry.elsewhere)


def test_every_row_is_named_by_a_sentence() -> None:
    assert {case.id for case in (*test_backup.CASES, *test_restore.CASES)} == {row for entry in SENTENCES for row in entry.rows}
