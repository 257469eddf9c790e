# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How an API server is reached: a kubeconfig, or the account of the pod that this runs in (design sections 4, 10)."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import cast

try:
    import yaml
    from kubernetes import client as official
    from kubernetes import config as official_config
except ImportError:
    yaml = None  # type: ignore[assignment, unused-ignore]
    official = None
    official_config = None

from .._model.errors import TalosError
from .._model.memory_file import memory_file
from .._model.plain_files import NotPlain, read_plain
from .._model.records import Json, dig, list_at
from .api import CONNECT_TIMEOUT, PATIENCE, REQUEST_TIMEOUT, Api, Pool
from .kubeconfig import HINT, read_kubeconfig
from .login_plugin import Issued, LoginPlugin
from .whole_answer import LimitedSocket


@dataclass(frozen=True)
class Access:
    """Where a kubeconfig is: its path, or '' for KUBECONFIG, ~/.kube/config or the pod's account; its text, where that was read already
    (paths in it count from the file's folder); and which of its contexts."""

    kubeconfig: str = ""
    content: str = ""
    context: str = ""


@dataclass
class _Given:
    """What a kubeconfig says of its user that the official client is not told: a client certificate with its key, the path of a token, a login program.
    `shown`: the certificate of the login program that is in use."""

    key: tuple[str, str] | None = field(default=None, repr=False)
    token_file: str = ""
    plugin: LoginPlugin | None = None
    shown: tuple[str, str] | None = field(default=None, repr=False)


def open_api(access: Access, *, connect: float = CONNECT_TIMEOUT, timeout: float = REQUEST_TIMEOUT, patience: float = PATIENCE,
             silence: float | None = None) -> Api:
    """A client of the API server, with these seconds as `Api` has them. Nothing is sent yet. Raises TalosError `CredentialsInvalid`, `MissingLibrary`.

    Keys that stand in the kubeconfig, or that its login program gives, reach OpenSSL through memory: the official client alone would write them into
    temporary files. A token in a file is read for each request, since whoever put it there replaces it; a login program is asked before what it gave ends.
    """
    if official is None:
        raise TalosError("MissingLibrary", "Kubernetes is asked through the Python library kubernetes, which is not installed.", "Install kubernetes with pip.")
    configuration = official.Configuration()
    given = _Given()
    try:
        found = read_kubeconfig(access.kubeconfig, access.content)
        if found is not None:
            config, given = _without_keys(found, access.context)
            official_config.load_kube_config_from_dict(config, context=access.context or None, client_configuration=configuration, persist_config=False)
        else:
            official_config.load_incluster_config(client_configuration=configuration)
        context = _tls(configuration, given.key)
    except TalosError:
        raise
    except Exception as error:  # the loader raises whatever its plugins do
        raise TalosError("CredentialsInvalid", f"The credential of the Kubernetes API server cannot be used: {_said(error)}.", HINT) from None
    client = official.ApiClient(configuration)
    pool = client.rest_client.pool_manager
    for name in ("cert_reqs", "ca_certs", "cert_file", "key_file", "ca_cert_data", "assert_hostname"):
        pool.connection_pool_kw.pop(name, None)
    pool.connection_pool_kw["ssl_context"] = context

    def present(issued: Issued) -> str:
        """The value of the header, '' where the certificate says it."""
        if issued.pair is not None and issued.pair != given.shown:
            _show(context, issued.pair)
            given.shown = issued.pair
            pool.clear()  # what stands was opened with the certificate before
        return f"Bearer {issued.token}" if issued.token else ""

    def authorize() -> Mapping[str, str]:
        if given.plugin is not None:
            value = present(given.plugin.issued())
        elif given.token_file:
            value = f"Bearer {_token_in(given.token_file)}"
        else:
            settings = configuration.auth_settings().values()
            value = next((str(entry["value"]) for entry in settings if entry.get("key", "").lower() == "authorization" and entry.get("value")), "")
        if not (value.isascii() and value.isprintable()):
            raise TalosError("CredentialsInvalid", "The token for the Kubernetes API server is none: something in it cannot be sent.", HINT)
        return {"Authorization": value} if value else {}

    def renew() -> bool:
        if given.plugin is not None:
            given.plugin.forget()
            return True
        if given.key is None and configuration.cert_file:
            with suppress(OSError, ssl.SSLError):  # it stays with what it has
                context.load_cert_chain(configuration.cert_file, configuration.key_file)
                pool.clear()
                return True
        return False

    return Api(cast(Pool, pool), str(configuration.host), authorize, renew, connect=connect, timeout=timeout, patience=patience,
               silence=silence)


