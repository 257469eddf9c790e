#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_maintenance_apply
short_description: Send a configuration to machines in maintenance mode, once
version_added: 0.1.0
description:
  - Sends a machine configuration over Talos's unauthenticated API. That happens once for a machine, only to one that a person
    approved, only when it answers as itself with the pinned certificate, and never again for the same wipe. Everything that is
    read before is read again on the very connection that the configuration is sent on.
  - The configuration is rendered from the records - cluster, secrets bundle, patches and machine - unless a person brings one, which is
    sent byte for byte. A template that was left unexpanded, an encrypted file and references of other tools are refused by name.
  - With a record (O(machine) or O(machines)) every gate holds, control planes take the lock of their cluster for the send, and
    what happened is written down. Without any store (O(address)) the UUID and the fingerprint have to be given, and there is
    neither a memory of the send nor a lock.
  - A machine that was sent a configuration, or runs one, is left alone, and the task reports no change. Follow it with
    M(ichor.talos.talos_stage).
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.credentials
  - ichor.talos.options.cluster
  - ichor.talos.options.machines
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  config_file:
    description:
      - The machine configuration as a file. It may be vaulted. With several machines all get this one.
      - Without O(config_file), O(config_content) and O(config_dir) each machine's configuration is rendered from its records.
    type: path
  config_content:
    description:
      - The machine configuration as text, for example from a vaulted variable.
    type: str
  config_dir:
    description:
      - A folder with one file for each machine, named after its record with C(.yaml) behind it.
    type: path
  address:
    description:
      - Address of a node without a record, as V(host), V(host:port) or V([IPv6]:port). Needs O(uuid) and O(fingerprint).
    type: str
  uuid:
    description:
      - SMBIOS UUID that the node at O(address) has to have.
    type: str
  serial:
    description:
      - Serial number that the node at O(address) has to have, where it is given.
    type: str
  macs:
    description:
      - Permanent MAC addresses that the node at O(address) has to have, where they are given; in any usual notation.
    type: list
    elements: str
  fingerprint:
    description:
      - The certificate that the node at O(address) has to show, as its console shows it or in hexadecimal form.
    type: str
seealso:
  - module: ichor.talos.talos_machine_approval
  - module: ichor.talos.talos_stage
  - module: ichor.talos.talos_bootstrap
"""

EXAMPLES = r"""
- name: Provision approved machines as their records describe them
  ichor.talos.talos_maintenance_apply:
    machines: [prod-4c4c4544, prod-0a1b2c3d]

- name: Provision an approved control plane with a configuration that was made for it
  ichor.talos.talos_maintenance_apply:
    machine: prod-4c4c4544
    config_file: configs/cp-1.yaml

- name: Provision the approved workers, each with a file of its own
  ichor.talos.talos_maintenance_apply:
    machines: [prod-0a1b2c3d, prod-4e5f6a7b]
    config_dir: configs
    fail_on: [blocked]

- name: Provision one machine without any store
  ichor.talos.talos_maintenance_apply:
    address: 192.0.2.17
    uuid: 4c4c4544-0044-4a10-8035-b4c04f330000
    fingerprint: 2b0zV3yJ0Ck0bqVfGf1nJ2n1v3s3r2h1xk0Y0c0yq4o=
    config_file: configs/worker.yaml
"""

RETURN = r"""
node_warnings:
  description: What the nodes warned about when they took the configuration.
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
from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._operations.brought import bring_config, identity_option
from ansible_collections.ichor.talos.plugins.module_utils._operations.maintenance_apply import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Job

SPEC = Spec(
    own={
        "config_file": {"type": "path"},
        "config_content": {"type": "str", "no_log": True},
        "config_dir": {"type": "path"},
        "address": {"type": "str"},
        "uuid": {"type": "str"},
        "serial": {"type": "str"},
        "macs": {"type": "list", "elements": "str"},
        "fingerprint": {"type": "str"},
    },
    groups=("store", "credentials", "cluster", "machines", "plan", "timing", "fleet", "network"),
    mutually_exclusive=[("config_file", "config_content", "config_dir"), ("address", "machine"), ("address", "machines"), ("address", "select"),
                        ("address", "config_dir"), ("machine", "select"), ("machines", "select")],
    required_one_of=[("machine", "machines", "select", "address")],
    required_by={"address": ("uuid", "fingerprint")},
)


def build_request(options: Options) -> Request:
    timing, loopback = options.timing(), options.flag("allow_loopback")
    content = options.secret_content("config_content", "config_file")
    source = options.text("config_file") or "config_content"
    if "address" in options:
        if content is None:
            raise TalosError("InvalidInput", "Without a record there is nothing to render a configuration from.", "Give config_file or config_content.")
        identity = identity_option(options.text("uuid"), options.text("serial"), options.texts("macs"))
        job = Job(config=bring_config(content, source), endpoint=parse_endpoint(options.text("address")), identity=identity,
                  fingerprint=options.text("fingerprint").strip(), cluster=options.text("cluster"))
        return Request((job,), timing=timing, allow_loopback=loopback)
    folder = options.text("config_dir")

    rendering = content is None and not folder

    def config_of(name: str) -> bytes:
        return options.secret_file(f"{folder}/{name}.yaml", "config_dir") if content is None else content

    def job_of(name: str) -> Job:
        if rendering:
            return Job(name, render=True)
        return Job(name, bring_config(config_of(name), source if content is not None else f"{name}.yaml"))

    return Request(tuple(job_of(name) for name in options.machines()), select=options.text("select"), job_of=job_of,
                   single="machine" in options, timing=timing, allow_loopback=loopback)


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials)


if __name__ == "__main__":
    main()
