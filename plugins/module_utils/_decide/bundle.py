# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making, importing and exporting a secrets bundle (design sections 4, 8, 18): one that machines were sent is never written over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from .._machineconfig.secrets import Bundle
from .._model.approval import status_missing, was_sent
from .._model.machine import cluster_of
from .._model.observed import Absent, Present, Unknown
from .._model.plan import Plan, Refusal, Step, Target, Warn
from .._model.records import BUNDLE, Record, text_at
from .approved import has_converged, is_bootstrapped
from .bundle_words import BundleSeen, BundleWish, ExportBundle, GenerateBundle, ImportBundle


@dataclass(frozen=True)
class _Case:
    """One bundle and what a person wants of it."""

    wish: BundleWish
    seen: BundleSeen

    @cached_property
    def target(self) -> Target:
        return Target(kind=BUNDLE, name=self.wish.name)

    @cached_property
    def brought(self) -> Bundle | None:
        return self.wish.imported.value if isinstance(self.wish.imported, Present) else None

    @cached_property
    def there(self) -> Bundle | None:
        return self.seen.bundle.value if isinstance(self.seen.bundle, Present) else None

    @property
    def replaces(self) -> bool:
        """Whether another bundle than the one that is there is brought."""
        return self.brought is not None and self.seen.form != "absent" and self.brought != self.there

    @cached_property
    def clusters(self) -> tuple[Record, ...]:
        return tuple(cluster for cluster in self.seen.clusters if text_at(cluster.spec, "secretsRef", "name") == self.wish.name)

    @cached_property
    def machines(self) -> tuple[Record, ...]:
        names = {cluster.name for cluster in self.clusters}
        return tuple(machine for machine in self.seen.machines if cluster_of(machine) in names)

    def refuse(self, rule: str, reason: str, message: str, hint: str) -> Refusal:
        return Refusal(self.target, reason, message, hint, rule)


def _import_unusable(case: _Case) -> Iterable[Refusal]:
    problem = case.wish.imported
    if isinstance(problem, Unknown):
        yield case.refuse("8/bundle-import-unreadable", problem.reason, problem.message, problem.source)


def _import_faulty(case: _Case) -> Iterable[Refusal]:
    if case.brought is not None and case.wish.faults:
        yield case.refuse("8/bundle-faulty", "BundleInvalid", f"The bundle in {case.wish.source} cannot be used: {'; '.join(case.wish.faults)}.",
                          "Give the whole bundle of the cluster, as 'talosctl gen secrets' wrote it.")


def _unreadable(case: _Case) -> Iterable[Refusal]:
    problem = case.seen.bundle
    if case.seen.form != "absent" and isinstance(problem, Unknown) and not (case.brought is not None and case.wish.replace):
        yield case.refuse("8/bundle-unreadable", problem.reason, problem.message, problem.source)


def _differs(case: _Case) -> Iterable[Refusal]:
    if case.replaces and not case.wish.replace:
        yield case.refuse("8/bundle-differs", "RecordExists", f"There is another secrets bundle {case.wish.name} already.",
                          "Keep that one, import under another name, or run with replace: true if no machine ever had it.")


def _vaulted(case: _Case) -> Iterable[Refusal]:
    if case.replaces and case.seen.form == "vaulted":
        yield case.refuse("8/bundle-vaulted", "BundleExposed",
                          f"The secrets bundle {case.wish.name} is encrypted with ansible-vault and would be replaced by one in clear.",
                          "Move that file away, run this again, and encrypt the new one with ansible-vault.")


def _no_memory(case: _Case) -> Iterable[Refusal]:
    if case.replaces and case.wish.replace and not case.seen.stored:
        yield case.refuse("8/bundle-no-memory", "RecordExists", f"{case.wish.name} holds another bundle, and without a store nobody knows whether "
                          "machines were sent it.", "Give another path, or remove the file yourself.")


def _in_use(case: _Case) -> Iterable[Refusal]:
    if not case.replaces:
        return
    users = [machine.name for machine in case.machines if was_sent(machine) or has_converged(machine) or status_missing(machine)]
    users += [f"cluster {cluster.name}" for cluster in case.clusters if is_bootstrapped(cluster)]
    if users:
        yield case.refuse("8/bundle-sent", "AlreadySent", f"Machines were sent the keys of bundle {case.wish.name} ({', '.join(users)}), "
                          "and would be locked out by another one.", "Import under another name, or rotate the CA of the cluster.")


def _use_unknown(case: _Case) -> Iterable[Refusal]:
    if case.replaces and case.seen.broken:
        first = case.seen.broken[0]
        yield case.refuse("8/bundle-use-unknown", "RecordBroken", f"Whether machines were sent bundle {case.wish.name} cannot be told: "
                          f"{first.source}, line {first.line}: {first.message}", "Mend that file.")


def _export_differs(case: _Case) -> Iterable[Refusal]:
    if not case.wish.export_path:
        return
    there = case.seen.exported
    if isinstance(there, Unknown):
        yield case.refuse("8/bundle-export-unreadable", there.reason, there.message, there.source)
    elif isinstance(there, Present) and there.value != (case.brought or case.there) and not case.wish.replace:
        yield case.refuse("8/bundle-export-differs", "RecordExists", f"{case.wish.export_path} holds another bundle.",
                          "Give another path, or run with replace: true.")


#: One row a group of refusals, in the order in which they are told.
GATES: tuple[tuple[str, Callable[[_Case], Iterable[Refusal]]], ...] = (
    ("8/bundle-import-unreadable", _import_unusable),
    ("8/bundle-faulty", _import_faulty),
    ("8/bundle-unreadable", _unreadable),
    ("8/bundle-differs", _differs),
    ("8/bundle-vaulted", _vaulted),
    ("8/bundle-no-memory", _no_memory),
    ("8/bundle-sent", _in_use),
    ("8/bundle-use-unknown", _use_unknown),
    ("8/bundle-export-differs", _export_differs),
)


def decide_bundle(wish: BundleWish, seen: BundleSeen) -> Plan:
    """The plan: nothing where the bundle is there already, and it is the wanted one."""
    case = _Case(wish, seen)
    refusals = tuple(refusal for dummy, gate in GATES for refusal in gate(case))
    if refusals:
        return Plan(refusals=refusals)
    steps: list[Step] = []
    if case.brought is not None and (seen.form == "absent" or case.replaces):
        what = f"a person brings it from {wish.source}" + (", and no machine was sent the one that is there" if case.replaces else "")
        steps.append(ImportBundle(case.target, what, bundle=case.brought, replace=case.replaces))
    elif case.brought is None and seen.form == "absent":
        steps.append(GenerateBundle(case.target, "there is no such bundle yet", contract=wish.contract))
    if wish.export_path and (isinstance(seen.exported, Absent) or isinstance(seen.exported, Present) and seen.exported.value != (case.brought or case.there)):
        steps.append(ExportBundle(case.target, f"a person wants it in {wish.export_path}", path=wish.export_path,
                                  replace=isinstance(seen.exported, Present)))
    return Plan(tuple(steps), warnings=_warnings(case, bool(steps)))


def _warnings(case: _Case, writes: bool) -> tuple[Warn, ...]:
    found = []
    if case.wish.export_path and writes:
        found.append(Warn(case.target, f"Whoever can read {case.wish.export_path} owns the cluster.", "8/bundle-export"))
    bundle = case.brought or case.there
    if bundle is not None and bundle.aescbc:
        found.append(Warn(case.target, "The bundle has an AES-CBC key of an old Talos; it is kept as it is, so that secrets in etcd stay readable.",
                          "8/bundle-old-key"))
    return tuple(found)
