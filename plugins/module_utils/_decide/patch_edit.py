# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A person's edits of a configuration patch (design sections 3 and 8).

A patch that cannot render is refused when it is written, and only where it is itself the cause: where the render fails with it and not
without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from .._machineconfig.bring import read_expanded
from .._machineconfig.contract import contract_of
from .._machineconfig.documents import Document
from .._machineconfig.json_patch import refuse_json_patch
from .._machineconfig.patch import Patch, load_patch, patch_of_documents
from .._machineconfig.plain_nodes import node_of
from .._machineconfig.problem import WRONG_TYPE, ConfigProblem
from .._machineconfig.render import PatchRecord
from .._machineconfig.scalars import resolve
from .._machineconfig.secret_paths import secret_leaves
from .._machineconfig.yaml_read import MAPPING, SCALAR, Node, decode
from .._model.approval import approval_state, tracked_by
from .._model.plan import Plan, Refusal, Step, Target, Warn
from .._model.records import ALLOW_DELETE, CONFIG_PATCH, Json, Record, list_at, text_at
from .._model.schema import validate
from .._model.schema_rules import Context
from .patch_words import CreatePatch, DeletePatch, EditPatch, PatchEdit, PatchSeen


def documents_of(text: bytes, source: str) -> tuple[Json, ...]:
    """The documents of a patch file as plain data. Raises ConfigProblem with the line; JSONPatchRefused for RFC 6902, UnexpandedTemplate."""
    try:
        nodes = read_expanded(decode(text))
        refuse_json_patch(nodes)
    except ConfigProblem as error:
        raise error.at(source=source) from None
    return tuple(_recorded(node) for node in nodes if not node.is_null())


def _recorded(node: Node) -> Any:
    """The node as plain data for a record. `1.10` stays a text, since the number of a record is 1.1 and Talos would be told that."""
    if node.kind == SCALAR:
        value = resolve(node)
        return str(node.value) if isinstance(value, float) and repr(value) != node.value else value
    if node.kind == MAPPING:
        return {key.value: _recorded(value) for key, value in node.value}
    return [_recorded(value) for value in node.value]


def refuse_unlike(file: Patch, record: Patch) -> None:
    """Raises ConfigProblem where the record of a patch file would say something else than the file, as with `0777` for a text."""
    pairs = zip((step for step in file.steps if isinstance(step, Document)), (step for step in record.steps if isinstance(step, Document)))
    for one, other in pairs:
        path = _unlike(one.output(), other.output())
        if path is not None:
            raise ConfigProblem(WRONG_TYPE, "a record cannot hold this value as it is written", hint="Put it in quotes, or write a plain decimal number.",
                                path=".".join(path), document=one.id, source=file.source, line=one.line)


def _unlike(one: object, other: object) -> tuple[str, ...] | None:
    """The path of the first difference; None without one."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        inner = [(str(key), value, other[key]) for key, value in one.items()]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        inner = [(str(index), value, other[index]) for index, value in enumerate(one)]
    else:
        return None if one == other and isinstance(one, bool) == isinstance(other, bool) else ()
    for step, mine, its in inner:
        below = _unlike(mine, its)
        if below is not None:
            return (step, *below)
    return None


def wanted_spec(edit: PatchEdit, before: Record | None) -> dict[str, Json]:
    """The spec as it would be: what is not given stays."""
    spec: dict[str, Json] = dict(before.spec) if before is not None else {"layer": "cluster"}
    spec.update({key: value for key, value in edit.settings.items() if value is not None})
    for key in [key for key, value in edit.settings.items() if value is None]:
        spec.pop(key, None)
    return spec


@dataclass(frozen=True)
class _Case:
    """One patch and what a person wants of it."""

    edit: PatchEdit
    seen: PatchSeen

    @cached_property
    def target(self) -> Target:
        uid = self.seen.patch.uid if self.seen.patch else ""
        cluster = text_at(self.spec, "clusterRef")
        return Target(kind=CONFIG_PATCH, name=self.edit.name, cluster=cluster, cluster_id=self.seen.cluster.uid if self.seen.cluster else "", uid=uid)

    @cached_property
    def spec(self) -> dict[str, Json]:
        return wanted_spec(self.edit, self.seen.patch)

    @cached_property
    def changed(self) -> bool:
        return self.seen.patch is None or self.spec != dict(self.seen.patch.spec)

    @cached_property
    def loaded(self) -> Patch | ConfigProblem | None:
        """The documents as Talos of the cluster's version reads them, what is wrong with them, or None where that version is not known."""
        try:
            refuse_json_patch([node_of(list(list_at(self.spec, "documents")))])
            for document in list_at(self.spec, "documents"):
                refuse_json_patch([node_of(document)])
            version = text_at(self.seen.cluster.spec, "talosVersion") if self.seen.cluster is not None else ""
            if not version:
                return None
            if self.edit.text is not None:
                file = load_patch(self.edit.text, contract_of(version), source=self.edit.source)
                refuse_unlike(file, patch_of_documents(list_at(self.spec, "documents"), contract_of(version), source=self.edit.source))
                return file
            return patch_of_documents(list_at(self.spec, "documents"), contract_of(version), source=f"patch {self.edit.name}")
        except ConfigProblem as error:
            return error

    def refuse(self, rule: str, reason: str, message: str, hint: str = "") -> Refusal:
        return Refusal(self.target, reason, message, hint, rule)


