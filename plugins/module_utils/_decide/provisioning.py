# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Provisioning an approved machine: the gates of design section 9, in order, as one table.

`decide` walks the table. The first gate that applies and lacks a reading asks for it, so that nothing is probed before
the gates that need no probe have been passed; the first gate whose condition holds is the verdict; past the last gate the
configuration may be sent. The same table judges the readings made again under the lease (step 10).
"""

from __future__ import annotations

from .._machineconfig.bring import BroughtConfig
from .._machineconfig.hardware_check import missing_disks, missing_links
from .._model.approval import status_missing
from .._model.errors import TRANSPORT_REASONS
from .._model.observed import Absent, Present, Unknown
from .._model.plan import Refusal, Wait, Warn
from .._model.records import HOLD_APPLY, TRUST_FINGERPRINT, condition_of, dig, text_at
from .approved import has_converged, held_for_adoption, is_approved, is_bootstrapped, is_followed
from .hostnames import hostname_conflict, members_needed, namesake, namesake_conflict
from .install_disk import not_the_approved, picked
from .lock import LockView, disruption_of, held_by_other, lock_refusals
from .member_gates import MEMBER_GATES
from .no_answer import Sending, sending_of
from .pin_changed import pin_changed_message
from .provisioning_row import Gate, config_of, facts_of, refuse, walk
from .provisioning_twins import answering_twin, at_same_address, recorded_twin
from .provisioning_words import ApplyConfig, Follow, Pin, Provisioning, RecordPin, Refused, Send, Unchanged, Verdict
from .record_twin import TWIN_HINT
from .running_words import RunningNode
from .same_machine import difference
from .send_words import send_warnings, send_words
from .versions import older


def decide(seen: Provisioning, now: float, gates: tuple[Gate, ...] | None = None) -> Verdict:
    """What the observation calls for: a reading, a refusal, a wait, nothing, or the send."""
    return walk(GATES if gates is None else gates, seen, now) or send_of(seen, now)


# What the rows look at.
def _running(seen: Provisioning) -> RunningNode | None:
    return seen.running.value if isinstance(seen.running, Present) else None


def _sending(seen: Provisioning) -> Sending | None:
    return sending_of(seen.machine.status) if seen.machine else None


def _control_plane(seen: Provisioning) -> bool:
    return config_of(seen).role == "controlplane"


def _followed(seen: Provisioning) -> bool:
    return seen.machine is not None and is_followed(seen.machine)


def _joined(seen: Provisioning) -> bool:
    return seen.machine is not None and has_converged(seen.machine)


def _annotated_pin(seen: Provisioning) -> str:
    return seen.machine.annotations.get(TRUST_FINGERPRINT, "").strip() if seen.machine else ""


def _pins(seen: Provisioning) -> tuple[str, ...]:
    return tuple(pin for pin in (seen.pin, _annotated_pin(seen)) if pin)


def _lock_view(seen: Provisioning) -> LockView:
    """A join is what turns an even count back to odd, so `Transitioning` does not apply to it (step 9)."""
    return LockView(seen.cluster, seen.siblings, completes_transition=True)


def _lock_rows(seen: Provisioning) -> tuple[Refusal, ...]:
    """Holds of the cluster; the cap concerns control planes only, which is whom the lock's other rows are asked for."""
    found = lock_refusals(_lock_view(seen), seen.target)
    return tuple(row for row in found if _control_plane(seen) or row.reason in ("ClusterShuttingDown", "CARotation"))


# Rows of steps 1 to 4.
def _config_unusable(seen: Provisioning, now: float) -> Verdict:
    if isinstance(seen.config, Unknown):
        return refuse(seen, "9/1-render", seen.config.reason, seen.config.message, seen.config.source)
    return refuse(seen, "9/1-render", "RenderFailed", "There is no configuration for this machine.", "Give config or config_file.")


