#!/usr/bin/env bash
# cluster: --real 0
# Whose name an Experiment may carry: the policy of deploy/kubernetes/base/actors.yaml, asked of a
# real API server. And who may read the metrics by the cluster's rules.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"

CREATED=shirabe.dev/created-by
CHANGED=shirabe.dev/changed-by

# experiment NAME [ANNOTATION]
experiment() {
  cat <<END
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: $1, namespace: team, annotations: {${2:-}}}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 2
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  shirabe: {askAndTell: true}
END
}
create() { experiment "$2" "${3:-}" | kubectl --as "$1" create -f -; }
annotate() { kubectl --as "$1" -n team annotate experiments.kubeflow.org own --overwrite "$2"; }
change() { kubectl --as "$1" -n team patch experiments.kubeflow.org own --type merge -p "$2"; }
refused() {
  local said
  said=$("$@" 2>&1) && return 1
  grep -q "denied request" <<<"$said"
}

step "installing"
kubectl apply --server-side -k "$SOURCE/deploy/kubernetes" >/dev/null
kubectl create namespace team >/dev/null
for user in alice bob; do
  kubectl create clusterrolebinding "$user" --clusterrole=cluster-admin --user="$user" >/dev/null
done
# A new policy is in force after a moment.
eventually 30 "the policy" refused create alice "probe-$RANDOM" "$CREATED: bob"

step "creating"
expect "without a name" create alice plain
expect "with one's own name" create alice own "$CREATED: alice"
expect "with another's name" refused create alice forged "$CREATED: bob"
expect "changed by another" refused create alice forged "$CHANGED: bob"

step "changing"
expect "who made it" refused annotate bob "$CREATED=bob"
expect "nobody made it" refused annotate alice "$CREATED-"
expect "the specification" change bob '{"spec": {"maxTrialCount": 3}}'
expect "and one's name" change bob \
  '{"metadata": {"annotations": {"'"$CHANGED"'": "bob"}}, "spec": {"maxTrialCount": 4}}'
expect "under another's name" refused change alice '{"spec": {"maxTrialCount": 5}}'
expect "a label" kubectl --as alice -n team label experiments.kubeflow.org own a=b

step "reading metrics"
# The last object of it is of the Prometheus operator, which is not here.
kubectl apply -f "$SOURCE/deploy/kubernetes/components/monitoring/monitoring.yaml" \
  >/dev/null 2>&1 || true
expect "its account may" kubectl auth can-i --quiet get /metrics \
  --as system:serviceaccount:shirabe-system:shirabe-metrics
expect "others may not" test "$(kubectl auth can-i get /metrics \
  --as system:serviceaccount:shirabe-system:shirabe-admin || true)" = no
echo ok
