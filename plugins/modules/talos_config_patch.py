#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_config_patch
short_description: Create and change a configuration patch
version_added: 0.1.0
description:
  - Writes the record of a patch, Talos documents that are laid over the configurations of a cluster's machines as strategic merges. What is
    not given stays as it is. Nothing is sent to any node.
  - A new or changed patch is rendered for every approved machine that it selects, with and without it. It is refused where the render
    fails with it and not without it, with the error in full. Where there is no cluster record yet or the bundle cannot be read, that is
    not checked, and a warning says so.
  - The plan says which machines would reboot.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.credentials
  - ichor.talos.options.cluster
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.network
options:
  name:
    description:
      - Name of the patch.
    type: str
    required: true
  state:
    description:
      - With V(absent) the record is deleted. That is not test-rendered.
    type: str
    choices: [present, absent]
    default: present
  layer:
    description:
      - Patches of layer V(machine) come after those of layer V(cluster). A new patch is of layer V(cluster) if not set.
    type: str
    choices: [cluster, machine]
  priority:
    description:
      - Within a layer lower comes first; equal ones go by name.
    type: int
  machine_selector:
    description:
      - Which machines; all of the cluster where it is not set. All parts have to hold. V({}) takes the selector away.
    type: dict
    suboptions:
      names:
        description: Names of machines.
        type: list
        elements: str
      labels:
        description: Labels that a machine has to have.
        type: dict
      role:
        description: Role that a machine has to have.
        type: str
        choices: [controlplane, worker]
  documents:
    description:
      - The documents. One without a C(kind) is the C(v1alpha1) document, with only what is to be changed. C($patch) with the value V(delete)
        takes a document, a key or a list element away.
    type: list
    elements: dict
  patch_file:
    description:
      - The documents as a YAML file, in place of O(documents). It may be vaulted; the record holds them in clear.
    type: path
  allow_delete:
    description:
      - Says that deleting the record is meant.
    type: bool
    default: false
  override:
    description:
      - Change the record although Argo CD or Flux keep it in step with git.
    type: bool
    default: false
seealso:
  - module: ichor.talos.talos_config_info
  - module: ichor.talos.talos_cluster
"""

EXAMPLES = r"""
- name: Set a kernel parameter on every machine of the cluster
  ichor.talos.talos_config_patch:
    name: inotify
    cluster: prod
    documents:
      - machine:
          sysctls:
            fs.inotify.max_user_watches: "1048576"

- name: Another time server for the workers of one site, after all other patches
  ichor.talos.talos_config_patch:
    name: time-north
    cluster: prod
    layer: machine
    priority: 100
    machine_selector:
      role: worker
      labels: {site: north}
    documents:
      - apiVersion: v1alpha1
        kind: TimeSyncConfig
        ntp:
          servers: [192.0.2.123]

- name: See whom a change would reboot, without making it
  ichor.talos.talos_config_patch:
    name: inotify
    cluster: prod
    patch_file: patches/inotify.yaml
  check_mode: true
  diff: true
"""

RETURN = r"""
patch:
  description: The record as it is now, or would be; null when there is none. Its documents are one text in which secrets are masked.
  returned: success
  type: dict
effects:
  description: What the patch does to each approved machine that it selects; empty where that was not checked.
  returned: always
  type: list
  elements: dict
  contains:
    machine:
      description: Name of the machine.
      type: str
    renders:
      description: Whether its configuration can be rendered with the patch.
      type: bool
    message:
      description: Why it cannot.
      type: str
    changes:
      description: What changes by path. Each entry has C(document), C(path), C(running), C(wanted) and C(secret).
      type: list
      elements: dict
    needs_reboot:
      description: Whether the machine would reboot; null where that cannot be told.
      type: bool
    reboot:
      description: The paths for which it would reboot.
      type: list
      elements: str
    later:
      description: The paths that have effect only after a service or the node restarts.
      type: list
      elements: str
    never:
      description: The paths that have no effect on an installed node.
      type: list
      elements: str
reason:
  description: A stable word for what the task came to, empty when there is nothing to say.
  returned: always
  type: str
  sample: PlanChanged
msg:
  description: What happened, in one sentence, with what to do in a second one when something is wrong.
  returned: always
  type: str
  sample: 1 of 1 step done.
refusals:
  description: What is refused, and what a failed task failed with; RV(msg) tells it to a person.
  returned: always
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the record, empty where it is about none.
      type: str
    target:
      description: Name of the record, or address of the machine or node.
      type: str
    reason:
      description: A stable word, see the page of reasons.
      type: str
    message:
      description: What is wrong, in one sentence.
      type: str
    hint:
      description: What to do about it.
      type: str
