# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may change what in records, as ValidatingAdmissionPolicies (design section 4).

Roles give whole resources; these rules are about fields. Each is a row with an id, which stands at the end of the message that the API
server answers with. CEL with optional fields needs Kubernetes 1.30.
"""

from __future__ import annotations

from dataclasses import dataclass

from .custom_resources import GROUP
from .records import ALLOW_DELETE, API_VERSION, CLUSTER, CONFIG_PATCH, MACHINE, TRUST_FINGERPRINT, Json, JsonMap
from .schema import SCHEMAS

#: The account of the runner in the namespace of the records.
RUNNER = "ichor-runner"
PART_OF = {"app.kubernetes.io/part-of": "ichor.talos"}

#: Kinds of records that are deleted only where an annotation says that it is meant.
MEANT_TO_STAY = (CLUSTER, MACHINE, CONFIG_PATCH)

_DECISION = ("approvedBy", "approvedVia", "approvedAt")
_ACCEPTED = ("acceptedFingerprint", "approvedDisk")
_HARDWARE = ("identity", "role", "endpoint")
#: What is written only by who may approve, and by the runner: what decides to whom a configuration is sent, and whether it was.
GUARDED_STATUS = ("recordUID", "maintenanceFingerprint", "maintenanceFingerprintAt", "observedEndpoint", "observedEndpointFor", "sending", "wipeSeen",
                  "configStoredAt", "storedConfigHash", "appliedConfigHash", "observedInputsHash", "rejectedInputsHash")


@dataclass(frozen=True)
class Rule:
    """What has to hold for a request to be let through, in CEL, and what a refused one is told."""

    id: str
    expression: str
    message: str


@dataclass(frozen=True)
class Policy:
    """Rules about the same requests. `resources` may name subresources; `variables` are CEL by name, for the rules."""

    name: str
    resources: tuple[str, ...]
    operations: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    rules: tuple[Rule, ...]


def _unchanged(names: tuple[str, ...]) -> str:
    return " && ".join(f"variables.new.?{name} == variables.old.?{name}" for name in names)


def _approve(resource: str, part: str = "") -> str:
    """Whether the user has the verb, for this very record."""
    whole = f"resource('{resource}')" + (f".subresource('{part}')" if part else "")
    return f"authorizer.group('{GROUP}').{whole}.namespace(request.namespace).name(object.metadata.name).check('approve').allowed()"


def _old(part: str) -> str:
    return f"oldObject != null ? oldObject.?{part}.orValue({{}}) : {{}}"


_STATE = "?approvalState.orValue('pending')"
_ANNOTATION = f"metadata.?annotations[?'{TRUST_FINGERPRINT}']"
_VERB = "without the verb approve on talosmachines/approval"

POLICIES: tuple[Policy, ...] = (
    Policy(
        "ichor-talos-machines", ("talosmachines",), ("CREATE", "UPDATE"),
        (("may", _approve("talosmachines", "approval")), ("new", "object.spec"), ("old", _old("spec")),
         ("undecided", f"variables.new.{_STATE} == variables.old.{_STATE} && {_unchanged(_DECISION)}")),
        (Rule("4/policy-approval", f"variables.may || variables.undecided && {_unchanged(_ACCEPTED)}",
              f"approvalState, {', '.join((*_DECISION, *_ACCEPTED))} cannot be set or changed {_VERB}"),
         Rule("4/policy-approved-via",
              f"variables.undecided || variables.new.?approvedVia.orValue('') == request.userInfo.username "
              f"|| variables.new.{_STATE} == 'pending' && !has(variables.new.approvedVia)",
              "approvedVia has to be the user who makes this request"),
         Rule("4/policy-approved-record", f"variables.may || variables.old.{_STATE} != 'approved' || {_unchanged(_HARDWARE)}",
              f"{', '.join(_HARDWARE)} of an approved machine cannot be changed {_VERB}"),
         Rule("4/policy-trust", f"variables.may || object.{_ANNOTATION} == (oldObject != null ? oldObject.{_ANNOTATION} : optional.none())",
              f"the annotation {TRUST_FINGERPRINT} cannot be set or changed {_VERB}")),
    ),
    Policy(
        "ichor-talos-machine-status", ("talosmachines/status",), ("UPDATE",),
        (("may", f"request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':{RUNNER}' || {_approve('talosmachines', 'approval')}"),
         ("new", "object.?status.orValue({})"), ("old", _old("status"))),
        (Rule("4/policy-status", f"variables.may || {_unchanged(GUARDED_STATUS)}",
              f"{', '.join(GUARDED_STATUS)} are written by the runner's account, and cannot be changed by another {_VERB}"),),
    ),
    Policy(
        "ichor-talos-reclaims", ("machinereclaims",), ("CREATE",), (),
        (Rule("4/policy-reclaim", _approve("machinereclaims"), "an order to wipe cannot be given without the verb approve on machinereclaims"),),
    ),
    Policy(
        "ichor-talos-backups", ("talosetcdbackups",), ("CREATE", "UPDATE"),
        (("new", "object.spec"), ("old", _old("spec"))),
        (Rule("4/policy-backup", f"oldObject != null && variables.new == variables.old || {_approve('talosetcdbackups')}",
              "a backup holds every Secret of its cluster, so it cannot be made or changed without the verb approve on talosetcdbackups"),),
    ),
    Policy(
        "ichor-talos-deletion", tuple(SCHEMAS[kind].plural for kind in MEANT_TO_STAY), ("DELETE",), (),
        (Rule("4/policy-delete", f"oldObject.metadata.?annotations[?'{ALLOW_DELETE}'].orValue('') == 'true'",
              f"nothing says that deleting this record is meant; set the annotation {ALLOW_DELETE} to true first"),),
    ),
)


def policies() -> tuple[JsonMap, ...]:
    """All policies, each followed by the binding that puts it into force."""
    return tuple(made for policy in POLICIES for made in (_policy(policy), _binding(policy)))


def _policy(policy: Policy) -> JsonMap:
    resources: list[Json] = list(policy.resources)
    operations: list[Json] = list(policy.operations)
    rule: dict[str, Json] = {"apiGroups": [GROUP], "apiVersions": [API_VERSION.split("/")[1]], "operations": operations, "resources": resources}
    variables: list[Json] = [{"name": name, "expression": expression} for name, expression in policy.variables]
    validations: list[Json] = [{"expression": rule.expression, "message": f"{rule.message} ({rule.id})", "reason": "Forbidden"} for rule in policy.rules]
    spec: dict[str, Json] = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, "validations": validations}
    return {**_head("ValidatingAdmissionPolicy", policy.name), "spec": {**spec, "variables": variables} if variables else spec}


def _binding(policy: Policy) -> JsonMap:
    return {**_head("ValidatingAdmissionPolicyBinding", policy.name), "spec": {"policyName": policy.name, "validationActions": ["Deny"]}}


def _head(kind: str, name: str) -> dict[str, Json]:
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name, "labels": {**PART_OF}}}
