# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the pages have to say about where records live (design section 4)."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def text(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


def test_ci_keeps_the_state_folder() -> None:
    assert "kept between runs: without it every approved machine is `StatusMissing`" in text("ci.md")


def test_ci_has_what_a_first_run_cannot_do_without() -> None:
    page = text("ci.md")
    assert "git add --force ichor/secrets/prod.yaml" in page and "(`SecretsUnavailable`)" in page and "mv ichor/.state /srv/ichor-state" in page
    # What is done is noted in the plan's file, so a job that downloads it anew forgets.
    assert 'test -e "$plans/plan.json" ||' in page and '-e "ichor_plan_file=$PLAN"' in page
    assert page.count("ANSIBLE_VAULT_PASSWORD_FILE") == page.count("- run: ansible-playbook")


def test_awx_has_the_kubernetes_store() -> None:
    page = text("awx.md")
    assert "**The store is the Kubernetes one.**" in page and "a slice could not know that it is one" in page