plan:
  description: The steps that the present observation calls for, in order.
  returned: always
  type: list
  elements: dict
  contains:
    id:
      description: Stable name of this very step.
      type: str
    action:
      description: What is done.
      type: str
    target:
      description: The record or machine that it is done to.
      type: str
    why:
      description: Why the step is called for.
      type: str
    disruption:
      description: What the step interrupts, one of V(none), V(drain), V(reboot) and V(wipe).
      type: str
    reversible:
      description: Whether the step can be taken back.
      type: bool
    waits_for:
      description: What has to happen before the step is done.
      type: list
      elements: str
plan_id:
  description: Hash of the plan. Equal plans have equal ids; give it to O(expect_plan_id) to run this plan and no other.
  returned: always
  type: str
machines:
  description: The machines that the task looked at.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the record, or the address of a machine without one.
      type: str
    cluster:
      description: Name of its cluster.
      type: str
    stage:
      description: Stage of its life, as Talos names it.
      type: str
    ready:
      description: Whether the machine is ready.
      type: bool
    reason:
      description: Reason of its condition.
      type: str
    message:
      description: The same as a sentence; empty where a failed task tells it in RV(refusals).
      type: str
    changed:
      description: Whether a step of the plan concerns it.
      type: bool
transitions:
  description: Stages and conditions that moved during the task.
  returned: always
  type: list
  elements: dict
  contains:
    machine:
      description: Name of the machine.
      type: str
    what:
      description: The stage or the condition that moved.
      type: str
    before:
      description: Its value before.
      type: str
    after:
      description: Its value after.
      type: str
events:
  description: Events that the task recorded.
  returned: always
  type: list
  elements: dict
  contains:
    object:
      description: Kind and name of the record.
      type: str
    type:
      description: V(Normal) or V(Warning).
      type: str
    reason:
      description: Reason of the event.
      type: str
    message:
      description: The event as a sentence.
      type: str
    time:
      description: When it happened, in UTC.
      type: str
blocked:
  description: Names of machines that a refusal holds.
  returned: always
  type: list
  elements: str
unreachable_machines:
  description:
    - Names of machines that do not answer. They do not fail the task.
    - The key C(unreachable) itself is Ansible's own.
  returned: always
  type: list
  elements: str
waiting_for:
  description: What has to happen before there is more to do.
  returned: always
  type: list
  elements: str
requeue_after:
  description: When to look again, in seconds; null when there is nothing to wait for.
  returned: always
  type: float
interrupted:
  description: Whether the task was stopped before its end.
  returned: always
  type: bool
truncated:
  description: Whether parts of the result were left out since it was larger than 500 kB.
  returned: when true
  type: bool
failure:
  description: Where the failure happened.
  returned: on failure
  type: dict
  contains:
    node:
      description: Address of the node.
      type: str
    rpc:
      description: The call that failed.
      type: str
    code:
      description: Its gRPC code.
      type: str
    step:
      description: Id of the step that was being done.
      type: str
    retryable:
      description: Whether trying again makes sense.
      type: bool
    last_seen:
      description: What was last seen of the node.
      type: str
"""

import json

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._decide.patch_words import PatchEdit
from ansible_collections.ichor.talos.plugins.module_utils._operations.config_patch import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.spec_options import patch_settings

SPEC = Spec(
    own={
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "layer": {"type": "str", "choices": ["cluster", "machine"]},
        "priority": {"type": "int"},
        "machine_selector": {"type": "dict", "options": {
            "names": {"type": "list", "elements": "str"}, "labels": {"type": "dict"}, "role": {"type": "str", "choices": ["controlplane", "worker"]},
        }},
        "documents": {"type": "list", "elements": "dict"},
        "patch_file": {"type": "path"},
        "allow_delete": {"type": "bool", "default": False},
        "override": {"type": "bool", "default": False},
    },
    groups=("store", "credentials", "cluster", "plan", "timing", "network"),
    mutually_exclusive=[("documents", "patch_file")],
)


def build_request(options: Options) -> Request:
    text = options.secret_file(options.text("patch_file"), "patch_file") if "patch_file" in options else None
    for document in options.maps("documents"):
        options.remember(json.dumps(document, default=str))
    settings = patch_settings({name: options.raw(name) for name in ("cluster", "layer", "priority", "machine_selector", "documents")})
    return Request(PatchEdit(
        options.text("name"), settings, text, options.text("patch_file"), absent=options.text("state") == "absent",
        allow_delete=options.flag("allow_delete"), override=options.flag("override")))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "cryptography"), store=open_store, needs_store=True)


if __name__ == "__main__":
    main()
