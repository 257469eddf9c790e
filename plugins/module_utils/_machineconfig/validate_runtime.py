# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of the documents for the operating system, its services and containers. Words are Talos's."""
from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any

from . import cel, go_net, go_text
from .masking import MASK
from .validate_network import expression
from .verdict import Report, quote

Data = Mapping[str, Any]

_LEAST_WATCHDOG = 10 * 10**9
_MANAGED_FILES = ("resolv.conf", "hosts", "machine-id", "extensions.yaml", "localtime", "os-release", "xattr.conf")
_MANAGED_FOLDERS = (
    "apparmor.d/", "apparmor/", "ca-certificates/", "cni/", "cri/", "iscsi/", "kubernetes/", "lvm/", "nvme/", "pki/", "selinux/", "ssl/",
)
_IMAGE = re.compile(r"(?P<name>[^@]*?)(?::(?P<tag>[A-Za-z0-9_.-]{1,128}))?(?:@sha256:[0-9a-f]{64})?\Z")
_REGISTRY = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9a-fA-F:]+\])(?::[0-9]*)?\Z")
_REPOSITORY = re.compile(r"[a-z0-9_./-]{2,255}\Z")
_MOUNT_OPTIONS = ("ro", "rw", "noexec", "nosuid", "nodev", "noatime", "rbind", "rshared")
_NETWORK_CONDITIONS = ("addresses", "connectivity", "hostname", "etcfiles")


def _environment(data: Data, version: str, report: Report) -> None:
    for key in data.get("variables") or {}:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            report.error(f"variables.{key}", f"invalid environment variable name: {quote(key)}")


def _etc_file(data: Data, version: str, report: Report) -> None:
    name = data.get("name") or ""
    if not name:
        report.error("name", "user etc file name cannot be empty")
    elif not _is_local(name) or name.startswith("."):
        report.error("name", f"user etc file {quote(name)} must be a local path")
    elif name in _MANAGED_FILES or any(name == folder[:-1] or name.startswith(folder) for folder in _MANAGED_FOLDERS):
        report.error("name", f"user etc file {quote(name)} is managed by Talos")


def _is_local(path: str) -> bool:
    """Whether a path stays below the folder that it is taken from."""
    clean = posixpath.normpath(path)
    return bool(path) and not path.startswith("/") and clean != ".." and not clean.startswith("../")


def _event_sink(data: Data, version: str, report: Report) -> None:
    wrong = go_net.wrong_host_port(data.get("endpoint") or "")
    if wrong:
        report.error("endpoint", f"event sink endpoint: {wrong}")


def _extension(data: Data, version: str, report: Report) -> None:
    name = data.get("name") or ""
    files = data.get("configFiles") or []
    if not name:
        report.error("name", "name is required")
        return
    if not files and not data.get("environment"):
        report.error("configFiles", f"no config files found for extension {quote(name)}")
        return
    for index, file in enumerate(files):
        for key, word in (("content", "content"), ("mountPath", "mount path")):
            if not file.get(key):
                report.error(f"configFiles.{index}.{key}", f"extension {word} is required for extension {quote(name)}")
                return


def _kernel_module(data: Data, version: str, report: Report) -> None:
    report.need(data.get("name"), "name", "name is required")


def _kmsg_log(data: Data, version: str, report: Report) -> None:
    url = data.get("url")
    if not data.get("name"):
        report.error("name", "name is required")
    elif url is None:
        report.error("url", "url is required")
    elif url.scheme not in ("tcp", "udp"):
        report.error("url", "url scheme must be tcp:// or udp://")
    elif url.path not in ("", "/"):
        report.error("url", "url path must be empty")
    elif not url.port:
        report.error("url", "url port is required")


def _oom(data: Data, version: str, report: Report) -> None:
    expression({"match": data.get("triggerExpression")}, cel.OOM_TRIGGER, "triggerExpression", "OOM trigger expression is invalid", "", report)
    expression(
        {"match": data.get("cgroupRankingExpression")}, cel.OOM_RANKING, "cgroupRankingExpression", "OOM cgroup scoring expression is invalid", "", report)
    if (data.get("sampleInterval") or 0) < 0:
        report.error("sampleInterval", "OOM sample interval must be longer than 0")


def _params(word: str) -> Callable[[Data, str, Report], None]:
    def check(data: Data, version: str, report: Report) -> None:
        if "" in (data.get("params") or {}):
            report.error("params", f"{word} key cannot be empty")
    return check


def _unattended_install(data: Data, version: str, report: Report) -> None:
    if not (data.get("installer") or {}).get("image"):
        report.warn("installer.image", "installer.image is not set, if Talos is not booted from asset built by Image Factory, installation will fail")
    # Talos names the wrong key here
    words = "provisioning.volumeSelector.match"
    expression((data.get("provisioning") or {}).get("diskSelector"), cel.DISK, "provisioning.diskSelector.match", words, f"{words} is required", report)


