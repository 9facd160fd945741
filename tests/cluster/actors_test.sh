#!/usr/bin/env bash
# cluster: --real 0
# Whose name an Experiment may carry: the policy of deploy/kubernetes/base/actors.yaml, asked of a
# real API server; what components/actors-v1 writes there, and where a controller shows it. And who
# may read the metrics by the cluster's rules.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/outside.sh
source "$HERE/outside.sh"

CREATED=shirabe.dev/created-by
CHANGED=shirabe.dev/changed-by

trap at_exit EXIT

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
NAME=own # of the one that is changed
create() { experiment "$2" "${3:-}" | kubectl --as "$1" create -f -; }
annotate() { kubectl --as "$1" -n team annotate experiments.kubeflow.org "$NAME" --overwrite "$2"; }
change() { kubectl --as "$1" -n team patch experiments.kubeflow.org "$NAME" --type merge -p "$2"; }
# put USER VERB [FLAG…]: the whole object as its author has it in a file, without annotations.
put() {
  experiment "$NAME" | sed 's/maxTrialCount: 2/maxTrialCount: 9/' |
    kubectl --as "$1" "${@:2}" -f -
}
# names EXPERIMENT: who made it and who changed it, as the object says.
names() {
  kubectl -n team get experiments.kubeflow.org "$1" -o \
    "jsonpath={.metadata.annotations.${CREATED/./\\.}} {.metadata.annotations.${CHANGED/./\\.}}"
}
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

# ---- where the API server writes the names -----------------------------------------------------

# A user of the cluster with a token of its own, not one whom an administrator plays.
kubectl -n team create serviceaccount trainer >/dev/null
kubectl create clusterrolebinding trainer --clusterrole=cluster-admin \
  --serviceaccount=team:trainer >/dev/null
TRAINER=system:serviceaccount:team:trainer
make_account_config() {
  local config=$CLUSTER/trainer.kubeconfig
  sed '/^    user:/d' "$CLUSTER/admin.kubeconfig" >"$config"
  kubectl --kubeconfig "$config" config set-credentials admin \
    --token="$(kubectl -n team create token trainer)" >/dev/null
}

step "stamping"
make_account_config
mkdir "$CLUSTER/actors"
COMPONENT=$SOURCE/deploy/kubernetes/components/actors-v1
echo "components: [$(realpath --relative-to="$CLUSTER/actors" "$COMPONENT")]" \
  >"$CLUSTER/actors/kustomization.yaml"
kubectl apply --server-side -k "$CLUSTER/actors" >/dev/null
# Until it knows the schema of our kind, too, the API server refuses Experiments for this policy.
stamps() {
  local probe=probe-$RANDOM
  create alice "$probe" && is "alice " names "$probe"
}
eventually 60 "the policy that writes" stamps

expect "without a name" create alice stamped
equal "the author's" "alice " "$(names stamped)"
expect "with another's name" create alice overruled "$CREATED: bob"
equal "the author's all the same" "alice " "$(names overruled)"
experiment account "$CREATED: alice" |
  kubectl --kubeconfig "$CLUSTER/trainer.kubeconfig" create -f - >/dev/null
equal "an account's" "$TRAINER " "$(names account)"
expect "a change by another before it" refused create alice forged "$CHANGED: bob"

NAME=stamped
expect "another's name later" refused annotate bob "$CREATED=bob"
expect "another's name in a change" refused change bob \
  '{"metadata": {"annotations": {"'"$CREATED"'": "bob"}}, "spec": {"maxTrialCount": 3}}'
equal "as it was" "alice " "$(names stamped)"
annotate bob "$CREATED-" >/dev/null
equal "taken away: undone" "alice " "$(names stamped)"
expect "a change" change bob '{"spec": {"maxTrialCount": 4}}'
equal "who changed it" "alice bob" "$(names stamped)"
expect "a change under another's name" change alice \
  '{"metadata": {"annotations": {"'"$CHANGED"'": "bob"}}, "spec": {"maxTrialCount": 5}}'
equal "who it was" "alice alice" "$(names stamped)"
expect "replaced without annotations" put bob replace
equal "still hers" "alice bob" "$(names stamped)"
NAME=applied
for user in alice bob; do expect "applied" put "$user" apply --server-side --force-conflicts; done
equal "the first one's" "alice " "$(names applied)"
kubectl -n team label experiments.kubeflow.org applied a=b >/dev/null
equal "after another's write" "alice " "$(names applied)"
# One from before the policy belongs to nobody, and nobody takes it.
NAME=plain
expect "claiming it" refused annotate bob "$CREATED=bob"
expect "changing it" change bob '{"spec": {"maxTrialCount": 4}}'
equal "no author" " bob" "$(names plain)"

