# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running one recorded protocol row against lab nodes: the request that is sent, and the comparison of what comes back."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import yaml
from google.protobuf import json_format

from tests.lab import api
from tests.lab.difftext import unified
from tests.lab.canonical import canonical
from tests.lab.machineconfig import ConfigError, load
from tests.lab.vector_answers import alert, as_set, check_events, is_event_stream, normal, same_diff, to_json
from tests.lab.vector_match import Mismatch, compare, text_matches
from tests.lab.vector_stage import APPLY, Stage
from tests.lab.wire import message, method
from tests.lab.wireclient import Outcome, WireClient, WireError

UNKNOWN = Path(__file__).with_name("unknown_rpcs.txt")
_HTTP: dict[str, dict[str, str | None]] = {
    "plain-ok": {}, "content-type-missing": {"content-type": None}, "method-get": {":method": "GET"}, "te-missing": {"te": None},
    "authority-empty": {":authority": ""}, "unknown-encoding": {"grpc-encoding": "foo"}, "unknown-encoding-compressed": {"grpc-encoding": "zstd"},
    "bad-timeout": {"grpc-timeout": "abc"}, "zero-timeout": {"grpc-timeout": "0S"}, "uppercase-header": {"X-Upper": "1"},
    "accept-encoding-gzip": {"grpc-accept-encoding": "gzip"},
}
_CONTENT_TYPES = {"json": "application/json", "grpc-web": "application/grpc-web"}
MUTATING = frozenset((
    "ApplyConfiguration", "Reset", "Reboot", "Shutdown", "Bootstrap", "EtcdRemoveMemberByID", "EtcdLeaveCluster", "EtcdForfeitLeadership", "MetaWrite",
    "MetaDelete", "EtcdRecover", "BlockDeviceWipe", "ServiceRestart", "GenerateClientConfiguration",
))