def _watchdog(data: Data, version: str, report: Report) -> None:
    if not data.get("device"):
        report.error("device", "watchdog device: empty value")
    elif data.get("timeout") and data["timeout"] < _LEAST_WATCHDOG:
        report.error("timeout", "watchdog timeout: minimum value is 10s")


def _zswap(data: Data, version: str, report: Report) -> None:
    percent = data.get("maxPoolPercent")
    if percent is not None and not 0 <= percent <= 100:
        report.error("maxPoolPercent", "maxPoolPercent must be between 0 and 100")


def _sidero_link(data: Data, version: str, report: Report) -> None:
    url = data.get("apiUrl")
    if url is None:
        report.error("apiUrl", "apiUrl is required")
    elif url.scheme not in ("https", "grpc"):
        report.error("apiUrl", "apiUrl scheme must be https:// or grpc://")
    elif url.path not in ("", "/"):
        report.error("apiUrl", "apiUrl path must be empty")


def _image_verification(data: Data, version: str, report: Report) -> None:
    for index, rule in enumerate(data.get("rules") or []):
        at, path = f"rule {index}:", f"rules.{index}"
        pattern = rule.get("image") or ""
        report.need(pattern, f"{path}.image", f"{at} imagePattern must be specified")
        only = "but matching only applies to the image registry and repository, not the tag or digest"
        if "@" in pattern:
            report.warn(f"{path}.image", f"{at} imagePattern contains '@' {only}")
        if ":" in pattern.partition("/")[2]:
            report.warn(f"{path}.image", f"{at} imagePattern contains ':' {only}")
        if "/" not in pattern and pattern not in ("*", ""):
            report.warn(
                f"{path}.image",
                f"{at} imagePattern does not contain a '/', image references like 'nginx' are matched as 'docker.io/nginx' (normalized)")
        keyless, public = rule.get("keyless"), rule.get("publicKey")
        skip, deny, verifiers = bool(rule.get("skip")), bool(rule.get("deny")), keyless is not None or public is not None
        for wrong, message in (
            (skip and deny, "skip and deny cannot both be true"),
            ((skip or deny) and verifiers, "verifiers cannot be configured if skip or deny is true"),
            (not skip and not deny and not verifiers, "at least one verifier must be configured"),
            (keyless is not None and public is not None, "only one of keyless or publicKey verifier can be configured"),
            (keyless is not None and not (keyless or {}).get("issuer"), "verifier OIDC issuer must be specified"),
            (keyless is not None and not (keyless or {}).get("subject") and not (keyless or {}).get("subjectRegex"),
             "verifier subject or subjectRegex must be specified"),
            (public is not None and not (public or {}).get("certificate"), "verifier certificates must be specified"),
        ):
            if wrong:
                report.error(path, f"{at} {message}")


def _container(data: Data, version: str, report: Report) -> None:
    name = data.get("name") or ""
    if not name:
        report.error("name", "name is required")
    elif len(name.encode()) > 63:
        report.error("name", f"name {quote(name)} must be 63 characters or fewer")
    elif not re.fullmatch(r"[a-z0-9-]+", name):
        report.error("name", f"name {quote(name)}: name can only contain lowercase ASCII letters, digits and hyphens")
    image = data.get("image") or ""
    report.need(image, "image", "image is required")
    if image and not _is_image(image):
        report.error("image", f"invalid image reference {quote(image)}: could not parse reference: {image}")
    elif image and not re.search(r"@sha256:[0-9a-f]{64}\Z", image):
        report.warn("image", f"container {quote(name)}: image {quote(image)} is not digest-pinned, the running image may change on restart")
    for index, entry in enumerate(data.get("environment") or []):
        if "=" not in entry:
            # Talos quotes the entry; environment of a container may be a secret
            report.error(f"environment.{index}", f"environment[{index}]: {quote(MASK if entry else '')} must be in KEY=value form")
    _mounts(data.get("mounts") or [], report)
    _security(data.get("security"), report)
    mode = (data.get("network") or {}).get("mode") or "none"
    if mode not in ("none", "host"):
        report.error("network.mode", f"unsupported network mode {quote(mode)}, expected none or host")
    _limits((data.get("resources") or {}).get("limits") or {}, report)
    _depends_on(data.get("dependsOn") or {}, name, report)
    for key in ("uid", "gid"):
        number = (data.get("runAs") or {}).get(key)
        if number is not None and number < 0:
            report.error(f"runAs.{key}", f"runAs.{key} must be non-negative, got {number}")


def _is_image(image: str) -> bool:
    """Whether go-containerregistry reads it. What stands before the first slash is a registry when it has a dot or a colon, or is localhost."""
    found = _IMAGE.match(image)
    if found is None:
        return False
    registry, slash, rest = found.group("name").partition("/")
    if slash and ("." in registry or ":" in registry or registry == "localhost"):
        return bool(_REGISTRY.match(registry) and _REPOSITORY.match(rest))
    return bool(_REPOSITORY.match(found.group("name")))


def _wrong_path(word: str, path: str) -> str:
    if not path:
        return f"{word} is required"
    return "" if path.startswith("/") else f"{word} {quote(path)} must be an absolute path"


