# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Issuing a talosconfig or a kubeconfig from the bundle: when a new one is needed, and over what it may be written (design section 5)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from .._machineconfig.client_certificate import issued_by
from .._machineconfig.credential_files import CredentialFile
from .._machineconfig.secrets import Pair
from .._model.observed import Observed, Present, Unknown
from .._model.plan import Plan, Refusal, Step, Target, Warn

#: Names of Talos's roles; another one is a slip.
ROLES = ("os:admin", "os:operator", "os:reader", "os:etcd:backup", "os:image:verifier", "os:meta:writer", "os:impersonator")


@dataclass(frozen=True)
class CredentialWish:
    """What a person wants. organizations: roles of Talos or groups of Kubernetes. renew_before: a shorter rest of life is renewed."""

    kind: str
    path: str
    cluster: str
    organizations: tuple[str, ...]
    common_name: str = ""
    endpoints: tuple[str, ...] = ()
    server: str = ""
    renew_before: datetime.timedelta = datetime.timedelta(days=30)
    replace: bool = False


@dataclass(frozen=True)
class CredentialSeen:
    """What was read. authority: the CA that issues, or why there is none. there: what is at the path, Absent where nothing is, Unknown
    where it is something else. private: only its owner can read it.
    """

    authority: Observed[Pair]
    there: Observed[CredentialFile]
    private: bool = True


@dataclass(frozen=True)
class IssueCredentials(Step):
    """Issue a client certificate and write it as a file that only its owner can read."""

    action: ClassVar[str] = "IssueCredentials"

    wish: CredentialWish | None = field(default=None, metadata={"plan": "digest"})


def decide_credentials(wish: CredentialWish, seen: CredentialSeen, now: datetime.datetime) -> Plan:
    """Nothing where a good one is there; a new one where none is, or where what is there belongs to this cluster and is not good any more."""
    target = Target(kind="Credentials", name=wish.path, cluster=wish.cluster)
    refusals = tuple(Refusal(target, reason, message, hint, rule) for rule, gate in GATES for reason, message, hint in gate(wish, seen))
    if refusals:
        return Plan(refusals=refusals)
    why = _why(wish, seen, now)
    if not why:
        return Plan()
    warnings: tuple[Warn, ...] = ()
    if wish.kind == "talosconfig" and not wish.endpoints:
        warnings = (Warn(target, "No approved control plane has an address yet, so the talosconfig has no endpoints.", "5/credentials-no-endpoints"),)
    return Plan((IssueCredentials(target=target, why=why, wish=wish),), warnings=warnings)


_Found = Iterable[tuple[str, str, str]]


def _no_authority(wish: CredentialWish, seen: CredentialSeen) -> _Found:
    if isinstance(seen.authority, Unknown):
        yield seen.authority.reason, seen.authority.message, seen.authority.source


def _unknown_role(wish: CredentialWish, seen: CredentialSeen) -> _Found:
    wrong = [role for role in wish.organizations if wish.kind == "talosconfig" and role not in ROLES]
    if wrong:
        yield "InvalidInput", f"Talos has no role {', '.join(wrong)}.", f"Its roles are {', '.join(ROLES)}."


def _no_server(wish: CredentialWish, seen: CredentialSeen) -> _Found:
    if wish.kind == "kubeconfig" and not wish.server:
        yield "InvalidInput", "There is no URL of the Kubernetes API for the kubeconfig.", "Set server, or the endpoint of the cluster."


def _something_else(wish: CredentialWish, seen: CredentialSeen) -> _Found:
    there = seen.there
    if wish.replace:
        return
    if isinstance(there, Unknown):
        yield there.reason, f"{wish.path} is there and is no {wish.kind} that was issued here: {there.message}", \
            "Give another path, or run with replace: true."
    elif isinstance(there, Present) and isinstance(seen.authority, Present) and there.value.cluster != wish.cluster \
            and not issued_by(there.value.client, seen.authority.value):
        yield "RecordExists", f"{wish.path} holds the credentials of another cluster, {there.value.cluster}.", \
            "Give another path, or run with replace: true."


#: One row a refusal.
GATES: tuple[tuple[str, Callable[[CredentialWish, CredentialSeen], _Found]], ...] = (
    ("5/credentials-no-authority", _no_authority),
    ("5/credentials-unknown-role", _unknown_role),
    ("5/credentials-no-server", _no_server),
    ("5/credentials-something-else", _something_else),
)


def _why(wish: CredentialWish, seen: CredentialSeen, now: datetime.datetime) -> str:
    """Why a new one is issued; '' where what is there is good."""
    if not isinstance(seen.there, Present) or not isinstance(seen.authority, Present):
        return "there is none yet" if not isinstance(seen.there, Unknown) else "a person wants what is there replaced"
    there = seen.there.value
    if not issued_by(there.client, seen.authority.value) or there.ca.strip() != seen.authority.value.crt.strip():
        return "the one there is of another CA"
    if there.client.not_after - now <= wish.renew_before:
        return f"the one there is valid until {there.client.not_after:%Y-%m-%d %H:%M} UTC only"
    if (there.client.organizations, there.client.common_name) != (wish.organizations, wish.common_name):
        return f"the one there has {', '.join(there.client.organizations) or 'no roles'}"
    if (there.cluster, there.endpoints, there.server) != (wish.cluster, wish.endpoints, wish.server):
        return "the one there has other addresses or another name"
    return "" if seen.private else "others can read the one that is there"
