# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Every target runs in environments of its own under .build/; nothing else on the machine is touched.
# PYTHON=/path/to/python chooses the interpreter, ARGS="…" is handed on to what is run.

WORKSHOP = sh tests/workshop/with-python

.DEFAULT_GOAL := help
.PHONY: help demo test unit lint vectors bench torture runtime build clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target text; do printf '%-16s %s\n' "$$target" "$$text"; done

demo: ## the first life of a cluster, with ansible-playbook against emulated nodes
	@$(WORKSHOP) demo

test: ## lint and every test
	@$(WORKSHOP) test $(ARGS)

unit: ## the unit tests alone, in seconds
	@$(WORKSHOP) unit $(ARGS)

lint: ## sanity, ansible-lint, types, rooms, documentation, changelog; CHECKS="types rooms" for some of them
	@$(WORKSHOP) lint $(CHECKS)

vectors: ## recorded rows against the emulated nodes: VECTORS=DIR, the project's own without it
	@$(WORKSHOP) vectors "$(VECTORS)" $(ARGS)

bench: ## figures, each a ratio against a bare alternative in the same run
	@$(WORKSHOP) bench $(ARGS)

torture: ## random worlds, mutated answers, kills and faults: TIME=600 seconds, SEED=chosen and printed without it
	@$(WORKSHOP) torture $(if $(TIME),--seconds "$(TIME)") $(if $(SEED),--seed "$(SEED)") $(ARGS)

runtime: ## meta/runtime.yml anew, after a module came or went
	@$(WORKSHOP) runtime

build: ## the collection's archive, in .build/dist
	@$(WORKSHOP) build

clean: ## remove .build
	@rm -rf .build
