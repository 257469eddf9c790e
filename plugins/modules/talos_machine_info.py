#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_machine_info
short_description: Show machines and what they are doing
version_added: 0.1.0
description:
  - Shows the records of machines, what each node says now, and for each machine what it is doing, since when, what it waits for
    and what to do next. Writes nothing.
  - Nodes are read with authentication. Only an approved machine that never converged is asked over the maintenance API when that
    fails, and the result says so. Pending and rejected machines are not asked.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes.info
  - ichor.talos.options.store
  - ichor.talos.options.cluster
  - ichor.talos.options.machines
  - ichor.talos.options.credentials
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  cluster:
    description:
      - Only machines of this cluster. Without this and without a choice of machines, all machines of the store.
      - If not set, E(ICHOR_CLUSTER) is used.
  read_nodes:
    description:
      - Whether to ask the nodes. With V(false) only the records are shown.
    type: bool
    default: true
seealso:
  - module: ichor.talos.talos_machine
"""

EXAMPLES = r"""
- name: What is every machine of the cluster doing
  ichor.talos.talos_machine_info:
    cluster: prod
  register: fleet

- name: Show it in one line a machine
  ansible.builtin.debug:
    msg: "{{ fleet.records | map(attribute='doing.what') | zip(fleet.records | map(attribute='metadata.name')) }}"

- name: Only machines that wait for a person
  ichor.talos.talos_machine_info:
    select: "[?spec.approvalState=='pending'].metadata.name"
    read_nodes: false
"""

RETURN = r"""
records:
  description: The records, one entry a machine.
  returned: success
  type: list
  elements: dict
  contains:
    apiVersion:
      description: Version of the schema.
      type: str
    kind:
      description: Kind of the record.
      type: str
    metadata:
      description: Name, labels, annotations, uid and generation.
      type: dict
    spec:
      description: What people wrote.
      type: dict
    status:
      description: What was observed.
      type: dict
    source:
      description: Where the record lies.
      type: str
    dial_endpoint:
      description: Where the machine is dialled.
      type: str
    same_machine_as:
      description:
        - Another approved, rejected or sent record of the same machine, empty when there is none.
        - Nothing is sent to a machine with two such records, and neither is approved beside the other.
      type: str
    node:
      description: What the node says now; null where it was not asked.
      type: dict
      contains:
        answers:
          description: Whether it answers.
          type: bool
        maintenance_mode:
          description: Whether this was read over the maintenance API, without authentication.
          type: bool
        reason:
          description: Why it could not be read.
          type: str
        message:
          description: The same as a sentence.
          type: str
        stage:
          description: Stage as Talos names it; null where it could not be read.
          type: str
        talos_version:
          description: The Talos version that it runs.
          type: str
        fingerprint:
          description: Its certificate, as talosctl shows it.
          type: str
        certificate_ends:
          description: When that certificate ends, in UTC; Talos makes the next one by itself.
          type: str
    doing:
      description: What it is doing.
      type: dict
      contains:
        what:
          description: What it is doing, in one sentence.
          type: str
        since:
          description: Since when, where that is known.
          type: str
        waiting_for:
          description: What it waits for.
          type: str
        advice:
          description: What to do now.
          type: str
broken:
  description: Records that cannot be read, each with C(name), C(source), C(line) and C(message).
  returned: success
  type: list
  elements: dict
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
  description: Hash of the plan. Equal plans have equal ids.
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
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_info import Request, run

SPEC = Spec(
    own={"read_nodes": {"type": "bool", "default": True}},
    groups=("store", "cluster", "machines", "credentials", "timing", "fleet", "network"),
)


def build_request(options: Options) -> Request:
    return Request(options.machines(), options.text("select"), options.text("cluster"), options.flag("read_nodes"),
                   options.flag("allow_loopback"), options.timing())


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials, needs_store=True)


if __name__ == "__main__":
    main()
