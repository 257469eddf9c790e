# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Section 8 of the design as rows: bundles, patches, what a configuration is like, and the credentials of section 5."""

from __future__ import annotations

import datetime
import functools
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._decide.bundle import decide_bundle
from ansible_collections.ichor.talos.plugins.module_utils._decide.bundle_words import BundleSeen, BundleWish
from ansible_collections.ichor.talos.plugins.module_utils._decide.config_state import judge
from ansible_collections.ichor.talos.plugins.module_utils._decide.credentials import CredentialSeen, CredentialWish, decide_credentials
from ansible_collections.ichor.talos.plugins.module_utils._decide.patch_edit import decide_patch, documents_of, wanted_spec
from ansible_collections.ichor.talos.plugins.module_utils._decide.patch_words import PatchEdit, PatchSeen
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.client_certificate import issue_client
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.credential_files import CredentialFile
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import Config, load
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.patch_check import check_patch
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.placeholder import placeholder_bundle
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.render import PatchRecord, Rendered, RenderInput, render
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import Bundle, read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.plugins.module_utils._model.records import ALLOW_DELETE, CONFIG_PATCH, MACHINE, Broken, Json, Record

from tests.unit._decide.rows import Row, Seen, of_plan
from tests.unit.machine_world import cluster, machine

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
NOW = datetime.datetime(2026, 11, 30, tzinfo=datetime.timezone.utc)
FLUX = {"kustomize.toolkit.fluxcd.io/name": "apps"}
SYSCTLS: list[Json] = [{"machine": {"sysctls": {"vm.max_map_count": "262144"}}}]
NO_SUBNET: list[Json] = [{"machine": {"kubelet": {"nodeIP": {"validSubnets": ["nonsense"]}}}}]


@functools.cache
def bundle(old: bool = False) -> Bundle:
    return read_bundle((VECTORS / ("secrets-aescbc.yaml" if old else "secrets.yaml")).read_bytes())


def put(form: str = "absent", there: Observed[Bundle] = Absent(), *, imported: Observed[Bundle] = Absent(), faults: tuple[str, ...] = (),
        status: dict[str, Json] | None = None, bootstrapped: bool = False, broken: bool = False, stored: bool = True,
        exported: Observed[Bundle] = Absent(), **wish: object) -> Seen:
    """A bundle `prod`, used by a cluster with one approved machine."""
    record = machine(1, "approved", status=status) if status is not None else machine(1, "approved", pin="x")
    owner = replace(cluster(), status={"bootstrappedAt": "2026-01-01T00:00:00Z"} if bootstrapped else {})
    lost = (Broken(MACHINE, "prod-2", "machines/prod-2.yaml", 3, "a mapping is expected"),) if broken else ()
    return of_plan(decide_bundle(
        BundleWish("prod", imported, "secrets.yaml", faults, **wish),  # type: ignore[arg-type]
        BundleSeen(form, there, (owner,) if stored else (), (record,) if stored else (), lost, stored, exported)))


OTHER = Present(replace(bundle(), cluster_id="another"))
SAME = Present(bundle())
SENT: dict[str, Json] = {"configStoredAt": "2026-01-01T00:00:00Z"}

