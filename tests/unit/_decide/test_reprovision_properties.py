# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random labels, members, answers and first readings against what must hold of every plan (design section 12, laws 5 and 10)."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.etcd_words import EtcdView, RemoveEtcdMember
from ansible_collections.ichor.talos.plugins.module_utils._decide.fallen_back import told_of
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Need, Provisioning, Refused
from ansible_collections.ichor.talos.plugins.module_utils._decide.reprovision import decide_again
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import seconds_of
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember, Partition
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Step
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._decide import reprovision_case as again
from hypothesis import given, settings
from hypothesis import strategies as st

BASE = {role: again.fallen(role) for role in ("worker", "controlplane")}

partitions = st.one_of(
    st.just(Absent()), st.just(Unknown("TimedOut", "no answer")),
    st.lists(st.tuples(st.sampled_from(["EFI", "BOOT", "META", "STATE", "EPHEMERAL", "ETCD", "data", ""]), st.sampled_from(["xfs", "", "luks", "vfat"])),
             max_size=5).map(lambda found: Present(tuple(Partition(f"/dev/sda{number}", "/dev/sda", *one) for number, one in enumerate(found)))))
members = st.lists(st.builds(
    EtcdMember, st.integers(1, 6).map(lambda number: f"{number:016x}"), st.sampled_from(["m1", "M1", "cp2", "cp3", "old", ""]),
    st.sampled_from([("https://10.0.0.1:2380",), ("https://10.0.0.2:2380",), ("https://10.0.0.3:2380",), ("https://10.0.0.7:2380",), ()]), st.just(()),
    st.booleans()), max_size=5, unique_by=lambda one: one.id)
views = st.one_of(
    st.just(Unknown("ControlPlaneUnreachable", "silent")), st.just(Absent()),
    st.builds(lambda found, healthy: Present(EtcdView(tuple(found), frozenset(f"{number:016x}" for number in healthy), ("10.0.0.2:50000",))),
              members, st.sets(st.integers(1, 6))))
readings = st.one_of(st.just({}), st.builds(again.first_reading, st.sampled_from([-30, 0, 14, 16, 3600, 7300]), st.sampled_from(["FP-two", "FP-one"]),
                                            st.sampled_from([(), ("META",)])))
disruptions = st.sampled_from(["", "m1", "cp2"])


@st.composite
def observations(draw: st.DrawFn) -> Provisioning:
    seen = BASE[draw(st.sampled_from(["worker", "controlplane", "controlplane"]))]
    record, cluster = seen.machine, seen.cluster
    assert record is not None and cluster is not None
    status = {key: value for key, value in record.status.items() if key != "wipeSeen"} | draw(readings)
    annotations = draw(st.sampled_from([{}, {}, {}, {HOLD_APPLY: "true"}]))
    machine = replace(record, status=status, annotations=annotations)  # type: ignore[arg-type]
    siblings = draw(st.sampled_from([again.PLANES, again.PLANES, again.PLANES[:1], ()]))
    open_one = draw(disruptions)
    if open_one:
        cluster = replace(cluster, status={**cluster.status, "disruption": {"machine": open_one, "step": "join", "time": "2023-11-14T00:00:00Z"}})
    seen = replace(seen, machine=machine, cluster=cluster, siblings=(machine, *siblings), everybody=(machine, *siblings), etcd=draw(views),
                   discard_etcd=draw(st.sampled_from(["", "", "prod", "test"])))
    return again.shows(seen, partitions=draw(partitions))


def labels(seen: Provisioning) -> Observed[tuple[Partition, ...]]:
    assert isinstance(seen.maintenance, Present)
    return seen.maintenance.value.partitions


def has(seen: Provisioning, *wanted: str) -> bool:
    found = labels(seen)
    return isinstance(found, Present) and any(one.label in wanted for one in found.value)


