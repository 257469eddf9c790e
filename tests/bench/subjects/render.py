# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subject: full renders with three patches in a warm process. Prints CPU seconds of one, of 100 and of 1,000 machines, and the result."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.render import PatchRecord, RenderInput, load_patches, render
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle

CLUSTER = {"talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.0.0.10:6443"}
PATCHES = (
    PatchRecord("flags", "cluster", 0, ({"cluster": {"apiServer": {"extraArgs": {"audit-log-maxage": "30"}}}},), role="controlplane"),
    PatchRecord("kernel", "cluster", 1, ({"machine": {"sysctls": {f"net.test.key{number}": str(number) for number in range(20)}}},)),
    PatchRecord("time", "machine", 0, ({"apiVersion": "v1alpha1", "kind": "TimeSyncConfig", "ntp": {"servers": ["192.0.2.123"]}},)),
)


def main() -> None:
    bundle = read_bundle(Path("tests/vectors/secrets.yaml").read_bytes())
    parsed = load_patches(PATCHES, CLUSTER["talosVersion"])

    def renders(count: int) -> float:
        began = time.process_time()
        for number in range(count):
            spec = {"role": "controlplane", "hostname": f"cp-{number}", "install": {"disk": "/dev/sda"}}
            last = render(RenderInput("prod", CLUSTER, f"prod-{number}", spec, bundle, PATCHES), parsed if count > 1 else None)
        results.append(last.text)
        return time.process_time() - began

    results: list[str] = []
    renders(50)
    one = sorted(renders(1) for unused in range(51))[25]
    print(json.dumps({"one": one, "hundred": sorted(renders(100) for unused in range(5))[2], "thousand": renders(1000), "text": results[-1]}))


main()