BUNDLES: tuple[Row, ...] = (
    Row("8/bundle-made-once", put, actions=("GenerateSecrets",)),
    Row("8/bundle-there", lambda: put("clear", SAME)),
    Row("8/bundle-vaulted-and-there", lambda: put("vaulted", SAME)),
    Row("8/bundle-imported", lambda: put(imported=SAME), actions=("ImportSecrets",)),
    Row("8/bundle-imported-twice", lambda: put("clear", SAME, imported=SAME)),
    Row("8/bundle-import-unreadable", lambda: put(imported=Unknown("BundleInvalid", "no bundle")), ("8/bundle-import-unreadable",), reasons=("BundleInvalid",)),
    Row("8/bundle-faulty", lambda: put(imported=SAME, faults=("certs.os.key is required",)), ("8/bundle-faulty",), reasons=("BundleInvalid",),
        says=("certs.os.key is required",)),
    Row("8/bundle-unreadable", lambda: put("clear", Unknown("SecretsUnavailable", "mode 0644")), ("8/bundle-unreadable",), reasons=("SecretsUnavailable",)),
    Row("8/bundle-differs", lambda: put("clear", SAME, imported=OTHER), ("8/bundle-differs",), reasons=("RecordExists",)),
    Row("8/bundle-replaced", lambda: put("clear", SAME, imported=OTHER, replace=True), actions=("ImportSecrets",)),
    Row("8/bundle-vaulted", lambda: put("vaulted", SAME, imported=OTHER, replace=True), ("8/bundle-vaulted",), reasons=("BundleExposed",)),
    Row("8/bundle-sent", lambda: put("clear", SAME, imported=OTHER, replace=True, status=SENT), ("8/bundle-sent",), reasons=("AlreadySent",), says=("prod-1",)),
    Row("8/bundle-sent-no-answer", lambda: put("clear", SAME, imported=OTHER, replace=True, status={"sending": {"hash": "a"}}), ("8/bundle-sent",)),
    Row("8/bundle-sent-status-lost", lambda: put("clear", SAME, imported=OTHER, replace=True, status={
        "maintenanceFingerprint": None, "maintenanceFingerprintAt": None, "configStoredAt": "x"}), ("8/bundle-sent",)),
    Row("8/bundle-sent-bootstrapped", lambda: put("clear", SAME, imported=OTHER, replace=True, bootstrapped=True), ("8/bundle-sent",), says=("cluster prod",)),
    Row("8/bundle-sent-unreadable", lambda: put("clear", Unknown("BundleInvalid", "cut off"), imported=OTHER, replace=True, status=SENT), ("8/bundle-sent",)),
    Row("8/bundle-use-unknown", lambda: put("clear", SAME, imported=OTHER, replace=True, broken=True), ("8/bundle-use-unknown",), reasons=("RecordBroken",),
        says=("machines/prod-2.yaml, line 3",)),
    Row("8/bundle-no-memory", lambda: put("clear", SAME, imported=OTHER, replace=True, stored=False), ("8/bundle-no-memory",)),
    Row("8/bundle-exported", lambda: put("clear", SAME, export_path="/out"), ("8/bundle-export",), actions=("ExportSecrets",)),
    Row("8/bundle-exported-twice", lambda: put("clear", SAME, export_path="/out", exported=SAME)),
    Row("8/bundle-export-differs", lambda: put("clear", SAME, export_path="/out", exported=OTHER), ("8/bundle-export-differs",), reasons=("RecordExists",)),
    Row("8/bundle-old-key", lambda: put("clear", Present(bundle(old=True))), ("8/bundle-old-key",)),
)


def given(number: int, role: str = "worker", patches: Sequence[PatchRecord] = (), cluster_spec: dict[str, Json] | None = None, **spec: Json) -> RenderInput:
    base: dict[str, Json] = {"talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.9.0.1:6443", **(cluster_spec or {})}
    return RenderInput("prod", base, f"prod-{number}", {"role": role, "install": {"disk": "/dev/sda"}, **spec}, bundle(), tuple(patches))