def _config_mismatch(seen: Provisioning) -> str:
    """What in the configuration does not fit the machine's record, or ''."""
    config = config_of(seen)
    if not config.complete:
        return "The configuration has no v1alpha1 document, so Talos would take it and stay in maintenance mode."
    if not config.role:
        return "The configuration's machine.type is neither controlplane nor worker."
    if seen.machine is None:
        return ""
    role, hostname = text_at(seen.machine.spec, "role"), text_at(seen.machine.spec, "hostname")
    if role != config.role:
        return f"The configuration is for a {config.role}, and the machine was approved as {role or 'nothing'}."
    if hostname and config.hostname and hostname != config.hostname:
        return f"The configuration names the host {config.hostname}, and the machine was approved as {hostname}."
    return ""


def _other_authority(seen: Provisioning) -> bool:
    authority, own = seen.authority, config_of(seen).machine_ca
    if not isinstance(authority, Present) or not own:
        return False
    return "".join(own.split()) not in "".join(authority.value.split())


def _stored_message(seen: Provisioning) -> str:
    since = text_at(seen.machine.status, "configStoredAt") if seen.machine else ""
    return f"A configuration was stored at {since} and none is sent again for the same wipe; follow it with talos_stage."


def _runs_already(seen: Provisioning, now: float) -> Verdict:
    node, config = _running(seen), config_of(seen)
    same = node is not None and node.config_sha256 == config.sha256
    if same:
        return Unchanged("The node runs this very configuration.", "9/2-running")
    warning = Warn(seen.target, "The node runs another configuration than the one given; this module sends only to a node in "
                   "maintenance mode.", "9/2-running-other")
    if seen.machine is None:
        return refuse(seen, "9/2-running-other", "AlreadyConfigured", "The node runs another configuration than the one given.",
                      "Reset it first, or change its configuration with talosctl.")
    return Unchanged("The node is configured and answers with authentication.", "9/2-running", (warning,))


def _counts_as_stored(seen: Provisioning, now: float) -> bool:
    """No answer came to an earlier send: may the same bytes go once more? (section 9, "No answer")"""
    sending, facts = _sending(seen), seen.maintenance
    if sending is None:
        return False
    if not isinstance(facts, Present):
        return True
    still = isinstance(facts.value.stage, Present) and facts.value.stage.value.stage == "maintenance"
    same = not difference(seen.identity, facts.value.identity) and facts.value.certificate.matches(sending.fingerprint)
    return not (still and same and sending.config == config_of(seen).sha256 and sending.attempt == 1)


def _nobody_answers(seen: Provisioning, now: float) -> Verdict:
    authenticated = seen.running.message if isinstance(seen.running, Unknown) else ""
    insecure = seen.maintenance if isinstance(seen.maintenance, Unknown) else Unknown("NotListening", "nothing answers")
    wants = insecure.reason == "ClientCertificateRequired"
    silent = insecure.reason in ("NotListening", "ConnectionRefused", "TimedOut", "ConnectionLost", "NameNotResolved")
    told = f"The node wants a client certificate and takes none of ours ({authenticated})." if wants and authenticated else \
        "The node is configured already and wants a client certificate." if wants else \
        f"The maintenance API does not answer: {(insecure.message or insecure.reason).rstrip('.')}."
    if seen.machine is None:
        reason = "AlreadyConfigured" if wants else insecure.reason
        return refuse(seen, "9/4-nobody", reason if reason in TRANSPORT_REASONS or wants else "CallFailed", told,
                      "Give the talosconfig to compare what it runs, or reset it first." if wants else
                      "Boot the machine into maintenance mode and check address and network.", silent)
    return refuse(seen, "9/4-nobody", "CurrentConfigUnavailable", told,
                  "If it belongs to another cluster, reclaim it; if the talosconfig is of another cluster, give the right one."
                  if wants else "Check power, address and network; nothing was sent.", silent)


def _fell_back(seen: Provisioning, now: float) -> Verdict:
    if isinstance(seen.maintenance, Present) and not difference(seen.identity, seen.maintenance.value.identity):
        return refuse(seen, "9/4-converged", "ReprovisionBlocked", "The machine had joined its cluster and is in maintenance mode again.",
                      "This module sends a first configuration only: delete its record (allow-delete) and approve the machine again.")
    return refuse(seen, "9/4-converged", "NodeUnreachable", "The machine has joined its cluster and cannot be read now.",
                  "Check power, address and network; nothing was sent.", unreachable=True)


