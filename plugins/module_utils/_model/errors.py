# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The closed set of reasons, and the one exception that carries one.

Design sections 3 (conditions and reasons), 5 (errors) and 20 (refused or failed). A low room raises
:class:`TalosError`; the `_ansible` room turns it into a result in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Reasons of conditions, design section 3.
READY_REASONS = frozenset({
    "Converged", "PendingApproval", "Rejected", "AdoptionHeld", "CurrentConfigUnavailable", "NodeUnreachable",
    "EndpointIdentityMismatch", "RenderFailed", "SecretsUnavailable", "AuthorityMismatch", "Drifted", "RebootRequired",
})
PROVISIONED_REASONS = frozenset({
    "NodeJoined", "ConfigStored", "AwaitingInstall", "NodeInstalling", "NodeRebooting", "NodeStarting",
    "IdentityMismatch", "MaintenanceIdentityChanged", "EndpointRefused", "SecureBootRequired", "InstallDiskUnknown",
    "ContractTooNew", "ConfigRejected", "StatusMissing", "HostnameConflict", "StateNotFound", "ReprovisionBlocked",
    "StaleEtcdMember",
})
LOCK_REASONS = frozenset({
    "LockHeld", "Transitioning", "ClusterShuttingDown", "ControlPlaneCapExceeded", "CARotation", "NoLock",
})
#: What happened to one call or one connection, design section 5.
TRANSPORT_REASONS = frozenset({
    "NotListening", "ConnectionRefused", "TimedOut", "NotTls", "NotTalos", "ClientCertificateRequired",
    "UnknownAuthority", "ClockSkew", "CredentialsExpired", "CredentialsInvalid", "NameNotResolved", "EndpointRefused",
    "MaintenanceIdentityChanged", "PermissionDenied", "Unimplemented", "ConnectionLost", "NodeRefused", "AnswerTooLarge",
    "AnswerInvalid", "FailedPrecondition", "NotInMaintenance", "CallFailed", "AlreadyExists", "NotFound",
})
#: What is wrong with input, a store or a request.
REQUEST_REASONS = frozenset({
    "InvalidInput", "InvalidAddress", "RangeTooLarge", "StoreMissing", "StoreMoved", "StoreFull", "StoreReadOnly",
    "StoreUnreachable", "RecordBroken", "RecordInvalid", "RecordNotFound", "RecordChanged", "RecordExists",
    "RecordTracked", "Immutable", "DeleteNotAllowed", "BundleExposed", "BundleInvalid", "ConfigInvalid",
    "TemplateUnexpanded", "MissingLibrary", "HelmMissing", "ChartInvalid", "PlanChanged", "PlanFinished", "ConfirmationMissing", "CheckRunOnly",
    "Interrupted", "InternalError",
})
#: Refusals of one named operation, design sections 6, 7, 9.
REFUSAL_REASONS = frozenset({
    "NotApproved", "WeakIdentity", "WeakIdentityUnresolved", "TwinIdentity", "TooManyControlPlanes",
    "DiskNotFound", "DiskAmbiguous", "DiskUnsuitable", "HostnameTaken", "FingerprintMismatch", "AlreadySent",
    "ScheduleCannotApprove", "ApproverUnknown", "RoleImmutable", "IdentityImmutable", "AlreadyBootstrapped",
    "BootstrapInProgress", "BootstrapNotAvailable", "ControlPlaneUnreachable", "NotControlPlane", "AlreadyConfigured",
    "QuorumAtRisk", "QuorumUnknown", "HoldApply", "OperationInProgress", "RemovalInProgress", "SendingUnconfirmed",
    "ControlPlaneNeeded", "MemberAnswers", "MemberUnclear", "DeathUnproven", "DrainRequired", "DataLossNotAccepted", "ResetFailed",
    "StoreInCluster", "ControlPlaneAlive", "SnapshotInvalid", "SnapshotNotFound", "ArchiveUnreachable", "ArchiveRefused",
    "MachineManaged", "TrustNotNeeded", "InstallNotAllowed", "PendingLimit", "VersionUnsupported", "BlockedMachines", "UnreachableMachines", "DriftFound",
    "NetworkForeign", "NetworkUnknown", "NetworkDiffers", "ReleaseUnsettled",
})
ALL_REASONS = (READY_REASONS | PROVISIONED_REASONS | LOCK_REASONS | TRANSPORT_REASONS | REQUEST_REASONS | REFUSAL_REASONS)


@dataclass(frozen=True)
class Failure:
    """Where a call failed, for machines: the `failure` key of a result (design section 20)."""

    node: str = ""
    rpc: str = ""
    code: str = ""
    step: str = ""
    retryable: bool = False
    last_seen: str = ""


@dataclass
class TalosError(Exception):
    """An error or refusal with a stable reason.

    `message` is one sentence of what is wrong, `hint` one of what to do; `detail` is foreign text (gRPC, TLS, YAML)
    that is shown only as detail and is masked before it leaves the module.
    """

    reason: str
    message: str
    hint: str = ""
    detail: str = ""
    failure: Failure = field(default_factory=Failure)

    def __post_init__(self) -> None:
        if self.reason not in ALL_REASONS:
            raise ValueError(f"reason {self.reason!r} is not in the closed list")
        super().__init__(self.text)

    @property
    def text(self) -> str:
        """Message and hint as one text for a person."""
        return f"{self.message} {self.hint}".strip()

    def __str__(self) -> str:
        return f"{self.reason}: {self.text}"


class CheckModeWrite(RuntimeError):
    """A write reached the choke point in check mode: always a bug of ours, never an answer (architecture, rule 4)."""
