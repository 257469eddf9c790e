# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The COSI State service: Get, List and Watch behind Talos's access policy; every write is refused."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from tests.lab import status
from tests.lab.api import NOT_AUTHORIZED
from tests.lab.resources import BOOTSTRAPPED, CREATED, DESTROYED, NOOP, Change, Resource
from tests.lab.status import Refusal
from tests.lab.wire import message

if TYPE_CHECKING:
    from tests.lab.director import Context

_EXISTS, _EQUAL, _NOT_EXISTS, _IN = 0, 1, 2, 3


def _policy(context: Context, namespace: str, kind: str) -> None:
    """Type, sensitivity, namespace: in this order (talos-api.md 3.3)."""
    known = context.boot.resources.definitions
    if not known.known(kind):
        raise Refusal(status.PERMISSION_DENIED, f'resource type "{kind}" is not supported')
    if known.sensitive(kind) and not context.admin:
        raise Refusal(status.PERMISSION_DENIED, NOT_AUTHORIZED)
    if namespace not in known.namespaces:
        raise Refusal(status.PERMISSION_DENIED, f'namespace "{namespace}" is not supported')


def _stamp(target: Any, seconds: float) -> None:
    target.seconds = int(seconds)
    target.nanos = int(seconds % 1 * 1e9)


def encode(resource: Resource, talos: int) -> Any:
    out = message("cosi.resource.Resource")()
    out.metadata.namespace, out.metadata.type, out.metadata.id = resource.namespace, resource.kind, resource.id
    out.metadata.version, out.metadata.owner, out.metadata.phase = str(resource.version), resource.owner, "running"
    _stamp(out.metadata.created, resource.created)
    _stamp(out.metadata.updated, resource.updated)
    out.metadata.labels.update(dict(resource.labels))
    out.metadata.annotations.update(dict(resource.annotations))
    out.spec.proto_spec, out.spec.yaml_spec = resource.bytes_and_yaml(talos)
    return out


def _tombstone(namespace: str, kind: str, name: str, now: float) -> Any:
    out = message("cosi.resource.Resource")()
    out.metadata.namespace, out.metadata.type, out.metadata.id = namespace, kind, name
    out.metadata.version, out.metadata.phase = "undefined", "running"
    _stamp(out.metadata.created, now)
    _stamp(out.metadata.updated, now)
    out.spec.SetInParent()
    return out


def _pattern(query: Any) -> re.Pattern[str] | None:
    text = query.regexp
    if not text:
        return None
    if re.search(r"\(\?(?:[=!]|<[=!])", text):
        found = re.search(r"\(\?(?:<?[=!])", text)
        raise Refusal(status.INVALID_ARGUMENT, f"failed to compile regexp: error parsing regexp: invalid or unsupported Perl syntax: `{found.group(0)}`"
                      if found else "failed to compile regexp")
    try:
        return re.compile(text)
    except re.error as error:
        if "missing )" in str(error):
            raise Refusal(status.INVALID_ARGUMENT, f"failed to compile regexp: error parsing regexp: missing closing ): `{text}`") from error
        raise Refusal(status.INVALID_ARGUMENT, f"failed to compile regexp: error parsing regexp: {error}: `{text}`") from error


def _labels_match(queries: Any, labels: dict[str, str]) -> bool:
    if not queries:
        return True
    return any(all(_term(term, labels) for term in query.terms) for query in queries)


def _term(term: Any, labels: dict[str, str]) -> bool:
    value = labels.get(term.key)
    if term.op == _NOT_EXISTS:
        return value is None
    if term.op in (_EXISTS,):
        result = value is not None
    elif term.op == _EQUAL:
        result = value is not None and value == term.value[0]
    elif term.op == _IN:
        result = value is not None and value in term.value
    else:
        result = value is not None and bool(term.value) and (value < term.value[0] if term.op in (4, 6) else value <= term.value[0])
    return bool(result != term.invert)


def _check_labels(queries: Any) -> None:
    for query in queries:
        for term in query.terms:
            if term.op == _EQUAL and not term.value:
                raise Refusal(status.INTERNAL, "runtime error: index out of range [0] with length 0")


async def get(context: Context, request: Any) -> Any:
    _policy(context, request.namespace, request.type)
    resource = context.boot.resources.get(request.namespace, request.type, request.id)
    if resource is None:
        text = f"resource {request.type}({request.namespace}/{request.id}@undefined) doesn't exist"
        raise Refusal(status.NOT_FOUND, text)
    return message("cosi.resource.GetResponse")(resource=encode(resource, context.node.minor))


async def listing(context: Context, request: Any) -> None:
    _check_labels(request.options.label_query)
    pattern = _pattern(request.options.id_query)
    _policy(context, request.namespace, request.type)
    response = message("cosi.resource.ListResponse")
    for resource in context.boot.resources.list(request.namespace, request.type):
        if pattern is not None and not pattern.search(resource.id):
            continue
        if _labels_match(request.options.label_query, dict(resource.labels)):
            context.send(response(resource=encode(resource, context.node.minor)))
    await context.flow()


