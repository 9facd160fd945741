#!/usr/bin/env bash
# cluster: --real 0
# Whose name an Experiment may carry: the policy of deploy/kubernetes/base/actors.yaml, asked of a
# real API server; what components/actors-v1 writes there, and where a controller shows it. With
# whose rights trials are made where components/trial-account is applied. And who may read the
# metrics by the cluster's rules.
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
# make_account_config NAMESPACE ACCOUNT: $CLUSTER/ACCOUNT.kubeconfig
make_account_config() {
  local config=$CLUSTER/$2.kubeconfig
  sed '/^    user:/d' "$CLUSTER/admin.kubeconfig" >"$config"
  kubectl --kubeconfig "$config" config set-credentials admin \
    --token="$(kubectl -n "$1" create token "$2")" >/dev/null
}

step "stamping"
make_account_config team trainer
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

step "trials with the rights of their namespace"
BOUNDED=system:serviceaccount:shirabe-system:shirabe-controller
# bounded VERB RESOURCE…: whether the controller may, by its own rights.
bounded() { kubectl auth can-i --quiet --as "$BOUNDED" "$@"; }
# unbounded VERB RESOURCE…: the API server says no to it; an error is no answer.
unbounded() {
  local answer
  answer=$(kubectl auth can-i --as "$BOUNDED" "$@" 2>/dev/null) || true
  [ "${answer%% *}" = no ]
}
# trials NAME KIND [METADATA]: an experiment whose trials are made, of one at a time.
trials() {
  local template="apiVersion: batch/v1, kind: Job, metadata: {${3:-}}"
  local pod='restartPolicy: Never, containers: [{name: main, image: none, command: [a]}]'
  [ "$2" = Job ] || template="apiVersion: v1, kind: Pod, metadata: {${3:-}}, spec: {$pod}"
  [ "$2" = Pod ] || template="$template, spec: {template: {spec: {$pod}}}"
  experiment "$1" | sed -e '/askAndTell/d' -e 's/^  maxTrialCount: 2/&\n  parallelTrialCount: 1/'
  echo "  trialTemplate: {primaryContainerName: main, trialParameters: [], trialSpec: {$template}}"
}
apply_trials() { trials "$@" | kubectl --as alice create -f - >/dev/null; }
# lacks EXPERIMENT: what its condition says of the account.
lacks() {
  kubectl -n team get experiments.kubeflow.org "$1" \
    -o 'jsonpath={.status.conditions[?(@.type=="TrialAccountAllowed")].message}'
}
jobs_of() { kubectl get jobs -A -l "katib.kubeflow.org/experiment=$1" -o name | wc -l; }
fails() { ! "$@" 2>&1; }
kill_controller
kubectl apply --server-side -k "$SOURCE/deploy/kubernetes/overlays/trial-account" >/dev/null
eventually 20 "no right to make Jobs" unbounded create jobs.batch -n team
for right in 'delete jobs.batch' 'create pods' 'delete pods' 'create pytorchjobs.kubeflow.org' \
  'create persistentvolumeclaims' 'impersonate serviceaccounts/default' 'impersonate users' \
  'impersonate groups'; do
  # shellcheck disable=SC2086 # words
  expect "the controller may not" unbounded $right -n team
done
eventually 20 "whom it may act as" bounded impersonate serviceaccounts/shirabe-trials -n team
make_account_config shirabe-system shirabe-controller
CONFIG=$CLUSTER/shirabe-controller.kubeconfig start_controller --trial-account=shirabe-trials

expect "trials of a namespace without the account" apply_trials bare Job
MISSING='ServiceAccount team/shirabe-trials may not create jobs.batch in namespace team.*kubectl'
eventually 30 "its condition" has "$MISSING" lacks bare
eventually 10 "its event" has "TrialAccountRefused +.*$MISSING" \
  kubectl -n team get events --sort-by=.lastTimestamp
# Those of another namespace may not be borrowed.
kubectl create namespace rich >/dev/null
kubectl -n rich create rolebinding shirabe-trials --clusterrole=shirabe-trials \
  --serviceaccount=rich:shirabe-trials >/dev/null
expect "a template for another namespace" apply_trials moved Job 'namespace: rich'
eventually 30 "its refusal" has 'metadata.namespace: remove it' kubectl -n team get \
  experiments.kubeflow.org moved -o 'jsonpath={.status.conditions[*].message}'
expect "a template that names another account" apply_trials borrowed Job \
  'annotations: {shirabe.dev/trial-account: rich, impersonate-user: system:admin}'
eventually 30 "its condition" has "$MISSING" lacks borrowed
equal "Jobs of theirs" "0 0 0" "$(jobs_of bare) $(jobs_of borrowed) $(jobs_of moved)"

kubectl -n team create role trial-jobs --verb=create --resource=jobs.batch >/dev/null
kubectl -n team create rolebinding trial-jobs --role=trial-jobs \
  --serviceaccount=team:shirabe-trials >/dev/null
eventually 30 "a Job once it may" is 1 jobs_of bare
eventually 10 "that nothing is missing" is "" lacks bare
expect "trials of a kind that it may not make" apply_trials pod Pod
eventually 30 "its condition" has 'may not create pods in namespace team' lacks pod
kubectl -n team create rolebinding shirabe-trials --clusterrole=shirabe-trials \
  --serviceaccount=team:shirabe-trials >/dev/null
kubectl -n team delete experiments.kubeflow.org borrowed moved pod --timeout=60s >/dev/null
POD=$(kubectl -n team get pods -l katib.kubeflow.org/experiment=bare -o name)
eventually 30 "what it may change of pods" has 'may change finalizers of pods only' fails kubectl \
  --kubeconfig "$CLUSTER/shirabe-controller.kubeconfig" -n team label "$POD" --overwrite a=b
# With the namespace the account's binding goes, perhaps before the pods that we hold.
expect "a finalizer of ours" has 'shirabe.dev/log' \
  kubectl -n team get "$POD" -o 'jsonpath={.metadata.finalizers}'
kubectl -n team delete rolebinding shirabe-trials trial-jobs >/dev/null
kubectl delete namespace team --timeout=60s >/dev/null

step "uninstalling"
expect "uninstall.sh" "$HERE/cluster.sh" exec "$CLUSTER" "$SOURCE/deploy/kubernetes/uninstall.sh" \
  >/dev/null
equal "policies that stay" "" "$(kubectl get -o name -l app.kubernetes.io/part-of=shirabe \
  validatingadmissionpolicies,validatingadmissionpolicybindings)$(kubectl get -o name \
  mutatingadmissionpolicies,mutatingadmissionpolicybindings)"
equal "what stays of the controller's" "" "$(kubectl get -o name clusterroles,clusterrolebindings \
  | grep shirabe-controller || true)$(kubectl get -o name validatingadmissionpolicies \
  | grep shirabe-controller || true)"
echo ok