def _broken(case: _Case) -> Iterable[Refusal]:
    broken = case.seen.broken
    if broken is not None:
        yield case.refuse("4/record-broken", "RecordBroken", f"Patch {case.edit.name} cannot be read ({broken.where}): {broken.sentence}", "Mend the file.")


def _tracked(case: _Case) -> Iterable[Refusal]:
    tool = tracked_by(case.seen.patch) if case.seen.patch else ""
    if tool and not case.edit.override and (case.changed or case.edit.absent):
        yield case.refuse("3/gitops", "RecordTracked", f"{tool} keeps patch {case.edit.name} in step with git and would undo the change.",
                          "Change it in git, or run with override: true.")


def _schema(case: _Case) -> Iterable[Refusal]:
    record = replace(case.seen.patch or Record(CONFIG_PATCH, case.edit.name), spec=case.spec)
    for problem in validate(record, case.seen.patch, Context()):
        yield case.refuse(problem.rule, "Immutable" if problem.rule.endswith("-immutable") else "RecordInvalid", problem.message)


def _documents(case: _Case) -> Iterable[Refusal]:
    found = case.loaded
    if case.changed and isinstance(found, ConfigProblem):
        rule = "8/json-patch" if found.cause == "JSONPatchRefused" else "3/patch-schema"
        yield case.refuse(rule, found.reason, found.message, found.hint)


def _breaks(case: _Case) -> Iterable[Refusal]:
    if not case.changed or isinstance(case.loaded, ConfigProblem):
        return
    broken = [effect for effect in case.seen.effects or () if effect.problem is not None]
    texts = {effect.problem.message: [other.machine for other in broken if other.problem is not None and effect.problem is not None
                                      and other.problem.message == effect.problem.message] for effect in broken if effect.problem is not None}
    for message, machines in texts.items():
        hint = next((effect.problem.hint for effect in broken if effect.problem is not None and effect.problem.message == message), "")
        yield case.refuse("8/patch-breaks", "RenderFailed", f"With this patch the configuration of {_listed(machines)} cannot be rendered, and without it it "
                          f"can: {message}", hint or "Correct the patch; nothing was written.")


#: One row a group of refusals.
GATES: tuple[tuple[str, Callable[[_Case], Iterable[Refusal]]], ...] = (
    ("4/record-broken", _broken),
    ("3/gitops", _tracked),
    ("3/schema", _schema),
    ("3/patch-schema", _documents),
    ("8/patch-breaks", _breaks),
)


def _not_allowed(case: _Case) -> Iterable[Refusal]:
    annotations = case.seen.patch.annotations if case.seen.patch else {}
    if not case.edit.allow_delete and annotations.get(ALLOW_DELETE) != "true":
        yield case.refuse("4/allow-delete", "DeleteNotAllowed", f"Nothing says that deleting patch {case.edit.name} is meant.", "Run with allow_delete: true.")


DELETION: tuple[tuple[str, Callable[[_Case], Iterable[Refusal]]], ...] = (
    ("4/record-broken", _broken),
    ("3/gitops", _tracked),
    ("4/allow-delete", _not_allowed),
)