def patched(documents: list[Json] | None = None, before: dict[str, Json] | None = None, *, text: bytes | None = None, selector: dict[str, Json] | None = None,
            inputs: Sequence[RenderInput] | None = None, has_cluster: bool = True, unchecked: str = "", labels: dict[str, str] | None = None,
            annotations: dict[str, str] | None = None, broken: Broken | None = None, version: str = "v1.13.9", **said: object) -> Seen:
    """A patch of cluster prod, whose machines are a control plane and a worker, both approved."""
    settings: dict[str, Json] = {"clusterRef": "prod"} if before is None else {}
    if documents is not None:
        settings["documents"] = documents
    if selector is not None:
        settings["machineSelector"] = selector
    record = Record(CONFIG_PATCH, "p", before, labels=labels or {}, annotations=annotations or {}, uid="uid-p") if before is not None else None
    edit = PatchEdit("p", settings, text, "p.yaml" if text is not None else "", **said)  # type: ignore[arg-type]
    if text is not None:
        try:
            edit = replace(edit, settings={**settings, "documents": list(documents_of(text, "p.yaml"))})
        except ConfigProblem as error:
            return Seen(frozenset({error.cause}), frozenset({error.reason}), told=error.text)
    machines = (machine(1, "approved", role="controlplane"), machine(2, "approved"), machine(3))
    effects = None
    if has_cluster and not unchecked:
        patch = PatchRecord.of("p", wanted_spec(edit, record))
        every = inputs if inputs is not None else (given(1, "controlplane"), given(2))
        effects = check_patch(patch, [(one, version) for one in every])
    owner = replace(cluster(), spec={**cluster().spec, "talosVersion": version}) if has_cluster else None
    return of_plan(decide_patch(edit, PatchSeen(record, broken, owner, machines if has_cluster else (), effects, unchecked))[0])


WRITTEN: dict[str, Json] = {"clusterRef": "prod", "layer": "cluster", "documents": SYSCTLS}
#: Renders with no patch either: the cluster names a mirror that is no URL.
BROKEN_INPUT = given(2, cluster_spec={"registries": {"mirrors": {"docker.io": {"endpoints": ["http://[a"]}}}})
JSON_PATCH: list[Json] = [{"op": "add", "path": "/machine/sysctls/a", "value": "b"}]

