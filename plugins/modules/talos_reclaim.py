#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_reclaim
short_description: Reset machines that another cluster configured, so that they come back as pending
version_added: 0.1.0
description:
  - Looks at a machine that runs the configuration of another cluster, or of a forgotten one, says whose it is, what a reset does to that
    cluster's etcd, which volumes go and what stays, and resets it when its UUID was typed. It is then found in maintenance mode, and written
    down as pending in O(cluster), where a person approves it.
  - The cluster that it leaves is not hurt. A control plane leaves its etcd first, and is refused where that would cost an etcd that answers
    its quorum, or where it is the last one. No option bends that.
  - All volumes of Talos that are there are wiped, STATE and EPHEMERAL above all. What is on other partitions and disks stays, and the plan
    lists it.
  - The credential of the machine's own cluster is needed. Without it there is no way over the API, and the machine is wiped by reinstalling
    it or with the kernel argument C(talos.experimental.wipe=system).
  - Reaching maintenance mode is the success of a reset. Talos answers OK also to one that fails afterwards, which is seen and told.
  - Of several machines one goes after the other, workers first. A control plane is assessed as its cluster is when those before it are gone.
    What is refused is left out, the others go on, and the task fails at its end.
  - It takes the locks of both clusters, so it needs a store. A machine that is in maintenance mode already is not reset.
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
  cluster:
    description:
      - The name of the TalosCluster record that the machines go to. Required, unless O(order) names it.
    type: str
  address:
    description:
      - The address of the one machine.
    type: str
  confirm:
    description:
      - The UUID of the machine at O(address). Anything else is refused, in check mode too; without it the task only shows what it found.
    type: str
  force_ungraceful:
    description:
      - Resets a control plane whose etcd does not run or does not answer, without leaving etcd. It is for a cluster that does not exist any
        more, and is refused for a cluster of this store.
    type: bool
    default: false
  nodes:
    description:
      - Several machines.
    type: list
    elements: dict
    suboptions:
      address:
        description:
          - The address of the machine.
        type: str
        required: true
      confirm:
        description:
          - The UUID of the machine.
        type: str
      context:
        description:
          - The context of the talosconfig that opens the machine; O(context) when left out.
        type: str
      force_ungraceful:
        description:
          - As O(force_ungraceful), for this machine.
        type: bool
        default: false
  ranges:
    description:
      - Addresses and ranges in which a machine is looked for whose address is another one after the reset. Those of the cluster's
        C(spec.discovery) when left out.
    type: list
    elements: str
  order:
    description:
      - The name of a MachineReclaim that says all of this, and is carried out once. M(ichor.talos.talos_controller) carries such records out
        by itself.
    type: str
seealso:
  - module: ichor.talos.talos_machine_approval
  - module: ichor.talos.talos_discover
  - module: ichor.talos.talos_machine_removal
"""

EXAMPLES = r"""
- name: Read whose machine it is and what a reset would do; that nobody has agreed yet is no failure here
  ichor.talos.talos_reclaim:
    cluster: prod
    address: 10.0.7.21
    talosconfig: old-cluster.talosconfig
  check_mode: true
  register: found
  failed_when: found.reason | default('') not in ['ConfirmationMissing', '']

- name: Reset it for our cluster
  ichor.talos.talos_reclaim:
    cluster: prod
    address: 10.0.7.21
    confirm: 4c4c4544-0044-4a10-8035-b4c04f33004a
    talosconfig: old-cluster.talosconfig

- name: Machines of two clusters, by the contexts of one talosconfig
  ichor.talos.talos_reclaim:
    cluster: prod
    talosconfig: old-clusters.talosconfig
    nodes:
      - address: 10.0.7.21
        confirm: 4c4c4544-0044-4a10-8035-b4c04f33004a
        context: lab
      - address: 10.0.8.3
        confirm: 4c4c4544-0044-4a10-8035-b4c04f33004b
        context: stage
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
inspections:
  description:
    - What was found on each machine, and what happens when a person agrees. What is null could not be read, and C(unchecked) says why.
  returned: always
  type: list
  elements: dict
  contains:
    address:
      description: Where it answers.
      type: str
    uuid:
      description: Its UUID, which O(confirm) has to be.
      type: str
    maintenance_mode:
      description: Whether it is in maintenance mode, so that there is nothing to be reset.
      type: bool
    hostname:
      description: Its host name.
      type: str
    talos_version:
      description: The version of Talos that it runs.
      type: str
    stage:
      description: Its stage, as Talos names it.
      type: str
    role:
      description: V(controlplane) or V(worker), as its configuration says.
      type: str
    cluster:
      description:
        - Its own cluster, with C(name), C(id) and C(endpoint) of its configuration. C(managed_as) is the record of this store, empty for a
          foreign cluster.
      type: dict
    etcd:
      description:
        - Of a control plane the members of its etcd with who of them answers, the number of voters, and how many answer and are needed once
          it has left. C(problem) says why that cannot be told.
      type: dict
    wipes:
      description: The volumes that go.
      type: list
      elements: str
    stays:
      description: What stays, partitions and disks with what is on them.
      type: list
      elements: str
    unchecked:
      description: What could not be read, and why.
      type: list
      elements: str
    next:
      description: What happens when a person agrees.
      type: list
      elements: str
registered:
  description: The machines that are pending now, each with C(address), C(uuid) and the name of its record as C(machine).
  returned: always
  type: list
  elements: dict
"""

from collections.abc import Mapping

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_credentials import open_credentials
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_words import ReclaimWish
from ansible_collections.ichor.talos.plugins.module_utils._operations.reclaim import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.reclaim_reads import Entry, Terms

SPEC = Spec(
    own={
        "address": {"type": "str"},
        "confirm": {"type": "str"},
        "force_ungraceful": {"type": "bool", "default": False},
        "nodes": {"type": "list", "elements": "dict", "options": {
            "address": {"type": "str", "required": True},
            "confirm": {"type": "str"},
            "context": {"type": "str"},
            "force_ungraceful": {"type": "bool", "default": False},
        }},
        "ranges": {"type": "list", "elements": "str"},
        "order": {"type": "str"},
    },
    groups=("store", "credentials", "cluster", "plan", "timing", "network"),
    mutually_exclusive=[("address", "nodes", "order"), ("confirm", "nodes"), ("confirm", "order")],
    required_one_of=[("address", "nodes", "order")],
    required_by={"confirm": ["address"]},
)


def build_request(options: Options) -> Request:
    talosconfig = options.secret_content("talosconfig_content", "talosconfig")
    text = talosconfig.decode("utf-8", "replace") if talosconfig is not None else ""
    source = "talosconfig" if "talosconfig_content" in options else f"talosconfig {options.text('talosconfig')}"
    cluster, context = options.text("cluster"), options.text("context")
    listed: list[Mapping[str, object]] = [*options.maps("nodes")]
    if "address" in options:
        listed = [{"address": options.text("address"), "confirm": options.text("confirm"), "force_ungraceful": options.flag("force_ungraceful")}]

    def entry(one: Mapping[str, object]) -> Entry:
        wish = ReclaimWish(str(one["address"]), cluster, str(one.get("confirm") or ""), bool(one.get("force_ungraceful")))
        return Entry(wish, text, str(one.get("context") or context), source)

    terms = Terms(options.texts("ranges"), options.timing(), options.flag("allow_loopback"))
    return Request(tuple(map(entry, listed)), options.text("order"), terms)


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials)


if __name__ == "__main__":
    main()
