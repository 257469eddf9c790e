#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_machine_approval
short_description: Approve or reject discovered machines
version_added: 0.1.0
description:
  - A discovered machine does nothing until a person approves or rejects it, by its exact name. This module writes that
    decision, with what the machine is to be, who decided and when.
  - At an approval the node is read once more, and the fingerprint of the certificate that it shows is what the approval
    accepts. A silent node leaves the recorded one, with a warning.
  - Either all machines that are named are approved or rejected, or none is.
  - A run that a schedule started approves nothing.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.cluster
  - ichor.talos.options.credentials
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  cluster:
    description:
      - The cluster that the machines belong to. A machine of another one is refused.
      - If not set, E(ICHOR_CLUSTER) is used.
  machine:
    description:
      - The exact name of one machine. Use either this or O(machines).
    type: str
  machines:
    description:
      - Exact names of several machines that get the same decision.
    type: list
    elements: str
  state:
    description:
      - What the person decides.
      - An approved machine can be rejected only before a configuration was sent to it.
    type: str
    choices: [approved, rejected]
    default: approved
  role:
    description:
      - What the machine is to be. Needed unless the record says it.
    type: str
    choices: [controlplane, worker]
  hostname:
    description:
      - Host name. Only with one machine.
    type: str
  labels:
    description:
      - Labels of the Kubernetes Node. They replace those in the record.
    type: dict
  taints:
    description:
      - Taints of the Kubernetes Node. They replace those in the record.
    type: list
    elements: dict
    suboptions:
      key:
        description: Key of the taint.
        type: str
        required: true
      value:
        description: Value of the taint.
        type: str
      effect:
        description: Effect of the taint.
        type: str
        choices: [NoSchedule, PreferNoSchedule, NoExecute]
        required: true
  install:
    description:
      - Where Talos is installed. Exactly one of the discovered disks has to be meant. It can be set later with
        M(ichor.talos.talos_machine).
      - The medium that the machine booted from is refused, and a read-only or USB disk unless O(install.disk) names it.
    type: dict
    suboptions:
      disk:
        description: Path of the disk, best one below C(/dev/disk/by-id).
        type: str
      disk_selector:
        description:
          - Picks the disk by what it is, with the keys V(size), V(name), V(model), V(serial), V(modalias), V(uuid), V(wwid),
            V(type) and V(busPath) of Talos's install disk selector.
        type: dict
      image:
        description: The installer image.
        type: str
      wipe:
        description: Wipe the whole disk first.
        type: bool
  disks:
    description:
      - What the other disks are for.
    type: list
    elements: dict
    suboptions:
      selector:
        description: Which disks, with the keys of O(install.disk_selector).
        type: dict
        required: true
      role:
        description: What they are for.
        type: str
        choices: [system, ephemeral, storage, userVolume, unused]
        required: true
  network:
    description:
      - The primary link. Only with one machine.
    type: dict
    suboptions:
      interface:
        description: Name of the link.
        type: str
      mac:
        description: Permanent MAC of the link, instead of its name.
        type: str
      dhcp:
        description: Whether the address comes by DHCP.
        type: bool
      addresses:
        description: Static addresses with their prefix length.
        type: list
        elements: str
      gateway:
        description: Default gateway.
        type: str
      nameservers:
        description: DNS servers.
        type: list
        elements: str
      vlan:
        description: VLAN id.
        type: int
  fingerprint:
    description:
      - The certificate that is accepted, as the node's console shows it or in hexadecimal form. Any other is refused. Only with
        one machine.
    type: str
  accept_weak_identity:
    description:
      - Approve a machine whose identity does not single it out, after a person set its C(spec.identity).
    type: bool
    default: false
  override:
    description:
      - Change a record that Argo CD or Flux keeps in step with git.
    type: bool
    default: false
seealso:
  - module: ichor.talos.talos_discover
  - module: ichor.talos.talos_machine
"""

EXAMPLES = r"""
- name: Approve a control plane
  ichor.talos.talos_machine_approval:
    machine: prod-4c4c4544
    role: controlplane
    hostname: cp-1
    install:
      disk: /dev/disk/by-id/nvme-eui.0025385b71b0a1c2

- name: Approve two workers that install to their NVMe disk
  ichor.talos.talos_machine_approval:
    machines: [prod-0a1b2c3d, prod-4e5f6a7b]
    role: worker
    install:
      disk_selector:
        type: nvme

- name: Reject a machine that is not ours
  ichor.talos.talos_machine_approval:
    machine: prod-deadbeef
    state: rejected
"""

RETURN = r"""
fingerprint:
  description: The fingerprint that the approval accepts, where one machine was named; empty where there is none.
  returned: success
  type: str
fingerprints:
  description: The accepted fingerprints by machine.
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

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._decide.approval_words import Wanted
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_approval import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.spec_options import install_of, said, said_list, text_map

SPEC = Spec(
    own={
        "machine": {"type": "str"},
        "machines": {"type": "list", "elements": "str"},
        "state": {"type": "str", "choices": ["approved", "rejected"], "default": "approved"},
        "role": {"type": "str", "choices": ["controlplane", "worker"]},
        "hostname": {"type": "str"},
        "labels": {"type": "dict"},
        "taints": {"type": "list", "elements": "dict", "options": {
            "key": {"type": "str", "required": True, "no_log": False},
            "value": {"type": "str"},
            "effect": {"type": "str", "choices": ["NoSchedule", "PreferNoSchedule", "NoExecute"], "required": True},
        }},
        "install": {"type": "dict", "options": {
            "disk": {"type": "str"}, "disk_selector": {"type": "dict"}, "image": {"type": "str"}, "wipe": {"type": "bool"},
        }, "mutually_exclusive": [["disk", "disk_selector"]]},
        "disks": {"type": "list", "elements": "dict", "options": {
            "selector": {"type": "dict", "required": True},
            "role": {"type": "str", "choices": ["system", "ephemeral", "storage", "userVolume", "unused"], "required": True},
        }},
        "network": {"type": "dict", "options": {
            "interface": {"type": "str"}, "mac": {"type": "str"}, "dhcp": {"type": "bool"}, "addresses": {"type": "list", "elements": "str"},
            "gateway": {"type": "str"}, "nameservers": {"type": "list", "elements": "str"}, "vlan": {"type": "int"},
        }},
        "fingerprint": {"type": "str"},
        "accept_weak_identity": {"type": "bool", "default": False},
        "override": {"type": "bool", "default": False},
    },
    groups=("store", "cluster", "credentials", "plan", "timing", "fleet", "network"),
    mutually_exclusive=[("machine", "machines")],
    required_one_of=[("machine", "machines")],
)


def build_request(options: Options) -> Request:
    wanted = Wanted(
        "", state=options.text("state"), role=options.text("role"), hostname=options.text("hostname"),
        labels=text_map(options.mapping("labels")) if options.given("labels") else None,
        taints=said_list(options.maps("taints")) if options.given("taints") else None,
        install=install_of(options.mapping("install")), disks=said_list(options.maps("disks")) if options.given("disks") else None,
        network=said(options.mapping("network")), fingerprint=options.text("fingerprint").strip(),
        cluster=options.text("cluster"), accept_weak_identity=options.flag("accept_weak_identity"), override=options.flag("override"),
        allow_loopback=options.flag("allow_loopback"))
    return Request(options.machines(), wanted, options.timing())


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               needs_store=True)


if __name__ == "__main__":
    main()
