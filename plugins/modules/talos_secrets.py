#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_secrets
short_description: Make, import and export the secrets bundle of a cluster
version_added: 0.1.0
description:
  - A secrets bundle holds every key of a cluster, in the file that C(talosctl gen secrets) writes. With it configurations are rendered
    and credentials are issued.
  - Where the bundle is not there it is made, once. One that is there is left alone, and one whose keys a machine was sent is never
    written over.
  - The file is written with mode 0600, in clear. Encrypt it with ansible-vault when it is to go into git; an encrypted bundle works like
    one in clear.
  - No key is in the result. In check mode a bundle that does not exist yet stands as a placeholder in the plans of later tasks.
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
  name:
    description:
      - Name of the bundle in the store. If not set, the one that O(cluster) names.
    type: str
  path:
    description:
      - The bundle as a file of its own, without any store.
    type: path
  talos_version:
    description:
      - The Talos version that a new bundle is made for. If not set, that of O(cluster), else the newest that is known.
      - It matters for the alphabet of the cluster's id only.
    type: str
  bundle_file:
    description:
      - A bundle to import, as a file. It may be vaulted.
    type: path
  bundle_content:
    description:
      - A bundle to import, as text, for example from a vaulted variable.
    type: str
  config_file:
    description:
      - The configuration of a control plane, as a file; the bundle is taken from it.
    type: path
  config_content:
    description:
      - The configuration of a control plane, as text; the bundle is taken from it.
    type: str
  replace:
    description:
      - Import over another bundle of that name that no machine was sent, and export over another file.
    type: bool
    default: false
  export_path:
    description:
      - Write a copy for talosctl to this file, in clear and with mode 0600.
    type: path
seealso:
  - module: ichor.talos.talos_cluster
  - module: ichor.talos.talos_credentials
"""

EXAMPLES = r"""
- name: Make the keys of a new cluster, once
  ichor.talos.talos_secrets:
    cluster: prod

- name: Take over the bundle that talosctl made
  ichor.talos.talos_secrets:
    name: prod
    bundle_file: secrets.yaml

- name: Write a copy for talosctl
  ichor.talos.talos_secrets:
    name: prod
    export_path: "{{ playbook_dir }}/secrets.yaml"
"""

RETURN = r"""
bundle:
  description: What may be told of the bundle. Nothing but the name where it would be made in check mode.
  returned: success
  type: dict
  contains:
    name:
      description: Its name, or its path.
      type: str
    cluster_id:
      description: The id of the cluster.
      type: str
    encryption:
      description: How secrets in etcd are encrypted, V(secretbox) or V(aescbc) for a bundle of an old Talos.
      type: str
    talos_ca:
      description: C(sha256) of the CA of the Talos API, and until when it is valid (C(not_after)).
      type: dict
    kubernetes_ca:
      description: The same for the CA of Kubernetes.
      type: dict
    etcd_ca:
      description: The same for the CA of etcd.
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
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._operations.secrets import Request, run

SPEC = Spec(
    own={
        "name": {"type": "str"},
        "path": {"type": "path"},
        "talos_version": {"type": "str"},
        "bundle_file": {"type": "path"},
        "bundle_content": {"type": "str", "no_log": True},
        "config_file": {"type": "path"},
        "config_content": {"type": "str", "no_log": True},
        "replace": {"type": "bool", "default": False},
        "export_path": {"type": "path"},
    },
    groups=("store", "credentials", "cluster", "plan", "timing", "network"),
    mutually_exclusive=[("bundle_file", "bundle_content", "config_file", "config_content"), ("path", "name")],
    required_one_of=[("name", "path", "cluster")],
)


def build_request(options: Options) -> Request:
    source = options.text("bundle_file") or options.text("config_file") or ("bundle_content" if "bundle_content" in options else "config_content")
    path = options.text("path")
    return Request(
        name=options.text("name"), cluster="" if path else options.text("cluster"), path=path,
        bundle=options.secret_content("bundle_content", "bundle_file"), config=options.secret_content("config_content", "config_file"),
        source=source, talos_version=options.text("talos_version"), replace=options.flag("replace"), export_path=options.text("export_path"),
        decrypt=options.clear_text)


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "cryptography"), store=open_store)


if __name__ == "__main__":
    main()
