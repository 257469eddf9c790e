#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: talos_controller
short_description: Reconcile machines, once or for a while
version_added: 0.1.0
description:
  - The loop. It looks at every machine of the chosen clusters at once and does what each one's phase of life calls for. An approved machine
    in maintenance mode is sent its configuration once, one that was sent it is followed until it has joined, one that runs is kept as the
    records say, and one whose disk was wiped is put back.
  - Each machine is looked at again at its own time, every 15 seconds while it is on its way and every two minutes when it runs. The
    registered addresses of a cluster are probed every five minutes, and what waits there in maintenance mode becomes a pending machine.
  - The first look at all machines gives the whole plan, which is shown before anything is done. Steps that disturb a cluster go one
    machine after the other. What only a later look calls for is a new plan, and is shown when it arises.
  - A TalosEtcdBackup is taken when its schedule calls for it, once for each due time however many controllers run, and a MachineReclaim is
    carried out once. That is done only where whole clusters are reconciled.
  - Specs are never written, and etcd is never bootstrapped; that is M(ichor.talos.talos_bootstrap), which a person names.
  - A machine that is held, out of reach or in trouble is listed and stops no other one. In check mode there is one look at all machines, the
    whole plan, and nothing is written.
  - As the loop in a cluster it is given O(leader), so that several may run at once.
  - Without O(passes) and O(until) it runs for O(max_runtime) seconds. When it is told to stop it ends within seconds, leaves every record as it is
    after the last step, and says so in RV(interrupted).
author:
  - Ichor contributors (@ichor)
extends_documentation_fragment:
  - ichor.talos.attributes
  - ichor.talos.options.store
  - ichor.talos.options.credentials
  - ichor.talos.options.kubernetes
  - ichor.talos.options.machines
  - ichor.talos.options.plan
  - ichor.talos.options.timing
  - ichor.talos.options.fleet
  - ichor.talos.options.network
options:
  cluster:
    description:
      - Only machines of this cluster. Use either this or O(clusters).
      - If not set, E(ICHOR_CLUSTER) is used.
    type: str
  clusters:
    description:
      - Only machines of these clusters. Without this and without a choice of machines it is every machine of the store.
      - A narrower choice narrows what is acted on, and never what is read for quorum, counts and names.
    type: list
    elements: str
  passes:
    description:
      - How many times to look at each machine. The steps whose wait is over are done after each look.
    type: int
  until:
    description:
      - V(settled) ends the run as soon as nothing more happens without a person.
    type: str
    choices: [settled]
  max_runtime:
    description:
      - Seconds after which the run ends in any case. A configuration that is being sent then is sent to the end, and a backup that is being taken then is
        taken to its end, for at most C(snapshot) seconds of O(timing).
    type: float
    default: 600.0
  allow_reboot:
    description:
      - Whether a change that needs a reboot may reboot a running machine. With V(false) it is told as C(RebootRequired).
    type: bool
    default: true
  drain:
    description:
      - Whether the Kubernetes Node of a machine is drained before it is rebooted, and uncordoned once it is back. A PodDisruptionBudget that
        allows nothing holds the reboot, and so does a Kubernetes that cannot be read. With V(false) pods are stopped with their node.
    type: bool
    default: true
  discard_etcd:
    description:
      - The name of a cluster, typed by a person, whose last control plane was wiped. Its data in etcd is given up, and the one machine that
        O(machine) names may be sent its configuration although no other control plane can be asked.
    type: str
  discover:
    description:
      - Whether the registered addresses of the clusters are probed. It is done only where whole clusters are reconciled.
    type: bool
    default: true
  leader:
    description:
      - Only one of all runs that give this name works, whichever comes first; the others stand by until it ends or is gone, or until
        O(max_runtime) is over. For a loop that runs more than once, as in several pods.
      - A run that loses the lead ends and fails. Not used in check mode.
    type: str
  alive_file:
    description:
      - A file that is touched at least once a minute while the run is well, and that holds the id of its process. For whoever restarts
        what hangs.
      - If not set, E(ICHOR_ALIVE_FILE) is used.
    type: path
seealso:
  - module: ichor.talos.talos_bootstrap
  - module: ichor.talos.talos_machine_approval
  - module: ichor.talos.talos_machine_info