step "showing"
# http PATH EXPRESSION: of what is answered in JSON, as Python's `it`.
http() {
  kubectl --kubeconfig=/dev/null --server=https://localhost:7451 \
    --certificate-authority="$SHIRABE_HOME/tls/ca.crt" --token="$(cat "$SHIRABE_HOME/token")" \
    get --raw "/api/v1/namespaces/team/experiments/$1" |
    python3 -c "import json, sys; it = json.load(sys.stdin); print($2)"
}
# shows EXPERIMENT NAME: each way of asking who made it.
shows() {
  eventually 30 "$1 in its object" is "$2" kubectl -n team get experiments.kubeflow.org "$1" \
    -o 'jsonpath={.status.shirabe.createdBy.name}'
  expect "describe" has "^Created by: +$2 \(kubernetes\)$" asked describe "$1"
  expect "events" has "ExperimentCreated .*; by $2 \(kubernetes\)$" asked events "$1"
  equal "HTTP" "$2" "$(http "$1" 'it["status"]["shirabe"]["createdBy"]["name"]')"
  equal "HTTP, events" "$2" "$(http "$1/events" '[one["actor"]["name"] for one in it["items"]
    if one["reason"] == "ExperimentCreated"][0]')"
}
start_controller
shows stamped alice
shows overruled alice
shows account "$TRAINER"
# As on a cluster without that API: only the program is known.
shows plain "an unnamed user of kubectl-create"

step "starting again and again"
# schedule NAME [TEMPLATE]: of experiments whose trials their askers run, or with this template.
schedule() {
  experiment template | sed -n '/^spec:/,$p' |
    sed -e "s/^  shirabe: .*/  ${2:-shirabe: {askAndTell: true\}}/" -e 's/^/    /' | cat <(
      cat <<END
apiVersion: kubeflow.org/v1beta1
kind: ScheduledExperiment
metadata: {name: $1, namespace: team}
spec:
  schedule: "0 * * * *"
  experimentTemplate:
END
    ) -
}
schedules() { kubectl -n team "$1" scheduledexperiments.kubeflow.org "${@:2}"; }
started() {
  kubectl -n team get experiments.kubeflow.org -l shirabe.dev/schedule=hourly -o name | wc -l
}
put_schedule() { schedule "${@:2}" | kubectl --as "$1" create -f -; }
expect "a schedule" put_schedule alice hourly
kubectl create clusterrolebinding carol --clusterrole=shirabe-edit --user=carol >/dev/null
JOB='trialTemplate: {trialSpec: {apiVersion: batch\/v1, kind: Job}}'
expect "who may not make Jobs" refused put_schedule carol forbidden "$JOB"
LONG=$(printf 'n%.0s' {1..32})
expect "a name that is too long" test -z "$(put_schedule alice "$LONG" 2>/dev/null)"
# As if the hours since then had passed while no controller ran.
schedules patch hourly --subresource=status --type merge \
  -p '{"status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}}' >/dev/null
eventually 20 "an experiment" is 1 started
eventually 10 "its name in the status" has '^hourly-[0-9]+$' schedules get hourly \
  -o 'jsonpath={.status.lastExperiment}'
eventually 20 "its records" has '^Name: +hourly-' asked describe \
  "$(schedules get hourly -o 'jsonpath={.status.lastExperiment}')"
expect "the event" has TooManyMissedTimes kubectl -n team get events \
  --field-selector involvedObject.kind=ScheduledExperiment
kill_controller
start_controller
schedules patch hourly --type merge -p '{"spec": {"suspend": true}}' >/dev/null
sleep 2
equal "experiments after a crash" 1 "$(started)"
schedules annotate hourly shirabe.dev/run-now="$(date +%s)" >/dev/null
eventually 20 "one that is asked for" has '^hourly-m' schedules get hourly \
  -o 'jsonpath={.status.lastExperiment}'
equal "that the request is taken off" "" "$(schedules get hourly \
  -o 'jsonpath={.metadata.annotations.shirabe\.dev/run-now}')"
equal "experiments of it" 2 "$(started)"
schedules delete hourly >/dev/null
eventually 30 "the end of what it started" is 0 started

step "reading metrics"
# The last object of it is of the Prometheus operator, which is not here.
kubectl apply -f "$SOURCE/deploy/kubernetes/components/monitoring/monitoring.yaml" \
  >/dev/null 2>&1 || true
expect "its account may" kubectl auth can-i --quiet get /metrics \
  --as system:serviceaccount:shirabe-system:shirabe-metrics
expect "others may not" test "$(kubectl auth can-i get /metrics \
  --as system:serviceaccount:shirabe-system:shirabe-admin || true)" = no

step "uninstalling"
expect "uninstall.sh" "$HERE/cluster.sh" exec "$CLUSTER" "$SOURCE/deploy/kubernetes/uninstall.sh" \
  >/dev/null
equal "policies that stay" "" "$(kubectl get -o name -l app.kubernetes.io/part-of=shirabe \
  validatingadmissionpolicies,validatingadmissionpolicybindings)$(kubectl get -o name \
  mutatingadmissionpolicies,mutatingadmissionpolicybindings)"
echo ok
