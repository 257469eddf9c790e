#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_cluster
short_description: Create and change the record of a cluster
version_added: 0.1.0
description:
  - Writes the record of a cluster, and creates the store where there is none yet. What is not given stays as it is.
  - Nothing is sent to any node.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.credentials
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  name:
    description:
      - Name of the cluster.
      - If not set, E(ICHOR_CLUSTER) is used.
    type: str
    aliases: [cluster]
  state:
    description:
      - With V(absent) the record of a cluster without machines is deleted.
    type: str
    choices: [present, absent]
    default: present
  talos_version:
    description:
      - The Talos version that configurations are for, whole and with a leading V(v), such as V(v1.13.9).
    type: str
  kubernetes_version:
    description:
      - The Kubernetes version, for example V(v1.35.0), one that the Talos version runs. Without it nothing is rendered.
    type: str
  endpoint:
    description:
      - URL of the control plane, for example V(https://192.0.2.5:6443). With several control planes give a virtual IP or a DNS name rather
        than the address of a machine, since its host is never dialled as a node then. With O(control_planes=1) it may be the machine's own address.
    type: str
  bundle:
    description:
      - Name of the secrets bundle. It cannot be changed once the cluster has a machine.
    type: str
  network:
    description:
      - Ranges and DNS domain of the cluster.
    type: dict
    suboptions:
      pod_subnets:
        description: Ranges of the pods.
        type: list
        elements: str
      service_subnets:
        description: Ranges of the services.
        type: list
        elements: str
      dns_domain:
        description: DNS domain.
        type: str
  cni:
    description:
      - Who installs the container network. It cannot be changed once it is set, except once from V(none) to V(managed).
      - V(unmanaged), also when it was never set, leaves Talos its own flannel; V(none) leaves no network. With V(managed)
        this collection installs Cilium (M(ichor.talos.talos_cni)).
    type: str
    choices: [managed, unmanaged, none]
  cilium_values:
    description:
      - Helm values of the managed network. Keys that the collection sets (C(ipam.mode), C(cgroup.autoMount.enabled), C(cgroup.hostRoot)) are
        refused, and so are secrets.
    type: dict
  control_planes:
    description:
      - How many control planes there are to be.
    type: int
    choices: [1, 3, 5, 7]
  registry_mirrors:
    description:
      - Mirrors by registry host, each with C(endpoints), C(overridePath) and C(skipFallback).
    type: dict
  cert_sans:
    description:
      - Further names of the API certificates.
    type: list
    elements: str
  install:
    description:
      - Install settings of machines that name none.
    type: dict
    suboptions:
      disk:
        description: Path of the disk.
        type: str
      disk_selector:
        description: Picks the disk by what it is.
        type: dict
      image:
        description: The installer image.
        type: str
      wipe:
        description: Wipe the whole disk first.
        type: bool
  discovery:
    description:
      - Where machines are looked for.
    type: dict
    suboptions:
      addresses:
        description: Addresses and host names.
        type: list
        elements: str
      ranges:
        description: Networks and ranges.
        type: list
        elements: str
  drift_policy:
    description:
      - What happens with drift.
    type: str
    choices: [apply, report]
  secure_boot:
    description:
      - Whether machines have to boot with SecureBoot.
    type: str
    choices: [Required, Preferred, 'Off']
  allow_scheduling_on_control_planes:
    description:
      - Whether control planes run workloads too.
    type: bool
  hold:
    description:
      - A person announces what is under way; it holds every send. V(none) takes the announcement back.
    type: str
    choices: [caRotation, shutdown, none]
  clear_operation:
    description:
      - Name of the operation in the cluster's C(status.operation), which a person knows to be over.
    type: str
  clear_disruption:
    description:
      - Name of the machine in the cluster's C(status.disruption), which a person knows to be over.
    type: str
  allow_delete:
    description:
      - Deleting the record is meant.
    type: bool
    default: false
  override:
    description:
      - Change a record that Argo CD or Flux keeps in step with git.
    type: bool
    default: false
  take_over:
    description:
      - A person says that no other run uses this store. A store that was cloned, copied or lost its state folder cannot be locked until then,
        and with this every other folder of the same tree loses its lock.
      - Where the store can be locked already nothing changes.
    type: bool
    default: false
seealso:
  - module: ichor.talos.talos_discover
"""

EXAMPLES = r"""
- name: Create a cluster, and the store when there is none
  ichor.talos.talos_cluster:
    name: prod
    talos_version: v1.13.9
    kubernetes_version: v1.34.1
    endpoint: https://192.0.2.5:6443
    bundle: prod
    control_planes: 3
    discovery:
      ranges: [192.0.2.0/24]

- name: Announce a shutdown, so that nothing is sent
  ichor.talos.talos_cluster:
    name: prod
    hold: shutdown
"""

RETURN = r"""
cluster:
  description: The record as it is after the task, or would be in check mode; null where there is none.
  returned: success
  type: dict
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

from ansible.module_utils.basic import env_fallback
from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import create_store
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._operations.cluster import ClusterEdit, Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.spec_options import cluster_settings

SPEC = Spec(
    own={
        "name": {"type": "str", "aliases": ["cluster"], "fallback": (env_fallback, ["ICHOR_CLUSTER"])},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "talos_version": {"type": "str"},
        "kubernetes_version": {"type": "str"},
        "endpoint": {"type": "str"},
        "bundle": {"type": "str"},
        "network": {"type": "dict", "options": {
            "pod_subnets": {"type": "list", "elements": "str"}, "service_subnets": {"type": "list", "elements": "str"}, "dns_domain": {"type": "str"},
        }},
        "cni": {"type": "str", "choices": ["managed", "unmanaged", "none"]},
        "cilium_values": {"type": "dict"},
        "control_planes": {"type": "int", "choices": [1, 3, 5, 7]},
        "registry_mirrors": {"type": "dict"},
        "cert_sans": {"type": "list", "elements": "str"},
        "install": {"type": "dict", "options": {
            "disk": {"type": "str"}, "disk_selector": {"type": "dict"}, "image": {"type": "str"}, "wipe": {"type": "bool"},
        }, "mutually_exclusive": [["disk", "disk_selector"]]},
        "discovery": {"type": "dict", "options": {
            "addresses": {"type": "list", "elements": "str"}, "ranges": {"type": "list", "elements": "str"},
        }},
        "drift_policy": {"type": "str", "choices": ["apply", "report"]},
        "secure_boot": {"type": "str", "choices": ["Required", "Preferred", "Off"]},
        "allow_scheduling_on_control_planes": {"type": "bool"},
        "hold": {"type": "str", "choices": ["caRotation", "shutdown", "none"]},
        "clear_operation": {"type": "str"},
        "clear_disruption": {"type": "str"},
        "allow_delete": {"type": "bool", "default": False},
        "override": {"type": "bool", "default": False},
        "take_over": {"type": "bool", "default": False},
    },
    groups=("store", "credentials", "plan", "timing", "fleet", "network"),
)

SETTINGS = (
    "talos_version", "kubernetes_version", "endpoint", "bundle", "network", "cni", "cilium_values", "control_planes", "registry_mirrors",
    "cert_sans", "install", "discovery", "drift_policy", "secure_boot", "allow_scheduling_on_control_planes", "hold",
)


def build_request(options: Options) -> Request:
    if not options.text("name"):
        raise TalosError("InvalidInput", "No cluster is named.", "Set name, or ICHOR_CLUSTER.")
    settings = cluster_settings({name: options.raw(name) for name in SETTINGS})
    return Request(ClusterEdit(
        options.text("name"), settings, absent=options.text("state") == "absent", allow_delete=options.flag("allow_delete"),
        clear_operation=options.text("clear_operation"), clear_disruption=options.text("clear_disruption"), override=options.flag("override"),
        take_over=options.flag("take_over")))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml",), store=create_store, needs_store=True)


if __name__ == "__main__":
    main()
