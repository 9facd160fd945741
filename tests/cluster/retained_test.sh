#!/usr/bin/env bash
# cluster: --real 0
# Objects of trials that a template retains, of a kind that is no Job, when their experiment is
# deleted and the controller dies before they are: the next one deletes them.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/outside.sh
source "$HERE/outside.sh"
trap at_exit EXIT

widgets() { kubectl -n team get widgets -o name | sort | tr '\n' ' '; }

# A kind of its own, which nobody makes anything of.
make_kind() {
  kubectl apply -f - >/dev/null <<'END'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
END
  established widgets.example.com
}

# Nobody deletes objects of it: as if the API server were busy.
protect() {
  kubectl apply -f - >/dev/null <<'END'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: protect}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [example.com], apiVersions: ["*"], operations: [DELETE], resources: [widgets]}
  validations: [{expression: "false", message: not now}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: protect}
spec: {policyName: protect, validationActions: [Deny]}
END
}
is_protected() { ! kubectl -n team delete widget mine --dry-run=server >/dev/null 2>&1; }

experiment() {
  cat <<'END'
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: kept, namespace: team}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  metricsCollectorSpec: {collector: {kind: None}}
  parallelTrialCount: 2
  maxTrialCount: 2
  maxFailedTrialCount: 2
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  trialTemplate:
    retain: true
    primaryContainerName: main
    successCondition: status.conditions.#(type=="Succeeded")#|#(status=="True")#
    failureCondition: status.conditions.#(type=="Failed")#|#(status=="True")#
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: example.com/v1
      kind: Widget
      spec: {x: "${trialParameters.x}"}
END
}

# finish WIDGET…
finish() {
  local widget
  for widget in "$@"; do
    kubectl -n team patch "$widget" --type=merge \
      -p '{"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}' >/dev/null
  done
}

step "beginning"
kubectl apply --server-side -k "$SOURCE/deploy/kubernetes/crds" >/dev/null
kubectl create namespace team >/dev/null
make_kind
kubectl -n team create -f - >/dev/null <<'END'
{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "mine"}}
END
start_controller
experiment >"$CLUSTER/kept.yaml"
asked create -f "$CLUSTER/kept.yaml"
TRIALS="widget.example.com/kept-1-a1 widget.example.com/kept-2-a1 "
eventually 30 "trials" is "${TRIALS}widget.example.com/mine " widgets
# shellcheck disable=SC2086 # words
finish $TRIALS
expect "its end" asked wait kept --timeout 30s
sleep 3
equal "retained" "${TRIALS}widget.example.com/mine " "$(widgets)"

step "deleting"
protect
eventually 30 "the protection" is_protected
asked delete kept
sleep 3
equal "protected" "${TRIALS}widget.example.com/mine " "$(widgets)"
kill_controller
kubectl delete validatingadmissionpolicybinding protect >/dev/null
sleep 3
equal "nobody's" "${TRIALS}widget.example.com/mine " "$(widgets)"

step "again"
start_controller
eventually 60 "their end" is "widget.example.com/mine " widgets
eventually 10 "a free name" asked create -f "$CLUSTER/kept.yaml"
echo ok
