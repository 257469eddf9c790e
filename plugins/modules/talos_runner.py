#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_runner
short_description: Install the loop in a cluster, or write its manifests
version_added: 0.1.0
description:
  - Installs what M(ichor.talos.talos_controller) needs to run in a Kubernetes cluster beside its records. These are the resources of the records,
    the admission policies, the roles of viewers, operators and admins, the account and the role of the runner, and a Deployment of the
    execution environment.
  - With O(manifests) the same objects are written into a folder instead, one file each, for Argo CD, Flux or C(kubectl apply). No API server is
    asked then.
  - Objects are applied under a field manager of their own. Fields that they do not name stay as others have them.
  - The pods use the same O(timing).
  - The roles are not bound to anybody; that is for whoever knows the people.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.credentials
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.network
options:
  image:
    description:
      - The execution environment with this collection in it, as the nodes of the cluster pull it.
    type: str
    required: true
  replicas:
    description:
      - How many pods. One of them leads, and another takes over when it is gone.
    type: int
    default: 2
  pull_secrets:
    description:
      - Names of Secrets in the namespace with the credential of the image's registry.
    type: list
    elements: str
    default: []
  clusters:
    description:
      - Only these clusters are reconciled. If not set, it is all of the store.
    type: list
    elements: str
    default: []
  leader:
    description:
      - The name under which one of the pods leads.
    type: str
    default: runner
  resources:
    description:
      - Requests and limits of the container, as Kubernetes spells them. If not set, 100m of a CPU and 256Mi are asked for, and 1Gi is the limit.
    type: dict
  node_selector:
    description:
      - Labels of the nodes on which the pods may run.
    type: dict
  manifests:
    description:
      - The folder to write the manifests into. A file that holds the same already is left as it is.
    type: path
  override:
    description:
      - Apply also over objects that Argo CD or Flux keeps in step with git.
    type: bool
    default: false
seealso:
  - module: ichor.talos.talos_controller
  - module: ichor.talos.talos_store_copy
"""

EXAMPLES = r"""
- name: Install the loop in the management cluster
  ichor.talos.talos_runner:
    store_kubeconfig: ~/.kube/management
    image: images.example.org/talos-runner:1

- name: Write its manifests into the folder that Flux applies
  ichor.talos.talos_runner:
    image: images.example.org/talos-runner:1
    manifests: clusters/management/talos-runner
"""

RETURN = r"""
objects:
  description: Kind and name of every object, in the order in which they are applied.
  returned: success
  type: list
  elements: str
  sample: [Namespace ichor-system, Deployment ichor-runner]
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
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.runner_manifests import RunnerSettings
from ansible_collections.ichor.talos.plugins.module_utils._model.schema_formats import is_dns_1123
from ansible_collections.ichor.talos.plugins.module_utils._operations.runner import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import NAMESPACE

SPEC = Spec(
    own={
        "image": {"type": "str", "required": True},
        "replicas": {"type": "int", "default": 2},
        "pull_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
        "clusters": {"type": "list", "elements": "str", "default": []},
        "leader": {"type": "str", "default": "runner"},
        "resources": {"type": "dict"},
        "node_selector": {"type": "dict"},
        "manifests": {"type": "path"},
        "override": {"type": "bool", "default": False},
    },
    groups=("store", "credentials", "plan", "timing", "network"),
)


def build_request(options: Options) -> Request:
    namespace, leader = options.text("store_namespace") or NAMESPACE, options.text("leader")
    for name, value in (("store_namespace", namespace), ("leader", leader), *(("clusters", cluster) for cluster in options.texts("clusters"))):
        if not is_dns_1123(value):
            raise TalosError("InvalidInput", f"{name} is '{value}'.", "Give a name of lower-case letters, digits, '-' and '.' only.")
    if options.integer("replicas") < 0:
        raise TalosError("InvalidInput", f"replicas is {options.integer('replicas')}.", "Give 0 or more.")
    if not options.text("image").strip():
        raise TalosError("InvalidInput", "image is empty.", "Name the execution environment that has this collection in it.")
    options.timing()  # a wrong one is told here and not in the pod
    more = {"ichor_clusters": list(options.texts("clusters")), "ichor_timing": dict(options.mapping("timing"))}
    variables = {"ichor_leader": leader, **{name: value for name, value in more.items() if value}}
    path = options.text("store_kubeconfig")
    content = options.clear_text(path).decode("utf-8", "replace") if path and options.clear_text is not None else ""
    settings = RunnerSettings(
        options.text("image"), namespace, options.integer("replicas"), options.texts("pull_secrets"), variables,
        options.mapping("resources"), options.mapping("node_selector"))
    return Request(settings, Access(path, content, options.text("store_context")), options.text("manifests"), options.flag("override"))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "kubernetes"))


if __name__ == "__main__":
    main()
