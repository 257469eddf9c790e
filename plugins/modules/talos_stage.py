#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_stage
short_description: Look at the life-cycle stage of machines, once or until they run
version_added: 0.1.0
description:
  - Tells where machines are on the way from maintenance mode to running, once, or followed until they are settled.
  - With a record it writes what following a machine writes, that is stage, conditions, the event C(NodeJoined), and the address at
    which a machine with a static address is found again. Nothing is ever sent to a node. These are effects and no steps, so the
    task never reports a change.
  - A control plane has joined when it runs and its etcd is a started voting member that answers with a leader. Before the
    bootstrap of its cluster it is settled once it waits for that.
  - A machine that does not answer is a result and no failure. Following many machines takes one task and one process.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.credentials
  - ichor.talos.options.cluster
  - ichor.talos.options.machines
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  address:
    description:
      - Address of a node without a record, as V(host), V(host:port) or V([IPv6]:port).
    type: str
  addresses:
    description:
      - Addresses of several nodes without records.
    type: list
    elements: str
  uuid:
    description:
      - SMBIOS UUID that the node at O(address) has to have; another node is reported as that.
    type: str
  follow:
    description:
      - Look again and again until every machine is settled, or O(timeout) is over.
    type: bool
    default: false
  until:
    description:
      - When a machine is settled. V(settled) is when it has joined, or when nothing more happens without a person, like a control
        plane that waits for M(ichor.talos.talos_bootstrap). V(running) is only when it has joined.
    type: str
    choices: [settled, running]
    default: settled
  timeout:
    description:
      - How many seconds to follow. One named machine that is not settled then fails the task; several are listed in RV(blocked).
    type: float
    default: 1800.0
seealso:
  - module: ichor.talos.talos_maintenance_apply
  - module: ichor.talos.talos_bootstrap
"""

EXAMPLES = r"""
- name: Look at one machine
  ichor.talos.talos_stage:
    machine: prod-4c4c4544

- name: Follow all machines of a task to the end, and fail when one is not there after 40 minutes
  ichor.talos.talos_stage:
    machines: [prod-4c4c4544, prod-0a1b2c3d]
    follow: true
    timeout: 2400
    fail_on: [blocked, unreachable]

- name: Look at a node that is in no record
  ichor.talos.talos_stage:
    address: 192.0.2.17
    talosconfig: talosconfig
"""

RETURN = r"""
settled:
  description: Whether all machines are settled.
  returned: success
  type: bool
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
from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import canonical_uuid
from ansible_collections.ichor.talos.plugins.module_utils._operations.stage import Request, run

SPEC = Spec(
    own={
        "address": {"type": "str"},
        "addresses": {"type": "list", "elements": "str"},
        "uuid": {"type": "str"},
        "follow": {"type": "bool", "default": False},
        "until": {"type": "str", "choices": ["settled", "running"], "default": "settled"},
        "timeout": {"type": "float", "default": 1800.0},
    },
    groups=("store", "credentials", "cluster", "machines", "timing", "fleet", "network"),
    mutually_exclusive=[("address", "addresses", "machine"), ("address", "addresses", "machines"), ("address", "addresses", "select"),
                        ("machine", "select"), ("machines", "select")],
    required_one_of=[("machine", "machines", "select", "address", "addresses")],
    required_by={"uuid": ("address",)},
)


def build_request(options: Options) -> Request:
    written = ((options.text("address"),) if "address" in options else ()) + options.texts("addresses")
    return Request(
        machines=options.machines(), select=options.text("select"), endpoints=tuple(dict.fromkeys(parse_endpoint(text) for text in written)),
        uuid=canonical_uuid(options.text("uuid")), cluster=options.text("cluster"), follow=options.flag("follow"),
        until_running=options.text("until") == "running", timeout=options.number("timeout", 1800.0),
        single="machine" in options or "address" in options, timing=options.timing(), allow_loopback=options.flag("allow_loopback"))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials)


if __name__ == "__main__":
    main()