class _Watch:
    """One watch: filters, and how events are put into responses."""

    def __init__(self, context: Context, request: Any, pattern: re.Pattern[str] | None) -> None:
        self.context = context
        self.request = request
        self.pattern = pattern
        self.whole = not request.HasField("id")
        self.talos = context.node.minor

    def wants(self, change: Change) -> bool:
        resource = change.resource
        if not self.whole:
            return bool(resource.id == self.request.id)
        if self.pattern is not None and not self.pattern.search(resource.id):
            return False
        return _labels_match(self.request.options.label_query, dict(resource.labels))

    def event(self, change: Change) -> Any:
        event = message("cosi.resource.Event")(event_type=change.event, bookmark=_bookmark(change.number))
        event.resource.CopyFrom(encode(change.resource, self.talos))
        if change.old is not None:
            event.old.CopyFrom(encode(change.old, self.talos))
        return event

    def marker(self, kind: int, number: int | None) -> Any:
        event = message("cosi.resource.Event")(event_type=kind)
        if number is not None:
            event.bookmark = _bookmark(number)
        event.resource.CopyFrom(_tombstone(self.request.namespace, self.request.type, self.request.id, self.context.node.now()))
        return event

    def send(self, events: list[Any]) -> None:
        response = message("cosi.resource.WatchResponse")
        if not events:
            return
        if self.request.options.aggregated:
            self.context.send(response(event=events))
        else:
            for event in events:
                self.context.send(response(event=[event]))


def _bookmark(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _check_watch(request: Any) -> None:
    options = request.options
    if request.HasField("id"):
        if options.label_query:
            raise Refusal(status.UNIMPLEMENTED, "label query is not implemented for resource watch")
        if options.bootstrap_contents:
            raise Refusal(status.UNIMPLEMENTED, "bootstrap contents is not implemented for resource watch")
    elif options.bootstrap_contents and (options.tail_events or options.HasField("start_from_bookmark")):
        raise Refusal(status.UNKNOWN, "cannot use BootstrapContents with TailEvents and StartFromBookmark options")


async def watch(context: Context, request: Any) -> None:
    _check_labels(request.options.label_query)
    pattern = _pattern(request.options.id_query)
    _policy(context, request.namespace, request.type)
    _check_watch(request)
    options = request.options
    kind = context.boot.resources.kind(request.namespace, request.type)
    follow = _Watch(context, request, pattern)
    start: list[Change] = []
    if options.HasField("start_from_bookmark"):
        number = int.from_bytes(options.start_from_bookmark, "big") if len(options.start_from_bookmark) == 8 else -1
        if not 0 < number <= kind.count:
            raise Refusal(status.FAILED_PRECONDITION, "invalid watch bookmark")
        start = [change for change in kind.history if change.number > number]
    elif options.tail_events > 0:
        wanted = [change for change in kind.history if follow.wants(change)]
        start = wanted[-options.tail_events:]
    queue: asyncio.Queue[Change] = asyncio.Queue()
    kind.watchers.add(queue)
    try:
        context.send(message("cosi.resource.WatchResponse")())
        follow.send(_opening(context, follow, kind, start))
        while True:
            change = await queue.get()
            changes = [change]
            while options.aggregated and not queue.empty():
                changes.append(queue.get_nowait())
            follow.send([follow.event(item) for item in changes if follow.wants(item)])
    finally:
        kind.watchers.discard(queue)


def _opening(context: Context, follow: _Watch, kind: Any, start: list[Change]) -> list[Any]:
    """What comes right after the empty first response."""
    request, options = follow.request, follow.request.options
    if start or options.tail_events or options.HasField("start_from_bookmark"):
        return [follow.event(change) for change in start if follow.wants(change)]
    if not follow.whole:
        resource = kind.items.get(request.id)
        if resource is None:
            return [follow.marker(DESTROYED, None)]
        event = message("cosi.resource.Event")(event_type=CREATED)
        event.resource.CopyFrom(encode(resource, context.node.minor))
        return [event]
    events = []
    if options.bootstrap_contents:
        for unused, resource in sorted(kind.items.items()):
            change = Change(kind.count, CREATED, resource)
            if follow.wants(change):
                event = message("cosi.resource.Event")(event_type=CREATED)
                event.resource.CopyFrom(encode(resource, context.node.minor))
                events.append(event)
        if request.api_version:
            events.append(follow.marker(BOOTSTRAPPED, kind.count))
    if options.bootstrap_bookmark:
        events.append(follow.marker(NOOP, kind.count))
    return events


async def write(context: Context, request: Any) -> Any:
    """A caller without admin has been refused before; what is missing from the request fails earlier still."""
    name = request.DESCRIPTOR.name
    if name == "CreateRequest" and not request.HasField("resource"):
        raise Refusal(status.UNKNOWN, "metadata is missing")
    if name == "UpdateRequest" and not request.HasField("options"):
        raise Refusal(status.INTERNAL, "runtime error: invalid memory address or nil pointer dereference")
    raise Refusal(status.PERMISSION_DENIED, "write access is not allowed")


HANDLERS = {
    "cosi.resource.State": {
        "Get": get, "List": listing, "Watch": watch, "Create": write, "Update": write, "Destroy": write, "Teardown": write, "TeardownAndDestroy": write,
    }
}
