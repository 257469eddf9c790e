# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The TLS contexts of both clients: TLS 1.3, ALPN h2 (design section 5).

The authenticated client verifies that the node's certificate was issued by the OS CA of the credentials, is valid now and
is a server's (a client certificate of the same CA cannot pose as a node). Names and addresses in it are not compared:
Talos writes the addresses that a node has into its certificate, so a moved or forwarded node would be refused, and
every node of a cluster is trusted with the same API anyhow. Which machine answers is told by its UUID.
"""

from __future__ import annotations

import ssl
from contextlib import ExitStack

from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.memory_file import memory_file


def maintenance_context() -> ssl.SSLContext:
    """No client certificate, any server certificate: the fingerprint is what counts."""
    context = _context()
    context.verify_mode = ssl.CERT_NONE
    return context


def authenticated_context(credentials: Credentials) -> ssl.SSLContext:
    """Mutual TLS. Raises `CredentialsInvalid` when OpenSSL cannot use the certificate, the key or the CA."""
    context = _context()
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=credentials.ca)
        with ExitStack() as files:
            certificate = files.enter_context(memory_file(credentials.certificate))
            key = files.enter_context(memory_file(credentials.key))
            context.load_cert_chain(certificate, key)
    except (ssl.SSLError, ValueError, OSError) as error:
        raise TalosError(
            "CredentialsInvalid", f"The client certificate, its key or the CA of {credentials.source or 'the credentials'} cannot be used.",
            "Have a new talosconfig issued, or give the secrets bundle.", detail=str(error)) from None
    return context


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    return context
