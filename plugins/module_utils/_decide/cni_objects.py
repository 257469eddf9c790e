# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of each object of the network: made, changed where it differs, or left; and the gate before a change (design section 15). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .._model.approval import tracked_by
from .._model.container_network import Live, Place, images_of
from .._model.observed import Absent, Present, Unknown
from .._model.plan import Plan, Refusal, Step, Target, Warn
from .._model.records import Json, JsonMap, Record, dig, text_at
from .cni_compare import content, is_secret, lay, normal
from .cni_generated import Path, generated, marked, settled
from .cni_values import for_render, leaves, without_owned
from .cni_versions import order, version_in
from .cni_words import RELEASE, TAKE_OVER, Branch, Change, ChangeObject, CniCase, CreateObject, NetworkPlan

#: What runs pods that a change of its template restarts.
WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet")
#: How many objects, and paths of each, a line names.
_NAMED, _PATHS = 12, 6
MASK = "********"
#: How the agent's image is called, and where it is told how pods are numbered, and how.
_AGENT, _CONFIG, _IPAM = "/cilium/cilium", "cilium-config", "kubernetes"

Entry = tuple[Place, tuple[Change, ...], bool]


@dataclass(frozen=True)
class Laid:
    """One network under decision. `entries`: the objects that are not as they are wanted: where, what differs, whether it is there at all."""

    case: CniCase
    branch: Branch
    objects: tuple[Live, ...]
    entries: tuple[Entry, ...]
    steps: tuple[Step, ...]

    @property
    def changed(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry[2])

    def refuse(self, rule: str, reason: str, message: str, hint: str) -> Refusal:
        return Refusal(self.case.target, reason, message, hint, rule)


def _unread(laid: Laid) -> Iterable[Refusal]:
    for one in laid.objects:
        if isinstance(one.now, Unknown):
            yield laid.refuse("15/cni-object-unread", one.now.reason, f"{one.place} cannot be read: {one.now.message}", one.now.source)
            return


def _no_agent(laid: Laid) -> Iterable[Refusal]:
    """Whatever a chart is called, and whatever values turn off: without its DaemonSet there would be no network."""
    agents = [one.place for one in laid.objects if one.place.kind == "DaemonSet" and (
        text_at(one.wanted, "metadata", "labels", "k8s-app") == "cilium" or any(_AGENT in image for image in images_of(one.wanted)))]
    if not agents:
        yield laid.refuse("15/cni-no-agent", "ChartInvalid", f"{laid.branch.chart} renders no DaemonSet of Cilium with these values, so there would be no "
                          "network.", "Look at the chart and at the values.")


def _other_ipam(laid: Laid) -> Iterable[Refusal]:
    """The owned key says how pods are numbered, and a chart around Cilium's, or `extraConfig`, may still say otherwise."""
    for one in laid.objects:
        if one.place.kind == "ConfigMap" and one.place.name == _CONFIG and text_at(one.wanted, "data", "ipam") != _IPAM:
            said = text_at(one.wanted, "data", "ipam")
            yield laid.refuse("15/cni-render-ipam", "NetworkForeign", f"With these values {laid.branch.chart} renders ipam: {said or 'nothing'} into "
                              f"{one.place}, and a managed Cilium runs with {_IPAM}: the pods would be renumbered.",
                              "Take out what sets it beside ipam.mode (extraConfig), or name Cilium's own chart, not one around it.")


def _tracked(laid: Laid) -> Iterable[Refusal]:
    for one in laid.objects:
        tool = _tool(one.now.value, one.wanted) if isinstance(one.now, Present) else ""
        if tool and laid.entries:
            yield laid.refuse("15/cni-tracked", "RecordTracked", f"{one.place} is kept in step with git by {tool}, which would undo a change made here.",
                              "Take Cilium out of it first, without deleting its objects, or leave the network to it (cni: unmanaged).")
            return


def _differs(laid: Laid) -> Iterable[Refusal]:
    """Somebody's network is changed only by somebody who has read how. One of this product may be completed where a run ended early."""
    if laid.branch.what != TAKE_OVER or laid.case.wish.accept or not laid.entries or laid.branch.ours and not laid.changed:
        return
    told = "; ".join(_line(entry) for entry in laid.entries[:_NAMED])
    rest = len(laid.entries) - _NAMED
    yield laid.refuse("15/cni-diff", "NetworkDiffers", f"Cilium differs from what {laid.branch.chart} renders with these values: {told}"
                      f"{f'; and {rest} objects more' if rest > 0 else ''}.",
                      f"Read the differences (--check --diff); {_to_stay(laid)}, and agree to the rest with accept_cilium_diff: true, or run this very plan "
                      "with expect_plan_id or plan_file.")