def _mounts(mounts: list[Data], report: Report) -> None:
    destinations: set[str] = set()
    for index, mount in enumerate(mounts):
        given = [key for key in ("userVolume", "tmpfs", "hostPath") if mount.get(key) is not None]
        wrong = [] if len(given) == 1 else ["exactly one of userVolume, tmpfs or hostPath must be set"]
        destination = ""
        if not wrong:
            kind, body = given[0], mount[given[0]]
            destination = body.get("destination") or ""
            if kind == "userVolume" and not body.get("name"):
                wrong.append("userVolume.name is required")
            if kind == "hostPath":
                wrong.append(_wrong_path("hostPath.source", body.get("source") or ""))
            wrong.append(_wrong_path(f"{kind}.destination", destination))
            options = body.get("options") or []
            wrong.extend(f"unsupported mount option {quote(option)}" for option in options if option not in _MOUNT_OPTIONS)
            if "ro" in options and "rw" in options:
                wrong.append("mount options ro and rw are mutually exclusive")
            wrong = [one for one in wrong if one]
        if wrong:
            report.error(f"mounts.{index}", f"mounts[{index}]: " + "\n".join(wrong))
            continue
        if destination in destinations:
            report.error(f"mounts.{index}", f"mounts[{index}]: duplicate destination {quote(destination)}")
        destinations.add(destination)


def _security(security: Data | None, report: Report) -> None:
    if security is None:
        return
    profile = security.get("profile") or "restricted"
    if profile not in ("restricted", "privileged"):
        report.error("security.profile", f"unsupported security profile {quote(profile)}, expected restricted or privileged")
    capabilities = security.get("capabilities") or {}
    add, drop = capabilities.get("add") or [], capabilities.get("drop") or []
    for key, values in (("add", add), ("drop", drop)):
        for capability in values:
            if capability == "ALL":
                if key == "add":
                    report.error("security.capabilities.add", "capabilities.add does not accept ALL, use profile: privileged instead")
                continue
            wrong = _wrong_capability(f"capabilities.{key}", capability)
            if wrong:
                report.error(f"security.capabilities.{key}", wrong)
    for capability in add:
        if capability in drop:
            report.error("security.capabilities", f"capability {quote(capability)} appears in both add and drop")


def _wrong_capability(field: str, capability: str) -> str:
    if not capability:
        return f"{field}: capability name must not be empty"
    if capability.startswith("CAP_"):
        return f"{field}: capability {quote(capability)} must be given without the CAP_ prefix"
    if capability.upper() != capability:
        return f"{field}: capability {quote(capability)} must be upper case"
    return "" if re.fullmatch("[A-Z_]+", capability) else f"{field}: capability {quote(capability)} may only contain upper case letters and underscores"


def _limits(limits: Data, report: Report) -> None:
    memory, cpu = limits.get("memory") or "", limits.get("cpu") or ""
    if memory:
        try:
            go_text.parse_bytes(memory)
        except ValueError as error:
            report.error("resources.limits.memory", f"limits.memory {quote(memory)} is not a valid size: {error}")
    if cpu and not cpu.endswith("m"):
        report.error("resources.limits.cpu", f"limits.cpu {quote(cpu)} must be expressed in millicores, e.g. 1500m")
    elif cpu and not re.fullmatch("[0-9]{1,19}", cpu[:-1]):
        report.error("resources.limits.cpu", f"limits.cpu {quote(cpu)} is not a valid millicore quantity: "
                     f"strconv.ParseUint: parsing {quote(cpu[:-1])}: invalid syntax")
    elif cpu and not int(cpu[:-1]):
        report.error("resources.limits.cpu", f"limits.cpu {quote(cpu)} must be greater than zero")


def _depends_on(depends: Data, name: str, report: Report) -> None:
    for path in depends.get("paths") or []:
        wrong = _wrong_path("dependsOn.paths entry", path)
        if wrong:
            report.error("dependsOn.paths", wrong)
    for condition in depends.get("networks") or []:
        if condition not in _NETWORK_CONDITIONS:
            report.error("dependsOn.networks", f"unsupported dependsOn.networks condition {quote(condition)}")
    for other in depends.get("containers") or []:
        if not other:
            report.error("dependsOn.containers", "dependsOn.containers entry must not be empty")
        elif other == name:
            report.error("dependsOn.containers", f"container {quote(name)} cannot depend on itself")


CHECKS: dict[str, Callable[[Data, str, Report], None]] = {
    "ContainerConfig": _container, "EnvironmentConfig": _environment, "EtcFileConfig": _etc_file, "EventSinkConfig": _event_sink,
    "ExtensionServiceConfig": _extension, "ImageVerificationConfig": _image_verification, "KernelModuleConfig": _kernel_module,
    "KmsgLogConfig": _kmsg_log, "OOMConfig": _oom, "SideroLinkConfig": _sidero_link, "SysctlConfig": _params("sysctl"), "SysfsConfig": _params("sysfs"),
    "UnattendedInstallConfig": _unattended_install, "WatchdogTimerConfig": _watchdog, "ZswapConfig": _zswap,
}
