# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every refusal, warning and exception of sections 3, 6 and 7 of docs/design.md."""

from __future__ import annotations

from tests.unit._decide.sentence import Sentence
from tests.unit._decide.sentences_approval import APPROVAL_SENTENCES
from tests.unit._decide.sentences_configuration import CONFIGURATION_SENTENCES
from tests.unit._decide.sentences_discovery import DISCOVERY_SENTENCES
from tests.unit._decide.sentences_records import RECORDS_SENTENCES

SENTENCES: tuple[Sentence, ...] = RECORDS_SENTENCES + DISCOVERY_SENTENCES + APPROVAL_SENTENCES + CONFIGURATION_SENTENCES

#: Words that a refusal, a warning or an exception is told with. What of the three sections stands in no quote holds none of them.
WORDS = (
    r"refus\w*",
    "never",
    "nothing",
    "unless",
    "except",
    "exception",
    r"warn\w*",
    "immutable",
    "only",
    "not",
    "no",
    "cannot",
    "closed",
    "ever",
    "must",
    "at most",
    "without",
)

#: Sentences with such a word that state no rule of these sections, with the reason.
NO_RULE: tuple[tuple[int, str, str], ...] = (
    (3, "creating one needs the verb `approve` on `machinereclaims`", "access control of the Kubernetes store"),
    (3, "Warning `NodeReinstalled`", "names of events"),
    (6, "Talos announces nothing, so finding means probing", "how Talos is"),
)
