#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_store_copy
short_description: Move the records of one store to another
version_added: 0.1.0
description:
  - Moves records with their status, events and bundles of keys from a folder into a Kubernetes API server, or back. The store of the common
    options is the source, that of O(to) is the target, which is made where there is none.
  - The source is closed first, under all its locks, and the target is opened last. A run that was interrupted leaves at most one of the two in
    use; run it again with the same two stores and it goes on.
  - A store whose records were moved is kept to look at. Runs that would write to it are refused and name the other one. Moving back
    opens it again, and files whose record is the same keep their comments.
  - Locks are not copied, and C(approvedVia) becomes the one who copies.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.credentials
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.network
options:
  to:
    description:
      - What kind of store the target is.
    type: str
    choices: [directory, kubernetes]
    required: true
  to_path:
    description:
      - The folder of the target, for O(to=directory).
    type: path
  to_state_path:
    description:
      - The folder of status, events and leases of the target, for O(to=directory). If not set, it is C(.state) in O(to_path).
    type: path
  to_kubeconfig:
    description:
      - The kubeconfig of the target, for O(to=kubernetes). If not set, E(KUBECONFIG), the pod's own account, or C(~/.kube/config) is used.
    type: path
  to_context:
    description:
      - Which context of that kubeconfig to use. If not set, the one that the file itself selects.
    type: str
  to_namespace:
    description:
      - The namespace of the target, for O(to=kubernetes).
    type: str
    default: ichor-system
seealso:
  - module: ichor.talos.talos_runner
"""

EXAMPLES = r"""
- name: Move the records of the folder beside the playbook into the management cluster
  ichor.talos.talos_store_copy:
    store: directory
    to: kubernetes
    to_kubeconfig: ~/.kube/management

- name: And back
  ichor.talos.talos_store_copy:
    store: kubernetes
    store_kubeconfig: ~/.kube/management
    to: directory
    to_path: "{{ playbook_dir }}/ichor"
"""

RETURN = r"""
records:
  description: Kind and name of every record that is moved.
  returned: success
  type: list
  elements: str
  sample: [TalosCluster/prod, TalosMachine/prod-4c4c4544]
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

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import Setting, run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import create_other, open_store
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Gate, Ports, Store
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations.store_copy import Request, run

SPEC = Spec(
    own={
        "to": {"type": "str", "choices": ["directory", "kubernetes"], "required": True},
        "to_path": {"type": "path"},
        "to_state_path": {"type": "path"},
        "to_kubeconfig": {"type": "path"},
        "to_context": {"type": "str"},
        "to_namespace": {"type": "str", "default": "ichor-system"},
    },
    groups=("store", "credentials", "plan", "timing", "network"),
    required_if=[("to", "directory", ("to_path",))],
)


class Ends:
    """Both stores, opened when the options are known."""

    def __init__(self) -> None:
        self.source: Store | None = None
        self.target: Store | None = None
        self.into_files = False

    def open(self, setting: Setting) -> Store:
        options = setting.options
        self.source = open_store(setting)
        self.target = create_other(setting, *(options.text(name) for name in (
            "to", "to_path", "to_state_path", "to_kubeconfig", "to_context", "to_namespace")))
        self.into_files = options.text("to") == "directory"
        return self.source

    async def run(self, timing: Timing, ports: Ports, gate: Gate) -> Outcome:
        return await run(Request(self.source, self.target, self.into_files, timing=timing), ports, gate)


def build_request(options: Options) -> Timing:
    return options.timing()


def main() -> None:
    ends = Ends()
    run_module(SPEC, build_request, ends.run, needs=("yaml",), store=ends.open, needs_store=True)


if __name__ == "__main__":
    main()
