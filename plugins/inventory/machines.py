# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machines of a store as an inventory."""

from __future__ import annotations

DOCUMENTATION = r"""
name: machines
short_description: Machines of a store as hosts
version_added: 0.1.0
author:
  - Ichor contributors (@ichor-maesh)
description:
  - Every TalosMachine record is a host of the same name.
  - Approved machines are in the group C(talos_machines) and in groups by cluster (C(talos_cluster_NAME)), role (C(talos_role_ROLE)), stage
    (C(talos_stage_STAGE)), and the condition Ready (C(talos_ready) or C(talos_not_ready), and C(talos_reason_REASON)).
  - Pending and rejected machines are in C(talos_pending) and C(talos_rejected) only.
  - A host has the variables C(ichor_cluster), C(ichor_spec), C(ichor_status), C(ichor_labels) and C(ichor_annotations), which are the record's own
    words. Some of them were told by the machine itself, so they are data and are never read as templates.
  - Talos has neither SSH nor Python. C(ansible_connection) is V(local) and C(ansible_python_interpreter) is the Python that runs Ansible, so that
    modules of this collection run for a host where ansible-playbook runs. Nothing is asked of a node.
  - There is no secret in it, since records hold none.
notes:
  - The file's name ends with V(ichor.yml) or V(ichor.yaml).
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [ichor.talos.machines]
  store:
    description: Where the records live, in a folder or in an API server.
    type: str
    choices: [directory, kubernetes]
    default: directory
    env:
      - name: ICHOR_STORE
  store_path:
    description:
      - The folder of the directory store. A relative path starts at the folder of the inventory file.
      - If not set, C(ichor/) beside the inventory file is used.
    type: str
    env:
      - name: ICHOR_STORE_PATH
  state_path:
    description:
      - The folder of status, events and leases, when it is not C(.state) in the store. A relative path starts at the folder of the inventory file.
    type: str
    env:
      - name: ICHOR_STATE_PATH
  store_kubeconfig:
    description:
      - The kubeconfig of the API server, for O(store=kubernetes). A relative path starts at the folder of the inventory file.
      - If not set, E(KUBECONFIG), the pod's own account, or C(~/.kube/config) is used.
    type: str
    env:
      - name: ICHOR_STORE_KUBECONFIG
      - name: K8S_AUTH_KUBECONFIG
  store_context:
    description: Which context of that kubeconfig to use, else the one that the file itself selects.
    type: str
    env:
      - name: ICHOR_STORE_CONTEXT
      - name: K8S_AUTH_CONTEXT
  store_namespace:
    description: The namespace of the records, for O(store=kubernetes).
    type: str
    default: ichor-system
    env:
      - name: ICHOR_STORE_NAMESPACE
  clusters:
    description: Only machines of these clusters; all when left out.
    type: list
    elements: str
    default: []
  select:
    description:
      - A JMESPath expression over the records that gives names; only these machines are hosts.
    type: str
extends_documentation_fragment:
  - constructed
  - inventory_cache
"""

EXAMPLES = r"""
# production.ichor.yml, beside the folder ichor/
plugin: ichor.talos.machines

# Machines whose records are in the API server of the current kubeconfig.
---
plugin: ichor.talos.machines
store: kubernetes

# Machines of one cluster, with a group for each rack that people wrote into the labels.
---
plugin: ichor.talos.machines
store_path: ../records
clusters: [prod]
keyed_groups:
  - key: ichor_labels.rack
    prefix: rack

# Only machines that run, with an address for other plays, and kept for five minutes.
---
plugin: ichor.talos.machines
select: "[?status.stage=='running'].metadata.name"
compose:
  ansible_host: ichor_spec.endpoint
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: .inventory-cache
cache_timeout: 300
"""

import hashlib
import json
import os
import sys
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.unsafe_proxy import wrap_var

from ansible_collections.ichor.talos.plugins.module_utils._ansible.clock import SystemClock
from ansible_collections.ichor.talos.plugins.module_utils._ansible.inventory_hosts import Host, hosts_of
from ansible_collections.ichor.talos.plugins.module_utils._ansible.libraries import require
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Listing
from ansible_collections.ichor.talos.plugins.module_utils._operations.select import chosen
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store

