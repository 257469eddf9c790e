#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_discover
short_description: Find machines that wait in Talos maintenance mode
version_added: 0.1.0
description:
  - Probes addresses and ranges on port 50000 with one TLS handshake each, and reads identity, disks, links, version and
    SecureBoot state of every node that answers in maintenance mode. All reads are read-only.
  - With a cluster's record it creates a pending machine for each node that is in no record, pins the node's certificate once
    it was read twice with the same result, and refreshes the pins of pending machines. It never changes the spec of a machine
    that exists, and never touches one that was approved and sent a configuration.
  - A node that runs a configuration already is reported, and nothing is created for it.
  - The addresses of the Nodes of a cluster that runs are left alone, but for those that this product has reset, which are probed wherever they
    are. Where its Kubernetes cannot be read every registered address is probed.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.cluster
  - ichor.talos.options.credentials
  - ichor.talos.options.kubernetes
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  addresses:
    description:
      - Addresses to probe, each a host name, an IP address, V(host:port) or V([IPv6]:port). An entry may hold several, with
        commas or spaces between them, and ranges too.
      - An address that is named here is always probed, also where discovery leaves it alone by itself.
      - Without O(addresses) and O(ranges) what the cluster lists in its C(spec.discovery) is probed.
    type: list
    elements: str
    default: []
  ranges:
    description:
      - Networks (V(192.0.2.0/24)) and ranges (V(192.0.2.10-192.0.2.50) or V(192.0.2.10-50)) to probe.
      - Ranges of together more than 140000 addresses are refused.
    type: list
    elements: str
    default: []
  register:
    description:
      - Whether to write down what was found. With V(false) nothing is written and no store is needed.
    type: bool
    default: true
  pending_limit:
    description:
      - So many machines of the cluster may be pending. Of what answers beyond that nothing is created, and a warning says so.
    type: int
    default: 100
  rate:
    description:
      - New connections a second.
    type: float
    default: 1000.0
  unresolved:
    description:
      - So many addresses of a network that this host is on may be without an answer at once, which keeps neighbour tables small.
    type: int
    default: 256
seealso:
  - module: ichor.talos.talos_machine_approval
  - module: ichor.talos.talos_machine_info
"""

EXAMPLES = r"""
- name: Look at one network without writing anything
  ichor.talos.talos_discover:
    ranges: [192.0.2.0/24]
    register: false
  register: seen

- name: Write pending machines for what the cluster's spec.discovery names
  ichor.talos.talos_discover:
    cluster: prod

- name: Look at one machine at once
  ichor.talos.talos_discover:
    cluster: prod
    addresses: [192.0.2.17]
"""

RETURN = r"""
found:
  description: What answered, one entry an address. Silent addresses are only counted.
  returned: success
  type: list
  elements: dict
  contains:
    address:
      description: Address and port.
      type: str
    kind:
      description: V(Maintenance), V(AlreadyConfigured), V(NotTalos), V(NotListening) or V(Unreachable).
      type: str
    machine:
      description: The record that this is, or would be; empty where there is none.
      type: str
    message:
      description: What was made of it.
      type: str
    rule:
      description: The rule that decided, with the section of the design.
      type: str
    weak:
      description: Whether its identity does not single out one machine.
      type: bool
    uuid:
      description: SMBIOS UUID.
      type: str
      returned: in maintenance mode
    serial:
      description: Serial number.
      type: str
      returned: in maintenance mode
    macs:
      description: Permanent MACs of the physical Ethernet links.
      type: list
      elements: str
      returned: in maintenance mode
    fingerprint:
      description: The node's certificate in the form that talosctl and the node's console show.
      type: str
      returned: in maintenance mode
    sha256:
      description: The hexadecimal SHA-256 of the same certificate.
      type: str
      returned: in maintenance mode
    talos_version:
      description: The Talos version that it booted.
      type: str
      returned: in maintenance mode
    secure_boot:
      description: Whether it booted with SecureBoot; null where that could not be read.
      type: bool
      returned: in maintenance mode
    hostname:
      description: Its host name, where it has one already.
      type: str
      returned: in maintenance mode
    disks:
      description: Its disks; null where they could not be read.
      type: list
      elements: dict
      returned: in maintenance mode
    links:
      description: Its links; null where they could not be read.
      type: list
      elements: dict
      returned: in maintenance mode
not_probed:
  description: Addresses that were not probed, each with C(address), C(rule) and C(message).
  returned: success
  type: list
  elements: dict
probed:
  description: How many addresses were probed.
  returned: success
  type: int
silent:
  description: At how many of them nothing listens.
  returned: success
  type: int
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
from ansible_collections.ichor.talos.plugins.module_utils._operations.discover import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.workloads_opening import open_workloads

SPEC = Spec(
    own={
        "addresses": {"type": "list", "elements": "str", "default": []},
        "ranges": {"type": "list", "elements": "str", "default": []},
        "register": {"type": "bool", "default": True},
        "pending_limit": {"type": "int", "default": 100},
        "rate": {"type": "float", "default": 1000.0},
        "unresolved": {"type": "int", "default": 256},
    },
    groups=("store", "cluster", "credentials", "kubernetes", "plan", "timing", "fleet", "network"),
)


def build_request(options: Options) -> Request:
    return Request(
        cluster=options.text("cluster"), addresses=options.texts("addresses"), ranges=options.texts("ranges"),
        register=options.flag("register"), pending_limit=options.integer("pending_limit"), rate=options.number("rate"),
        unresolved=options.integer("unresolved"), allow_loopback=options.flag("allow_loopback"), timing=options.timing())


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               workloads=open_workloads)


if __name__ == "__main__":
    main()
