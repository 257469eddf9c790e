# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which differences between a render and what a node runs are applied, which are only shown, and which stop everything.

Design sections 8 and 11: Kubernetes images that are newer on the node are kept, a CA, key or token that differs is a rotation
(`AuthorityMismatch`), the rest is drift.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

from .compare import Difference, differences
from .documents import Config
from .schema import LEGACY

#: Where a configuration names the images of Kubernetes.
IMAGES = {
    (LEGACY, "machine.kubelet.image"), (LEGACY, "cluster.apiServer.image"), (LEGACY, "cluster.controllerManager.image"),
    (LEGACY, "cluster.scheduler.image"), (LEGACY, "cluster.proxy.image"), ("KubeletConfig", "image"), ("KubeAPIServerConfig", "image"),
    ("KubeControllerManagerConfig", "image"), ("KubeSchedulerConfig", "image"), ("KubeProxyConfig", "image"),
}
_AUTHORITY = (
    (LEGACY, re.compile(
        r"machine\.(token|ca\.|acceptedCAs)|cluster\.(id|secret|token|ca\.|acceptedCAs|aggregatorCA\.|serviceAccount\.|etcd\.ca\."
        r"|secretboxEncryptionSecret|aescbcEncryptionSecret)")),
    ("DiscoveryIdentityConfig", re.compile("")), ("KubeAPIServerCAConfig", re.compile("")), ("KubeAggregatorCAConfig", re.compile("")),
    ("KubeEtcdEncryptionConfig", re.compile(r"config\..*secret\Z")), ("KubeServiceAccountConfig", re.compile(r"issuer\.privateKey|accepted\.publicKeys")),
)
_TAG = re.compile(r"(.*):v([0-9]+)\.([0-9]+)\.([0-9]+)(-[0-9A-Za-z.-]+)?(?:@sha256:[0-9a-f]{64})?\Z")


@dataclass(frozen=True)
class Drift:
    """The differences of one machine, sorted by what they mean. `apply` is what would be sent."""

    apply: tuple[Difference, ...]
    newer_images: tuple[Difference, ...]
    authority: tuple[Difference, ...]

    @property
    def none(self) -> bool:
        return not self.apply and not self.authority


def drift(wanted: Config, running: Config) -> Drift:
    """Sorts what differs. A difference in a CA, key or token is listed under authority only."""
    apply: list[Difference] = []
    newer: list[Difference] = []
    authority: list[Difference] = []
    for difference in differences(wanted, running):
        kind = difference.document.split("/", 1)[0]
        if any(kind == of and pattern.match(difference.path) for of, pattern in _AUTHORITY):
            authority.append(difference)
        elif (kind, difference.path) in IMAGES and _newer(difference.running, difference.wanted):
            newer.append(difference)
        else:
            apply.append(difference)
    return Drift(tuple(apply), tuple(newer), tuple(authority))


def with_newer_images(wanted: Config, running: Config) -> Config:
    """The render as it is sent to a running node: with the node's own image where that is newer (somebody ran upgrade-k8s)."""
    result = wanted.copy()
    for difference in drift(wanted, running).newer_images:
        document = next(document for document in result.documents if document.id == difference.document)
        data = document.data
        *sections, last = difference.path.split(".")
        for section in sections:
            data = data[section]
        data[last] = difference.running
    return result


def _newer(running: object, wanted: object) -> bool:
    """Whether the same image has a newer tag on the node."""
    one, other = (_TAG.match(value) if isinstance(value, str) else None for value in (running, wanted))
    if one is None or other is None or one.group(1) != other.group(1):
        return False
    return _order(one) > _order(other)


def _order(tag: re.Match[str]) -> tuple[int, int, int, int, str]:
    # a pre-release comes before its release
    return int(tag.group(2)), int(tag.group(3)), int(tag.group(4)), 0 if tag.group(5) else 1, tag.group(5) or ""