def decide_patch(edit: PatchEdit, seen: PatchSeen) -> tuple[Plan, Record | None]:
    """The plan, and the record as it would be; None where there would be none."""
    case = _Case(edit, seen)
    if edit.absent and seen.patch is None and seen.broken is None:
        return Plan(), None
    refusals = tuple(refusal for dummy, gate in (DELETION if edit.absent else GATES) for refusal in gate(case))
    if refusals:
        return Plan(refusals=refusals), seen.patch
    if edit.absent and seen.patch is not None:
        return Plan((DeletePatch(case.target, "a person wants it gone", before=seen.patch),)), None
    if not case.changed:
        return Plan(), seen.patch
    record = replace(seen.patch or Record(CONFIG_PATCH, edit.name), spec=case.spec)
    step: Step = CreatePatch(case.target, _why(case), spec=case.spec) if seen.patch is None else EditPatch(
        case.target, _why(case), spec=case.spec, before=seen.patch, override=edit.override)
    return Plan((step,), warnings=tuple(_warnings(case))), record


def _why(case: _Case) -> str:
    changed = [effect.machine for effect in case.seen.effects or () if effect.changes]
    if case.seen.effects is None:
        return "a person wants it"
    if not changed:
        return "a person wants it; no approved machine's configuration changes"
    rebooting = [effect.machine for effect in case.seen.effects if effect.effect is not None and effect.effect.needs_reboot]
    return f"a person wants it; it changes the configuration of {_listed(changed)}" + (f"; {_listed(rebooting)} would reboot" if rebooting else ", no reboot")


def _warnings(case: _Case) -> Iterable[Warn]:
    def warn(rule: str, message: str) -> Warn:
        return Warn(case.target, message, rule)

    if case.seen.effects is None:
        yield warn("8/patch-unchecked", f"It was not rendered with this patch: {case.seen.unchecked}")
    if isinstance(case.loaded, Patch) and case.loaded.empty:
        yield warn("8/patch-empty", "The patch is empty and changes nothing.")
    known = {machine.name for machine in case.seen.machines}
    unknown = [str(name) for name in list_at(case.spec, "machineSelector", "names") if name not in known]
    if unknown and case.seen.cluster is not None:
        yield warn("8/patch-unknown-name", f"The cluster has no machine {', '.join(unknown)}.")
    elif case.seen.cluster is not None and not _selected(case):
        yield warn("8/patch-selects-nobody", "It selects no approved machine now; it takes effect on those that are approved later.")
    effects = case.seen.effects or ()
    for effect in effects:
        if effect.broken_before is not None:
            yield warn("8/patch-broken-before", f"The configuration of {effect.machine} cannot be rendered without this patch either: "
                       f"{effect.broken_before.message}")
    for paths, machines in _grouped((effect.machine, effect.effect.reboot) for effect in effects if effect.effect is not None and effect.effect.reboot):
        yield warn("8/patch-reboot", f"{_listed(machines)} would reboot for {paths}.")
    for paths, machines in _grouped((effect.machine, effect.effect.later) for effect in effects if effect.effect is not None and effect.effect.later):
        yield warn("8/patch-later", f"On {_listed(machines)} this has effect only after a service or the node restarts: {paths}.")
    for paths, machines in _grouped((effect.machine, effect.effect.never) for effect in effects if effect.effect is not None and effect.effect.never):
        yield warn("8/patch-never", f"On an installed node this has no effect ({_listed(machines)}): {paths}.")
    if any(True for document in list_at(case.spec, "documents") if isinstance(document, dict)
           for found in secret_leaves(text_at(document, "kind"), document) if found[1]):
        yield warn("8/patch-secret", "The patch holds a secret in clear, and its record is made for git; keep that file out of it.")


def _selected(case: _Case) -> list[str]:
    patch = PatchRecord.of(case.edit.name, case.spec)
    found = []
    for machine in case.seen.machines:
        labels = machine.spec.get("labels")
        if approval_state(machine) == "approved" and patch.selects(machine.name, labels if isinstance(labels, dict) else {}, text_at(machine.spec, "role")):
            found.append(machine.name)
    return found


def _grouped(entries: Iterable[tuple[str, Iterable[object]]]) -> Iterable[tuple[str, list[str]]]:
    """Machines by what concerns them, told once."""
    found: dict[str, list[str]] = {}
    for machine, differences in entries:
        paths = ", ".join(dict.fromkeys(str(getattr(difference, "where", "")) for difference in differences))
        found.setdefault(paths, []).append(machine)
    return found.items()


def _listed(names: Iterable[str], most: int = 10) -> str:
    every = list(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")
