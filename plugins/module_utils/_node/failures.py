# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can go wrong between this host and a node, as a closed set: a reason, a sentence, what to do (design section 5).

None of these says whether a node is in maintenance mode. Foreign texts (gRPC's, OpenSSL's, the node's) go into
`detail` only, and nothing is decided by them where a number or an attribute tells the same.
"""

from __future__ import annotations

import errno
import ssl
from dataclasses import dataclass

from .._model.errors import Failure, TalosError
from .._model.endpoint import Certificate, Endpoint
from . import clean


@dataclass(frozen=True)
class Saying:
    """One reason: `message` and `hint` are formatted with `node` and `seconds`; `retryable`: the same may work later."""

    message: str
    hint: str
    retryable: bool = False


#: Left out where it is not known which deadline passed.
_WITHIN = " within {seconds} s"

SAYINGS = {
    "ConnectionRefused": Saying(
        "{node} refuses the connection: nothing listens on that port.",
        "A Talos node closes it while it installs or restarts; otherwise check address, port and power.", True),
    "NotListening": Saying(
        "{node} cannot be reached: there is no route to it or the host does not answer.",
        "Check the address, the power and the network between this host and the node.", True),
    "TimedOut": Saying(
        f"{{node}} gave no answer{_WITHIN}.",
        "Check that the node is up and that no firewall drops the connection; then run again.", True),
    "NotTls": Saying(
        "What listens at {node} does not speak TLS 1.3.",
        "Check address and port: the Talos API is on port 50000 unless something forwards it."),
    "NotTalos": Saying(
        "What listens at {node} is not the Talos API.",
        "Check address and port: the Talos API is on port 50000 unless something forwards it."),
    "ClientCertificateRequired": Saying(
        "{node} wants a client certificate, so it has a configuration already.",
        "Give the talosconfig or the secrets bundle of its cluster."),
    "UnknownAuthority": Saying(
        "{node} and these credentials belong to different certificate authorities.",
        "The talosconfig or bundle may be the wrong one; if it is the right one, another cluster configured this node."),
    "ClockSkew": Saying(
        "A certificate between this host and {node} is not valid at this time.",
        "Compare the clocks of this host and of the node.", True),
    "CredentialsExpired": Saying(
        "The client certificate for {node} has expired.",
        "Have a new talosconfig issued, or give the secrets bundle."),
    "CredentialsInvalid": Saying(
        "{node} does not accept this client certificate.",
        "A Talos client certificate has the extended key usage clientAuth and no other; have a new talosconfig issued."),
    "ConnectionLost": Saying(
        "The connection to {node} was lost.",
        "The node may be restarting; run again.", True),
    "PermissionDenied": Saying(
        "{node} does not permit this call to these credentials.",
        "Use credentials with the role os:admin; in maintenance mode a node permits only reading and applying a configuration."),
    "Unimplemented": Saying(
        "{node} does not know this call, or does not offer it in its role or mode.",
        "Check the Talos version and the role of the node."),
    "AnswerTooLarge": Saying(
        "The answer of {node} is larger than what is read from a node.",
        "No Talos node answers like that; check what listens there."),
    "AnswerInvalid": Saying(
        "The answer of {node} cannot be read as one of the Talos API.",
        "Check what listens there and which Talos version it runs."),
    "FailedPrecondition": Saying(
        "{node} cannot do this now.",
        "Something else is under way on the node; run again.", True),
    "NodeRefused": Saying(
        "{node} refused the call.",
        "The detail is what the node said about it."),
    "CallFailed": Saying(
        "The call to {node} failed.",
        "Run again; the detail is what was said about it.", True),
    "AlreadyExists": Saying("{node} says that this was done already.", "Nothing has to be done on the node."),
    "NotFound": Saying("{node} does not have what was asked for.", "Check the name or id."),
    "BootstrapNotAvailable": Saying(
        "{node} is not ready for the bootstrap of etcd.",
        "Wait until it has installed and started, then run again.", True),
    "NotControlPlane": Saying("{node} is not a control plane.", "Name a control-plane machine."),
    "ConfigRejected": Saying(
        "{node} refuses the configuration.",
        "Correct what the node names in the detail."),
}


def failed(reason: str, node: Endpoint, *, detail: str = "", seconds: float = 0.0, rpc: str = "", code: str = "") -> TalosError:
    """The error of one reason of the table."""
    saying = SAYINGS[reason]
    values = {"node": str(node), "seconds": f"{seconds:g}"}
    message = saying.message if seconds else saying.message.replace(_WITHIN, "")
    return TalosError(reason, message.format(**values), saying.hint.format(**values), detail=clean.text(detail, 4096),
                      failure=Failure(node=str(node), rpc=rpc, code=code, retryable=saying.retryable))


def again(reason: str, node: Endpoint, told: str) -> TalosError:
    """The error of an observation that could not be made; `told` is the text that the first one had."""
    hint = SAYINGS[reason].hint if reason in SAYINGS else ""
    return TalosError(reason, told.removesuffix(hint).strip(), hint, failure=Failure(node=str(node)))


def pin_mismatch(node: Endpoint, pin: str, certificate: Certificate) -> TalosError:
    """The node's certificate is not the pinned one; nothing was sent."""
    return TalosError(
        "MaintenanceIdentityChanged",
        f"{node} shows the certificate {certificate.fingerprint}, not the pinned {clean.text(pin)}; nothing was sent.",
        "Talos issues a new certificate every 12 h and at each new address or host name: compare the fingerprint with the one on "
        "the node's console before you accept it.",
        failure=Failure(node=str(node)))


#: errno of a connect -> reason.
_CONNECT = {
    errno.ECONNREFUSED: "ConnectionRefused", errno.ETIMEDOUT: "TimedOut", errno.ECONNRESET: "ConnectionLost",
    errno.EPIPE: "ConnectionLost", errno.ECONNABORTED: "ConnectionLost",
}

#: OpenSSL's reason of an alert that the node sent -> reason (alert numbers of RFC 8446: 116, 48, 45, 42 and so on).
_ALERTS = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "ClientCertificateRequired",
    "TLSV1_ALERT_CERTIFICATE_REQUIRED": "ClientCertificateRequired",
    "TLSV1_ALERT_UNKNOWN_CA": "UnknownAuthority",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "UnknownAuthority",
    "TLSV1_ALERT_DECRYPT_ERROR": "UnknownAuthority",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "ClockSkew",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "CredentialsInvalid",
    "SSLV3_ALERT_BAD_CERTIFICATE": "CredentialsInvalid",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "CredentialsInvalid",
    "TLSV1_ALERT_ACCESS_DENIED": "CredentialsInvalid",
    "TLSV1_ALERT_PROTOCOL_VERSION": "NotTls",
    "TLSV1_ALERT_NO_APPLICATION_PROTOCOL": "NotTalos",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "NotTalos",
}

#: X.509 verification errors of OpenSSL (X509_V_ERR_*).
_NOT_YET_VALID, _EXPIRED = 9, 10


def tls_reason(error: BaseException) -> str:
    """The reason of what went wrong on a TLS connection, by errno, alert or verification code."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "ClockSkew" if error.verify_code in (_NOT_YET_VALID, _EXPIRED) else "UnknownAuthority"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "ConnectionLost"
    if isinstance(error, ssl.SSLError):
        return _ALERTS.get(error.reason or "", "NotTls")
    if isinstance(error, TimeoutError):
        return "TimedOut"
    if isinstance(error, OSError):
        return _CONNECT.get(error.errno or 0, "NotListening")
    return "ConnectionLost"