#: The options by which an inventory is another one, and so another entry of the cache.
_CHOOSING = ("store", "store_path", "state_path", "store_kubeconfig", "store_context", "store_namespace", "clusters", "select")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Reads the machines of a store; writes nothing and asks no node."""

    NAME = "ichor.talos.machines"

    def verify_file(self, path: str) -> bool:
        return super().verify_file(path) and path.endswith(("ichor.yml", "ichor.yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        strict = self.get_option("strict")
        for host in self._hosts(path, cache):
            self.inventory.add_host(host.name)
            for group in host.groups:
                self.inventory.add_group(group)
                self.inventory.add_host(host.name, group=group)
            variables = {name: _as_data(value) for name, value in host.variables.items()}
            for name, value in variables.items():
                self.inventory.set_variable(host.name, name, value)
            self.inventory.set_variable(host.name, "ansible_connection", "local")
            self.inventory.set_variable(host.name, "ansible_python_interpreter", sys.executable)
            self._set_composite_vars(self.get_option("compose"), variables, host.name, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, host.name, strict=strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host.name, strict=strict)

    def _hosts(self, path: str, cache: bool) -> list[Host]:
        """The hosts, from the cache where that is wanted and has them. Nothing secret is kept, since records hold nothing secret."""
        if not self.get_option("cache"):
            return self._read(path)
        options = json.dumps([self.get_option(name) for name in _CHOOSING], default=str)
        key = f"{self.get_cache_key(path)}_{hashlib.sha256(options.encode()).hexdigest()[:16]}"
        if cache:
            try:
                return [Host(entry["name"], tuple(entry["groups"]), entry["variables"]) for entry in self._cache[key]]
            except (KeyError, TypeError):
                pass  # not kept yet, or kept by something else
        found = self._read(path)
        self._cache[key] = [{"name": host.name, "groups": list(host.groups), "variables": dict(host.variables)} for host in found]
        return found

    def _read(self, path: str) -> list[Host]:
        listing = self._listing(os.path.dirname(os.path.abspath(path)))
        for broken in listing.broken:
            where = f"{broken.source}, line {broken.line}" if broken.line else broken.source
            self.display.warning(f"{where}: {broken.message.rstrip('.')}. The machine {broken.name} is left out.")
        records, expression = listing.records, self.get_option("select") or ""
        if expression:
            try:
                names = set(chosen(records, expression=expression))
            except TalosError as error:
                raise AnsibleParserError(f"{error.message} {error.hint}".strip()) from None
            records = tuple(record for record in records if record.name in names)
        return list(hosts_of(records, tuple(self.get_option("clusters"))))

    def _listing(self, folder: str) -> Listing:
        store, state = self.get_option("store_path") or "ichor", self.get_option("state_path") or ""
        try:
            if self.get_option("store") == "kubernetes":
                return self._from_kubernetes(folder)
            return open_store(os.path.join(folder, os.path.expanduser(store)), os.path.join(folder, os.path.expanduser(state)) if state else "",
                              clock=SystemClock()).list(MACHINE)
        except TalosError as error:
            # Without its cause: Ansible would tell that after it, which is the same sentence again.
            raise AnsibleParserError(f"{error.message} {error.hint}".strip()) from None

    def _from_kubernetes(self, folder: str) -> Listing:
        require(("kubernetes",), "A store in Kubernetes")
        from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access
        from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes import opening

        path = self.get_option("store_kubeconfig") or ""
        access = Access(os.path.join(folder, os.path.expanduser(path)) if path else "", "", self.get_option("store_context") or "")
        store = opening.open_store(access, self.get_option("store_namespace"), clock=SystemClock())
        try:
            return store.list(MACHINE)
        finally:
            store.close()


def _as_data(value: Any) -> Any:
    """The value with every text marked that Ansible could read as a template; the others stay plain in `ansible-inventory --list`."""
    if isinstance(value, dict):
        return {key: _as_data(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_data(entry) for entry in value]
    return wrap_var(value) if isinstance(value, str) and "{" in value else value