PATCHES: tuple[Row, ...] = (
    Row("8/patch-created", lambda: patched(SYSCTLS), actions=("CreatePatch",), says=("prod-1, prod-2", "no reboot")),
    Row("8/patch-unchanged", lambda: patched(SYSCTLS, WRITTEN)),
    Row("8/patch-changed", lambda: patched([{"machine": {"sysctls": {"a": "1"}}}], WRITTEN), actions=("EditPatch",)),
    Row("8/patch-selector-role", lambda: patched(SYSCTLS, selector={"role": "worker"}), actions=("CreatePatch",), says=("configuration of prod-2,",)),
    Row("8/patch-breaks", lambda: patched(NO_SUBNET), ("8/patch-breaks",), reasons=("RenderFailed",),
        says=("prod-1, prod-2", "kubelet nodeIP subnet is not valid", "without it it can")),
    Row("8/patch-breaks-selected", lambda: patched(NO_SUBNET, selector={"role": "worker"}), ("8/patch-breaks",), says=("configuration of prod-2 ",)),
    Row("8/patch-breaks-nobody", lambda: patched(NO_SUBNET, selector={"names": ["prod-9"]}), ("8/patch-unknown-name",), absent=("8/patch-breaks",),
        actions=("CreatePatch",)),
    Row("8/patch-broken-before", lambda: patched(SYSCTLS, inputs=(BROKEN_INPUT,)), ("8/patch-broken-before",), absent=("8/patch-breaks",),
        actions=("CreatePatch",), says=("this is no URL",)),
    Row("8/patch-broken-before-and-with-it", lambda: patched(NO_SUBNET, inputs=(BROKEN_INPUT,)), ("8/patch-broken-before",), absent=("8/patch-breaks",),
        actions=("CreatePatch",)),
    Row("8/patch-mends-itself", lambda: patched(SYSCTLS, {**WRITTEN, "documents": NO_SUBNET}, inputs=(given(
        2, patches=(PatchRecord("p", "cluster", 0, tuple(NO_SUBNET)),)),)), absent=("8/patch-breaks",), actions=("EditPatch",)),
    Row("8/patch-no-cluster", lambda: patched(NO_SUBNET, has_cluster=False, unchecked="there is no cluster prod."), ("8/patch-unchecked",),
        actions=("CreatePatch",), says=("there is no cluster prod",)),
    Row("8/patch-no-bundle", lambda: patched(NO_SUBNET, unchecked="The secrets bundle prod is not in the store."), ("8/patch-unchecked",),
        actions=("CreatePatch",)),
    Row("8/patch-reboots", lambda: patched([{"machine": {"features": {"rbac": False}}}]), ("8/patch-reboot",), actions=("CreatePatch",),
        says=("machine.features.rbac", "would reboot")),
    Row("8/patch-hostname-reboots", lambda: patched([{"apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off", "hostname": "x"}],
                                                    inputs=(given(2),)), ("8/patch-reboot",), actions=("CreatePatch",)),
    Row("8/patch-api-server-flag", lambda: patched([{"cluster": {"apiServer": {"extraArgs": {"v": "2"}}}}]), absent=("8/patch-reboot",),
        actions=("CreatePatch",), says=("no reboot",)),
    Row("8/patch-later", lambda: patched([{"cluster": {"etcd": {"extraArgs": {"election-timeout": "5000"}}}}], inputs=(given(1, "controlplane"),)),
        ("8/patch-later",), actions=("CreatePatch",)),
    Row("8/patch-never", lambda: patched([{"machine": {"install": {"wipe": True}}}]), ("8/patch-never",), actions=("CreatePatch",)),
    Row("8/spec-wins-over-a-patch", lambda: patched([{"apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off", "hostname": "x"}],
                                                    inputs=(given(2, hostname="w-1"),)), actions=("CreatePatch",), says=("no approved machine's",)),
    Row("8/patch-empty", lambda: patched([]), ("8/patch-empty",), actions=("CreatePatch",)),
    Row("8/patch-only-comments", lambda: patched(text=b"# nothing yet\n---\n# and here neither\n"), ("8/patch-empty",), actions=("CreatePatch",)),
    Row("8/patch-selects-nobody", lambda: patched(SYSCTLS, selector={"labels": {"site": "north"}}), ("8/patch-selects-nobody",), actions=("CreatePatch",)),
    Row("8/patch-unknown-name", lambda: patched(SYSCTLS, selector={"names": ["prod-1", "prod-9"]}), ("8/patch-unknown-name",), actions=("CreatePatch",),
        says=("prod-9",)),
    Row("8/patch-secret", lambda: patched([{"apiVersion": "v1alpha1", "kind": "RegistryAuthConfig", "name": "r.lan", "username": "u", "password": "p4ssw0rd"}]),
        ("8/patch-secret",), actions=("CreatePatch",)),
    Row("8/json-patch", lambda: patched(JSON_PATCH), ("8/json-patch",), reasons=("ConfigInvalid",), says=("sysctls:\n        a: b",)),
    Row("8/json-patch-without-a-form", lambda: patched([{"op": "remove", "path": "/machine/sysctls"}]), ("8/json-patch",), says=("$patch: delete",)),
    Row("8/json-patch-in-a-file", lambda: patched(text=b"- op: add\n  path: /machine/sysctls/a\n  value: b\n"), ("JSONPatchRefused",), says=("line 1", "a: b")),
    Row("8/patch-template", lambda: patched([{"machine": {"sysctls": {"a": "{{ value }}"}}}]), ("3/patch-schema",), reasons=("TemplateUnexpanded",),
        says=("machine.sysctls.a",)),
    Row("8/patch-template-in-a-file", lambda: patched(text=b"machine:\n  sysctls:\n    a: ${VALUE}\n"), reasons=("TemplateUnexpanded",), says=("line 3",)),
    Row("8/unknown-key", lambda: patched([{"machine": {"sysctl": {}}}]), ("3/patch-schema",), reasons=("ConfigInvalid",), says=("sysctl",)),
    Row("8/unknown-key-in-a-file", lambda: patched(text=b"machine:\n  sysctls: {}\n  sysctl: {}\n"), ("3/patch-schema",), says=("p.yaml, line 3",)),
    Row("8/unknown-kind", lambda: patched([{"apiVersion": "v1alpha1", "kind": "NoSuchConfig"}]), ("3/patch-schema",), says=("NoSuchConfig",)),
    Row("8/kind-of-a-newer-talos", lambda: patched([{"apiVersion": "v1alpha1", "kind": "KubeletConfig"}]), ("3/patch-schema",), says=("1.14",)),
    Row("8/patch-broken-file", lambda: patched(SYSCTLS, broken=Broken(CONFIG_PATCH, "p", "patches/p.yaml", 2, "cut off")), ("4/record-broken",)),
    Row("8/patch-tracked", lambda: patched([{"machine": {"sysctls": {"a": "1"}}}], WRITTEN, labels=FLUX), ("3/gitops",), reasons=("RecordTracked",)),
    Row("8/patch-tracked-and-meant", lambda: patched([{"machine": {"sysctls": {"a": "1"}}}], WRITTEN, labels=FLUX, override=True), actions=("EditPatch",)),
    Row("8/patch-without-documents", patched, ("schema/required",), reasons=("RecordInvalid",)),
    Row("8/patch-deleted", lambda: patched(None, WRITTEN, absent=True, allow_delete=True), actions=("DeletePatch",)),
    Row("8/patch-deleted-by-annotation", lambda: patched(None, WRITTEN, absent=True, annotations={ALLOW_DELETE: "true"}), actions=("DeletePatch",)),
    Row("8/patch-delete-not-meant", lambda: patched(None, WRITTEN, absent=True), ("4/allow-delete",), reasons=("DeleteNotAllowed",)),
    Row("8/patch-delete-broken", lambda: patched(None, WRITTEN, absent=True, allow_delete=True, broken=Broken(CONFIG_PATCH, "p", "f", 1, "x")),
        ("4/record-broken",)),
    Row("8/patch-delete-tracked", lambda: patched(None, WRITTEN, absent=True, allow_delete=True, labels=FLUX), ("3/gitops",)),
    Row("8/patch-delete-missing", lambda: patched(None, None, absent=True)),
)