def steps_of(seen: Provisioning) -> tuple[Step, ...]:
    verdict = decide_again(seen, case.NOW)
    assert not isinstance(verdict, Need), "every reading was made"
    return told_of(verdict).plan.steps


def role(seen: Provisioning) -> str:
    assert isinstance(seen.config, Present)
    return seen.config.value.role


@settings(max_examples=150, deadline=None)
@given(observations())
def test_nothing_is_sent_to_a_disk_that_was_not_wiped_nor_against_a_hold(seen: Provisioning) -> None:
    steps = steps_of(seen)
    found = labels(seen)
    state = isinstance(found, Present) and any(one.label == "STATE" and one.filesystem not in ("", "luks") for one in found.value)
    held = seen.machine is not None and HOLD_APPLY in seen.machine.annotations
    if state or held:
        assert not steps
    if role(seen) == "controlplane" and (isinstance(found, Unknown) or has(seen, "STATE")):
        assert not steps, "unknown blocks control planes"
    if role(seen) == "worker" and not state and not held:
        assert [step.action for step in steps] in (["Reinstall"], ["Resume"]) and not steps[0].waits_for, "and only them"


@settings(max_examples=150, deadline=None)
@given(observations())
def test_a_member_is_removed_only_by_its_name_and_address_and_never_against_the_quorum(seen: Provisioning) -> None:
    removals = [step for step in steps_of(seen) if isinstance(step, RemoveEtcdMember)]
    if not removals:
        return
    assert role(seen) == "controlplane" and not has(seen, "EPHEMERAL", "ETCD", "STATE") and not isinstance(labels(seen), Unknown)
    assert len(removals) == 1 and isinstance(seen.etcd, Present)
    view = seen.etcd.value
    member = next(one for one in view.members if one.id == removals[0].member)
    assert member.name.lower() == "m1" and member.peer_urls == ("https://10.0.0.1:2380",)
    assert member.id not in view.healthy
    rest = [one for one in view.members if one.id != member.id and not one.learner]
    assert sum(1 for one in rest if one.id in view.healthy) >= len(rest) // 2 + 1


@settings(max_examples=150, deadline=None)
@given(observations())
def test_a_wiped_control_plane_goes_only_on_a_second_reading_and_only_without_its_member(seen: Provisioning) -> None:
    steps = steps_of(seen)
    if role(seen) != "controlplane" or has(seen, "EPHEMERAL", "ETCD"):
        assert not any(isinstance(step, RemoveEtcdMember) for step in steps)
        return
    now = [step for step in steps if not step.waits_for]
    if not now:
        return
    assert seen.machine is not None
    first = seen.machine.status.get("wipeSeen")
    assert isinstance(first, dict) and first["fingerprint"] == "FP-two"
    began = seconds_of(str(first["time"]))
    assert began is not None and 15 <= case.NOW - began <= 7200
    if not isinstance(now[0], RemoveEtcdMember):
        listed = seen.etcd.value.members if isinstance(seen.etcd, Present) else ()
        own = [one for one in listed if one.name.lower() == "m1" and "https://10.0.0.1:2380" in one.peer_urls]
        assert not own or not any(other.name.startswith("cp") for other in seen.siblings)
        assert isinstance(seen.etcd, Present) or seen.discard_etcd == "prod"
        open_one = seen.cluster.status.get("disruption") if seen.cluster is not None else None
        assert not isinstance(open_one, dict) or open_one["machine"] == "m1", "one disruptive step at a time"


@settings(max_examples=100, deadline=None)
@given(observations())
def test_every_refusal_says_what_is_wrong_and_what_to_do(seen: Provisioning) -> None:
    verdict = decide_again(seen, case.NOW)
    if isinstance(verdict, Refused):
        assert verdict.refusal.message.endswith(".") and verdict.refusal.hint.endswith(".") and verdict.refusal.rule
        assert "abcdef.0123456789abcdef" not in verdict.refusal.message
