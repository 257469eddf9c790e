# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fields of TalosCluster, and the pieces that other kinds share (design section 3)."""

from __future__ import annotations

from .schema_types import Block, Field, ListOf, MapOf, Open, Text, Truth, Whole

TIME = Text("time")

#: How many control planes a cluster may have.
CONTROL_PLANE_COUNTS = (1, 3, 5, 7)

CONDITION = Block({
    "type": Field(Text(), "What it is about.", required=True),
    "status": Field(Text(values=("True", "False", "Unknown")), "Whether it holds.", required=True),
    "reason": Field(Text(), "A word of the closed list.", required=True),
    "message": Field(Text(empty=True), "The same as a sentence."),
    "observedGeneration": Field(Whole(0), "The generation of the spec that it speaks of."),
    "lastTransitionTime": Field(TIME, "When the status last changed."),
})
CONDITIONS = Field(ListOf(CONDITION), "What holds for this record, as in Kubernetes.")

DISK_SELECTOR = Block({
    "match": Field(Text(), "A CEL expression over a disk, as Talos has them."),
    "size": Field(Text(), "A size, or a comparison such as '>= 100GB'."),
    "name": Field(Text(), "The device name; it can move between boots."),
    "model": Field(Text(), "The model, with * as a wildcard."),
    "serial": Field(Text(), "The serial number."),
    "modalias": Field(Text(), "The modalias, with * as a wildcard."),
    "uuid": Field(Text(), "The UUID of the disk."),
    "wwid": Field(Text(), "The World Wide Identifier."),
    "type": Field(Text(values=("ssd", "hdd", "nvme", "sd")), "The type of the disk."),
    "busPath": Field(Text(), "The path on the bus, with * as a wildcard."),
})

INSTALL = Block({
    "disk": Field(Text(), "Path of the install disk; a link below /dev/disk/by-id stays the same over boots."),
    "diskSelector": Field(DISK_SELECTOR, "Picks the install disk by what it is."),
    "image": Field(Text(), "The installer image."),
    "wipe": Field(Truth(), "Wipe the whole disk before the installation."),
})

_MIRROR = Block({
    "endpoints": Field(ListOf(Text()), "URLs, tried in order."),
    "overridePath": Field(Truth(), "The endpoint's path is used as it is."),
    "skipFallback": Field(Truth(), "Do not fall back to the registry itself."),
})

CLUSTER_SPEC = Block({
    "talosVersion": Field(Text("talos-version"), "The Talos version that configurations are rendered for, whole and with its v."),
    "kubernetesVersion": Field(Text("version"), "The Kubernetes version."),
    "endpoint": Field(Text("https-url"), "URL of the control plane."),
    "secretsRef": Field(Block({"name": Field(Text("name"), "Name of the secrets bundle.", required=True)}),
                        "Which secrets bundle; the keys are never in the record."),
    "network": Field(Block({
        "podSubnets": Field(ListOf(Text("network"), unique=True), "Ranges of the pods."),
        "serviceSubnets": Field(ListOf(Text("network"), unique=True), "Ranges of the services."),
        "dnsDomain": Field(Text("name"), "DNS domain of the cluster."),
    }), "The cluster's own ranges and domain."),
    "cni": Field(Block({
        "preset": Field(Text(values=("managed", "unmanaged", "none")), "Who installs the CNI; immutable, but none may become managed."),
        "cilium": Field(Block({"values": Field(Open(), "Helm values.")}), "Settings of the managed CNI."),
    }), "The container network."),
    "controlPlane": Field(Block({
        "count": Field(Whole(values=CONTROL_PLANE_COUNTS), "How many control planes there are to be.", required=True),
    }), "The control planes."),
    "registries": Field(Block({"mirrors": Field(MapOf(_MIRROR), "Mirrors by registry host.")}), "Image registries."),
    "certSANs": Field(ListOf(Text("host"), unique=True), "Further names of the API certificates."),
    "install": Field(INSTALL, "Install settings of machines that name none."),
    "discovery": Field(Block({
        "addresses": Field(ListOf(Text("endpoint"), unique=True), "Addresses and host names to probe."),
        "ranges": Field(ListOf(Text("range"), unique=True), "Networks and ranges to probe."),
    }), "Where machines are looked for."),
    "driftPolicy": Field(Text(values=("apply", "report")), "What happens with drift."),
    "secureBoot": Field(Text(values=("Required", "Preferred", "Off")), "Whether machines have to boot with SecureBoot."),
    "allowSchedulingOnControlPlanes": Field(Truth(), "Control planes run workloads too."),
    "hold": Field(Text(values=("caRotation", "shutdown")), "What a person announces to be under way; it holds every send."),
})

CLUSTER_STATUS = Block({
    "recordUID": Field(Text(), "The record that this status belongs to."),
    "bootstrappedAt": Field(TIME, "When etcd was bootstrapped, or the cluster adopted."),
    "bootstrapping": Field(Block({
        "machine": Field(Text("name"), "Which machine.", required=True),
        "time": Field(TIME, "Since when.", required=True),
    }), "A bootstrap under way."),
    "operation": Field(Block({
        "name": Field(Text(), "Which operation.", required=True),
        "by": Field(Text(), "Who does it."),
        "since": Field(TIME, "Since when.", required=True),
    }), "What this product is doing to the whole cluster."),
    "disruption": Field(Block({
        "machine": Field(Text("name"), "Which machine.", required=True),
        "step": Field(Text(), "Which step.", required=True),
        "time": Field(TIME, "When.", required=True),
        "bootID": Field(Text(), "The boot id before it."),
        "node": Field(Text(), "The Kubernetes Node that was cordoned for it."),
    }), "The last disruptive step; the next waits for evidence that it is over."),
    "conditions": CONDITIONS,
})
