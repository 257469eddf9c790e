#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_machine
short_description: Edit the records of machines
version_added: 0.1.0
description:
  - Writes what a person changes in machine records, namely endpoint, host name, labels, install settings that come later, the
    identity of a weak entry, and the hold that keeps everything from being applied.
  - Accepts a new certificate for machines, when O(trust=true), also for many approved machines that were never sent a
    configuration at once.
  - Deletes the record of a machine, and only the record, when O(state=absent). The node is not touched.
  - With one named machine a refusal fails the task. With several, refused machines are listed in RV(blocked), machines that do
    not answer in the list of unreachable ones, and the others are changed.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.cluster
  - ichor.talos.options.machines
  - ichor.talos.options.credentials
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  cluster:
    description:
      - Only machines of this cluster are changed.
      - If not set, E(ICHOR_CLUSTER) is used.
  state:
    description:
      - With V(absent) the record is deleted. A record that is not there is as wanted.
    type: str
    choices: [present, absent]
    default: present
  endpoint:
    description:
      - Where the machine answers, with port 50000 unless another is given. It overrides an address that was observed.
    type: str
  hostname:
    description:
      - Host name.
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
      - Where Talos is installed, for an approved machine that was not sent a configuration. The disk that it picks is recorded
        as the approved one.
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
  identity:
    description:
      - The hardware that is meant, which resolves a weak identity. At least one part has to be real and in no other record.
    type: dict
    suboptions:
      uuid:
        description: SMBIOS UUID.
        type: str
      serial:
        description: Serial number.
        type: str
      macs:
        description: Permanent MACs of the physical Ethernet links, in any notation.
        type: list
        elements: str
  hold:
    description:
      - With V(true) nothing is applied to the machine until it is V(false) again.
    type: bool
  allow_delete:
    description:
      - Deleting the record is meant. With O(state=present) it is written into the record.
    type: bool
  trust:
    description:
      - Accept the certificate that the machine shows now in maintenance mode. It has to answer as itself, with a strong identity
        and at the address in its record; for everything else O(fingerprint) has to be named.
      - For a machine that took a configuration and is still in maintenance mode this allows one more send, and for one whose
        status was lost the first.
    type: bool
    default: false
  fingerprint:
    description:
      - The certificate that is trusted, as the node's console shows it or in hexadecimal form. The machine need not answer then.
    type: str
  override:
    description:
      - Change a record that Argo CD or Flux keeps in step with git.
    type: bool
    default: false
seealso:
  - module: ichor.talos.talos_machine_approval
  - module: ichor.talos.talos_machine_info
"""

EXAMPLES = r"""
- name: Say where a machine answers now
  ichor.talos.talos_machine:
    machine: prod-4c4c4544
    endpoint: 192.0.2.31

# Before this, somebody has compared the new fingerprints with the machines' consoles. Of these machines only those are accepted that answer
# with the strong identity in their record, at the address in their record; the others are listed as blocked or unreachable.
- name: Accept the certificates of all approved machines that have rotated since their approval
  ichor.talos.talos_machine:
    select: "[?spec.approvalState=='approved' && !status.configStoredAt].metadata.name"
    trust: true

- name: Say which hardware a weak entry is
  ichor.talos.talos_machine:
    machine: weak-0f3c22a9d1e45b67
    identity:
      serial: PF3K9Q7X
      macs: [3C-EC-EF-00-11-22]

- name: Delete the record of a machine that was thrown away
  ichor.talos.talos_machine:
    machine: prod-deadbeef
    state: absent
    allow_delete: true
"""

RETURN = r"""
deleted:
  description: Names of records that were deleted.
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
from ansible_collections.ichor.talos.plugins.module_utils._decide.machine_edit_words import Edit
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.spec_options import identity_of, install_of, said_list, text_map

SPEC = Spec(
    own={
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "endpoint": {"type": "str"},
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
        "identity": {"type": "dict", "options": {
            "uuid": {"type": "str"}, "serial": {"type": "str"}, "macs": {"type": "list", "elements": "str"},
        }},
        "hold": {"type": "bool"},
        "allow_delete": {"type": "bool"},
        "trust": {"type": "bool", "default": False},
        "fingerprint": {"type": "str"},
        "override": {"type": "bool", "default": False},
    },
    groups=("store", "cluster", "machines", "credentials", "plan", "timing", "fleet", "network"),
    required_one_of=[("machine", "machines", "select")],
)


def build_request(options: Options) -> Request:
    edit = Edit(
        "", absent=options.text("state") == "absent", endpoint=options.text("endpoint").strip(), hostname=options.text("hostname"),
        labels=text_map(options.mapping("labels")) if options.given("labels") else None,
        taints=said_list(options.maps("taints")) if options.given("taints") else None,
        install=install_of(options.mapping("install")), identity=identity_of(options.mapping("identity")),
        hold=options.flag("hold") if options.given("hold") else None,
        allow_delete=options.flag("allow_delete") if options.given("allow_delete") else None,
        trust=options.flag("trust"), fingerprint=options.text("fingerprint").strip(), override=options.flag("override"),
        allow_loopback=options.flag("allow_loopback"))
    return Request(options.machines(), options.text("select"), options.text("cluster"), edit, options.timing())


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials, needs_store=True)


if __name__ == "__main__":
    main()
