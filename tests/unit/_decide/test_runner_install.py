# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which objects of the runner are applied, and what the Deployment promises (design section 18)."""

from __future__ import annotations

import json

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.runner_install import ApplyObject, Seen, WriteManifest, decide_install
from ansible_collections.ichor.talos.plugins.module_utils._model.access_policies import RUNNER
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.runner_manifests import RunnerSettings, deployment, environment, file_of, manifests

SETTINGS = RunnerSettings("images.example.org/talos-runner:1", "ichor-system", variables={"ichor_leader": "runner"})
DEPLOYMENT = deployment(SETTINGS)
DEFINITION = next(made for made in manifests(SETTINGS) if made["kind"] == "CustomResourceDefinition")


def served(made, **labels):
    """The object as an API server gives it back."""
    metadata = {**made["metadata"], "uid": "u", "resourceVersion": "7", "generation": 2, "managedFields": []}
    if labels:
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
    return {**made, "metadata": metadata, "status": {"observedGeneration": 2}}


def test_what_is_as_wanted_is_left_alone():
    assert decide_install([Seen(DEPLOYMENT, Present(served(DEPLOYMENT)), served(DEPLOYMENT))], False).steps == ()


def test_what_is_missing_or_differs_is_applied_in_order():
    other = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 5}}
    plan = decide_install([Seen(DEFINITION, Absent()), Seen(DEPLOYMENT, Present(served(other)), served(DEPLOYMENT))], False)
    assert [(type(step), str(step.target)) for step in plan.steps] == [
        (ApplyObject, f"CustomResourceDefinition {DEFINITION['metadata']['name']}"), (ApplyObject, f"Deployment {RUNNER}")]
    assert [step.why for step in plan.steps] == ["it is not there", "it differs from what this version needs"]


def test_a_file_is_written_where_it_differs():
    plan = decide_install([Seen(DEPLOYMENT, Absent(), file="/x/y.yaml"), Seen(DEFINITION, Present(DEFINITION), file="/x/z.yaml")], False)
    assert [(type(step), step.file) for step in plan.steps] == [(WriteManifest, "/x/y.yaml")]


@pytest.mark.parametrize("override", [False, True])
def test_18_runner_tracked(override):
    now = served({**DEPLOYMENT, "spec": {}}, **{"argocd.argoproj.io/instance": "fleet"})
    plan = decide_install([Seen(DEFINITION, Absent()), Seen(DEPLOYMENT, Present(now), served(DEPLOYMENT))], override)
    assert [refusal.rule for refusal in plan.refusals] == ([] if override else ["18/runner-tracked"])
    assert len(plan.steps) == (2 if override else 0)


def test_18_runner_definition_changes():
    plan = decide_install([Seen(DEFINITION, Present(served({**DEFINITION, "spec": {}})), served(DEFINITION))], False)
    assert [warning.rule for warning in plan.warnings] == ["18/runner-definition-changes"]
    assert decide_install([Seen(DEFINITION, Absent())], False).warnings == ()


def test_the_deployment_fits_the_restricted_standard_and_needs_no_writable_image():
    pod = DEPLOYMENT["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod) and [volume["emptyDir"] for volume in pod["volumes"]] == [{}]
    assert all(value.startswith("/tmp/") for name, value in environment("x").items() if value.startswith("/"))
    assert pod["serviceAccountName"] == RUNNER and DEPLOYMENT["spec"]["replicas"] == 2
    assert {"startupProbe", "readinessProbe", "livenessProbe", "resources"} <= set(container) and container["resources"]["limits"]["memory"]
    assert container["command"][:3] == ["dumb-init", "--single-child", "--"] and json.loads(container["command"][-1]) == {"ichor_leader": "runner"}


def test_each_object_has_a_file_of_its_own():
    made = manifests(SETTINGS)
    assert len({file_of(one) for one in made}) == len(made) and made[0]["kind"] == "Namespace" and made[-1]["kind"] == "Deployment"
    settings = RunnerSettings("i", "other", 3, ("pull",), {}, {"limits": {"memory": "2Gi"}}, {"node": "x"})
    pod = deployment(settings)["spec"]["template"]["spec"]
    assert (pod["imagePullSecrets"], pod["nodeSelector"], pod["containers"][0]["resources"]) == (
        [{"name": "pull"}], {"node": "x"}, {"limits": {"memory": "2Gi"}})
