#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_config_info
short_description: Render, validate and compare machine configurations
version_added: 0.1.0
description:
  - Renders the configurations of machines from their records, validates them as Talos would, and compares them with what the nodes run.
    Writes nothing.
  - What the nodes run is compared by meaning. Order, comments, quoting, spellings of the same value and defaults that are written out
    are no difference. The order within a list is one.
  - Secrets are shown as fingerprints. Kubernetes images that are newer on the node, and CAs, keys and tokens that differ from the
    bundle, are listed apart; they are never sent.
  - With O(config_file) or O(config_content) the configuration that a person brings is taken instead; without any machine it is only
    validated.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes.info
  - ichor.talos.options.store
  - ichor.talos.options.cluster
  - ichor.talos.options.machines
  - ichor.talos.options.credentials
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  cluster:
    description:
      - Only machines of this cluster; without a choice of machines, all of its approved ones.
      - If not set, E(ICHOR_CLUSTER) is used.
  config_file:
    description:
      - A configuration to look at instead of the rendered one, as a file. It may be vaulted.
    type: path
  config_content:
    description:
      - A configuration to look at instead of the rendered one, as text.
    type: str
  talos_version:
    description:
      - The Talos version by which O(config_file) or O(config_content) is read. If not set, that of the machine's cluster, else the newest
        that is known.
    type: str
  compare:
    description:
      - Whether to read what the nodes run. With V(false) configurations are only rendered and validated, and no node is asked.
    type: bool
    default: true
  show:
    description:
      - Whether to show the configurations themselves, with every secret as a fingerprint.
    type: bool
    default: false
seealso:
  - module: ichor.talos.talos_config_patch
  - module: ichor.talos.talos_maintenance_apply
"""

EXAMPLES = r"""
- name: Does any node of the cluster run something else than its records say
  ichor.talos.talos_config_info:
    cluster: prod
    fail_on: [drift]

- name: Look at the configuration that a machine would get
  ichor.talos.talos_config_info:
    machine: prod-4c4c4544
    compare: false
    show: true
  register: rendered

- name: Validate a configuration for Talos 1.12
  ichor.talos.talos_config_info:
    config_file: worker.yaml
    talos_version: v1.12.6
    fail_on: [blocked]
"""

RETURN = r"""
configs:
  description: One entry for each machine.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the machine; that of the file for a configuration without one.
      type: str
    cluster:
      description: Name of its cluster.
      type: str
    reason:
      description:
        - V(Converged), V(Drifted), V(AuthorityMismatch), V(RenderFailed), V(SecretsUnavailable), V(CurrentConfigUnavailable) or another
          reason. Empty where it renders and was not compared.
      type: str
    message:
      description: The same as a sentence.
      type: str
    renders:
      description: Whether there is a valid configuration.
      type: bool
    compared:
      description: Whether the node's configuration was read.
      type: bool
    in_sync:
      description: Whether the node runs it; null where it was not compared.
      type: bool
    contract:
      description: The Talos version that the configuration is written for, for example V(1.13).
      type: str
    sha256:
      description: Hash of its bytes.
      type: str
    inputs_hash:
      description: Hash of everything that it was rendered from.
      type: str
    install_missing:
      description: Whether nothing says where to install.
      type: bool
    warnings:
      description: What Talos would warn about.
      type: list
      elements: str
    differences:
      description: What would be changed on the node. Each entry has C(document), C(path), C(running), C(wanted) and C(secret).
      type: list
      elements: dict
    newer_images:
      description: Kubernetes images that are newer on the node; they stay.
      type: list
      elements: dict
    authority:
      description: CAs, keys and tokens that are others than the bundle's.
      type: list
      elements: dict
    reboot:
      description: What of the differences needs a reboot.
      type: list
      elements: str
    later:
      description: What of the differences has effect only after a service or the node restarts.
      type: list
      elements: str
    config:
      description: The configuration with secrets as fingerprints, with O(show).
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

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_credentials import open_credentials
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._operations.config_info import Request, run

SPEC = Spec(
    own={
        "config_file": {"type": "path"},
        "config_content": {"type": "str", "no_log": True},
        "talos_version": {"type": "str"},
        "compare": {"type": "bool", "default": True},
        "show": {"type": "bool", "default": False},
    },
    groups=("store", "cluster", "machines", "credentials", "timing", "fleet", "network"),
    mutually_exclusive=[("config_file", "config_content")],
    required_one_of=[("cluster", "machine", "machines", "select", "config_file", "config_content")],
)


def build_request(options: Options) -> Request:
    return Request(
        options.machines(), options.text("select"), options.text("cluster"), config=options.secret_content("config_content", "config_file"),
        source=options.text("config_file") or "config_content", talos_version=options.text("talos_version"), compare=options.flag("compare"),
        show=options.flag("show"), allow_loopback=options.flag("allow_loopback"), timing=options.timing())


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials)


if __name__ == "__main__":
    main()
