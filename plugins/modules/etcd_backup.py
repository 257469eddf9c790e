#!/usr/bin/python
# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_backup
short_description: Save the etcd of a cluster to a folder or a store that speaks S3
version_added: 0.1.0
description:
  - Streams a snapshot of etcd through the Talos API from one control plane to its place. It never lies on this host in between, and no
    more than a few pieces of it are in memory. The hash at its end is checked before it counts.
  - A backup appears whole or not at all. Whatever stops the task leaves nothing that could be taken for one.
  - With O(keep) the oldest backups are deleted afterwards, and only those that this module wrote for this very record (or, without a
    record, for this cluster). Whatever else lies there is left alone.
  - Each run takes a backup. M(ichor.talos.talos_controller) takes those of the records by their schedule.
  - A snapshot holds every Secret of the cluster. Files have mode 0600; who may read the bucket may read everything.
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
  backup:
    description:
      - The name of a TalosEtcdBackup, which says what the other options leave out, and whose status tells the backup afterwards.
    type: str
  machine:
    description:
      - The control plane that gives the snapshot. The first that is a voting member with a leader when left out, a follower before
        the leader.
    type: str
  address:
    description:
      - The address of the control plane that gives the snapshot, for a run without a store.
    type: str
  path:
    description:
      - The folder of the backups on this host. It is made when it is not there.
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
  keep:
    description:
      - How many backups stay. All of them, when left out.
    type: int
seealso:
  - module: ichor.talos.etcd_restore
  - module: ichor.talos.talos_controller
"""

EXAMPLES = r"""
- name: Save etcd to a folder, and keep a week of it
  ichor.talos.etcd_backup:
    cluster: prod
    path: backups
    keep: 7

- name: Save etcd to a bucket
  ichor.talos.etcd_backup:
    cluster: prod
    s3_endpoint: https://s3.example.com
    s3_bucket: etcd
    s3_prefix: prod
    s3_access_key: "{{ access_key }}"
    s3_secret_key: "{{ secret_key }}"

- name: Take the backup that a record describes, now
  ichor.talos.etcd_backup:
    backup: nightly
"""

RETURN = r"""
backup:
  description: The backup that was taken, null where none was.
  returned: success
  type: dict
  contains:
    name:
      description: Name of the file or object.
      type: str
    size:
      description: Size in bytes.
      type: int
    sha256:
      description: SHA-256 of the whole file.
      type: str
    raft_index:
      description: Raft index of etcd when the snapshot began.
      type: int
    destination:
      description: Where it is.
      type: str
deleted:
  description: Names of the backups that were deleted.
  returned: success
  type: list
  elements: str
found:
  description: Names of all snapshots that lay there before.
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

from ansible.module_utils.basic import env_fallback

from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_credentials import open_credentials
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.backups import Destination, Keys
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._operations.etcd_backup import Request, run

SPEC = Spec(
    own={
        "backup": {"type": "str"},
        "machine": {"type": "str"},
        "address": {"type": "str"},
        "path": {"type": "path"},
        "s3_endpoint": {"type": "str"},
        "s3_bucket": {"type": "str"},
        "s3_prefix": {"type": "str"},
        "s3_region": {"type": "str"},
        "s3_access_key": {"type": "str", "no_log": True, "fallback": (env_fallback, ["AWS_ACCESS_KEY_ID"])},
        "s3_secret_key": {"type": "str", "no_log": True, "fallback": (env_fallback, ["AWS_SECRET_ACCESS_KEY"])},
        "s3_session_token": {"type": "str", "no_log": True, "fallback": (env_fallback, ["AWS_SESSION_TOKEN"])},
        "keep": {"type": "int", "no_log": False},
    },
    groups=("store", "credentials", "cluster", "plan", "timing", "network"),
    mutually_exclusive=[("path", "s3_bucket"), ("machine", "address")],
)


def build_request(options: Options) -> Request:
    if "keep" in options and options.integer("keep") < 1:
        raise TalosError("InvalidInput", f"keep is {options.integer('keep')}.", "Give at least 1, or leave it out to keep all.")
    destination = Destination(options.text("path"), options.text("s3_endpoint"), options.text("s3_bucket"), options.text("s3_prefix"),
                              options.text("s3_region"))
    keys = Keys(options.text("s3_access_key"), options.text("s3_secret_key"), options.text("s3_session_token"))
    return Request(
        cluster=options.text("cluster"), backup=options.text("backup"), machine=options.text("machine"),
        address=parse_endpoint(options.text("address")) if "address" in options else None, destination=destination, keys=keys,
        keep=options.integer("keep"), timing=options.timing(), allow_loopback=options.flag("allow_loopback"))


def main() -> None:
    run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"), nodes=open_nodes, store=open_store,
               credentials=open_credentials)


if __name__ == "__main__":
    main()