"""

EXAMPLES = r"""
- name: Bring every approved machine of the cluster to running, and end when there is nothing more to do
  ichor.talos.talos_controller:
    cluster: prod
    until: settled
    max_runtime: 3600
    fail_on: [blocked, unreachable]

- name: Look once at all machines, as a schedule does every few minutes
  ichor.talos.talos_controller:
    passes: 1

- name: Do what was planned and approved, and nothing else
  ichor.talos.talos_controller:
    cluster: prod
    until: settled
    plan_file: plan.json
"""

RETURN = r"""
ended:
  description:
    - Why the run ended. V(settled) is when nothing more happens without a person, V(passes) after the last pass, V(time) when O(max_runtime)
      was over, V(interrupted) when it was told to stop, and V(planned) in check mode.
  returned: success
  type: str
  sample: settled
settled:
  description: Whether nothing more happens to any machine without a person.
  returned: success
  type: bool
later_plans:
  description: Plans that only a later look called for, in order.
  returned: success
  type: list
  elements: dict
  contains:
    plan_id:
      description: Hash of that plan.
      type: str
    plan:
      description: Its steps, like those of RV(plan).
      type: list
broken:
  description: Records that cannot be read. They are left alone and stop nothing.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the record.
      type: str
    name:
      description: Name of the record.
      type: str
    source:
      description: The file.
      type: str
    line:
      description: The line of it.
      type: int
    message:
      description: What is wrong there.
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

import os

from ansible.module_utils.basic import env_fallback

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_credentials import open_credentials
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._controller.run import run
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.schema_formats import is_dns_1123
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import LONGEST
from ansible_collections.ichor.talos.plugins.module_utils._operations.workloads_opening import open_workloads

SPEC = Spec(
    own={
        "clusters": {"type": "list", "elements": "str"},
        "passes": {"type": "int", "no_log": False},
        "until": {"type": "str", "choices": ["settled"]},
        "max_runtime": {"type": "float", "default": 600.0},
        "allow_reboot": {"type": "bool", "default": True},
        "drain": {"type": "bool", "default": True},
        "discard_etcd": {"type": "str"},
        "discover": {"type": "bool", "default": True},
        "leader": {"type": "str"},
        "alive_file": {"type": "path", "fallback": (env_fallback, ["ICHOR_ALIVE_FILE"])},
    },
    groups=("store", "credentials", "kubernetes", "cluster", "machines", "plan", "timing", "fleet", "network"),
)


def build_request(options: Options) -> Request:
    if "passes" in options and options.integer("passes") < 1:
        raise TalosError("InvalidInput", f"passes is {options.integer('passes')}.", "Give at least 1, or leave it out.")
    if not 0 < options.number("max_runtime") <= LONGEST:
        raise TalosError("InvalidInput", f"max_runtime is {options.number('max_runtime'):g}.",
                         f"Give a number of seconds above 0 and of at most {LONGEST:.0f} (a week).")
    if "discard_etcd" in options and len(options.machines()) != 1:
        raise TalosError("InvalidInput", "discard_etcd is for one machine, and none or several are named.", "Name the machine with machine.")
    leader = options.text("leader")
    if leader and not is_dns_1123(leader):
        raise TalosError("InvalidInput", f"leader is '{leader}'.", "Give a name of lower-case letters, digits, '-' and '.' only.")
    listed, named = options.texts("clusters"), options.text("cluster")
    if listed and named and named != os.environ.get("ICHOR_CLUSTER"):
        raise TalosError("InvalidInput", "cluster and clusters are both given.", "Give one of them.")
    clusters = options.texts("clusters") or ((options.text("cluster"),) if options.text("cluster") else ())
    return Request(
        clusters=clusters, machines=options.machines(), select=options.text("select"), passes=options.integer("passes"),
        until_settled=options.text("until") == "settled", max_runtime=options.number("max_runtime"), allow_reboot=options.flag("allow_reboot"),
        drain=options.flag("drain"), discard_etcd=options.text("discard_etcd"), bounded="plan_file" in options or "expect_plan_id" in options,
        leader=leader, alive_file=options.text("alive_file"), discover=options.flag("discover"), timing=options.timing(),
        allow_loopback=options.flag("allow_loopback"))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials, workloads=open_workloads, needs_store=True)


if __name__ == "__main__":
    main()