def _to_stay(laid: Laid) -> str:
    if laid.case.kept is not None:
        return "put settings that are to stay into the record (talos_cluster, cilium_values)"
    return "give settings that are to stay as cilium_values where no Helm release carries them"


Row = tuple[str, Callable[[Laid], Iterable[Refusal]]]
OBJECT_GATES: tuple[Row, ...] = (
    ("15/cni-no-agent", _no_agent), ("15/cni-render-ipam", _other_ipam), ("15/cni-object-unread", _unread), ("15/cni-tracked", _tracked),
    ("15/cni-diff", _differs))


def _restarts(laid: Laid) -> str:
    restarted = [str(place) for place, changes, dummy in laid.changed
                 if place.kind in WORKLOADS and any(change.path.startswith("spec.template") for change in changes)]
    if laid.branch.what != TAKE_OVER or not laid.entries:
        return ""
    if restarted:
        return ("The takeover of Cilium is the one thing in an adoption that restarts anything: the pods of " + ", ".join(restarted) +
                " are replaced, a few at a time.")
    return ("The takeover of Cilium is the one thing in an adoption that can restart anything. These changes restart no pod by themselves; "
            "what is in a ConfigMap takes effect when the pods are restarted.")


def _left_over(laid: Laid) -> str:
    wanted = {one.place for one in laid.objects}
    left = [str(place) for place in laid.branch.left if place not in wanted]
    return f"No longer part of what is rendered, and left as it is: {_listed(left)}." if left else ""


def _left_behind(laid: Laid) -> str:
    """A record may lack what the Helm release that it takes over was made with."""
    kept, seen = laid.case.kept, laid.case.seen
    release = seen.value.release if isinstance(seen, Present) else Absent()
    if kept is None or laid.branch.ours or not laid.changed or not isinstance(release, Present) or release.value.chart != RELEASE:
        return ""
    there, found = leaves(for_render(kept)), release.value
    lacking = [path for path, value in sorted(leaves(without_owned(found.values)).items()) if path not in there or there[path] != value]
    return (f"The Helm release {found.namespace}/{found.name} has values that the record lacks or has otherwise, and only those of the record count: "
            f"{_listed(lacking)}. Put what is to stay into the record first (talos_cluster, cilium_values; helm get values {found.name} -n "
            f"{found.namespace} shows it).") if lacking else ""


def _older_agents(laid: Laid) -> str:
    for one in laid.objects:
        if one.place.kind == "DaemonSet" and isinstance(one.now, Present):
            there, wanted = version_in(images_of(one.now.value)), version_in(images_of(one.wanted))
            if there and wanted and order(wanted) < order(there):
                return (f"{one.place} becomes older, from {there} to {wanted}: read what the Cilium project says of going back first. Without "
                        "cilium_version and a chart of your own the version stays.")
    return ""


def _made_anew(laid: Laid) -> str:
    anew = [str(place) for place, changes, dummy in laid.changed if place.kind == "Secret" and any(change.secret for change in changes)]
    return f"Keys, certificates or passwords become other ones: {_listed(anew)}." if anew else ""


#: One row a warning; '' where it does not apply.
OBJECT_WARNINGS: tuple[tuple[str, Callable[[Laid], str]], ...] = (
    ("15/cni-restarts", _restarts), ("15/cni-left-over", _left_over), ("15/cni-left-behind", _left_behind), ("15/cni-keys-anew", _made_anew),
    ("15/cni-older-agents", _older_agents))


def decide_network(case: CniCase, branch: Branch, first: Sequence[dict[str, Json]], second: Sequence[dict[str, Json]], objects: Sequence[Live],
                   gates: tuple[Row, ...] = OBJECT_GATES, warnings: tuple[tuple[str, Callable[[Laid], str]], ...] = OBJECT_WARNINGS) -> NetworkPlan:
    """The steps for a branch, from two renders of its chart and the first one's objects as they are in the cluster."""
    paths = generated(first, second)
    if paths is None:
        refusal = Refusal(case.target, "ChartInvalid", f"{branch.chart} renders other objects each time.", "Give values with which their names stay.",
                          "15/cni-names-of-chance")
        return NetworkPlan(Plan(refusals=(refusal,)), branch)
    kept = settled(objects, paths)
    steps: list[Step] = []
    entries: list[Entry] = []
    for one, found in zip(kept, paths):
        step, entry = _step(case, one, found)
        if step is not None and entry is not None:
            steps.append(step)
            entries.append(entry)
    laid = Laid(case, branch, kept, tuple(entries), tuple(steps))
    refusals: tuple[Refusal, ...] = ()
    for dummy, gate in gates:
        refusals = refusals or tuple(replace(one, whole=True) for one in gate(laid))
    warned = tuple(Warn(case.target, text, rule) for rule, tell in warnings if (text := tell(laid)))
    return NetworkPlan(Plan(tuple(steps), refusals, warned), branch, tuple(entries), kept)


