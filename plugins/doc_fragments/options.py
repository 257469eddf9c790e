# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the options that modules share, one fragment a group of `module_utils/_ansible/arguments.py`."""

from __future__ import annotations


class ModuleDocFragment:
    """`extends_documentation_fragment: ichor.talos.options.store` and so on."""

    STORE = r"""
options:
  store:
    description:
      - Where the records live.
      - V(directory) is a tree of YAML files made for git; V(kubernetes) keeps the same records as custom resources of an API server,
        for several people, AWX and a loop in the cluster at once; V(none) uses no records, so everything that the module has to know
        must be in its options.
      - When left out, it is V(directory) where an option names a record (a cluster or a machine) or O(store_path) is given,
        else V(none).
      - If not set, E(ICHOR_STORE) is used.
    type: str
    choices: [directory, kubernetes, none]
  store_path:
    description:
      - The folder of the directory store.
      - If not set, E(ICHOR_STORE_PATH) is used, else C(ichor/) beside the playbook, or in the working directory when the
        playbook is one of a collection.
    type: path
  state_path:
    description:
      - The folder for what this collection writes beside the people's files, namely status, events and leases. Git can leave
        it out, but it has to be kept from run to run, in CI too.
      - If not set, E(ICHOR_STATE_PATH) is used, else C(.state) in the folder of the store.
    type: path
  store_kubeconfig:
    description:
      - The kubeconfig of the API server that holds the records, for O(store=kubernetes). It may be vaulted.
      - If not set, E(ICHOR_STORE_KUBECONFIG) or E(K8S_AUTH_KUBECONFIG) is used, else E(KUBECONFIG), the pod's own account, or
        C(~/.kube/config).
    type: path
  store_context:
    description:
      - Which context of that kubeconfig to use.
      - If not set, E(ICHOR_STORE_CONTEXT) or E(K8S_AUTH_CONTEXT) is used, else the context that the file itself selects.
    type: str
  store_namespace:
    description:
      - The namespace of the records, for O(store=kubernetes).
      - If not set, E(ICHOR_STORE_NAMESPACE) is used, else C(ichor-system).
    type: str
"""

    CREDENTIALS = r"""
options:
  talosconfig:
    description:
      - The talosconfig file with the client certificate for nodes that already run. It may be vaulted. Every module takes it,
        so that it can be set once; those that ask no running node do not use it.
      - If not set, E(TALOSCONFIG) is used. Without any, a certificate is issued in memory from the secrets bundle that the
        cluster's record names.
    type: path
  talosconfig_content:
    description:
      - The same as text, for example from a vaulted variable. It wins over O(talosconfig).
    type: str
  context:
    description:
      - Which context of the talosconfig to use.
      - If not set, E(TALOSCONFIG_CONTEXT) is used, else the context that the file itself selects.
    type: str
"""

    KUBERNETES = r"""
options:
  kubeconfig:
    description:
      - A kubeconfig for the Kubernetes of the managed cluster, whose Nodes are read, and drained before a machine goes. It may be vaulted.
      - The context is taken whose cluster has the name of the TalosCluster record; the current one where there are several of them. A file
        without such a context is refused.
      - If not set, E(ICHOR_KUBECONFIG) is used. Without any, an administrator's certificate is issued in memory from the secrets
        bundle, for the endpoint of the cluster's record.
    type: path
  kubeconfig_content:
    description:
      - The same as text, for example from a vaulted variable. It wins over O(kubeconfig).
    type: str
"""

    CLUSTER = r"""
options:
  cluster:
    description:
      - The name of the TalosCluster record.
      - If not set, E(ICHOR_CLUSTER) is used.
    type: str
"""

    MACHINE = r"""
options:
  machine:
    description:
      - The exact name of the TalosMachine record.
    type: str
"""

    MACHINES = r"""
options:
  machine:
    description:
      - The exact name of one TalosMachine record. Use either this or O(machines).
    type: str
  machines:
    description:
      - Exact names of TalosMachine records; they are worked on concurrently in one task.
    type: list
    elements: str
  select:
    description:
      - A JMESPath expression over the list of records (each with C(metadata), C(spec) and C(status)) that gives the names of
        the machines, for example V([?status.stage=='running'].metadata.name).
    type: str
"""

    PLAN = r"""
options:
  expect_plan_id:
    description:
      - The C(plan_id) of a plan that was read and approved. When the present plan is another one, nothing is done and the task
        fails with C(reason=PlanChanged) and the difference.
    type: str
  plan_file:
    description:
      - A file written by O(save_plan). The task does the steps of the saved plan and no others; when the present observation
        calls for a step that is not in it, nothing is done and the task fails with C(reason=PlanChanged).
      - What was done is recorded in the file, so a run that was cut off can be started again with it, and a finished plan
        never runs a second time.
      - A file that was changed after it was saved is refused with C(reason=PlanChanged).
      - A step of it that is refused now fails the task with the reason of the refusal; the other steps are done.
    type: path
  save_plan:
    description:
      - Write the plan to this file (mode 0600), beside the plans that other tasks of the same run have saved there; what an
        earlier run saved is replaced. It holds no secrets.
      - Nothing but this file is written in check mode. What is no plan file is never written over, and no plan is saved inside
        the folders of a store.
    type: path
"""

    TIMING = r"""
options:
  timing:
    description:
      - Timeouts and intervals in seconds, by name, such as V(call) and V(apply). What is left out keeps its default, which stands behind each name.
      - For a call to a node V(call) 20 (a dial or one read), V(apply) 60 (sending a configuration), V(maintenance_probe) 5 (asking a
        converged machine's maintenance API), V(inspection) 20 (each inspection call of a reclaim), V(connect) 2 (one connection when
        addresses are probed), V(settle) 5 (between the two equal readings of a certificate that make it a pin).
      - To follow a machine V(follow) 15 (how often it is looked at until it has joined), V(follow_slow) 600 and V(follow_stuck) 1800
        (after which it is called slow, and maybe stuck), V(reread) 120 (how often a converged one is read again),
        V(unreachable_grace) 60 (how long that one may be silent).
      - For discovery V(discovery) 300, and V(discovery_after_reset) 15 for V(discovery_after_reset_for) 1800 after a reset by this
        collection.
      - For locks V(lock_duration) 60 (how long a lease is valid), V(lock_renewal) 20, V(lock_wait) 300 (how long somebody else's is waited
        for), V(sending_fresh) 90 (how long an unconfirmed send of another run is waited for).
      - To take a node out V(drain) 300, V(leave_and_reset) 480 (leave etcd, and reset), V(wait_for_maintenance) 1200 (after a reset).
      - For a backup of etcd or its way back to a node V(snapshot) 3600; when nothing comes for the time of V(call), it is given up.
    type: dict
"""

    FLEET = r"""
options:
  fail_on:
    description:
      - What makes the task fail although it went through. By default machines that are blocked, out of reach or drifted are
        only listed in the result.
    type: list
    elements: str
    choices: [blocked, unreachable, drift]
    default: []
"""

    NETWORK = r"""
options:
  allow_loopback:
    description:
      - Allow addresses that resolve to loopback, which are refused otherwise. Only for a lab of emulated nodes.
      - If not set, E(ICHOR_ALLOW_LOOPBACK) is used.
    type: bool
    default: false
"""
