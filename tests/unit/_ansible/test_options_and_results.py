# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options, results, and the store of a check run."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
from ansible_collections.ichor.talos.plugins.module_utils._ansible.overlay import Overlay
from ansible_collections.ichor.talos.plugins.module_utils._ansible.redaction import MASK, Redactor
from ansible_collections.ichor.talos.plugins.module_utils._ansible.result import LARGEST_RESULT, UNREACHABLE, fitted, of_error, of_outcome
from ansible_collections.ichor.talos.plugins.module_utils._ansible.run_store import RunStore
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import CheckModeWrite, Failure, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Difference, MachineRow, Outcome, Transition
from ansible_collections.ichor.talos.plugins.module_utils._model.plain_files import LARGEST_FILE
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan, Refusal, Step, Target
from ansible_collections.ichor.talos.plugins.module_utils._model.record_uid import record_uid
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Event, Listing, Record, Ref
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing

from tests.unit.machine_world import Store as MemoryStore


@dataclass(frozen=True)
class Create(Step):
    action: ClassVar[str] = "create_machine"


PLAN = Plan(steps=(Create(Target(name="one"), "it is new"),))
REFUSED = Plan(refusals=(Refusal(Target(name="one"), "DiskNotFound", "No disk is called sdz.", "Name one of sda, sdb."),))
ALWAYS = {"changed", "reason", "msg", "refusals", "plan", "plan_id", "machines", "transitions", "events", "blocked", UNREACHABLE, "waiting_for",
          "requeue_after", "interrupted"}


def options(clear_text: object = None, **values: object) -> tuple[Options, Redactor]:
    redactor = Redactor()
    return Options(values, redactor, clear_text), redactor  # type: ignore[arg-type]


def test_options_are_read_by_type() -> None:
    given, dummy = options(text="a", flag=True, number=1.5, count=3, names=["x", "y"], map={"k": 1}, maps=[{"a": 1}], unset=None)
    assert (given.text("text"), given.flag("flag"), given.number("number"), given.integer("count")) == ("a", True, 1.5, 3)
    assert given.texts("names") == ("x", "y") and given.mapping("map") == {"k": 1} and given.maps("maps") == ({"a": 1},)
    assert given.text("unset", "d") == "d" and given.flag("unset", True) and given.texts("unset") == () and "unset" not in given
    with pytest.raises(KeyError):
        given.text("misspelt")


def test_machine_and_machines_are_one_list_without_repeats() -> None:
    assert options(machine="a", machines=["b", "a", " "])[0].machines() == ("a", "b")
    assert options(machine=None, machines=None)[0].machines() == ()


@pytest.mark.parametrize("given", [
    {"fingerprint": ""}, {"fingerprint": "  "}, {"fingerprint": "the one on its console"}, {"uuid": ""}, {"expect_plan_id": ""}, {"machine": ""},
    {"machines": ["", " "]}, {"select": ""},
    {"machine": "../prod-1"}, {"machine": "prod-*"}, {"machine": "Prod_1"}, {"machines": ["a", "a/../b"]}, {"machine": "x" * 254},
    {"machine": "a\0"}, {"config_dir": "configs\0"}, {"install": {"disk": "/dev/sda\0"}}, {"labels": {"a\0": "b"}}, {"addresses": ["10.0.0.1\0"]},
], ids=repr)
def test_a_value_that_no_option_can_have_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(TalosError) as caught:
        options(**given)
    assert caught.value.reason == "InvalidInput" and next(iter(given)).removesuffix("s") in caught.value.message and caught.value.hint


def test_what_was_not_given_is_not_blank() -> None:
    options(fingerprint=None, uuid=None, machine=None, machines=[], select=None, hostname="", cluster="", labels={}, config_content="a\0b")


def test_a_step_that_was_found_done_is_no_change() -> None:
    values = of_outcome(Outcome(plan=PLAN, found_done=True, message="Done already."), [PLAN], check=False, fail_on=()).values
    assert values["changed"] is False and values["msg"] == "Done already."


