# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs one operation as an Ansible module (design sections 18 and 20).

A module file says what it needs and nothing else::

    from ansible_collections.ichor.talos.plugins.module_utils._ansible.arguments import Spec
    from ansible_collections.ichor.talos.plugins.module_utils._ansible.options import Options
    from ansible_collections.ichor.talos.plugins.module_utils._ansible.run import run_module
    from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_nodes import open_nodes
    from ansible_collections.ichor.talos.plugins.module_utils._ansible.with_store import open_store
    from ansible_collections.ichor.talos.plugins.module_utils._operations.discover import Request, run

    SPEC = Spec(own={…}, groups=("store", "cluster", "plan", "timing", "fleet", "network"))

    def build_request(options: Options) -> Request: …

    def main() -> None:
        run_module(SPEC, build_request, run, needs=("yaml", "grpc", "google.protobuf", "cryptography"),
                   nodes=open_nodes, store=open_store)

What is needed only once there is a plan, a store or a result is imported then: the first packet does not wait for it.

`with_nodes`, `with_store` and `with_credentials` are the only files of this room that import another room than `_model`; a
module that does not name them does not pack those rooms.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import pwd
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

from ansible.module_utils.basic import AnsibleModule

from .._model.errors import TalosError
from .._model.kubeconfig import Kubeconfig
from .._model.ports import Actor, CredentialsSource, Gate, Networks, Nodes, Ports, Store, Whereabouts, Workloads, no_credentials
from .arguments import RECORD_OPTIONS, SECRET_OPTIONS, Spec
from .channel import Channel, Hello, path_from_environment
from .clock import SystemClock
from .libraries import require
from .no_nodes import NoNodes
from .options import Options
from .redaction import Redactor
from .stopping import Stop

if TYPE_CHECKING:
    from .._model.outcome import Outcome
    from .._model.plan import Plan
    from .gate import RunGate
    from .overlay import Overlay
    from .result import Result
    from .run_store import RunStore
    from .saved_plan import SavedPlan

R = TypeVar("R")
VERBOSITY_OF_TRACEBACKS = 3
#: Keys of a result in which nodes and libraries may be quoted, with a part of a secret as well.
_TOLD = frozenset({"msg", "refusals", "failure", "plan", "machines", "transitions", "events"})


@dataclass(frozen=True)
class Setting:
    """What the openers of nodes, store and credentials are told. `store_path` is '' where nothing names one.

    `store_kind` is directory or kubernetes, '' without a store. `would_exist` says that an earlier task of this check run would have
    made the store.
    """

    options: Options
    check: bool
    clock: SystemClock
    would_exist: bool = False
    store_kind: str = ""
    store_path: str = ""
    state_path: str = ""
    allow_loopback: bool = False
    clear_text: Callable[[str], bytes] | None = None


OpenNodes = Callable[[Setting, "Store | None"], Nodes]
OpenStore = Callable[[Setting], Store]
OpenCredentials = Callable[[Setting, "Store | None"], CredentialsSource]


class Kubernetes(Whereabouts, Workloads, Protocol):
    """Both ports to the Kubernetes of managed clusters."""


OpenWorkloads = Callable[[Store, SystemClock, bool, "Kubeconfig | None"], Kubernetes]
OpenNetworks = Callable[[bool], Networks]


class TalosModule(AnsibleModule):  # type: ignore[misc, unused-ignore]
    """AnsibleModule whose own failures (of arguments) carry the same keys as ours."""

    def fail_json(self, msg: str, **details: object) -> NoReturn:
        from .result import of_error

        wrong = TalosError("InvalidInput", f"{msg.rstrip().rstrip('.')}.", f"Correct the task; ansible-doc ichor.talos.{self.short_name} lists the options.")
        values: dict[str, object] = dict(of_error(wrong, ()).values)
        super().fail_json(**{**values, **details, "msg": msg if "reason" in details else values["msg"]})
        raise SystemExit(1)

    def leave(self, result: Result, redactor: Redactor) -> NoReturn:
        """Print the result, masked and cut to size, and end."""
        from .result import fitted

        values: dict[str, object] = dict(fitted({key: redactor.data(value, foreign=key in _TOLD) for key, value in result.values.items()}))
        values["invocation"] = {"module_args": redactor.data(self.params)}
        self.no_log_values.update(redactor.secrets)
        if result.failed:
            self.fail_json(str(values.pop("msg")), **values)
        self.exit_json(**values)
        raise SystemExit(0)

    @property
    def short_name(self) -> str:
        return str(getattr(self, "_name", "") or "module").rpartition(".")[2]