def context_for(text: str, cluster: str) -> str:
    """The context of a kubeconfig whose cluster has that name; the current one where there are several of them. Raises TalosError
    `CredentialsInvalid` where there is none: another cluster may have Nodes of the same names."""
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError:
        config = None
    if not isinstance(config, dict):
        raise TalosError("CredentialsInvalid", "What was given as kubeconfig is none.", "Give a kubeconfig of the managed cluster.")
    found = [str(entry.get("name")) for entry in config.get("contexts") or []
             if isinstance(entry, dict) and isinstance(entry.get("context"), dict) and entry["context"].get("cluster") == cluster]
    if not found:
        raise TalosError("CredentialsInvalid", f"The kubeconfig that was given has no context of a cluster that is called {cluster}.",
                         f"Give one whose cluster has the name {cluster}, or none: access is issued from the bundle then.")
    current = str(config.get("current-context"))
    return current if current in found else found[0]


def _without_keys(config: dict[str, Json], context: str) -> tuple[dict[str, Json], _Given]:
    """The kubeconfig without what stands in it of the user's certificate, token file and login program, and these."""
    current = context or str(config.get("current-context") or "")
    contexts = {str(entry.get("name")): entry.get("context") for entry in list_at(config, "contexts") if isinstance(entry, dict)}
    if current not in contexts:
        raise ValueError(f"it has no context '{current}'; it has {', '.join(contexts) or 'none'}")
    clusters = {str(entry.get("name")): entry.get("cluster") for entry in list_at(config, "clusters") if isinstance(entry, dict)}
    given = _Given()
    for entry in list_at(config, "users"):
        user = entry.get("user") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(user, dict):
            continue
        token = user.get("token")
        if isinstance(token, str):
            user["token"] = token.strip()
        certificate, secret = user.pop("client-certificate-data", None), user.pop("client-key-data", None)
        token_file, plugin = user.pop("tokenFile", None), user.pop("exec", None)
        if str(entry.get("name")) != str(dig(contexts[current], "user")):
            continue
        if isinstance(certificate, str) and isinstance(secret, str):
            given.key = (_decoded(certificate), _decoded(secret))
        if isinstance(token_file, str) and token_file:
            given.token_file = token_file
            _token_in(given.token_file)
        elif isinstance(plugin, dict) and not user.get("token"):
            cluster = clusters.get(str(dig(contexts[current], "cluster")))
            given.plugin = LoginPlugin(plugin, os.getcwd(), dict(cluster) if isinstance(cluster, dict) else {})
    return config, given


def _token_in(path: str) -> str:
    """The token in a file, without the line's end that most programs write after it. Raises TalosError `CredentialsInvalid`."""
    try:
        return read_plain(path).decode("ascii").strip()
    except (OSError, NotPlain, UnicodeDecodeError) as error:
        why = "it is no text" if isinstance(error, UnicodeDecodeError) else _said(error)
        raise TalosError("CredentialsInvalid", f"The token in {path} cannot be read: {why}.", HINT) from None


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data, validate=False).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError("its client certificate is not base64") from None


def _tls(configuration: official.Configuration, key: tuple[str, str] | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # many clusters' own CAs lack a key identifier
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.sslsocket_class = LimitedSocket
    if key is not None:
        _show(context, key)
    elif configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _show(context: ssl.SSLContext, key: tuple[str, str]) -> None:
    with ExitStack() as files:
        context.load_cert_chain(files.enter_context(memory_file(key[0])), files.enter_context(memory_file(key[1])))


def _said(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:300] or type(error).__name__