# Rows of steps 6 to 8.
def _pin_changed(seen: Provisioning, now: float) -> Verdict:
    facts = facts_of(seen)
    message, hint = pin_changed_message(seen.machine, seen.target, _pins(seen)[-1], facts.certificate)
    return refuse(seen, "9/6-pin", "MaintenanceIdentityChanged", message, hint)


def _record_pin(seen: Provisioning, now: float) -> Verdict:
    certificate = facts_of(seen).certificate
    if not isinstance(seen.settled, Present) or seen.settled.value.certificate.fingerprint != certificate.fingerprint:
        return refuse(seen, "9/6-unsettled", "MaintenanceIdentityChanged",
                      "Two readings of the certificate, a few seconds apart, differ, so no pin is taken.", "Run this again in a minute.")
    later = Wait("a later round that sees the same certificate", target=seen.target.name)
    send = send_of(seen, now)
    return Pin(RecordPin(seen.target, "the machine was approved while it was silent, so it has no pin yet", fingerprint=certificate.fingerprint),
               ApplyConfig(seen.target, send.step.why, waits_for=(later,), config=send.step.config,
                           fingerprint=send.step.fingerprint, role=send.step.role), send.warnings)


def _disk_problem(seen: Provisioning) -> str:
    disk = picked(config_of(seen), facts_of(seen).disks)
    if isinstance(disk, Absent):
        return disk.source
    if isinstance(disk, Unknown):
        return disk.message
    return not_the_approved(disk.value, dig(seen.machine.spec, "approvedDisk")) if seen.machine else ""


def _missing_links(seen: Provisioning) -> str:
    """What a rendered configuration names and the node does not have, as a text; what a person brings is theirs and Talos's."""
    links = facts_of(seen).links
    if seen.rendered is None or not isinstance(links, Present):
        return ""
    return "; ".join(missing_links(seen.rendered.config, [link.name for link in links.value], [link.permanent_mac for link in links.value]))


def _missing_disks(seen: Provisioning) -> str:
    disks = facts_of(seen).disks
    if seen.rendered is None or not isinstance(disks, Present):
        return ""
    return "; ".join(missing_disks(seen.rendered.config, [disk.path for disk in disks.value]))


def _contract(seen: Provisioning) -> str:
    """The Talos version that the configuration is written for, as far as it is known."""
    kinds = {document.kind for document in config_of(seen).documents}
    needed = "v1.14" if "UnattendedInstallConfig" in kinds else ""
    stated = text_at(seen.cluster.spec, "talosVersion") if seen.cluster else ""
    return stated if not needed or (stated and not older(stated, needed)) else needed


def _secure_boot_off(seen: Provisioning) -> bool:
    facts = facts_of(seen)
    required = bool(seen.cluster) and text_at(seen.cluster.spec if seen.cluster else {}, "secureBoot") == "Required"
    return required and not (isinstance(facts.secure_boot, Present) and facts.secure_boot.value)


def _removal(seen: Provisioning) -> bool:
    found = condition_of(seen.machine, "Removal") if seen.machine else None
    return found is not None and found.status != "False"


def send_of(seen: Provisioning, now: float) -> Send:
    """The send, once the gates are passed."""
    config, facts, sending = config_of(seen), facts_of(seen), _sending(seen)
    waits = [Wait("joined, a voting etcd member with a leader", target=name) for name in _goes_first(seen)]
    disk = picked(config, facts.disks)
    warnings = list(send_warnings(seen.target, disk))
    if seen.machine is None:
        warnings.append(Warn(seen.target, "There is no store, so there is no memory of this send and no lock: do not run it twice "
                             "without looking at the node.", "9/no-store"))
    step = ApplyConfig(seen.target, _why(seen, config, send_words(config, disk, facts.disks)),
                       waits_for=tuple(waits), config=config.sha256, fingerprint=facts.certificate.fingerprint, role=config.role)
    return Send(step, sending.attempt + 1 if sending else 1, tuple(warnings))