def run_module(spec: Spec, build_request: Callable[[Options], R], operation: Callable[[R, Ports, Gate], Awaitable[Outcome]], *,
               needs: Sequence[str] = (), nodes: OpenNodes | None = None, store: OpenStore | None = None,
               credentials: OpenCredentials | None = None, workloads: OpenWorkloads | None = None, networks: OpenNetworks | None = None,
               needs_store: bool = False) -> NoReturn:
    """Parse, check libraries, open the ports, run the operation once, print the result. Never returns, never a traceback.

    `needs` names the importable packages that this module cannot do without; `needs_store` that it makes no sense store-less;
    `workloads` asks the Kubernetes of managed clusters where their machines are, and drains them; `networks` is for the container networks of
    clusters.
    """
    stop = Stop()
    stop.on_signals()
    module = TalosModule(**spec.constraints())
    run = _Run(module, spec, stop, workloads, networks)
    result = run.result(build_request, operation, needs, nodes, store, credentials, needs_store)
    stop.done()
    for warning in run.unseen_warnings():
        module.warn(warning)
    run.close()
    module.leave(result, run.redactor)


class _Run:
    """One run of one module."""

    def __init__(self, module: TalosModule, spec: Spec, stop: Stop, workloads: OpenWorkloads | None, networks: OpenNetworks | None = None) -> None:
        self.redactor = Redactor()
        self._module = module
        self._spec = spec
        self._stop = stop
        self._clock = SystemClock()
        self._workloads = workloads
        self._networks = networks
        self._channel: Channel | None = None
        self._gate: RunGate | None = None
        self._store: RunStore | None = None
        self._nodes: Nodes = NoNodes()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def unseen_warnings(self) -> list[str]:
        """The plan's warnings where there was no channel to show them on."""
        plans = self._plans if self._channel is None else []
        return [self.redactor.foreign(f"{warning.target}: {warning.message}") for plan in plans[:1] for warning in plan.warnings]

    def show(self, line: str) -> None:
        """One line for the person, masked; without the action plugin nobody sees lines."""
        if self._channel is not None:
            self._channel.line(self.redactor.foreign(line))

    def result(self, build_request: Callable[[Options], R], operation: Callable[[R, Ports, Gate], Awaitable[Outcome]],
               needs: Sequence[str], nodes: OpenNodes | None, store: OpenStore | None, credentials: OpenCredentials | None,
               needs_store: bool) -> Result:
        """The result, whatever happens."""
        try:
            hello = self._greet()
            require(needs, self._module.short_name)
            options = self._options(hello)
            setting, ports_store, overlay = self._world(options, hello, store, needs_store)
            self._store = ports_store
            request = build_request(options)
            saved = self._saved(options, setting)

            def gate(plan: Plan) -> Plan:
                if self._gate is None:
                    self._gate = self._make_gate(options, saved)
                return self._gate(plan)

            source = credentials(setting, ports_store) if credentials is not None else no_credentials
            outcome = asyncio.run(self._perform(request, operation, setting, nodes, ports_store, source, hello, gate))
            if overlay is not None:
                overlay.write(outcome.would_be, outcome.would_delete)
            self._keep_plans(options, outcome.executed, hello.run or _holder())
            fail_on = options.texts("fail_on") if "fail_on" in options else ()
            from .result import of_outcome

            return of_outcome(outcome, self._plans, check=self._module.check_mode, fail_on=fail_on, shown=self._channel is not None,
                              held=self._gate.refused if self._gate is not None else None)
        except TalosError as error:
            return self._failed(error)
        except (asyncio.CancelledError, KeyboardInterrupt):
            return self._failed(TalosError("Interrupted", f"Stopped by {self._stop.why or 'request'} before the end.",
                                           "Run it again; what was done is seen and not repeated."))
        except BaseException as error:
            return self._unexpected(error)

    def _failed(self, error: TalosError) -> Result:
        from .result import of_error

        return of_error(error, self._plans, changed=self._nodes.written or self._store is not None and self._store.wrote)

    @property
    def _plans(self) -> list[Plan]:
        """Every plan that was decided so far."""
        return self._gate.plans if self._gate is not None else []

    def _unexpected(self, error: BaseException) -> Result:
        if getattr(self._module, "_verbosity", 0) >= VERBOSITY_OF_TRACEBACKS:
            for line in traceback.format_exc().splitlines():
                self.show(line)
        text = " ".join(str(error).split()).rstrip(".")
        return self._failed(TalosError("InternalError", f"Something unexpected happened in {self._module.short_name}: {type(error).__name__}: {text}.",
                                       "This is a fault of the collection; please report it with the output of -vvv."))

    def _greet(self) -> Hello:
        path = path_from_environment()
        if not path:
            login = _login()
            return Hello(by=login, via=login)
        self._channel = Channel(path, lambda: self._stop.request("the end of ansible-playbook"))
        hello = self._channel.hello
        if hello.overlay and not self._module.check_mode:
            raise TalosError("CheckRunOnly", "A run that is not in check mode was given the would-be records of a check run.",
                             "This is a fault of the collection; please report it.")
        return hello

    def _options(self, hello: Hello) -> Options:
        values: dict[str, object] = dict(self._module.params)
        for name, secret in hello.secrets.items():
            if name in values:
                values[name] = secret
        for name in SECRET_OPTIONS & values.keys():
            if isinstance(values[name], str):
                self.redactor.add_document(str(values[name]))
        return Options(values, self.redactor, self._channel.clear_text if self._channel is not None else None)

    def _world(self, options: Options, hello: Hello, open_store: OpenStore | None, needs_store: bool) -> tuple[Setting, RunStore | None, Overlay | None]:
        module = self._module
        setting = Setting(options=options, check=module.check_mode, clock=self._clock, clear_text=self._channel.clear_text if self._channel else None,
                          allow_loopback="allow_loopback" in options and options.flag("allow_loopback"))
        kind = _store_kind(options, needs_store) if open_store is not None else ""
        if open_store is None or not kind:
            return setting, None, None
        from .overlay import Overlay
        from .run_store import RunStore

        if kind == "kubernetes":
            setting = replace(setting, store_kind=kind)
            place = "kubernetes " + json.dumps([options.text(name) for name in ("store_kubeconfig", "store_context", "store_namespace")])
        else:
            place = options.text("store_path") or hello.store_path
            if not place:
                raise TalosError("InvalidInput", "There is no store_path, and no playbook beside which the store would be.",
                                 "Set store_path, or ICHOR_STORE_PATH, to the folder of the records.")
            place = os.path.abspath(place)
            setting = replace(setting, store_kind=kind, store_path=place, state_path=options.text("state_path"))
        overlay = Overlay(hello.overlay, place) if module.check_mode and hello.overlay else None
        setting = replace(setting, would_exist=overlay is not None and not overlay.empty)
        return setting, RunStore(open_store(setting), self.redactor, check=module.check_mode, overlay=overlay), overlay

    def _saved(self, options: Options, setting: Setting) -> list[SavedPlan] | None:
        """The plans of this module in the plan file; refuses a place where no plan may be saved."""
        if "save_plan" in options or "plan_file" in options:
            from . import saved_plan

            if "save_plan" in options:
                saved_plan.refuse_target(options.text("save_plan"), (setting.store_path, setting.state_path))
            if "plan_file" in options:
                return [plan for plan in saved_plan.read(options.text("plan_file")) if plan.module == self._module.short_name]
        return None

    def _make_gate(self, options: Options, saved: list[SavedPlan] | None) -> RunGate:
        from .gate import RunGate

        module = self._module
        expect = options.text("expect_plan_id") if "expect_plan_id" in options else None
        return RunGate(module.short_name, check=module.check_mode, show=self.show, expect=expect, saved=saved,
                       tell_empty="plan" in self._spec.groups)

    def _keep_plans(self, options: Options, executed: Sequence[str], run: str) -> None:
        from . import saved_plan

        if "save_plan" in options and self._plans:
            saved_plan.add(options.text("save_plan"), saved_plan.of_plan(self._module.short_name, self._plans[0]), run)
        if "plan_file" in options and not self._module.check_mode:
            saved_plan.record_done(options.text("plan_file"), self._module.short_name, executed)

    async def _perform(self, request: R, operation: Callable[[R, Ports, Gate], Awaitable[Outcome]], setting: Setting,
                       open_nodes: OpenNodes | None, store: RunStore | None, source: CredentialsSource, hello: Hello, gate: Gate) -> Outcome:
        self._stop.attach()
        nodes = self._nodes = open_nodes(setting, store) if open_nodes is not None else NoNodes()
        given = _kubeconfig(setting.options) if self._workloads is not None else None
        kubernetes = self._workloads(store, self._clock, setting.check, given) if store is not None and self._workloads is not None else None
        ports = Ports(nodes=nodes, store=store, clock=self._clock, progress=self.show, check=setting.check,
                      actor=_actor(hello, store), holder=_holder(), credentials=source,
                      recorded=store.recorded if store is not None and setting.check else None,
                      whereabouts=kubernetes, workloads=kubernetes, networks=self._networks(setting.check) if self._networks is not None else None)
        try:
            return await operation(request, ports, gate)
        finally:
            await asyncio.shield(nodes.close())


