# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a reset would lose of the data that pods have on the disks of one node (design section 14)."""

from __future__ import annotations

import posixpath

from .._model.workloads import Hosting, Volume
from .drain import REMOVAL, stays
from .removal_words import CLAIM, FOLDER, SCRATCH, LocalVolume

#: Talos keeps what pods write below /var, which is on EPHEMERAL; what is listed here is not data of theirs, or is made anew at each boot.
_WRITABLE = "/var"
_NO_DATA = ("/var/run", "/var/log", "/var/lib/kubelet", "/var/lib/cni", "/var/lib/containerd", "/var/lib/docker")


def lost_with(hosting: Hosting) -> tuple[LocalVolume, ...]:
    """Every volume on the node's own disks with the pod that has it, in a stable order: claims, folders, then scratch volumes of pods
    that have to go. A bound claim there that no pod has now is lost as well."""
    node = hosting.node
    here = {(volume.namespace, volume.claim): volume for volume in hosting.volumes}
    found: set[LocalVolume] = set()
    for pod in hosting.pods:
        if pod.mirror:
            continue
        for claim in pod.claims:
            volume = here.get((pod.namespace, claim))
            if volume is not None and (_only_here(volume, node.name, node.labelled) or volume.local and not volume.places):
                found.add(LocalVolume(f"{pod.namespace}/{claim}", str(pod), CLAIM))
        found |= {LocalVolume(path, str(pod), FOLDER) for path in map(posixpath.normpath, pod.paths) if _is_data(path)}
        if stays(pod, REMOVAL) is None:
            found |= {LocalVolume(name, str(pod), SCRATCH) for name in pod.scratch}
    used = {volume.claim for volume in found if volume.kind == CLAIM}
    found |= {LocalVolume(f"{volume.namespace}/{volume.claim}", "", CLAIM) for volume in hosting.volumes
              if _only_here(volume, node.name, node.labelled) and f"{volume.namespace}/{volume.claim}" not in used}
    return tuple(sorted(found, key=lambda volume: ((CLAIM, FOLDER, SCRATCH).index(volume.kind), volume.claim, volume.pod)))


def told(volume: LocalVolume) -> str:
    """For a sentence."""
    whose = f" of {volume.pod}" if volume.pod else ", which no pod has now"
    return f"{'emptyDir ' if volume.kind == SCRATCH else ''}{volume.claim}{whose}"


def _only_here(volume: Volume, *names: str) -> bool:
    """Whether every place that the volume may be used at is this node."""
    own = {name for name in names if name}
    return bool(volume.places) and all(own & set(place) for place in volume.places)


def _is_data(path: str) -> bool:
    def below(folder: str) -> bool:
        return path == folder or path.startswith(f"{folder}/")

    return below(_WRITABLE) and path != _WRITABLE and not any(below(folder) for folder in _NO_DATA)
