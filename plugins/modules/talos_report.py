#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_report
short_description: Write the state of the fleet as one HTML page
version_added: 0.1.0
description:
  - Writes a page that shows clusters, machines with stage and condition, what waits for whom, drift by path, when certificates end, the health of
    etcd, a timeline of events and, where one is given, a saved plan. The page is one file that needs no network and no script, dark and light.
  - The same can be had as JSON.
  - Nodes and records are only read. What cannot be read is said on the page and does not fail the task.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.cluster
  - ichor.talos.options.credentials
  - ichor.talos.options.timing
  - ichor.talos.options.network
attributes:
  diff_mode:
    support: none
    description: A report is not compared with the one before.
  idempotent:
    support: none
    description: Each run writes the page anew, with what it found.
options:
  path:
    description:
      - Where the page is written. Its folder has to be there.
    type: path
  json_path:
    description:
      - Where the same is written as JSON.
    type: path
  cluster:
    description:
      - Only this cluster. Without it, all clusters of the store.
      - If not set, E(ICHOR_CLUSTER) is used.
  title:
    description:
      - The page's title.
    type: str
  read_nodes:
    description:
      - Whether to ask the nodes. With V(false) only the records are shown.
    type: bool
    default: true
  compare:
    description:
      - Whether to compare what the nodes run with their records.
    type: bool
    default: true
  show_plan:
    description:
      - A plan that O(ichor.talos.talos_controller#module:save_plan) or the playbook C(ichor.talos.plan) saved, shown on the page.
    type: path
requirements:
  - python >= 3.11
  - Jinja2, which ansible-core brings
seealso:
  - module: ichor.talos.talos_cluster_info
  - module: ichor.talos.talos_machine_info
"""

EXAMPLES = r"""
- name: The whole fleet as a page
  ichor.talos.talos_report:
    path: "{{ playbook_dir }}/fleet.html"

- name: One cluster, for a program too
  ichor.talos.talos_report:
    cluster: prod
    path: /srv/www/prod.html
    json_path: /srv/www/prod.json
    title: Production
"""

RETURN = r"""
totals:
  description: How many clusters and machines there are, and in which state.
  returned: success
  type: dict
  contains:
    clusters:
      description: Clusters.
      type: int
    machines:
      description: Machines of any approval.
      type: int
    approved:
      description: Approved machines.
      type: int
    ready:
      description: Approved machines that are Ready.
      type: int
    unreachable:
      description: Machines that do not answer.
      type: int
    drifted:
      description: Machines that do not run what their records say.
      type: int
    attention:
      description: Approved machines that want somebody's attention.
      type: int
    pending:
      description: Machines that wait for a decision.
      type: int
    moving:
      description: Machines that are on their way and need nobody.
      type: int
    well:
      description: Machines on which all is well.
      type: int
    rejected:
      description: Rejected machines.
      type: int
path:
  description: The page; empty where none was asked for.
  returned: success
  type: str
json_path:
  description: The JSON; empty where none was asked for.
  returned: success
  type: str
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

from ansible_collections.ichor.talos.plugins.module_utils._ansible import saved_plan
from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_credentials import open_credentials
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._operations.report import Request, run

SPEC = Spec(
    own={
        "path": {"type": "path"},
        "json_path": {"type": "path"},
        "title": {"type": "str"},
        "read_nodes": {"type": "bool", "default": True},
        "compare": {"type": "bool", "default": True},
        "show_plan": {"type": "path"},
    },
    groups=("store", "cluster", "credentials", "timing", "network"),
    required_one_of=[("path", "json_path")],
)


def build_request(options: Options) -> Request:
    plans = tuple(saved_plan.shown(plan) for plan in saved_plan.read(options.text("show_plan"))) if "show_plan" in options else None
    return Request(options.text("path"), options.text("json_path"), options.text("cluster"), options.text("title"), options.flag("read_nodes"),
                   options.flag("compare"), plans, options.flag("allow_loopback"), options.timing(), options.masked)


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography", "jinja2"), nodes=open_nodes, store=open_store,
               credentials=open_credentials, needs_store=True)


if __name__ == "__main__":
    main()
