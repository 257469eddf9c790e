# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Kubernetes goes with which Talos, which upgrades Talos takes, and the images that follow from versions."""
from __future__ import annotations

import re

from . import problem
from .contract import minor
from .problem import ConfigProblem

# Talos minor → (least, first too new) Kubernetes, by (major, minor); patch releases do not count.
_KUBERNETES = {"1.12": ((1, 30), (1, 36)), "1.13": ((1, 31), (1, 37)), "1.14": ((1, 32), (1, 38))}
EMPTY_SCHEMATIC = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"
_FACTORY = re.compile(r"(?P<host>[^/]+)/(?P<name>(?:[a-z0-9]+-)?installer)(?P<secure>-secureboot)?/(?P<rest>[0-9a-f]{64}(?:[:@].*)?)\Z")


def kubernetes_problem(talos_version: str, kubernetes_version: str) -> str:
    """"" when that Talos runs that Kubernetes, else one sentence. A Talos version that is not known here gives ""."""
    bounds = _KUBERNETES.get(minor(talos_version))
    found = re.match(r"v?([0-9]{1,4})\.([0-9]{1,4})\.", kubernetes_version)
    if bounds is None or found is None:
        return ""
    version = (int(found.group(1)), int(found.group(2)))
    if version < bounds[0]:
        return f"version of Kubernetes {kubernetes_version.removeprefix('v')} is too old to be used with Talos {minor(talos_version)}"
    if version >= bounds[1]:
        return f"version of Kubernetes {kubernetes_version.removeprefix('v')} is too new to be used with Talos {minor(talos_version)}"
    return ""


def talos_tag(talos_version: str) -> str:
    """The tag of Talos's images: `v1.13.9`; a version without a patch number means its first release."""
    text = talos_version.strip().removeprefix("v")
    if not re.fullmatch(r"[0-9]+\.[0-9]+(\.[0-9]+([-+][0-9A-Za-z.+-]+)?)?", text):
        raise ConfigProblem(problem.INVALID_INPUT, "the Talos version has to look like v1.13.9", path="talosVersion")
    return f"v{text}" if text.count(".") >= 2 else f"v{text}.0"


def default_installer(talos_version: str, secure_boot: bool) -> str:
    """The installer image for a machine that names none: Talos's own default, or the Image Factory's for SecureBoot."""
    tag = talos_tag(talos_version)
    if secure_boot:
        return f"factory.talos.dev/metal-installer-secureboot/{EMPTY_SCHEMATIC}:{tag}"
    if minor(talos_version) in ("1.12", "1.13"):
        return f"ghcr.io/siderolabs/installer:{tag}"
    return f"factory.talos.dev/metal-installer/{EMPTY_SCHEMATIC}:{tag}"


def secure_boot_installer(image: str, secure_boot: bool) -> str:
    """The same Image Factory installer with or without SecureBoot; any other image is left as it is."""
    found = _FACTORY.match(image)
    if found is None:
        return image
    return f"{found.group('host')}/{found.group('name')}{'-secureboot' if secure_boot else ''}/{found.group('rest')}"