def rendered(*patches: PatchRecord, **spec: Json) -> Rendered:
    return render(given(1, "controlplane", patches, **spec))


def running(change: dict[str, str]) -> Config:
    """What a node runs: the render with some texts changed."""
    text = rendered().text
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    return load(text, "1.13")


def state(wanted: Observed[Rendered], runs: Observed[Config]) -> Seen:
    found = judge(wanted, runs, "v1.13.9")
    drift = found.drift
    told = [found.message] + [one.where for one in (*drift.apply, *drift.newer_images, *drift.authority)] if drift else [found.message]
    return Seen(frozenset({found.rule}), frozenset({found.reason} - {""}), tuple(one.where for one in found.differences), told="\n".join(told))


CONTROL = "cluster.apiServer.image"
STATES: tuple[Row, ...] = (
    Row("8/render-failed", lambda: state(Unknown("RenderFailed", "patch p: unknown key."), Absent()), ("8/render-failed",), reasons=("RenderFailed",),
        says=("patch p",)),
    Row("8/bundle-missing", lambda: state(Unknown("SecretsUnavailable", "no bundle"), Absent()), ("8/render-failed",), reasons=("SecretsUnavailable",)),
    Row("8/renders", lambda: state(Present(rendered()), Absent()), ("8/renders",)),
    Row("8/in-sync", lambda: state(Present(rendered()), Present(running({}))), ("11/in-sync",), reasons=("Converged",)),
    Row("8/drifted", lambda: state(Present(rendered()), Present(running({"debug: false": "debug: true"}))), ("11/drift",), reasons=("Drifted",),
        actions=("v1alpha1: debug",), says=("1 path differs",)),
    Row("8/newer-images", lambda: state(Present(rendered()), Present(running({"kube-apiserver:v1.35.0": "kube-apiserver:v1.35.1"}))), ("8/newer-images",),
        reasons=("Converged",), says=(CONTROL, "stay")),
    Row("8/older-images", lambda: state(Present(rendered()), Present(running({"kube-apiserver:v1.35.0": "kube-apiserver:v1.34.9"}))), ("11/drift",),
        reasons=("Drifted",), actions=(f"v1alpha1: {CONTROL}",)),
    Row("8/another-token", lambda: state(Present(rendered()), Present(running({bundle().trustd_token: "abcdef.0123456789abcdef"}))), ("8/authority",),
        reasons=("AuthorityMismatch",), says=("machine.token",)),
    Row("8/unreadable", lambda: state(Present(rendered()), Unknown("TimedOut", "no answer")), ("11/unreadable",), reasons=("CurrentConfigUnavailable",)),
)


