#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_machine_removal
short_description: Remove a machine from its cluster
version_added: 0.1.0
description:
  - Takes one machine out of its cluster, confirmed by its name. A node that answers is drained, leaves etcd where it is a control plane, is
    reset, and its Kubernetes Node and its record are deleted once it has reached maintenance mode; discovery finds it again as pending.
  - It is refused when the cluster would fall below the count of its control planes, when etcd would lose its quorum, and for the last
    control plane. From two control planes none is removed, dead or not. No option bends the last two.
  - A dead control plane may go below the count. It is dead when a healthy one lists its etcd member, and that member answers neither from
    here nor through the healthy one, or sees no leader. Its member is removed by its id and its record deleted; the rest is skipped.
  - A machine that is pending, rejected or was never sent a configuration is its record alone, which is deleted.
  - From its first step on, the record has the condition Removal, which holds every send to the machine. A removal that was
    interrupted goes on where it stopped when it is run again.
  - The drain evicts the pods of the node but static ones, finished ones and those of DaemonSets, as their PodDisruptionBudgets allow. What is
    left after C(timing.drain) seconds is named, and nothing is reset then. Where Kubernetes cannot be read, nothing is done at all.
  - It takes the lock of the cluster, so it needs a store.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.credentials
  - ichor.talos.options.kubernetes
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.network
options:
  machine:
    description:
      - The exact name of the machine's record.
    type: str
    required: true
  confirm:
    description:
      - The name of the machine once more. Anything else is refused, in check mode too.
    type: str
  skip_drain:
    description:
      - Go on without draining the node and without looking for data on its own disks. Talos itself evicts what it can within the reset.
      - Needed where the cluster's Kubernetes cannot be read.
    type: bool
    default: false
  accept_data_loss:
    description:
      - Agree to the loss of the volumes on the node's own disks that the plan names (claims that can be used there alone, folders below C(/var)
        and scratch volumes of pods that go). Nothing is moved.
    type: bool
    default: false
  override:
    description:
      - Delete the record although Argo CD or Flux keeps it in step with git.
    type: bool
    default: false
  lift:
    description:
      - Call a removal off that has begun and did not end, so that the machine is sent configurations again. What was done stays done.
    type: bool
    default: false
seealso:
  - module: ichor.talos.talos_reset
  - module: ichor.talos.etcd_member
  - module: ichor.talos.talos_machine
"""

EXAMPLES = r"""
- name: Read what would be done
  ichor.talos.talos_machine_removal:
    machine: prod-4c4c4544
    confirm: prod-4c4c4544
  check_mode: true

- name: Remove the machine
  ichor.talos.talos_machine_removal:
    machine: prod-4c4c4544
    confirm: prod-4c4c4544
"""

RETURN = r"""
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
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_credentials import open_credentials
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._decide.removal_words import RemovalWish
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_removal import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.workloads_opening import open_workloads

SPEC = Spec(
    own={
        "machine": {"type": "str", "required": True},
        "confirm": {"type": "str"},
        "skip_drain": {"type": "bool", "default": False},
        "accept_data_loss": {"type": "bool", "default": False},
        "override": {"type": "bool", "default": False},
        "lift": {"type": "bool", "default": False},
    },
    groups=("store", "credentials", "kubernetes", "plan", "timing", "network"),
)


def build_request(options: Options) -> Request:
    wish = RemovalWish(options.text("confirm"), True, options.flag("skip_drain"), options.flag("accept_data_loss"), options.flag("override"))
    return Request(options.text("machine"), wish, options.flag("lift"), options.timing(), options.flag("allow_loopback"))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials, workloads=open_workloads)


if __name__ == "__main__":
    main()