def _step(case: CniCase, one: Live, paths: Sequence[Path]) -> tuple[Step | None, Entry | None]:
    target = Target(one.place.kind, str(one.place), case.cluster)
    settings = marked(one.wanted, paths)
    if isinstance(one.now, Absent):
        return CreateObject(target, "it is not there", settings=settings, wanted=one.wanted), (one.place, (), False)
    if not isinstance(one.now, Present):
        return None, None
    changes = _lasting(one, lay(one.wanted, one.now.value)[1])
    if not changes:
        return None, None
    why = f"it differs: {_listed([change.path for change in changes], _PATHS)}"
    if one.place.kind in WORKLOADS and any(change.path.startswith("spec.template") for change in changes):
        why += "; its pods are restarted"
    return ChangeObject(target, why, settings=settings, running=content(one.now.value), wanted=one.wanted, changes=changes), (one.place, changes, True)


def _lasting(one: Live, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Those that the API server would let be: what it, or a webhook, makes of the object again at once is no difference."""
    undone = lay(one.wanted, one.tried.value)[1] if isinstance(one.tried, Present) else ()
    return tuple(change for change in changes if change not in undone)


def laid_over(step: ChangeObject, objects: Sequence[Live]) -> dict[str, Json] | None:
    """What a step would write over the object as it was seen; None where it was not."""
    now = next((one.now for one in objects if one.wanted == step.wanted), Absent())
    return lay(step.wanted, now.value)[0] if isinstance(now, Present) else None


def still(step: ChangeObject, live: JsonMap) -> dict[str, Json] | None:
    """What is written over the object as it is now; None where it is no longer the one that was planned with."""
    return lay(step.wanted, live)[0] if content(live) == step.running else None


def shown(entry: Entry, wanted: Mapping[Place, JsonMap]) -> tuple[dict[str, Json], dict[str, Json]]:
    """(before, after) by path, with secrets masked."""
    place, changes, there = entry
    if not there:
        return {}, {"object": _without_secrets(wanted.get(place, {}))}
    return ({change.path: MASK if change.secret else _masked(change.before) for change in changes if change.before is not None},
            {change.path: f"{MASK} (another one)" if change.secret and change.before is not None else MASK if change.secret else _masked(change.after)
             for change in changes if change.after is not None})


def _without_secrets(found: JsonMap) -> Json:
    plain = normal(found)
    if text_at(plain, "kind") == "Secret":
        data = dig(plain, "data")
        plain["data"] = {key: MASK for key in data} if isinstance(data, dict) else {}
    return _masked(plain)


def _masked(value: Json, path: str = "") -> Json:
    if isinstance(value, dict):
        name = text_at(value, "name")
        return {key: _masked(inner, f"{name}.{key}" if key == "value" and name else key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(entry) for entry in value]
    return MASK if isinstance(value, str) and is_secret(path, value) else value


def _tool(live: JsonMap, wanted: JsonMap) -> str:
    """What keeps the object in step with git, by marks that are not the chart's own."""
    labels, annotations = (_marks(live, wanted, key) for key in ("labels", "annotations"))
    return tracked_by(Record(text_at(live, "kind"), text_at(live, "metadata", "name"), {}, {}, labels, annotations))


def _marks(live: JsonMap, wanted: JsonMap, key: str) -> dict[str, str]:
    found = dig(live, "metadata", key)
    own = dig(wanted, "metadata", key)
    chart = own if isinstance(own, dict) else {}
    return {name: value for name, value in found.items() if isinstance(value, str) and name not in chart} if isinstance(found, dict) else {}


def _line(entry: Entry) -> str:
    place, changes, there = entry
    return f"{place} ({_listed([change.path for change in changes], _PATHS)})" if there else f"{place} (not there)"


def _listed(texts: Sequence[str], named: int = _NAMED) -> str:
    rest = len(texts) - named
    return ", ".join(texts[:named]) + (f" and {rest} more" if rest > 0 else "")
