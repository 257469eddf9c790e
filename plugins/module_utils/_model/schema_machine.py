# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fields of TalosMachine (design section 3)."""

from __future__ import annotations

from .schema_cluster import CONDITIONS, DISK_SELECTOR, INSTALL, TIME
from .schema_types import Block, Field, ListOf, MapOf, Text, Truth, Whole

DISK_ROLES = ("system", "ephemeral", "storage", "userVolume", "unused")

_PRIMARY = Block({
    "interface": Field(Text("link"), "Name of the link."),
    "mac": Field(Text("mac"), "Permanent MAC of the link."),
    "dhcp": Field(Truth(), "The address comes by DHCP."),
    "addresses": Field(ListOf(Text("interface-address"), unique=True), "Static addresses with their prefix length."),
    "gateway": Field(Text("address"), "Default gateway."),
    "nameservers": Field(ListOf(Text("address"), unique=True), "DNS servers."),
    "vlan": Field(Whole(1, 4094), "VLAN id."),
})

_TAINT = Block({
    "key": Field(Text("label-key"), "Key.", required=True),
    "value": Field(Text("label-value", empty=True), "Value."),
    "effect": Field(Text(values=("NoSchedule", "PreferNoSchedule", "NoExecute")), "Effect.", required=True),
})

MACHINE_SPEC = Block({
    "clusterRef": Field(Text("name"), "Name of the cluster; immutable once approved.", required=True),
    "identity": Field(Block({
        "uuid": Field(Text("uuid"), "SMBIOS UUID."),
        "serial": Field(Text(), "Serial number."),
        "macs": Field(ListOf(Text("mac"), unique=True), "Permanent MACs of the physical Ethernet links."),
    }), "Which hardware it is."),
    "endpoint": Field(Text("endpoint"), "Where it answers; port 50000 unless said."),
    "approvalState": Field(Text(values=("pending", "approved", "rejected")), "What a person decided."),
    "approvedBy": Field(Text(), "Who approved it."),
    "approvedVia": Field(Text(), "With which account or tool."),
    "approvedAt": Field(TIME, "When."),
    "acceptedFingerprint": Field(Text("fingerprint"), "The certificate that was accepted at the approval."),
    "approvedDisk": Field(Block({
        "wwid": Field(Text(empty=True), "World Wide Identifier."),
        "serial": Field(Text(empty=True), "Serial number."),
        "model": Field(Text(empty=True), "Model."),
        "size": Field(Whole(0), "Size in bytes."),
    }), "The disk that was picked at the approval."),
    "role": Field(Text(values=("controlplane", "worker")), "What it is to be."),
    "hostname": Field(Text("name"), "Host name."),
    "labels": Field(MapOf(Text("label-value", empty=True), "label-key"), "Labels of the Kubernetes Node."),
    "taints": Field(ListOf(_TAINT), "Taints of the Kubernetes Node."),
    "install": Field(INSTALL, "Install settings."),
    "disks": Field(ListOf(Block({
        "selector": Field(DISK_SELECTOR, "Which disk.", required=True),
        "role": Field(Text(values=DISK_ROLES), "What it is for.", required=True),
    })), "What the disks are for."),
    "network": Field(Block({"primary": Field(_PRIMARY, "The primary link.")}), "The network."),
})

_DISK = Block({
    "name": Field(Text(), "Kernel name.", required=True),
    "path": Field(Text(empty=True), "Device path."),
    "size": Field(Whole(0), "Size in bytes."),
    "wwid": Field(Text(empty=True), "World Wide Identifier."),
    "serial": Field(Text(empty=True), "Serial number."),
    "model": Field(Text(empty=True), "Model."),
    "uuid": Field(Text(empty=True), "UUID."),
    "busPath": Field(Text(empty=True), "Path on the bus."),
    "transport": Field(Text(empty=True), "How it is attached."),
    "modalias": Field(Text(empty=True), "Modalias."),
    "subsystem": Field(Text(empty=True), "Kernel subsystem."),
    "rotational": Field(Truth(), "It rotates."),
    "readonly": Field(Truth(), "It cannot be written."),
    "cdrom": Field(Truth(), "It is an optical drive."),
    "usb": Field(Truth(), "It hangs on USB."),
    "bootMedium": Field(Truth(), "The machine booted from it."),
    "symlinks": Field(ListOf(Text()), "Stable names below /dev/disk."),
    "contents": Field(ListOf(Text()), "What is on it; nothing is blank."),
})

_LINK = Block({
    "name": Field(Text(), "Kernel name.", required=True),
    "permanentMAC": Field(Text(empty=True), "Permanent MAC."),
    "mac": Field(Text(empty=True), "MAC in use."),
    "physical": Field(Truth(), "It counts for the identity."),
    "up": Field(Truth(), "It has a carrier."),
    "speedMegabits": Field(Whole(), "Speed in Mbit/s."),
    "busPath": Field(Text(empty=True), "Path on the bus."),
    "driver": Field(Text(empty=True), "Kernel driver."),
})

MACHINE_STATUS = Block({
    "recordUID": Field(Text(), "The record that this status belongs to."),
    "stage": Field(Text(), "Stage of its life, as Talos spells it."),
    "stageObserved": Field(Truth(), "The stage was observed, not inferred."),
    "sending": Field(Block({
        "hash": Field(Text(), "SHA-256 of the bytes.", required=True),
        "fingerprint": Field(Text(), "Certificate of the node.", required=True),
        "time": Field(TIME, "When.", required=True),
        "attempt": Field(Whole(1), "Which attempt.", required=True),
        "by": Field(Text(), "Which run.", required=True),
    }), "A configuration on its way, whose outcome is not known yet."),
    "rejectedInputsHash": Field(Text(), "Inputs that the node refused."),
    "wipeSeen": Field(Block({
        "time": Field(TIME, "When.", required=True),
        "fingerprint": Field(Text(), "Certificate of the node.", required=True),
        "labels": Field(ListOf(Text()), "Partition labels that were there."),
    }), "First reading of a wiped disk."),
    "configStoredAt": Field(TIME, "When the node stored a configuration."),
    "storedConfigHash": Field(Text(), "SHA-256 of the stored bytes."),
    "appliedConfigHash": Field(Text(), "SHA-256 of the bytes that it runs."),
    "observedInputsHash": Field(Text(), "Hash of the inputs of the render."),
    "maintenanceFingerprint": Field(Text("fingerprint"), "Pin: the certificate last seen in maintenance mode."),
    "maintenanceFingerprintAt": Field(TIME, "When the pin was read."),
    "observedEndpoint": Field(Text("endpoint"), "Where it was last seen."),
    "observedEndpointFor": Field(Text("endpoint"), "The spec.endpoint that this was seen for."),
    "nodeName": Field(Text(), "Name of its Kubernetes Node."),
    "discoveredDisks": Field(ListOf(_DISK), "Its disks."),
    "discoveredLinks": Field(ListOf(_LINK), "Its links."),
    "talosVersion": Field(Text(), "The Talos version that it runs."),
    "secureBoot": Field(Truth(), "It booted with SecureBoot."),
    "conditions": CONDITIONS,
})