def left_out(path: Path = UNKNOWN) -> dict[str, str]:
    """The RPCs that the lab does not know, with the reason; only their refusals are compared."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, unused, reason = line.partition(" ")
            found[name] = reason.strip()
    return found


def reason_to_leave_out(row: dict[str, Any], unknown: dict[str, str]) -> str | None:
    """Why a row is not run: its RPC is on the list, and it is not a refusal by role, by TLS or by routing."""
    if row["rpc"] not in unknown:
        return None
    if row["code"] in ("TLS", "TCP") or row["details"].startswith("unknown ") or row["details"] in (api.NOT_AUTHORIZED, "no request forwarding"):
        return None
    return unknown[row["rpc"]]


def is_mutating(row: dict[str, Any]) -> bool:
    name = row["rpc"].rpartition("/")[2]
    if name not in MUTATING or row["code"] not in ("OK", "DEADLINE_EXCEEDED"):
        return False
    return not (name == "ApplyConfiguration" and (row["request"] or {}).get("dry_run"))


class Runner:
    """Runs rows on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def _bodies(self, row: dict[str, Any]) -> list[bytes]:
        options = row.get("options") or {}
        count = options.get("messages_sent", 1)
        if count == 0:
            return []
        if row["request_b64"] is not None:
            return [base64.b64decode(row["request_b64"])] * count
        request = row["request"]
        if request is None:
            return [b""] * count
        found = method(*(api.split(row["rpc"]) or ("", "")))
        if found is None:
            return [b""]
        if row["rpc"] == APPLY:
            return [self._apply_request(row, request)]
        filled = self._fill(request)
        if filled.get("bytes"):
            return self._chunks(str(request["bytes"]), count)
        return [json_format.ParseDict(filled, found.request()).SerializeToString()] * count

    def _chunks(self, text: str, count: int) -> list[bytes]:
        data = message("common.Data")
        if text == "<snapshot>":
            content = b"".join(data.FromString(part).bytes for part in self._snapshot())
            return [data(bytes=content[offset:offset + 1024]).SerializeToString() for offset in range(0, len(content), 1024)]
        return [data(bytes=b"garbage" * 100).SerializeToString()] * count

    def _snapshot(self) -> list[bytes]:
        import hashlib

        body = b"recorded".ljust(20480, b"\x00")
        return [message("common.Data")(bytes=body + hashlib.sha256(body).digest()).SerializeToString()]

    def _text(self, row: dict[str, Any]) -> str:
        text = self.stage.text(row["config"], other_ca="wrong-machine-ca" in row["id"])
        if "<ip:other>" in json.dumps(row):
            text = text.replace(f"https://{self.stage.addresses['cp1']}:", "https://192.0.2.7:")
        return text

    def _apply_request(self, row: dict[str, Any], request: dict[str, Any]) -> bytes:
        text = row.get("config_text")
        if str(row.get("config", "")).startswith("<gzip of"):
            text = row["config"]
        elif row.get("config"):
            text = self._text(row)
        data = str(request.get("data") or "")
        if text is not None and text.startswith("<gzip of"):
            import gzip

            raw = gzip.compress(self.stage.config("cp1").encode())
        elif text is not None:
            raw = text.encode()
        else:
            size = re.match(r"^<# x (\d+)>$", data)
            raw = b"#" * (int(size.group(1)) if size is not None else 100000)
        fields = {key: value for key, value in request.items() if key != "data"}
        built = json_format.ParseDict(fields, message("machine.ApplyConfigurationRequest")(), ignore_unknown_fields=True)
        built.data = raw
        return bytes(built.SerializeToString())

    def _fill(self, request: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(request)
        if "<member-id>" in text:
            text = text.replace("<member-id>", str(self._member()))
        return dict(json.loads(text))

    def _member(self) -> int:
        try:
            return self.stage.member_id("cp2") if self._target == "cp2" else self.stage.member_id("cp1")
        except (StopIteration, RuntimeError):
            return 170

    _target = "cp1"

    def run(self, row: dict[str, Any]) -> None:
        """Raises Mismatch when the lab differs from the row."""
        group = row["id"].split("/")[2:]
        self._target = "cp2" if row["id"].endswith(("/cp2", "cp2-second-time")) else "cp1"
        if "unknown" in row["id"] and row["rpc"].endswith("EtcdRemoveMemberByID"):
            self._target = "none"
        self._before(row)
        options = dict(row.get("options") or {})
        arguments: dict[str, Any] = {
            "metadata": [(name, self._address(value)) for name, value in row["metadata"]], "deadline": options.get("deadline"),
            "compress": bool(options.get("compress")), "half_close": options.get("half_close", True),
        }
        if row["code"] == "OPEN":
            arguments.update(read_for=2.0, quiet=0.12)
        elif options.get("deadline"):
            arguments["read_for"] = options["deadline"] + 2.0
        elif "/size/" in row["id"]:
            arguments["read_for"] = 30.0
        if group[:2] == ["wire", "http"]:
            arguments["headers"] = self._headers(group[2])
        bodies = self._bodies(row) if self._target != "none" else [message("machine.EtcdRemoveMemberByIDRequest")(member_id=170).SerializeToString()]
        outcome = self._send(row, bodies, arguments)
        self._check(row, outcome)

    def _address(self, value: str) -> str:
        return re.sub(r"<ip:(\w+)>", lambda found: self.stage.addresses.get(found.group(1), "127.0.0.9"), value)

    def _headers(self, name: str) -> dict[str, str | None]:
        if name in _HTTP:
            return _HTTP[name]
        if name.startswith("content-type-"):
            kind = name.removeprefix("content-type-")
            return {"content-type": _CONTENT_TYPES.get(kind, "application/" + kind)}
        raise Mismatch(f"the runner does not know the probe wire/http/{name}")

    def _send(self, row: dict[str, Any], bodies: list[bytes], arguments: dict[str, Any]) -> Outcome:
        stage = self.stage
        if stage.connection is not None and row["state"] in ("after-apply", "bootstrapping", "after-apply-worker", "after-other-machine-ca"):
            return stage.connection.call(row["rpc"], bodies, **arguments)
        try:
            client: WireClient = stage.connect(stage.subject, row["credentials"])
        except WireError as error:
            return Outcome(error.kind, error.text)
        with client:
            return client.call(row["rpc"], bodies, **arguments)

    def _before(self, row: dict[str, Any]) -> None:
        """What the recording had done before on the same node."""
        stage = self.stage
        if row["rpc"].endswith("MetaDelete") and row["code"] == "OK":
            stage.must(stage.subject, "MetaWrite", message("machine.MetaWriteRequest")(key=12, value=b"v"))
        if row["id"].endswith("cp2-second-time"):
            self._removed = stage.member_id("cp2")
            stage.must("cp1", "EtcdRemoveMemberByID", message("machine.EtcdRemoveMemberByIDRequest")(member_id=self._removed))
        if "forfeit-leadership" in row["id"]:
            self._prepare_forfeit(row)
        if "/apply-effect/" in row["id"]:
            self._prepare_effect(row)
        elif row["rpc"] == APPLY and row["state"].startswith("running"):
            self._prepare_base(row)

    _removed = 0

    def _prepare_forfeit(self, row: dict[str, Any]) -> None:
        stage = self.stage
        stage.until(lambda: stage.has_member("cp1") and stage.has_member("cp2"))
        if row["code"] != "OK":
            return
        wanted = row["responses"][0]["messages"][0].get("member")
        stage.subject = "cp2" if wanted == "cp1" else "cp1"
        leader = next((member["name"] for member in stage.state("cp1")["etcd"] if member["leader"]), "")
        if wanted is not None and leader != stage.subject:
            stage.must(leader or "cp1", "EtcdForfeitLeadership")

    def _prepare_effect(self, row: dict[str, Any]) -> None:
        stage, when = self.stage, row["id"].split("/")[3]
        found = re.search(r"configuration (c\d+)", json.dumps(row["responses"]))
        item = found.group(1) if found is not None else stage.good("cp1")
        base, other = stage.good("cp1"), next(name for name in reversed(stage.configs.names(stage.talos)) if "FOO: bar" in stage.configs.masked(name)
                                              and stage.configs.rows[name].get("base") != stage.good("w1"))
        sysctl = next(name for name in stage.configs.names(stage.talos) if "sysctls" in stage.configs.masked(name))
        if when == "during-try":
            stage.apply("cp1", stage.text(item if item != base else sysctl), "admin", mode=4, seconds=3600)
        elif when == "after-try":
            stage.apply("cp1", stage.text(sysctl), "admin", mode=4, seconds=1)
            stage.until(lambda: any(entry.get("what") == "reverted" for entry in stage.lab.log(node=stage.key("cp1"), event="node")))
        elif when == "after-auto-ended-try":
            stage.apply("cp1", stage.text(sysctl), "admin", mode=4, seconds=3600)
            stage.apply("cp1", stage.text(item), "admin", mode=1)
        elif when == "after-staged":
            stage.apply("cp1", stage.text(other if item == base else item), "admin", mode=3)
        else:
            stage.apply("cp1", stage.text(item), "admin", mode=2)

    def _prepare_base(self, row: dict[str, Any]) -> None:
        """The configuration that the node had in the recording is told by the difference in the answer."""
        expected = row["details"] + json.dumps(row["responses"])
        if not row.get("config") or ("@@" not in expected and "No changes." not in expected):
            return
        item = self._base_of(row) if "@@" in expected else row["config"]
        current = self.stage.base or self.stage.good("w1" if self.stage.subject == "w1" else "cp1")
        if item is not None and item != current:
            self.stage.apply(self.stage.subject, self.stage.text(item), "admin", mode=2)
            self.stage.base = item

    def _base_of(self, row: dict[str, Any]) -> str | None:
        stage = self.stage
        text = row["details"] or row["responses"][0]["messages"][0]["mode_details"]
        hunk = text[text.index("--- a"):]
        new = load(self._text(row).encode(), stage.minor)
        candidates = [stage.good("w1" if stage.subject == "w1" else "cp1"), *stage.configs.names(stage.talos)]
        from tests.lab.apply import immediate_problem

        for item in candidates:
            try:
                old = load(stage.text(item).encode(), stage.minor)
            except ConfigError:
                continue
            actual = unified(canonical(old), canonical(new))
            if "immediate mode" in text:
                actual = (immediate_problem(old, new) or "").partition("diff:\n")[2]
            if same_diff(hunk, actual, stage.addresses, stage.minor):
                return item
        return None

    def _check(self, row: dict[str, Any], outcome: Outcome) -> None:
        accepted = row.get("code_any_of") or [row["code"]]
        code = outcome.code
        if code == "OK" and row["code"] == "OPEN" and row["rpc"].endswith("/EtcdSnapshot") and outcome.messages:
            return  # the recording stopped reading before the snapshot was through
        if code not in accepted:
            raise Mismatch(f"code {code} ({outcome.details[:200]}), expected {row['code']} ({row['details'][:200]})")
        if code != row["code"] or code == "TCP":
            return
        if code == "TLS":
            if alert(outcome.details) != alert(row["details"]):
                raise Mismatch(f"TLS {outcome.details}, expected {row['details']}")
            return
        expected, actual = row["details"], outcome.details
        alike = "@@" in expected and same_diff(expected, actual, self.stage.addresses, self.stage.minor)
        if not alike and not text_matches(expected, actual, self.stage.addresses, loose=bool(row.get("config"))):
            raise Mismatch(f"text {outcome.details!r}, expected {row['details']!r}")
        if str(row.get("http_status") or "200") != outcome.http_status and not code.startswith("RST"):
            raise Mismatch(f"HTTP status {outcome.http_status}")
        if code in ("DEADLINE_EXCEEDED", "OPEN"):
            pass
        elif bool(row.get("trailers_only")) != outcome.trailers_only and not code.startswith("RST"):
            raise Mismatch(f"trailers-only is {outcome.trailers_only}")
        wanted_end = row.get("end")
        if wanted_end is not None and wanted_end != "open" and outcome.end != wanted_end:
            raise Mismatch(f"the stream ended with {outcome.end}, expected {wanted_end}")
        self._check_messages(row, outcome)

    def _check_messages(self, row: dict[str, Any], outcome: Outcome) -> None:
        varies = tuple(row.get("varies") or ())
        if "/responses" in varies:
            return
        found = method(*(api.split(row["rpc"]) or ("", "")))
        if found is None:
            if bool(row["messages"]) != bool(outcome.messages):
                raise Mismatch(f"{len(outcome.messages)} messages, expected {row['messages']}")
            return
        response = found.response
        decoded = [to_json(response.FromString(part), self.stage.minor) for part in outcome.messages]
        expected = row["responses"]
        if row["metadata"] and any(name == "nodes" for name, unused in row["metadata"]):
            decoded = [json.loads(json.dumps(item)) for item in decoded]
        if row["rpc"].endswith(("/EtcdSnapshot", "/Logs")) or any("<host data>" in json.dumps(item) for item in expected):
            if bool(outcome.messages) != bool(row["messages"]):
                raise Mismatch(f"{len(outcome.messages)} messages, expected {row['messages']}")
            return
        if row["messages"] != len(decoded) and "/messages" not in varies and not is_event_stream(row):
            raise Mismatch(f"{len(decoded)} messages, expected {row['messages']}")
        if is_event_stream(row):
            check_events(expected, decoded, self.stage.addresses, varies)
            return
        expected = [normal(item) for item in expected]
        if row["rpc"].endswith("/List"):
            decoded = self._paired(expected, decoded, varies)
        try:
            self._configs(expected, decoded)
            self._differences(expected, decoded)
            compare(expected, decoded, self.stage.addresses, varies)
        except Mismatch:
            if not (row["metadata"] and len(expected) > 0 and as_set(expected, decoded, self.stage.addresses, varies)):
                raise

    def _paired(self, expected: list[Any], decoded: list[Any], varies: tuple[str, ...]) -> list[Any]:
        """Order is not part of a List: each expected resource gets the first one that is equal to it."""
        rest, out = list(decoded), []
        for wanted in expected:
            if not isinstance(wanted, dict):
                continue
            for index, candidate in enumerate(rest):
                try:
                    compare(wanted, candidate, self.stage.addresses, varies)
                except Mismatch:
                    continue
                out.append(rest.pop(index))
                break
            else:
                return decoded
        return out + rest

    def _differences(self, expected: list[Any], decoded: list[Any]) -> None:
        """The difference of a dry run is compared by itself."""
        for wanted, got in zip(expected, decoded, strict=False):
            if not isinstance(wanted, dict):
                continue
            for first, second in zip(wanted.get("messages", ()), got.get("messages", ()), strict=False):
                text = str(first.get("mode_details", ""))
                if "@@" in text and same_diff(text, str(second.get("mode_details", "")), self.stage.addresses, self.stage.minor):
                    second["mode_details"] = first["mode_details"]

    def _configs(self, expected: list[Any], decoded: list[Any]) -> None:
        """A MachineConfig's spec is the configuration itself, byte for byte."""
        for wanted, got in zip(expected, decoded, strict=False):
            resource = wanted.get("resource") if isinstance(wanted, dict) else None
            found = re.search(r"machine configuration(?: (c\d+))?>", json.dumps(resource)) if resource else None
            if found is None:
                continue
            spec = got["resource"]["spec"]
            text = yaml.safe_load(spec["yaml_spec"]).encode()
            if not text or not base64.b64decode(spec["proto_spec"]).endswith(text):
                raise Mismatch("the YAML of the configuration is not its text")
            if found.group(1) and text != self.stage.text(found.group(1)).encode():
                raise Mismatch(f"the stored configuration is not {found.group(1)}")
            wanted["resource"]["spec"] = spec
