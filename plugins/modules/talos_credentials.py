#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_credentials
short_description: Issue a talosconfig or a kubeconfig
version_added: 0.1.0
description:
  - Issues a client certificate from the CA in a cluster's secrets bundle, and writes it as a talosconfig or a kubeconfig that only its
    owner can read (mode 0600). No node is asked.
  - A file that is there and still good is left alone. It is renewed when it ends soon, when the CA or the roles are others, or
    when the addresses changed. A file of another cluster or with several contexts is not written over.
  - Whoever holds such a file has the rights in it until it ends; Talos and Kubernetes take no certificate back.
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
  kind:
    description:
      - What to issue.
    type: str
    choices: [talosconfig, kubeconfig]
    required: true
  path:
    description:
      - The file to write. Its folder has to be there.
    type: path
    required: true
  cluster:
    description:
      - The cluster that the credentials are for. With O(bundle_file) or O(bundle_content) it is only the name in the file.
      - If not set, E(ICHOR_CLUSTER) is used.
  bundle_file:
    description:
      - The secrets bundle as a file, in place of the one that the cluster names. It may be vaulted.
    type: path
  bundle_content:
    description:
      - The secrets bundle as text.
    type: str
  roles:
    description:
      - Talos's roles in a talosconfig.
    type: list
    elements: str
    default: ["os:admin"]
  endpoints:
    description:
      - Addresses in a talosconfig. If not set, those of the approved control planes.
    type: list
    elements: str
  server:
    description:
      - URL of the Kubernetes API in a kubeconfig. If not set, the endpoint of the cluster.
    type: str
  lifetime:
    description:
      - How long the certificate is valid, in hours, at most 876000. It never outlives the CA.
    type: float
    default: 8760
  renew_before:
    description:
      - Renew it when fewer hours than this are left.
    type: float
    default: 720
  replace:
    description:
      - Write over a file that is something else or another cluster's.
    type: bool
    default: false
seealso:
  - module: ichor.talos.talos_secrets
"""

EXAMPLES = r"""
- name: A talosconfig for administrators
  ichor.talos.talos_credentials:
    kind: talosconfig
    cluster: prod
    path: "{{ playbook_dir }}/talosconfig"

- name: A talosconfig that can only read, for a day
  ichor.talos.talos_credentials:
    kind: talosconfig
    cluster: prod
    path: /run/user/1000/talosconfig
    roles: ["os:reader"]
    lifetime: 24
    renew_before: 1

- name: A kubeconfig from a bundle, without any store
  ichor.talos.talos_credentials:
    kind: kubeconfig
    store: none
    cluster: prod
    bundle_file: secrets.yaml
    server: https://192.0.2.5:6443
    path: "{{ playbook_dir }}/kubeconfig"
"""

RETURN = r"""
credentials:
  description: What was issued, or is there; no key and no certificate.
  returned: success
  type: dict
  contains:
    kind:
      description: V(talosconfig) or V(kubeconfig).
      type: str
    path:
      description: The file.
      type: str
    cluster:
      description: The name in it.
      type: str
    roles:
      description: Roles of Talos, or groups of Kubernetes.
      type: list
      elements: str
    endpoints:
      description: Addresses in a talosconfig.
      type: list
      elements: str
    server:
      description: URL in a kubeconfig.
      type: str
    not_after:
      description: Until when it is valid. Not there in check mode when one would be issued.
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
from ansible_collections.ichor.talos.plugins.module_utils._operations.credentials import Request, run

SPEC = Spec(
    own={
        "kind": {"type": "str", "choices": ["talosconfig", "kubeconfig"], "required": True},
        "path": {"type": "path", "required": True},
        "bundle_file": {"type": "path"},
        "bundle_content": {"type": "str", "no_log": True},
        "roles": {"type": "list", "elements": "str", "default": ["os:admin"]},
        "endpoints": {"type": "list", "elements": "str"},
        "server": {"type": "str"},
        "lifetime": {"type": "float", "default": 8760},
        "renew_before": {"type": "float", "default": 720},
        "replace": {"type": "bool", "default": False},
    },
    groups=("store", "credentials", "cluster", "plan", "timing", "network"),
    mutually_exclusive=[("bundle_file", "bundle_content")],
    required_one_of=[("cluster", "bundle_file", "bundle_content")],
)


def build_request(options: Options) -> Request:
    return Request(
        options.text("kind"), options.text("path"), options.text("cluster"), options.secret_content("bundle_content", "bundle_file"),
        options.text("bundle_file") or "bundle_content", options.texts("roles"), options.texts("endpoints"), options.text("server"),
        options.number("lifetime"), options.number("renew_before"), options.flag("replace"))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "cryptography"), store=open_store)


if __name__ == "__main__":
    main()
