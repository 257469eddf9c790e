#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_adopt
short_description: Take over a running cluster, or a machine that carries its CAs, without writing to a node
version_added: 0.1.0
description:
  - Reads what the named nodes run, with their own talosconfig, and writes the records that render exactly that. Nothing is sent to a node,
    and workloads are left alone.
  - The plan comes first. In check mode it shows every record and patch that would be written, and every difference that is left.
  - What a node has beside the records is captured as patches, one of the cluster or of a role for what is equal there, and at most one a
    machine (class A). What the records own and a node has otherwise is kept by a patch too, and needs O(consent_class_b) (class B). What
    no record can hold blocks the machine, with its path and a hint (class C). Secrets go into no record.
  - Machines are created approved and held. Each is released only after a reading made for it shows no difference, control planes first. A
    run that ended early goes on when it is run again.
  - The secrets bundle is the one that is given, else the one in the store, else it is rebuilt from a control plane's configuration. It is
    written in clear with mode 0600 and never shown.
  - With O(add_machine=true) the machines join a cluster that is managed already. A node whose own configuration does not name that
    cluster and its CA is refused.
  - The container network is left as it is, V(unmanaged) in the words of the records, or V(none) where there is none, unless O(cni) says
    V(managed). A Cilium that is there is taken over with its Helm values then, and a cluster without a network gets one first. Any other
    network is refused. It is the one thing in an adoption that restarts anything, and it needs the program helm.
  - Where there is no store, adopting a cluster makes one.
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.credentials
  - ichor.talos.options.cluster
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  cluster:
    description:
      - Name of the cluster's record. Without a reason for another one, the name that the configurations have.
      - If not set, E(ICHOR_CLUSTER) is used.
  addresses:
    description:
      - Addresses of the nodes, with a port where it is not 50000. For a cluster those of all its nodes.
    type: list
    elements: str
    required: true
  add_machine:
    description:
      - The machines are for a cluster that is managed already.
    type: bool
    default: false
  bundle:
    description:
      - Name of the secrets bundle in the store. If not set, the one that the cluster's record names, else the cluster's name.
    type: str
  bundle_file:
    description:
      - The secrets bundle of the cluster, as a file. It may be vaulted.
    type: path
  bundle_content:
    description:
      - The secrets bundle of the cluster, as text.
    type: str
  control_planes:
    description:
      - How many control planes the cluster is to have. If not set, as many as there are, or the next allowed number.
    type: int
    choices: [1, 3, 5, 7]
  kubernetes_version:
    description:
      - The version of Kubernetes, where the configurations name none.
    type: str
  consent_class_b:
    description:
      - Agree to what is listed as class B. A saved plan, or O(expect_plan_id), agrees to it as well.
    type: bool
    default: false
  release:
    description:
      - Release machines that show no difference. With V(false) they stay held, and a later run releases them.
    type: bool
    default: true
  cni:
    description:
      - Who installs the container network from then on. V(managed) takes a Cilium over, or installs it where there is no network;
        V(unmanaged) leaves it as it is. It cannot be changed later.
      - If not set, what the configurations say is recorded, and Kubernetes is not asked.
    type: str
    choices: [managed, unmanaged]
  cilium_values:
    description:
      - Helm values of the Cilium that is taken over where no Helm release carries them, or of the one that is installed.
      - Keys that the collection sets (C(ipam.mode), C(cgroup.autoMount.enabled), C(cgroup.hostRoot)) are refused, and so are secrets.
    type: dict
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
  - module: ichor.talos.talos_cni
  - module: ichor.talos.talos_config_info
  - module: ichor.talos.talos_reclaim
  - module: ichor.talos.talos_machine_approval
"""

EXAMPLES = r"""
- name: See what adopting the cluster would write
  ichor.talos.talos_adopt:
    cluster: prod
    addresses: [192.0.2.11, 192.0.2.12, 192.0.2.13, 192.0.2.21]
    talosconfig: ~/.talos/config
  check_mode: true

- name: Adopt it
  ichor.talos.talos_adopt:
    cluster: prod
    addresses: [192.0.2.11, 192.0.2.12, 192.0.2.13, 192.0.2.21]
    talosconfig: ~/.talos/config

