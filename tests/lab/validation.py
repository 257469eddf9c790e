# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lab itself knows of Talos's validation, with Talos's texts in the layout of go-multierror."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tests.lab.machineconfig import Config
from tests.lab.schema import schema
from tests.lab.selectors import expression_error


def bullets(errors: list[str]) -> str:
    """The layout of go-multierror."""
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    return f"{count} occurred:\n" + "".join(f"\t* {error}\n" for error in errors) + "\n"


def validate(config: Config, installed: bool, talos: str = "", platform_mode: str = "metal") -> str | None:
    """Talos's text when a configuration is not valid, else None. `installed` lifts the wish for an install section; `talos` is the
    version that the texts about Kubernetes name."""
    errors: list[str] = []
    if config.complete:
        own = _validate_v1alpha1(config, installed, platform_mode) + _validate_images(config, talos)
        if own:
            errors.append("v1alpha1.Config: " + bullets(own))
    errors += _validate_documents(config)
    return bullets(errors) if errors else None


def _validate_v1alpha1(config: Config, installed: bool, platform_mode: str) -> list[str]:
    errors: list[str] = []
    version, machine, cluster, kind = config.version, config.machine, config.cluster, config.machine_type
    tree = config.v1alpha1 or {}
    if tree.get("machine") is None:
        return ["machine instructions are required"]
    if tree.get("cluster") is None:
        errors.append("cluster instructions are required")
    install = machine.get("install")
    if version < 14 and platform_mode == "metal" and not installed and install is None:
        errors.append('install instructions are required in "metal" mode')
    elif install is not None and not installed and not install.get("disk") and not install.get("diskSelector"):
        errors.append("either install disk or diskSelector should be defined")
    control_plane = kind in ("controlplane", "init")
    if tree.get("cluster") is not None:
        errors += _validate_cluster(config, control_plane)
    ca, accepted = machine.get("ca") or {}, machine.get("acceptedCAs")
    if kind not in ("init", "controlplane", "worker"):
        errors.append(f'unknown machine type "{kind}"' if machine.get("type") else 'machine type is not set')
        return errors
    if not ca.get("crt") and not accepted:
        errors.append("issuing CA or some accepted CAs are required (.machine.ca, machine.acceptedCAs)")
    if control_plane:
        if not ca.get("crt"):
            errors.append("issuing CA is required (.machine.ca)")
        elif not ca.get("key"):
            errors.append("issuing CA key is required for controlplane nodes (.machine.ca.key)")
    elif ca.get("key"):
        errors.append("issuing Talos API CA key is not allowed on non-controlplane nodes (.machine.ca)")
    if kind == "worker" and (cluster.get("ca") or {}).get("key"):
        errors.append("issuing Kubernetes API CA key is not allowed on non-controlplane nodes (.cluster.ca)")
    return errors


def _validate_cluster(config: Config, control_plane: bool) -> list[str]:
    errors: list[str] = []
    cluster = config.cluster
    if not control_plane and cluster.get("etcd") is not None:
        errors.append("etcd config is only allowed on control plane machines")
    endpoint = (cluster.get("controlPlane") or {}).get("endpoint")
    if config.document("KubeClusterConfig") is None:
        if not endpoint and config.version >= 14 and "controlPlane" not in cluster:
            pass  # Kubernetes is not configured, which 1.14 allows
        elif not endpoint:
            errors.append("cluster controlplane endpoint is required")
        elif not _host(str(endpoint)):
            errors.append("invalid controlplane endpoint: hostname must not be blank")
    if not control_plane and (cluster.get("ca") or {}).get("key"):
        errors.append("cluster CA key is not allowed on non-controlplane nodes (.cluster.ca)")
    return errors


_KUBERNETES = {12: (30, 35), 13: (31, 36), 14: (32, 37)}


def _validate_images(config: Config, talos: str) -> list[str]:
    """Kubernetes versions that this Talos does not run."""
    errors = []
    cluster = config.cluster
    images = [("kubelet", config.machine.get("kubelet"))]
    images += [(f"kube-{name}", cluster.get(key)) for name, key in (
        ("apiserver", "apiServer"), ("controller-manager", "controllerManager"), ("scheduler", "scheduler"), ("proxy", "proxy")
    )]
    oldest, newest = _KUBERNETES[config.version]
    for name, section in images:
        image = str((section or {}).get("image") or "")
        found = re.match(r"^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[0-9A-Za-z.\-]+)?$", image.partition("@")[0].rpartition(":")[2]) if ":" in image else None
        if found is None:
            continue
        number = (int(found.group(1)), int(found.group(2) or 0))
        tag = f"{number[0]}.{number[1]}.{found.group(3) or 0}{found.group(4) or ''}"
        if number < (1, oldest) or number > (1, newest):
            word = "old" if number < (1, oldest) else "new"
            errors.append(f"{name} image is not valid: version of Kubernetes {tag} is too {word} to be used with Talos {talos.removeprefix('v')}")
    return errors


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _validate_documents(config: Config) -> list[str]:
    errors: list[str] = []
    hostname = config.document("HostnameConfig")
    if hostname is not None and hostname.get("hostname") and hostname.get("auto") not in (None, "off"):
        errors.append("HostnameConfig: 'auto' and 'hostname' cannot be set at the same time")
    unattended = config.unattended
    if unattended is not None:
        match = ((unattended.get("provisioning") or {}).get("diskSelector") or {}).get("match")
        problem = expression_error(str(match)) if match else None
        if not match:
            errors.append("UnattendedInstallConfig: provisioning.diskSelector.match is required")
        elif problem is not None:
            errors.append(f"UnattendedInstallConfig: provisioning.volumeSelector.match: {problem}")
    kube = config.document("KubeClusterConfig")
    if kube is not None and not _host(str(kube.get("endpoint") or "")):
        errors.append("KubeClusterConfig: cluster endpoint is invalid: hostname must not be blank")
    if config.complete:
        if (config.machine.get("network") or {}).get("hostname") and (hostname or {}).get("hostname"):
            errors.append("static hostname is already set in v1alpha1 config")
        if unattended is not None and config.install is not None:
            errors.append("UnattendedInstallConfig config is incompatible with v1alpha1 config (.machine.install)")
        if config.document("KubeletConfig") is not None and config.machine.get("kubelet") is not None:
            errors.append("kubelet config is already set in v1alpha1 config (.machine.kubelet)")
        if not config.control_plane:
            only = schema(config.version).control_plane_kinds()
            kinds = sorted({document.kind for document in config.documents if document.kind in only})
            if kinds:
                errors.append(f"the following document kinds are only allowed on control plane machines: [{' '.join(kinds)}]")
    return errors