def _kubeconfig(options: Options) -> Kubeconfig | None:
    """The kubeconfig for the Kubernetes of managed clusters that the options or the environment name."""
    text = options.secret_content("kubeconfig_content", "kubeconfig")
    path = "" if "kubeconfig_content" in options else options.text("kubeconfig")
    return Kubeconfig(text.decode("utf-8", "replace"), path) if text is not None else None


def _actor(hello: Hello, store: RunStore | None) -> Actor:
    """Who acts. A store that knows its users proves by whom; a user of AWX is told beside that (design section 7)."""
    account = store.account() if store is not None else ""
    if not account:
        return Actor(by=hello.by, via=hello.via, schedule=hello.schedule)
    return Actor(by=account if hello.by == hello.via else hello.by, via=account, schedule=hello.schedule)


def _store_kind(options: Options, needs_store: bool) -> str:
    """Which store an unset `store` means: the directory where an option names a record or a folder, else '' (design section 18)."""
    chosen = options.text("store") if "store" in options else ""
    if chosen == "none" and needs_store:
        raise TalosError("InvalidInput", "This module works on records, and store is none.", "Leave store out, or set it to directory or kubernetes.")
    if chosen:
        return "" if chosen == "none" else chosen
    return "directory" if needs_store or "store_path" in options or any(name in options for name in RECORD_OPTIONS) else ""


def _login() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _holder() -> str:
    return f"{_login()}@{platform.node()} process {os.getpid()}"
