# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for every observation of a converged machine, however its parts are put together (design laws 2, 3, 5, 7, 10 and section 11)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._decide.convergence import decide
from ansible_collections.ichor.talos.plugins.module_utils._decide.convergence_status import with_found
from ansible_collections.ichor.talos.plugins.module_utils._decide.convergence_words import Converging, Found, Need
from ansible_collections.ichor.talos.plugins.module_utils._decide.machine_edit_words import Etcd
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.shown import secrets_in
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import STAGES, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY
from tests.unit._decide import converging_case as case
from tests.unit._operations import world as w

CHANGES = (None, case.sysctl, case.udev, case.newer, case.hostname, case.token, case.accepted, case.both(case.newer, case.udev))
SECRETS = secrets_in(case.rendered("controlplane").text) | secrets_in(case.token(case.rendered("worker").text.encode()))


@st.composite
def observations(draw: st.DrawFn) -> Converging:
    role = draw(st.sampled_from(["worker", "controlplane"]))
    cluster: dict[str, object] = {}
    if draw(st.booleans()):
        cluster["driftPolicy"] = draw(st.sampled_from(["apply", "report"]))
    if hold := draw(st.sampled_from(["", "", "caRotation", "shutdown"])):
        cluster["hold"] = hold
    status: dict[str, object] = {}
    if removal := draw(st.sampled_from(["", "", "True", "False"])):
        status |= case.condition("Removal", removal)
    if draw(st.integers(0, 5)) == 0:
        status["appliedConfigHash"] = ""
    of_cluster = {}
    if machine := draw(st.sampled_from(["", "", "m1", "cp2"])):
        of_cluster |= case.disruption(machine, draw(st.sampled_from(["reboot", "apply", "reset"])), draw(st.sampled_from([10.0, 700.0])),
                                      draw(st.sampled_from(["boot-1", "boot-2"])))
    if draw(st.integers(0, 5)) == 0:
        of_cluster["operation"] = {"what": "restore"}
    seen = case.case(
        role, draw(st.sampled_from(CHANGES)), draw(st.sampled_from((None, None, case.as_is, case.sysctl))), status=status, cluster=cluster,
        annotations={HOLD_APPLY: draw(st.sampled_from(["true", "false"]))}, cluster_status=of_cluster, others=draw(st.sampled_from([0, 2, 3])),
        approvalState=draw(st.sampled_from(["approved", "approved", "approved", "rejected"])))
    if draw(st.booleans()):
        quorum = draw(st.sampled_from([Present(Etcd((), 0)), Present(Etcd((), 2)), Unknown("TimedOut", "no answer")]))
        seen = replace(seen, quorum=quorum, members=Present(()), named=())
    if draw(st.integers(0, 3)) == 0:
        stage = StageReading(draw(st.sampled_from(STAGES)), draw(st.booleans()), (), draw(st.sampled_from(["", "installing", "installed"])))
        seen = case.with_node(seen, stage=stage)
    if draw(st.integers(0, 5)) == 0:
        seen = case.with_node(seen, identity=w.identity(9))
    silence = draw(st.integers(0, 7))
    if silence == 0:
        seen = replace(seen, node=Unknown("TimedOut", "no answer"), compared=Absent())
    if silence == 1:
        seen = replace(seen, compared=Unknown("PermissionDenied", "not authorized"))
    return replace(seen, allow_reboot=draw(st.booleans()), refused_at_once=draw(st.booleans()))


def found(seen: Converging) -> Found | None:
    verdict = decide(seen, case.NOW)
    return verdict if isinstance(verdict, Found) else None


@settings(max_examples=120, deadline=None)
@given(observations())
def test_what_is_sent_has_passed_every_hold(seen: Converging) -> None:
    verdict = found(seen)
    if verdict is None or not verdict.steps:
        return
    machine, cluster = seen.machine, seen.cluster
    assert cluster is not None and isinstance(seen.compared, Present) and isinstance(seen.node, Present)
    assert machine.spec["approvalState"] == "approved" and machine.status["appliedConfigHash"]
    assert seen.node.value.identity == w.identity(1) and not seen.compared.value.in_sync and not seen.compared.value.authority
    assert machine.annotations[HOLD_APPLY] != "true" and cluster.spec.get("driftPolicy") != "report" and not cluster.spec.get("hold")
    assert not cluster.status.get("operation") and not any(
        entry["type"] == "Removal" and entry["status"] == "True"  # type: ignore[index,call-overload]
        for entry in machine.status.get("conditions") or ())  # type: ignore[union-attr]
    assert seen.node.value.stage.stage not in ("resetting", "shuttingDown", "rebooting", "upgrading", "installing")


@settings(max_examples=120, deadline=None)
@given(observations())
def test_a_step_under_the_lock_waits_for_another_machine_and_a_reboot_has_leave_and_quorum(seen: Converging) -> None:
    verdict = found(seen)
    if verdict is None:
        return
    assert [step.action for step in verdict.steps] in ([], ["ApplyDrift"], ["Reboot"], ["ApplyDrift", "Reboot"])
    disruption = seen.cluster.status.get("disruption") if seen.cluster is not None else None
    by_other = isinstance(disruption, dict) and disruption["machine"] != "m1"
    control_plane = seen.machine.spec["role"] == "controlplane"
    for step in verdict.steps:
        assert step.locked == (control_plane or step.action == "Reboot")
        assert any(wait.target == "cp2" for wait in step.waits_for) == (step.locked and by_other)
        if step.action == "Reboot":
            assert seen.allow_reboot
            assert not control_plane or by_other or isinstance(seen.quorum, Present) and seen.quorum.value.healthy_others >= 1
    if len(verdict.steps) == 2:
        assert verdict.steps[1].waits_for


@settings(max_examples=120, deadline=None)
@given(observations())
def test_the_condition_is_true_only_in_step_and_no_secret_is_in_what_is_told(seen: Converging) -> None:
    verdict = found(seen)
    if verdict is None:
        assert isinstance(decide(seen, case.NOW), Need)
        return
    if verdict.ready:
        assert isinstance(seen.compared, Present) and seen.compared.value.in_sync and isinstance(seen.node, Present)
        assert seen.node.value.stage.stage == "running" and not verdict.steps
    assert verdict.settled != verdict.soon
    text = " ".join([verdict.message, *(step.why for step in verdict.steps), *(refusal.message for refusal in verdict.refusals),
                     *(warning.message for warning in verdict.warnings)])
    assert not [secret for secret in SECRETS if secret in text]


@settings(max_examples=120, deadline=None)
@given(observations())
def test_what_is_written_is_written_once(seen: Converging) -> None:
    verdict = found(seen)
    if verdict is None:
        return
    once = with_found(dict(seen.machine.status), seen, verdict, case.NOW)
    assert with_found(once, seen, verdict, case.NOW + 1) == once
    silent = any(entry["type"] == "NodeReachable" for entry in once.get("conditions") or ())  # type: ignore[union-attr,attr-defined]
    assert silent == verdict.silent
