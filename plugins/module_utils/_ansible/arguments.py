# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that modules share, in groups; each group has a doc fragment of the same name (design sections 18 to 20).

A module builds its :class:`Spec` from its own options and the groups it needs::

    SPEC = Spec(own={"hostname": {"type": "str"}}, groups=("store", "machines", "plan", "timing", "network"))

and lists the fragments `ichor.talos.options.store`, `ichor.talos.options.machines`, … in its documentation, with
`ichor.talos.attributes` (or `ichor.talos.attributes.info`). Precedence: option, then
`module_defaults`, then the environment (`fallback`), then the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ansible.module_utils.basic import env_fallback

#: One option as AnsibleModule takes it.
Argument = Mapping[str, object]

#: Options whose value is a secret. They travel over the channel, never inside the module's arguments, and each carries
#: `no_log`. The action plugin and every module know them from here.
SECRET_OPTIONS = frozenset({"talosconfig_content", "config_content", "bundle_content", "kubeconfig_content",
                            "s3_access_key", "s3_secret_key", "s3_session_token"})

#: Options that name a file of the person's which may be vaulted: the module asks the action plugin for its clear text.
FILE_OPTIONS = frozenset({"talosconfig", "config_file", "bundle_file", "patch_file", "kubeconfig", "store_kubeconfig", "to_kubeconfig"})

#: Every option that is a path. The action plugin makes relative ones absolute: they count from the playbook's folder, or from
#: the working directory when the playbook is one of a collection.
PATH_OPTIONS = FILE_OPTIONS | {
    "store_path", "state_path", "plan_file", "save_plan", "config_dir", "path", "alive_file", "manifests", "to_path", "to_state_path", "export_path",
    "json_path", "show_plan",
}

#: Options that name records; where one is given and `store` is not, the directory store is used.
RECORD_OPTIONS = ("cluster", "machine", "machines", "select", "name", "backup", "order")

#: Groups of every module, so that `module_defaults: group/ichor.talos.talos` may set them once for all.
COMMON_GROUPS = ("store", "credentials", "timing", "network")

STORES = ("directory", "kubernetes", "none")
FAIL_ON = ("blocked", "unreachable", "drift")


GROUPS: Mapping[str, Mapping[str, Argument]] = {
    "store": {
        "store": {"type": "str", "choices": list(STORES), "fallback": (env_fallback, ["ICHOR_STORE"])},
        "store_path": {"type": "path", "fallback": (env_fallback, ["ICHOR_STORE_PATH"])},
        "state_path": {"type": "path", "fallback": (env_fallback, ["ICHOR_STATE_PATH"])},
        "store_kubeconfig": {"type": "path", "fallback": (env_fallback, ["ICHOR_STORE_KUBECONFIG", "K8S_AUTH_KUBECONFIG"])},
        "store_context": {"type": "str", "fallback": (env_fallback, ["ICHOR_STORE_CONTEXT", "K8S_AUTH_CONTEXT"])},
        "store_namespace": {"type": "str", "fallback": (env_fallback, ["ICHOR_STORE_NAMESPACE"])},
    },
    "credentials": {
        "talosconfig": {"type": "path", "fallback": (env_fallback, ["TALOSCONFIG"])},
        "talosconfig_content": {"type": "str", "no_log": True},
        "context": {"type": "str", "fallback": (env_fallback, ["TALOSCONFIG_CONTEXT"])},
    },
    "kubernetes": {
        "kubeconfig": {"type": "path", "fallback": (env_fallback, ["ICHOR_KUBECONFIG"])},
        "kubeconfig_content": {"type": "str", "no_log": True},
    },
    "cluster": {
        "cluster": {"type": "str", "fallback": (env_fallback, ["ICHOR_CLUSTER"])},
    },
    "machine": {
        "machine": {"type": "str"},
    },
    "machines": {
        "machine": {"type": "str"},
        "machines": {"type": "list", "elements": "str"},
        "select": {"type": "str"},
    },
    "plan": {
        "expect_plan_id": {"type": "str"},
        "plan_file": {"type": "path"},
        "save_plan": {"type": "path"},
    },
    "timing": {
        # Read by `Options.timing`: as options of their own the intervals would be a hundred lines in the documentation of each module.
        "timing": {"type": "dict"},
    },
    "fleet": {
        "fail_on": {"type": "list", "elements": "str", "choices": list(FAIL_ON), "default": []},
    },
    "network": {
        "allow_loopback": {"type": "bool", "default": False, "fallback": (env_fallback, ["ICHOR_ALLOW_LOOPBACK"])},
    },
}


@dataclass(frozen=True)
class Spec:
    """A module's options with their constraints. `own` wins over a group's option of the same name."""

    own: Mapping[str, Argument] = field(default_factory=dict)
    groups: Sequence[str] = ()
    mutually_exclusive: Sequence[Sequence[str]] = ()
    required_together: Sequence[Sequence[str]] = ()
    required_one_of: Sequence[Sequence[str]] = ()
    required_if: Sequence[Sequence[object]] = ()
    required_by: Mapping[str, Sequence[str]] = field(default_factory=dict)
    supports_check_mode: bool = True

    def arguments(self) -> dict[str, dict[str, object]]:
        """All options, the groups' first."""
        merged: dict[str, dict[str, object]] = {}
        for name in self.groups:
            merged.update({key: dict(value) for key, value in GROUPS[name].items()})
        merged.update({key: dict(value) for key, value in self.own.items()})
        return merged

    def exclusive(self) -> list[list[str]]:
        """What cannot be given together, the groups' own rules included."""
        rules = [list(rule) for rule in self.mutually_exclusive]
        if "machines" in self.groups:
            rules.append(["machine", "machines"])
        if "plan" in self.groups:
            rules.append(["expect_plan_id", "plan_file"])
        return rules

    def constraints(self) -> dict[str, object]:
        """Keyword arguments of AnsibleModule."""
        return {
            "argument_spec": self.arguments(),
            "mutually_exclusive": self.exclusive(),
            "required_together": _lists(self.required_together),
            "required_one_of": _lists(self.required_one_of),
            "required_if": [list(rule) for rule in self.required_if],
            "required_by": {key: list(value) for key, value in self.required_by.items()},
            "supports_check_mode": self.supports_check_mode,
        }


def _lists(rules: Iterable[Sequence[str]]) -> list[list[str]]:
    return [list(rule) for rule in rules]