- name: Take its Cilium over as well, with the values of its Helm release
  ichor.talos.talos_adopt:
    cluster: prod
    addresses: [192.0.2.11, 192.0.2.12, 192.0.2.13, 192.0.2.21]
    talosconfig: ~/.talos/config
    cni: managed

- name: Add a worker that was made from the cluster's own bundle
  ichor.talos.talos_adopt:
    cluster: prod
    addresses: [192.0.2.22]
    talosconfig: ~/.talos/config
    add_machine: true
"""

RETURN = r"""
adoption:
  description: What each node comes to. No value of a configuration is in it, only paths.
  returned: success
  type: list
  elements: dict
  contains:
    address:
      description: The address as it was named, with its port.
      type: str
    machine:
      description: Name of its record.
      type: str
    state:
      description: One of V(held), V(adopted), V(blocked) and V(unreachable); in check mode V(held) is what it would be at first.
      type: str
    role:
      description: What its configuration makes it.
      type: str
    install:
      description: The disk that its configuration installs to.
      type: str
    class_a:
      description: Paths that patches hold.
      type: list
      elements: str
    class_b:
      description: Paths that the records own, and that patches hold all the same; they need consent.
      type: list
      elements: str
    class_c:
      description: Paths that block the machine.
      type: list
      elements: dict
      contains:
        path:
          description: Document and path.
          type: str
        what:
          description: What is wrong with it.
          type: str
        hint:
          description: What to do about it.
          type: str
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
records:
  description: The records that the plan writes, as they are written. In a run they are those that were to be written when it began.
  returned: success
  type: list
  elements: dict
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
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import Setting, run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_credentials import open_credentials
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import create_store, open_store
from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_words import AdoptWish
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_words import CniWish, brought, chart_of
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Store
from ansible_collections.ichor.talos.plugins.module_utils._operations.adopt import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.kube_networks import KubeNetworks

SPEC = Spec(
    own={
        "addresses": {"type": "list", "elements": "str", "required": True},
        "add_machine": {"type": "bool", "default": False},
        "bundle": {"type": "str"},
        "bundle_file": {"type": "path"},
        "bundle_content": {"type": "str", "no_log": True},
        "control_planes": {"type": "int", "choices": [1, 3, 5, 7]},
        "kubernetes_version": {"type": "str"},
        "consent_class_b": {"type": "bool", "default": False},
        "release": {"type": "bool", "default": True},
        "cni": {"type": "str", "choices": ["managed", "unmanaged"]},
        "cilium_values": {"type": "dict"},
        "accept_cilium_diff": {"type": "bool", "default": False},
        "cilium_chart": {"type": "str"},
        "cilium_repository": {"type": "str"},
        "cilium_version": {"type": "str"},
    },
    groups=("store", "credentials", "cluster", "plan", "timing", "fleet", "network"),
    mutually_exclusive=[("bundle_file", "bundle_content")],
)


def build_request(options: Options) -> Request:
    if not options.text("cluster"):
        raise TalosError("InvalidInput", "No cluster is named.", "Set cluster, or ICHOR_CLUSTER.")
    planned = options.given("expect_plan_id") or options.given("plan_file")
    wish = AdoptWish(
        options.text("cluster"), options.texts("addresses"), options.flag("add_machine"), bundle=options.text("bundle"),
        count=options.integer("control_planes"), kubernetes_version=options.text("kubernetes_version"),
        consent=options.flag("consent_class_b") or planned, release=options.flag("release"))
    return Request(wish, options.secret_content("bundle_content", "bundle_file"), options.text("bundle_file") or "bundle_content",
                   options.flag("allow_loopback"), options.timing(), _network(options, planned))


def _network(options: Options, planned: bool) -> CniWish:
    chart = chart_of(options.text("cilium_chart"), options.text("cilium_repository"), options.text("cilium_version"))
    values = brought(options.mapping("cilium_values")) if options.given("cilium_values") else None
    return CniWish(options.text("cni"), values, options.flag("accept_cilium_diff") or planned, chart, options.text("cilium_version"))


def store_of(setting: Setting) -> Store:
    """Adopting a cluster makes the store where there is none; a machine is added to one that is there."""
    return (open_store if setting.options.flag("add_machine") else create_store)(setting)


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=store_of,
               credentials=open_credentials, networks=KubeNetworks, needs_store=True)


if __name__ == "__main__":
    main()
