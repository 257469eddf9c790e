#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_restore
short_description: Begin the etcd of a cluster with a snapshot
version_added: 0.1.0
description:
  - Puts a snapshot on one control plane that has no etcd, and begins etcd with it. It is for a cluster whose etcd is lost. All that happened
    since the snapshot is gone.
  - The snapshot is read to its end first, and one that is cut off or altered is refused before anything is sent.
  - It is never idempotent, so O(confirm) is needed, in check mode too.
  - It has the gates of M(ichor.talos.talos_bootstrap). Every control plane that was sent a configuration has to answer and to wait for etcd,
    and one that does not answer has to be typed in O(lost). While any etcd of the cluster answers it is refused, whatever is typed.
  - A machine whose disk was wiped is sent its configuration first.
  - It takes the lock of the cluster, so it needs a store.
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
  machine:
    description:
      - The exact name of the control plane that etcd begins on.
    type: str
    required: true
  confirm:
    description:
      - The name of the cluster, typed by a person.
    type: str
  lost:
    description:
      - Names of the control planes that do not answer and are given up. One that comes back with its data afterwards is another etcd, so wipe it
        before it is switched on.
    type: list
    elements: str
    default: []
  backup:
    description:
      - The name of a TalosEtcdBackup, which says where its backups lie.
    type: str
  snapshot:
    description:
      - The name of the file or object. The newest that M(ichor.talos.etcd_backup) wrote there for the cluster when left out.
    type: str
  skip_hash_check:
    description:
      - Take a snapshot that has no hash at its end, such as a database copied from a data directory.
    type: bool
    default: false
  path:
    description:
      - The folder of the snapshot on this host.
    type: path
  s3_endpoint:
    description:
      - The URL of a store that speaks S3, such as V(https://s3.example.com). Amazon's when left out.
      - The certificate is verified with the authorities of the Python package certifi, or with those of the file that E(SSL_CERT_FILE) names.
    type: str
  s3_bucket:
    description:
      - The bucket of the backups. The Python library minio is needed for it.
    type: str
  s3_prefix:
    description:
      - What the names of the objects begin with, like a folder.
    type: str
  s3_region:
    description:
      - The region of the bucket.
    type: str
  s3_access_key:
    description:
      - The access key of the store.
      - If not set, E(AWS_ACCESS_KEY_ID) is used.
    type: str
  s3_secret_key:
    description:
      - The secret key of the store.
      - If not set, E(AWS_SECRET_ACCESS_KEY) is used.
    type: str
  s3_session_token:
    description:
      - The session token that belongs to temporary keys.
      - If not set, E(AWS_SESSION_TOKEN) is used.
    type: str
  wait:
    description:
      - How many seconds to wait for what passes by itself, such as a control plane that still starts.
    type: float
    default: 600.0
seealso:
  - module: ichor.talos.etcd_backup
  - module: ichor.talos.talos_bootstrap
"""

EXAMPLES = r"""
- name: Bring back the only control plane with its newest backup
  ichor.talos.etcd_restore:
    cluster: prod
    machine: prod-4c4c4544
    confirm: prod
    path: backups

- name: Begin again with one of three, when two are gone for good
  ichor.talos.etcd_restore:
    cluster: prod
    machine: prod-4c4c4544
    lost: [prod-5d5d5655, prod-6e6e6766]
    confirm: prod
    backup: nightly
"""

RETURN = r"""
snapshot:
  description: Name of the snapshot.
  returned: success
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

from ansible.module_utils.basic import env_fallback

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_credentials import open_credentials
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._model.backups import Destination, Keys
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._operations.etcd_restore import Request, run

SPEC = Spec(
    own={
        "machine": {"type": "str", "required": True},
        "confirm": {"type": "str"},
        "lost": {"type": "list", "elements": "str", "default": []},
        "backup": {"type": "str"},
        "snapshot": {"type": "str"},
        "skip_hash_check": {"type": "bool", "default": False},
        "path": {"type": "path"},
        "s3_endpoint": {"type": "str"},
        "s3_bucket": {"type": "str"},
        "s3_prefix": {"type": "str"},
        "s3_region": {"type": "str"},
        "s3_access_key": {"type": "str", "no_log": True, "fallback": (env_fallback, ["AWS_ACCESS_KEY_ID"])},
        "s3_secret_key": {"type": "str", "no_log": True, "fallback": (env_fallback, ["AWS_SECRET_ACCESS_KEY"])},
        "s3_session_token": {"type": "str", "no_log": True, "fallback": (env_fallback, ["AWS_SESSION_TOKEN"])},
        "wait": {"type": "float", "default": 600.0},
    },
    groups=("store", "credentials", "cluster", "plan", "timing", "network"),
    mutually_exclusive=[("path", "s3_bucket")],
    required_one_of=[("path", "s3_bucket", "backup")],
)


def build_request(options: Options) -> Request:
    if not options.text("cluster"):
        raise TalosError("InvalidInput", "It is not said whose etcd is restored.", "Set cluster.")
    if "/" in options.text("snapshot"):
        raise TalosError("InvalidInput", "snapshot is a path.", "Give the folder with path, and the name of the file with snapshot.")
    destination = Destination(options.text("path"), options.text("s3_endpoint"), options.text("s3_bucket"), options.text("s3_prefix"),
                              options.text("s3_region"))
    keys = Keys(options.text("s3_access_key"), options.text("s3_secret_key"), options.text("s3_session_token"))
    return Request(
        cluster=options.text("cluster"), machine=options.text("machine"), backup=options.text("backup"), source=destination, keys=keys,
        snapshot=options.text("snapshot"), confirm=options.text("confirm"), lost=options.texts("lost"), skip_hash_check=options.flag("skip_hash_check"),
        wait=options.number("wait", 600.0), timing=options.timing(), allow_loopback=options.flag("allow_loopback"))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials)


if __name__ == "__main__":
    main()
