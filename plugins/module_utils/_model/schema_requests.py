# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fields of TalosConfigPatch, MachineReclaim and TalosEtcdBackup (design section 3)."""

from __future__ import annotations

from .schema_cluster import CONDITIONS, TIME
from .schema_types import Block, Field, ListOf, MapOf, Open, Text, Truth, Whole

_NAME = Block({"name": Field(Text("name"), "Name.", required=True)})

PATCH_SPEC = Block({
    "clusterRef": Field(Text("name"), "Name of the cluster.", required=True),
    "machineSelector": Field(Block({
        "names": Field(ListOf(Text("name"), unique=True), "Names of machines."),
        "labels": Field(MapOf(Text("label-value", empty=True), "label-key"), "Labels that a machine has to have."),
        "role": Field(Text(values=("controlplane", "worker")), "Role that a machine has to have."),
    }), "Which machines; all of the cluster where it is left out."),
    "layer": Field(Text(values=("cluster", "machine")), "Machine patches come after cluster patches.", required=True),
    "priority": Field(Whole(-1_000_000, 1_000_000), "Lower comes first; equal ones go by name."),
    "documents": Field(ListOf(Open()), "Talos documents, laid over as strategic merges; none is no change.", required=True),
})
PATCH_STATUS = Block({"recordUID": Field(Text(), "The record that this status belongs to."), "conditions": CONDITIONS})

RECLAIM_SPEC = Block({
    "address": Field(Text("endpoint"), "Where the machine answers.", required=True),
    "clusterRef": Field(Text("name"), "Where it goes.", required=True),
    "talosconfigRef": Field(_NAME, "The credential of its own cluster."),
    "confirmUUID": Field(Text("uuid"), "The node's UUID, typed by a person.", required=True),
    "forceUngraceful": Field(Truth(), "A silent foreign etcd counts as absent."),
    "notAfter": Field(TIME, "The order is void after this time.", required=True),
})
RECLAIM_STATUS = Block({
    "recordUID": Field(Text(), "The record that this status belongs to."),
    "inspection": Field(Open(), "What was found on the machine."),
    "outcome": Field(Text(), "How it ended."),
    "startedAt": Field(TIME, "When it began."),
    "finishedAt": Field(TIME, "When it ended."),
    "conditions": CONDITIONS,
})

BACKUP_SPEC = Block({
    "clusterRef": Field(Text("name"), "Name of the cluster.", required=True),
    "destination": Field(Block({
        "file": Field(Block({"path": Field(Text(), "Folder on the machine that runs this product.", required=True)}), "A folder."),
        "s3": Field(Block({
            "endpoint": Field(Text(), "URL of the store."),
            "bucket": Field(Text(), "Bucket.", required=True),
            "prefix": Field(Text(), "Prefix of the keys."),
            "region": Field(Text(), "Region."),
            "credentialsRef": Field(_NAME, "The credential.", required=True),
        }), "A store that speaks S3."),
    }), "Where backups go.", required=True),
    "schedule": Field(Text("cron"), "Five fields, in UTC."),
    "keep": Field(Whole(1), "How many are kept."),
})
BACKUP_STATUS = Block({
    "recordUID": Field(Text(), "The record that this status belongs to."),
    "backups": Field(ListOf(Block({
        "name": Field(Text(), "Name of the file or object.", required=True),
        "time": Field(TIME, "When it was taken.", required=True),
        "size": Field(Whole(0), "Size in bytes."),
        "sha256": Field(Text(), "SHA-256 of the file."),
        "raftIndex": Field(Whole(0), "Raft index at the start."),
    })), "The last backups."),
    "conditions": CONDITIONS,
})