def test_every_refusal_of_one_operation_is_told() -> None:
    second = Refusal(Target(name="one"), "HostnameTaken", "The host name is taken.", "Choose another one.")
    result = of_outcome(Outcome(refused=True, plan=Plan(refusals=(*REFUSED.refusals, second))), (), check=False, fail_on=())
    assert result.failed and result.values["reason"] == "DiskNotFound"
    assert result.values["msg"] == "No disk is called sdz. Name one of sda, sdb. The host name is taken. Choose another one."


def test_refusals_are_data_beside_the_text_and_a_machine_does_not_repeat_them() -> None:
    row = MachineRow("one", reason="DiskNotFound", message="No disk is called sdz. Name one of sda, sdb.")
    told = {"kind": "TalosMachine", "target": "one", "reason": "DiskNotFound", "message": "No disk is called sdz.", "hint": "Name one of sda, sdb."}
    failed = of_outcome(Outcome(refused=True, plan=REFUSED, machines=(row,)), (), check=False, fail_on=()).values
    assert failed["refusals"] == [told] and json.dumps(failed).count("No disk is called sdz.") == 2
    listed = of_outcome(Outcome(plan=REFUSED, machines=(row,), blocked=("one",)), (), check=False, fail_on=()).values
    assert listed["refusals"] == [told] and listed["machines"][0]["message"] == row.message  # type: ignore[index, call-overload]


def test_an_error_is_one_of_the_refusals_and_so_is_what_its_plan_refused() -> None:
    error = TalosError("TimedOut", "It did not answer.", "Look at it.", detail="rpc\n late", failure=Failure(node="10.0.0.1:50000"))
    first, second = of_error(error, [REFUSED]).values["refusals"]  # type: ignore[misc]
    assert first == {"kind": "", "target": "10.0.0.1:50000", "reason": "TimedOut", "message": "It did not answer. (rpc late)", "hint": "Look at it."}
    assert second["reason"] == "DiskNotFound"  # type: ignore[index, call-overload]


@pytest.mark.parametrize(("outcome", "changed"), [
    (Outcome(plan=PLAN, interrupted=True), False),
    (Outcome(plan=PLAN, interrupted=True, executed=(PLAN.steps[0].id,)), True),
    (Outcome(plan=PLAN + REFUSED), False),
    (Outcome(plan=PLAN + REFUSED, executed=(PLAN.steps[0].id,)), True),
    (Outcome(plan=PLAN), True),
], ids=["stopped before", "stopped after", "refused when its turn came", "refused afterwards", "waits"])
def test_a_step_that_a_run_was_kept_from_is_no_change(outcome: Outcome, changed: bool) -> None:
    assert of_outcome(outcome, [PLAN], check=False, fail_on=()).values["changed"] is changed


def test_what_was_written_before_an_error_is_a_change() -> None:
    store = RunStore(MemoryStore(), Redactor(), check=False)
    assert not store.wrote
    record = store.create(ONE)
    assert store.wrote
    assert of_error(TalosError("RecordChanged", "It changed.", "Again."), [PLAN], changed=store.wrote).values["changed"] is True
    other = RunStore(MemoryStore(record), Redactor(), check=False)
    with pytest.raises(TalosError):
        other.create(record)
    assert not other.wrote


def test_timing_takes_what_is_given_and_refuses_nonsense() -> None:
    assert options(timing={"call": 3, "apply": None})[0].timing() == Timing(call=3.0)
    assert options(timing=None)[0].timing() == Timing()
    with pytest.raises(TalosError, match="timing.call is 0"):
        options(timing={"call": 0})[0].timing()


@pytest.mark.parametrize(("given", "name"), [
    ({"call": -1.0}, "call"), ({"settle": float("nan")}, "settle"), ({"apply": float("inf")}, "apply"), ({"lock_wait": 1e300}, "lock_wait"),
    ({"drain": 604801.0}, "drain"), ({"lock_duration": 1e-9}, "lock_duration"), ({"lock_renewal": 31.0}, "lock_renewal"),
    ({"sending_fresh": 59.0}, "sending_fresh"),
    ({"call": "5s"}, "call"), ({"call": True}, "call"), ({"call": [5]}, "call"), ({"call": ""}, "call"),
    ({"apply": 91.0}, "apply"), ({"follow_stuck": 1.0}, "follow_stuck"),
])
def test_timing_that_cannot_work_is_refused_with_the_name_of_the_option(given: dict[str, object], name: str) -> None:
    with pytest.raises(TalosError, match=fr"timing\.{name}\b") as caught:
        options(timing=given)[0].timing()
    assert caught.value.reason == "InvalidInput" and len(caught.value.hint) > 10


