#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_cni
short_description: Install or complete the managed container network of a cluster
version_added: 0.1.0
description:
  - Installs Cilium in a cluster whose record says C(cni.preset) V(managed), with the Helm values of the record, and makes what is missing of
    it when it is run again.
  - A cluster that was just bootstrapped is waited for until its Kubernetes answers. Its machines are Ready only once it has a network.
  - Where a Cilium is there, its objects are compared with what the chart renders. Nothing of them is changed without O(accept_cilium_diff);
    what the API server and controllers fill in is no difference. Any other network is refused, and nothing is ever deleted.
  - The program helm has to be there. Values go into it through its standard input.
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
      - Name of the cluster's record.
      - If not set, E(ICHOR_CLUSTER) is used.
  wait:
    description:
      - How many seconds to wait for a Kubernetes that does not answer yet.
    type: float
    default: 600.0
  accept_cilium_diff:
    description:
      - Agree to the objects of a Cilium that is there already being changed. Its pods are restarted where their template changes. A saved
        plan, or O(expect_plan_id), agrees to it as well.
    type: bool
    default: false
  cilium_chart:
    description:
      - The chart of Cilium, as a name in O(cilium_repository), as an OCI reference (C(oci://…)), or as the path of a folder or an archive.
      - If not set, the chart of the Cilium project.
    type: str
  cilium_repository:
    description:
      - URL of the repository that has the chart.
    type: str
  cilium_version:
    description:
      - Version of the chart. If not set, the one that is there (of its Helm release, or as the image of its agents has it), else the one that this
        collection pins. An OCI reference, a folder and an archive have their own.
    type: str
seealso:
  - module: ichor.talos.talos_adopt
  - module: ichor.talos.talos_cluster
"""

EXAMPLES = r"""
- name: Install the network of a cluster that was just bootstrapped
  ichor.talos.talos_cni:
    cluster: prod

- name: See what a newer Cilium would change
  ichor.talos.talos_cni:
    cluster: prod
    cilium_version: 1.19.4
    accept_cilium_diff: true
  check_mode: true
  diff: true
"""

RETURN = r"""
network:
  description: What becomes of the container network; empty where it is left alone.
  returned: success
  type: dict
  contains:
    branch:
      description: V(take over) or V(install).
      type: str
    chart:
      description: The chart and its version.
      type: str
    objects:
      description: The objects that are not as they are wanted. No value of them is in it, only paths.
      type: list
      elements: dict
      contains:
        object:
          description: Kind, namespace and name.
          type: str
        there:
          description: Whether it is there at all.
          type: bool
        paths:
          description: What differs.
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

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_words import CniWish, chart_of
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._operations.cni import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.kube_networks import KubeNetworks

SPEC = Spec(
    own={
        "wait": {"type": "float", "default": 600.0},
        "accept_cilium_diff": {"type": "bool", "default": False},
        "cilium_chart": {"type": "str"},
        "cilium_repository": {"type": "str"},
        "cilium_version": {"type": "str"},
    },
    groups=("store", "credentials", "cluster", "plan", "timing", "network"),
)


def build_request(options: Options) -> Request:
    if not options.text("cluster"):
        raise TalosError("InvalidInput", "No cluster is named.", "Set cluster, or ICHOR_CLUSTER.")
    planned = options.given("expect_plan_id") or options.given("plan_file")
    chart = chart_of(options.text("cilium_chart"), options.text("cilium_repository"), options.text("cilium_version"))
    wish = CniWish("managed", None, options.flag("accept_cilium_diff") or planned, chart, options.text("cilium_version"))
    return Request(options.text("cluster"), wish, options.number("wait", 600.0), options.timing())


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "cryptography"), store=open_store, networks=KubeNetworks, needs_store=True)


if __name__ == "__main__":
    main()