def _why(seen: Provisioning, config: BroughtConfig, what: str) -> str:
    who = "in maintenance mode as itself" if seen.machine is None else "approved, in maintenance mode as itself"
    return f"{who}; as {config.role} {config.hostname or '(no host name)'} {what}"


def _goes_first(seen: Provisioning) -> tuple[str, ...]:
    """Machines whose evidence a control plane of a bootstrapped cluster waits for (section 13)."""
    if not _control_plane(seen) or not is_bootstrapped(seen.cluster) or seen.machine is None:
        return ()
    open_one = disruption_of(seen.cluster)
    found = [open_one.machine] if open_one is not None and held_by_other(open_one, seen.machine.name) else []
    return tuple(dict.fromkeys([*found, *seen.after]))


GATES: tuple[Gate, ...] = (
    Gate("9/0-not-approved", lambda seen, now: seen.machine is not None and not is_approved(seen.machine),
         lambda seen, now: refuse(
             seen, "9/0-not-approved", "NotApproved",
             f"Machine {seen.target.name} is {text_at(seen.machine.spec if seen.machine else {}, 'approvalState') or 'pending'}, not approved.",
             "Approve it with talos_machine_approval.")),
    Gate("15/held", lambda seen, now: seen.machine is not None and held_for_adoption(seen.machine),
         lambda seen, now: refuse(seen, "15/held", "AdoptionHeld", "The machine was adopted and is held: nothing is sent to it before its release.",
                                  "Release it with talos_adopt (ichor.talos.adopt), or delete its record.")),
    Gate("9/1-render", lambda seen, now: not isinstance(seen.config, Present), _config_unusable),
    Gate("9/1-config-mismatch", lambda seen, now: bool(_config_mismatch(seen)),
         lambda seen, now: refuse(seen, "9/1-config-mismatch", "RenderFailed", _config_mismatch(seen),
                                  "Give the configuration that was made for this machine.")),
    Gate("9/1-bundle", lambda seen, now: isinstance(seen.authority, Unknown),
         lambda seen, now: refuse(seen, "9/1-bundle", "SecretsUnavailable",
                                  seen.authority.message if isinstance(seen.authority, Unknown) else "",
                                  "Give talosconfig, or a secrets bundle that can be read.")),
    Gate("9/1-authority", lambda seen, now: _other_authority(seen),
         lambda seen, now: refuse(seen, "9/1-authority", "AuthorityMismatch",
                                  "The configuration's machine CA is not the one of the credentials, so the node would lock us out.",
                                  "Give the talosconfig or bundle of the cluster that the configuration was made for.")),
    Gate("9/1-endpoint", lambda seen, now: not isinstance(seen.endpoint, Present),
         lambda seen, now: refuse(seen, "9/1-endpoint", "EndpointRefused",
                                  seen.endpoint.message if isinstance(seen.endpoint, Unknown) else "The machine has no address to dial.",
                                  "Edit spec.endpoint with talos_machine.")),
    Gate("9/1-status-missing", lambda seen, now: seen.machine is not None and status_missing(seen.machine),
         lambda seen, now: refuse(
             seen, "9/1-status-missing", "StatusMissing",
             "The machine is approved and its status is gone, so it is not known whether a configuration was sent.",
             "Bring the state folder back, or say that it is safe with talos_machine, trust: true.")),
    Gate("9/2-other-node", lambda seen, now: bool(node := _running(seen)) and bool(difference(seen.identity, node.identity if node else seen.identity)),
         lambda seen, now: refuse(seen, "9/2-other-node", "EndpointIdentityMismatch",
                                  "Another machine of the cluster answers at this address.", "Edit spec.endpoint."),
         needs=("running",)),
    Gate("9/2-left-over-sending", lambda seen, now: _running(seen) is not None and _sending(seen) is not None,
         lambda seen, now: Follow("The node runs: a send whose answer was lost had been stored.", "9/2-left-over-sending", settle=True)),
    Gate("9/2-stored", lambda seen, now: _followed(seen) and _running(seen) is not None,
         lambda seen, now: Follow(_stored_message(seen), "9/2-stored")),
    Gate("9/2-running", lambda seen, now: _running(seen) is not None, _runs_already),
    Gate("9/3-stored", lambda seen, now: _followed(seen),
         lambda seen, now: Follow(_stored_message(seen), "9/3-stored")),
    Gate("9/5-record-twin", lambda seen, now: not _joined(seen) and bool(recorded_twin(seen)),
         lambda seen, now: refuse(seen, "9/5-record-twin", "TwinIdentity", recorded_twin(seen), TWIN_HINT)),
    Gate("9/5-same-address", lambda seen, now: not _joined(seen) and bool(at_same_address(seen)),
         lambda seen, now: refuse(seen, "9/5-same-address", "EndpointRefused", at_same_address(seen),
                                  "Correct spec.endpoint of the one that is not there, with talos_machine.")),
    Gate("9/10-sent-by-other",
         lambda seen, now: bool(sending := _sending(seen)) and sending is not None and sending.fresh(now, seen.sending_fresh)
         and sending.by != seen.holder,
         lambda seen, now: refuse(seen, "9/10-sent-by-other", "SendingUnconfirmed",
                                  f"Another run is sending to this machine, or stopped while it did, less than {seen.sending_fresh:g} s ago.",
                                  f"Run this again in {seen.sending_fresh:g} s.")),
    Gate("9/10-counts-as-stored", _counts_as_stored,
         lambda seen, now: Follow("No answer came to an earlier send, and it counts as stored; follow it with talos_stage.",
                                  "9/10-counts-as-stored", settle=True),
         needs=("maintenance",), applies=lambda seen: _sending(seen) is not None),
    Gate("9/4-converged", lambda seen, now: True, _fell_back, needs=("maintenance",), applies=_joined),
    Gate("9/4-nobody", lambda seen, now: not isinstance(seen.maintenance, Present), _nobody_answers, needs=("maintenance",)),
    Gate("9/4-not-maintenance", lambda seen, now: not (isinstance(stage := facts_of(seen).stage, Present) and stage.value.stage == "maintenance"),
         lambda seen, now: refuse(seen, "9/4-not-maintenance", "NotInMaintenance",
                                  "The node answers without authentication and does not say that it is in maintenance mode.",
                                  "Wait until it has booted, and run this again.")),
    Gate("9/5-identity", lambda seen, now: bool(difference(seen.identity, facts_of(seen).identity)),
         lambda seen, now: refuse(seen, "9/5-identity", "IdentityMismatch",
                                  f"The machine that answers is another one: {difference(seen.identity, facts_of(seen).identity)}.",
                                  "Correct the address (spec.endpoint), or discover the new machine; nothing was sent.")),
    Gate("9/5-answers-to-another", lambda seen, now: bool(answering_twin(seen)),
         lambda seen, now: refuse(seen, "9/5-answers-to-another", "TwinIdentity", answering_twin(seen), TWIN_HINT)),
    Gate("9/6-pin", lambda seen, now: bool(_pins(seen)) and not any(facts_of(seen).certificate.matches(pin) for pin in _pins(seen)), _pin_changed),
    Gate("9/7-secure-boot", lambda seen, now: _secure_boot_off(seen),
         lambda seen, now: refuse(seen, "9/7-secure-boot", "SecureBootRequired", "The cluster requires SecureBoot, and the node does not have it on.",
                                  "Turn SecureBoot on in the firmware, or set the cluster's secureBoot to Preferred.")),
    Gate("9/7-disk", lambda seen, now: bool(_disk_problem(seen)),
         lambda seen, now: refuse(seen, "9/7-disk", "InstallDiskUnknown", f"The install disk is not sure: {_disk_problem(seen)}.",
                                  "Name the approved disk in the configuration, or set install with talos_machine.")),
    Gate("8/links", lambda seen, now: bool(_missing_links(seen)),
         lambda seen, now: refuse(seen, "8/links", "RenderFailed", f"The configuration does not fit the node: {_missing_links(seen)}.",
                                  "Correct network.primary of the machine, or the patch that names the link.")),
    Gate("8/disks", lambda seen, now: bool(_missing_disks(seen)),
         lambda seen, now: refuse(seen, "8/disks", "RenderFailed", f"The configuration does not fit the node: {_missing_disks(seen)}.",
                                  "Correct the patch that names the disk.")),
    Gate("9/7-contract", lambda seen, now: bool(_contract(seen)) and older(facts_of(seen).talos_version, _contract(seen)),
         lambda seen, now: refuse(seen, "9/7-contract", "ContractTooNew",
                                  f"The node runs Talos {facts_of(seen).talos_version or 'of an unknown version'}, "
                                  f"and the configuration is for {_contract(seen)}.",
                                  "Boot the machine from a newer image, or lower the cluster's talosVersion.")),
    Gate("9/8-hold-apply", lambda seen, now: seen.machine is not None and seen.machine.annotations.get(HOLD_APPLY, "").lower() == "true",
         lambda seen, now: refuse(seen, "9/8-hold-apply", "HoldApply", f"The annotation {HOLD_APPLY} is set on the machine.",
                                  "Take the hold away with talos_machine.")),
    Gate("9/8-cluster", lambda seen, now: seen.cluster is not None and bool(_lock_rows(seen)),
         lambda seen, now: Refused(_lock_rows(seen)[0])),
    Gate("9/8-removal", lambda seen, now: _removal(seen),
         lambda seen, now: refuse(seen, "9/8-removal", "RemovalInProgress", "The machine is being removed.",
                                  "Finish the removal, or lift it by name.")),
    Gate("9/8-operation", lambda seen, now: seen.cluster is not None and bool(seen.cluster.status.get("operation")),
         lambda seen, now: refuse(seen, "9/8-operation", "OperationInProgress", "Something is being done to the whole cluster (status.operation).",
                                  "Wait for it, or clear it by name when it is no longer going on.")),
    Gate("9/8-hostname", lambda seen, now: bool(hostname_conflict(seen)),
         lambda seen, now: refuse(seen, "9/8-hostname", "HostnameConflict", hostname_conflict(seen),
                                  "Give this machine a host name of its own."),
         needs=("members",), applies=members_needed),
    Gate("9/8-hostname-record", lambda seen, now: bool(hostname_conflict(seen)),
         lambda seen, now: refuse(seen, "9/8-hostname-record", "HostnameConflict", hostname_conflict(seen),
                                  "Give this machine a host name of its own."),
         applies=lambda seen: not members_needed(seen)),
    Gate("9/8-hostname-rendered", lambda seen, now: bool(namesake(seen)),
         lambda seen, now: refuse(seen, "9/8-hostname-rendered", "HostnameConflict", namesake_conflict(seen),
                                  "Give each machine a host name of its own (spec.hostname).")),
    *MEMBER_GATES,
    Gate("9/10-rejected", lambda seen, now: bool(seen.machine) and text_at(seen.machine.status if seen.machine else {}, "rejectedInputsHash")
         == config_of(seen).sha256,
         lambda seen, now: refuse(seen, "9/10-rejected", "ConfigRejected", "The node refused these very bytes before.",
                                  "Change the configuration; it is tried again only then.")),
    Gate("9/6-pin-missing", lambda seen, now: True,
         lambda seen, now: refuse(seen, "9/6-pin-missing", "InvalidInput", "Without a record there is no pin but the one that is given.",
                                  "Give fingerprint, as the node's console shows it."),
         applies=lambda seen: seen.machine is None and not _pins(seen)),
    Gate("9/6-no-pin", lambda seen, now: True, _record_pin, needs=("settled",), applies=lambda seen: not _pins(seen)),
)