def test_a_misspelt_timing_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TalosError, match="timing has no 'settel'") as caught:
        options(timing={"settel": 1})[0].timing()
    assert caught.value.reason == "InvalidInput" and "settle," in caught.value.hint


def test_timing_that_a_template_made_a_text_is_read() -> None:
    assert options(timing={"call": "2.5", "settle": " 3 "})[0].timing() == Timing(call=2.5, settle=3.0)


def test_timing_at_its_bounds_is_taken() -> None:
    given = {"call": 1e-3, "lock_renewal": 30.0, "lock_duration": 60.0, "apply": 604800.0, "sending_fresh": 604800.0}
    assert options(timing=given)[0].timing() == Timing(**given)


def test_a_secret_text_wins_over_a_file_and_is_remembered(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("token: from-the-file", encoding="utf-8")
    given, redactor = options(config_content="token: from-the-option", config_file=str(file))
    assert given.secret_content("config_content", "config_file") == b"token: from-the-option"
    assert redactor.text("from-the-option") == MASK
    given, redactor = options(config_content=None, config_file=str(file))
    assert given.secret_content("config_content", "config_file") == b"token: from-the-file"
    assert redactor.text("from-the-file") == MASK
    assert options(config_content=None, config_file=None)[0].secret_content("config_content", "config_file") is None


def test_a_vaulted_file_is_decrypted_by_the_plugin_or_told(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(b"$ANSIBLE_VAULT;1.1;AES256\n6162")
    given, dummy = options(lambda path: b"token: clear " + path.encode(), config_content=None, config_file=str(file))
    assert given.secret_content("config_content", "config_file") == b"token: clear " + str(file).encode()
    for values in ({"config_content": None, "config_file": str(file)}, {"config_content": "$ANSIBLE_VAULT;1.1;AES256\n61", "config_file": None}):
        with pytest.raises(TalosError, match="ansible-vault") as caught:
            options(**values)[0].secret_content("config_content", "config_file")
        assert caught.value.reason == "SecretsUnavailable"


def test_files_that_cannot_be_read_are_told_by_name(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for path in (*(str(tmp_path / name) for name in ("none", "", "large", "pipe", "loop")), "/dev/zero", "/dev/stdin\0"):
        with pytest.raises(TalosError) as caught:
            options()[0].read_file(path, "config_file")
        assert caught.value.reason == "InvalidInput" and path in caught.value.message and "config_file" in caught.value.message


@pytest.mark.parametrize("check", [False, True])
def test_changed_and_plan_are_the_same_in_both_modes(check: bool) -> None:
    executed = () if check else (PLAN.steps[0].id,)
    result = of_outcome(Outcome(plan=PLAN, executed=executed), [PLAN], check=check, fail_on=())
    assert ALWAYS <= result.values.keys() and not result.failed
    assert result.values["changed"] is True and result.values["plan_id"] == PLAN.id
    assert result.values["plan"] == [PLAN.steps[0].describe()]


def test_every_path_has_the_same_keys() -> None:
    error = of_error(TalosError("TimedOut", "It did not answer.", "Look at it.", failure=Failure(node="10.0.0.1:50000", code="DEADLINE_EXCEEDED")), [])
    refused = of_outcome(Outcome(plan=REFUSED, refused=True), [REFUSED], check=True, fail_on=())
    assert error.values.keys() == ALWAYS | {"failure"}
    assert refused.values.keys() == ALWAYS | {"failure"}
    assert error.failed and refused.failed
    assert error.values["plan_id"] == "" and error.values["msg"] == "It did not answer. Look at it."
    assert error.values["failure"] == {"node": "10.0.0.1:50000", "rpc": "", "code": "DEADLINE_EXCEEDED", "step": "", "retryable": False, "last_seen": ""}
    assert (refused.values["reason"], refused.values["msg"]) == ("DiskNotFound", "No disk is called sdz. Name one of sda, sdb.")
    assert refused.values["changed"] is False


def test_a_foreign_text_is_only_a_detail_on_one_line() -> None:
    result = of_error(TalosError("CallFailed", "The call failed.", "Try again.", detail="rpc\n error"), [])
    assert result.values["msg"] == "The call failed. (rpc error) Try again."
    again = of_error(TalosError("StoreUnreachable", "It cannot be read: Not a directory.", "See to it.", detail="Not a directory"), [])
    assert again.values["msg"] == "It cannot be read: Not a directory. See to it."


@pytest.mark.parametrize(("outcome", "check", "msg"), [
    (Outcome(), False, "Nothing to do."),
    (Outcome(waiting_for=("one: the lock",)), False, "Nothing to do now; waiting for one: the lock."),
    (Outcome(blocked=("one", "two"), unreachable=("three",)), True, "Nothing is done; held: one, two; out of reach: three."),
    (Outcome(plan=PLAN, blocked=("two",)), True, "1 step to do; held: two."),
    (Outcome(plan=PLAN, executed=("x",), unreachable=tuple(f"m{n}" for n in range(12))), False,
     "1 of 1 step done; out of reach: m0, m1, m2, m3, m4, m5, m6, m7, m8, m9 and 2 more."),
])
def test_the_message_says_what_is_held_beside_what_is_done(outcome: Outcome, check: bool, msg: str) -> None:
    assert of_outcome(outcome, [], check=check, fail_on=()).values["msg"] == msg


@pytest.mark.parametrize(("name", "outcome", "reason"), [
    ("blocked", Outcome(blocked=("one",)), "BlockedMachines"),
    ("unreachable", Outcome(unreachable=("one",)), "UnreachableMachines"),
    ("drift", Outcome(machines=(MachineRow("one", reason="Drifted"),)), "DriftFound"),
])
def test_fail_on(name: str, outcome: Outcome, reason: str) -> None:
    assert not of_outcome(outcome, [], check=False, fail_on=()).failed
    assert not of_outcome(Outcome(), [], check=False, fail_on=(name,)).failed
    result = of_outcome(outcome, [], check=False, fail_on=(name,))
    assert result.failed and result.values["reason"] == reason and "one" in str(result.values["msg"])


def test_the_diff_is_the_plan_and_the_records() -> None:
    result = of_outcome(Outcome(plan=PLAN, differences=(Difference({"a": 1}, {"a": 2}, "TalosMachine one"),)), [], check=True, fail_on=())
    prepared, record = result.values["diff"]  # type: ignore[misc]
    assert "create machine: one" in prepared["prepared"]  # type: ignore[index, call-overload]
    assert record == {"before": {"a": 1}, "after": {"a": 2}, "before_header": "TalosMachine one", "after_header": "TalosMachine one"}
    assert "diff" not in of_outcome(Outcome(), [], check=True, fail_on=()).values


def test_a_plan_that_was_shown_as_lines_is_not_in_the_diff_once_more() -> None:
    outcome = Outcome(plan=PLAN, differences=(Difference({"a": 1}, {"a": 2}, "TalosMachine one"),))
    (record,) = of_outcome(outcome, [], check=True, fail_on=(), shown=True).values["diff"]  # type: ignore[misc]
    assert "prepared" not in record  # type: ignore[operator]
    assert "diff" not in of_outcome(Outcome(plan=PLAN), [], check=True, fail_on=(), shown=True).values


def test_a_module_cannot_overwrite_a_common_key() -> None:
    values = of_outcome(Outcome(extra={"changed": True, "unreachable": ["x"], "found": [1]}), [], check=False, fail_on=()).values
    assert values["changed"] is False and "unreachable" not in values and values["found"] == [1]


def test_events_and_transitions_are_plain_data() -> None:
    values = of_outcome(Outcome(events=(Event(Ref(MACHINE, "one"), "Normal", "NodeJoined", "It joined."),),
                                transitions=(Transition("one", "stage", "booting", "running"),)), [], check=False, fail_on=()).values
    assert values["events"] == [{"object": "TalosMachine/one", "type": "Normal", "reason": "NodeJoined", "message": "It joined.", "time": ""}]
    assert values["transitions"] == [{"machine": "one", "what": "stage", "before": "booting", "after": "running"}]


@pytest.mark.parametrize("large", [
    {"diff": [{"prepared": "x" * LARGEST_RESULT}]},
    {"machines": [{"name": "x" * 1000}] * 1000},
    {"records": {"a": "x" * LARGEST_RESULT}},
    {"msg": "x" * (2 * LARGEST_RESULT)},
    {"machines": [{"name": "x" * 100_000}] * 100, "records": {"a": "x" * LARGEST_RESULT}},
])
def test_a_result_is_cut_to_size_and_says_so(large: dict[str, object]) -> None:
    values = {**of_outcome(Outcome(), [], check=False, fail_on=()).values, **large}
    cut = fitted(values)  # type: ignore[arg-type]
    assert len(json.dumps(cut)) <= LARGEST_RESULT and cut["truncated"] is True
    assert {"changed", "reason", "plan_id", "failed"} & cut.keys() >= {"changed", "reason", "plan_id"}


def test_of_a_large_result_every_machine_stays_with_stage_and_reason() -> None:
    machines = [{"name": f"m{number}", "stage": "running", "reason": "NodeUnreachable", "message": "x" * 2000} for number in range(400)]
    records = [{"metadata": {"name": f"m{number}"}, "status": {"text": "y" * 3000}} for number in range(400)]
    cut = fitted({"msg": "", "machines": machines, "records": records, "blocked": [], "refusals": [{"message": "z" * 300}] * 400})  # type: ignore[dict-item]
    assert len(json.dumps(cut)) <= LARGEST_RESULT and cut["truncated"] is True
    rows = cut["machines"]
    assert isinstance(rows, list) and [(row["name"], row["stage"], row["reason"]) for row in rows] == [  # type: ignore[index,call-overload]
        (f"m{number}", "running", "NodeUnreachable") for number in range(400)]


def test_a_small_result_is_left_alone() -> None:
    values = of_outcome(Outcome(), [], check=False, fail_on=()).values
    assert fitted(values) == values


ONE = Record(MACHINE, "one", {"clusterRef": "c", "identity": {"uuid": "a1b2c3d4-0001-4000-8000-000000000001"}}, {"stage": "maintenance"})
TWO = Record(MACHINE, "two", {"clusterRef": "c"}, resource_version="7")


def test_would_be_records_lie_over_the_real_ones_and_only_in_check_mode(tmp_path: Path) -> None:
    inner = MemoryStore(TWO)
    overlay = Overlay(str(tmp_path), "/p/ichor")
    assert overlay.empty
    overlay.write([ONE], [Ref(MACHINE, "two")])
    check = RunStore(inner, Redactor(), check=True, overlay=overlay)
    real = RunStore(inner, Redactor(), check=False, overlay=overlay)
    found = check.get(MACHINE, "one")
    assert found is not None and (found.spec, found.status) == (ONE.spec, ONE.status)
    assert found.uid == record_uid(MACHINE, "one", ONE.spec)
    assert check.get(MACHINE, "two") is None
    assert [record.name for record in check.list(MACHINE).records] == ["one"]
    assert [record.name for record in real.list(MACHINE).records] == ["two"]
    assert real.get(MACHINE, "one") is None
    assert Overlay(str(tmp_path), "/other/ichor").empty


def test_nothing_is_written_in_check_mode() -> None:
    inner = MemoryStore(TWO)
    store = RunStore(inner, Redactor(), check=True)
    for write in (lambda: store.create(ONE), lambda: store.update(TWO, {}), lambda: store.delete(TWO),
                  lambda: store.patch_status(TWO.ref, "", dict), lambda: store.record_event(Event(TWO.ref, "Normal", "NodeJoined", "x")),
                  lambda: store.leases.acquire("c", "h", "p", 60.0)):
        with pytest.raises(CheckModeWrite):
            write()
    assert [record.name for record in inner.list(MACHINE).records] == ["two"]


def test_a_bundle_that_is_read_is_remembered() -> None:
    class WithBundle(MemoryStore):
        def bundle(self, name: str) -> bytes:
            return b"trustdinfo:\n  token: bundle-token-value\n"

        def list(self, kind: str) -> Listing:
            return Listing()

    redactor = Redactor()
    RunStore(WithBundle(), redactor, check=False).bundle("prod")
    assert redactor.text("bundle-token-value") == MASK