@functools.cache
def issued(days: int = 365, roles: tuple[str, ...] = ("os:admin",), name: str = "prod", endpoints: tuple[str, ...] = ("10.0.0.1",),
           foreign: bool = False) -> CredentialFile:
    authority = placeholder_bundle("other", NOW.year).os if foreign else bundle().os
    client = issue_client(authority, roles, "", NOW, datetime.timedelta(days=days), lambda count: hashlib.shake_128(b"x").digest(count))
    return CredentialFile("talosconfig", name, authority.crt, client, endpoints)


def credentials(there: Observed[CredentialFile] = Absent(), *, authority: bool = True, private: bool = True, kind: str = "talosconfig",
                roles: tuple[str, ...] = ("os:admin",), server: str = "", endpoints: tuple[str, ...] = ("10.0.0.1",), **wish: object) -> Seen:
    found = Present(bundle().os) if authority else Unknown("SecretsUnavailable", "no bundle")
    plan: Plan = decide_credentials(
        CredentialWish(kind, "/out", "prod", roles, endpoints=endpoints, server=server, **wish),  # type: ignore[arg-type]
        CredentialSeen(found, there, private), NOW)
    return of_plan(plan)


ISSUE = ("IssueCredentials",)
CREDENTIALS: tuple[Row, ...] = (
    Row("5/credentials-issued", credentials, actions=ISSUE),
    Row("5/credentials-good", lambda: credentials(Present(issued()))),
    Row("5/credentials-end-soon", lambda: credentials(Present(issued(days=20))), actions=ISSUE, says=("valid until 2026-12-20",)),
    Row("5/credentials-other-roles", lambda: credentials(Present(issued(roles=("os:reader",)))), actions=ISSUE, says=("os:reader",)),
    Row("5/credentials-other-addresses", lambda: credentials(Present(issued(endpoints=("10.0.0.9",)))), actions=ISSUE),
    Row("5/credentials-open-to-others", lambda: credentials(Present(issued()), private=False), actions=ISSUE, says=("others can read",)),
    Row("5/credentials-of-a-rotated-ca", lambda: credentials(Present(issued(foreign=True))), actions=ISSUE, says=("another CA",)),
    Row("5/credentials-no-endpoints", lambda: credentials(endpoints=()), ("5/credentials-no-endpoints",), actions=ISSUE),
    Row("5/credentials-no-authority", lambda: credentials(authority=False), ("5/credentials-no-authority",), reasons=("SecretsUnavailable",)),
    Row("5/credentials-unknown-role", lambda: credentials(roles=("admin",)), ("5/credentials-unknown-role",), says=("os:reader",)),
    Row("5/credentials-no-server", lambda: credentials(kind="kubeconfig", roles=("system:masters",)), ("5/credentials-no-server",)),
    Row("5/credentials-another-cluster", lambda: credentials(Present(issued(foreign=True, name="other"))), ("5/credentials-something-else",),
        reasons=("RecordExists",)),
    Row("5/credentials-something-else", lambda: credentials(Unknown("RecordExists", "it is no YAML.")), ("5/credentials-something-else",)),
    Row("5/credentials-replaced", lambda: credentials(Unknown("RecordExists", "it is no YAML."), replace=True), actions=ISSUE),
)

CONFIGURATION: tuple[Row, ...] = (*BUNDLES, *PATCHES, *STATES, *CREDENTIALS)
