# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Access to a cluster's Kubernetes that is issued in memory from its bundle (design sections 10 and 15). Whoever needs it only sometimes imports it then."""

from __future__ import annotations

import datetime
import os

from .._machineconfig.client_certificate import issue_client
from .._machineconfig.credential_files import KUBECONFIG, CredentialFile
from .._machineconfig.problem import ConfigProblem
from .._machineconfig.secrets import Bundle
from .._model.container_network import KubeAccess
from .._model.errors import TalosError

#: How long a certificate is good: longer than any run of one network; who looks for weeks asks for another one in time.
LIFETIME = datetime.timedelta(hours=1)


def access_from(bundle: Bundle, cluster: str, server: str, now: float) -> KubeAccess:
    """A kubeconfig of the role of an administrator. Raises TalosError `BundleInvalid` where the bundle gives none."""
    try:
        moment = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
        client = issue_client(bundle.k8s, ("system:masters",), "ichor.talos", moment, LIFETIME, os.urandom)
    except ConfigProblem as error:
        raise TalosError("BundleInvalid", f"The bundle of {cluster} gives no access to its Kubernetes: {error.message}", error.hint) from None
    return KubeAccess(cluster, CredentialFile(KUBECONFIG, cluster, bundle.k8s.crt, client, server=server).text())
