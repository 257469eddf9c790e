#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_member_info
short_description: Show the members of etcd, as each control plane sees them
version_added: 0.1.0
description:
  - Asks each control plane about its own member of etcd, and shows the members with their leader, learners, alarms, sizes and raft
    indexes, who does not answer, and who disagrees. Writes nothing.
  - Works without a store when O(endpoints) and credentials are given.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes.info
  - ichor.talos.options.store
  - ichor.talos.options.cluster
  - ichor.talos.options.credentials
  - ichor.talos.options.timing
  - ichor.talos.options.network
options:
  endpoints:
    description:
      - Addresses of control planes to ask, instead of those of O(cluster).
    type: list
    elements: str
seealso:
  - module: ichor.talos.etcd_member
  - module: ichor.talos.talos_cluster_info
"""

EXAMPLES = r"""
- name: Who is a member of etcd
  ichor.talos.etcd_member_info:
    cluster: prod
  register: etcd

- name: Without a store
  ichor.talos.etcd_member_info:
    endpoints: [10.0.0.11, 10.0.0.12, 10.0.0.13]
    talosconfig: ./talosconfig
"""

RETURN = r"""
members:
  description: The members of etcd, as most of the control planes that answer list them.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Its id, 16 hexadecimal digits.
      type: str
    name:
      description: Its name; empty where it was added and has not started yet.
      type: str
    peer_urls:
      description: Where the other members reach it.
      type: list
      elements: str
    learner:
      description: Whether it is a learner, which has no vote.
      type: bool
    machine:
      description: The machine that says it is this member, else the one at its peer address; empty where none is known.
      type: str
    answers:
      description: Whether the member itself was read.
      type: bool
    leader:
      description: Whether it says that it leads.
      type: bool
    alarms:
      description: Its alarms, V(NOSPACE) or V(CORRUPT).
      type: list
      elements: str
    db_size:
      description: Size of its database in bytes; null where it does not answer.
      type: int
    db_size_in_use:
      description: How much of that is in use.
      type: int
    raft_index:
      description: Its raft index.
      type: int
control_planes:
  description: What each control plane that was asked says.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the machine, or its address.
      type: str
    endpoint:
      description: Where it was asked.
      type: str
    answers:
      description: Whether its etcd answered.
      type: bool
    member:
      description: Id of its own member.
      type: str
    leader:
      description: Id of the leader that it sees; empty where it sees none.
      type: str
    members:
      description: Ids of the members that it lists.
      type: list
      elements: str
    errors:
      description: What its member itself complains of.
      type: list
      elements: str
    reason:
      description: Why it was not read; empty where it was.
      type: str
    message:
      description: The same as a sentence.
      type: str
leader:
  description: Id of the leader, where all that answer see the same one.
  returned: success
  type: str
agree:
  description: Whether all that answer list the same members and see the same leader.
  returned: success
  type: bool
disagree:
  description: Names of the control planes that list other members than most.
  returned: success
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
from ansible_collections.ichor.talos.plugins.module_utils._operations.etcd_member_info import Request, run

SPEC = Spec(
    own={"endpoints": {"type": "list", "elements": "str"}},
    groups=("store", "cluster", "credentials", "timing", "network"),
)


def build_request(options: Options) -> Request:
    return Request(options.text("cluster"), options.texts("endpoints"), options.timing(), options.flag("allow_loopback"))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials)


if __name__ == "__main__":
    main()
