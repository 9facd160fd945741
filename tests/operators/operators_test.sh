#!/usr/bin/env bash
# Experiments of each kind that Katib's examples are of, by the real operators: examples/*.yaml, of
# three trials each. What a trial has reported is what its program printed, the best is the best of
# them, and of a TrainJob, a Workflow and a PipelineRun one pod is evicted in the middle. Says ok or
# FAILED for each kind.
#   tests/operators/operators_test.sh [NAME…]   of these examples only
set -euo pipefail
TIER=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cluster/testing.sh
source "$TIER/../cluster/testing.sh"
# shellcheck source=tests/operators/paths.sh
source "$TIER/paths.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
# shellcheck source=tests/cluster/training.sh
source "$HERE/training.sh"
# shellcheck source=tests/cluster/trainer.sh
source "$HERE/trainer.sh"
# shellcheck source=tests/operators/operators.sh
source "$TIER/operators.sh"

FAILED=0
at_exit() {
  show_state
  kill "${OPERATOR_PIDS[@]}" "${TRAINER_PIDS[@]}" 2>/dev/null || true
}
trap at_exit EXIT

# ---- one kind -----------------------------------------------------------------------------------

# succeeded NAME CAUSE…: three trials, with the metrics of their programs; those whose attempts were
# lost were lost for these causes.
succeeded() {
  ended_well "$@"
  kubectl get experiments.kubeflow.org "$1" -o json >"$CLUSTER/$1-experiment.json"
  python3 "$TIER/outcome.py" "$CLUSTER/$1-experiment.json" "$CLUSTER/$1-trials.json"
}

plainly() {
  kubectl apply -f "$TIER/examples/$1.yaml" >/dev/null
  succeeded "$1"
}

# primary_pod NAME LABEL=VALUE: one that runs, of those whose metrics count.
primary_pod() {
  kubectl get pods -l "katib.kubeflow.org/experiment=$1,$2" -o name \
    --field-selector=status.phase=Running | sed -n 1p
}

# evicted NAME LABEL=VALUE
evicted() {
  local pod
  kubectl apply -f "$TIER/examples/$1.yaml" >/dev/null
  eventually 120 "a running pod of $1" has pod primary_pod "$1" "$2"
  pod=$(primary_pod "$1" "$2")
  evict "${pod#pod/}"
  succeeded "$1" preempted-eviction
}

# Of a kind that no operator here knows.
waits() {
  kubectl apply -f "$TIER/examples/$1.yaml" >/dev/null
  eventually 60 "the condition of $1" is False condition "$1" TrialKindKnown
  expect "its reason" has NoSuchKind kubectl get experiments.kubeflow.org "$1" -o yaml
  kubectl delete experiments.kubeflow.org "$1" >/dev/null
  echo "it waits, and says so"
}

# ---- several beside each other ------------------------------------------------------------------

declare -A CHECKS=()

# try NAME CHECK [ARGUMENT…]: of examples/NAME.yaml, in a process of its own.
try() {
  asked "$1" || return 0
  ("$2" "$1" "${@:3}") >"$CLUSTER/check-$1.log" 2>&1 &
  CHECKS[$1]=$!
}

finish() {
  local name
  for name in "${!CHECKS[@]}"; do
    if wait "${CHECKS[$name]}"; then
      echo "ok: $name ($(tail -n 1 "$CLUSTER/check-$name.log"))"
    else
      cat "$CLUSTER/check-$name.log"
      inside_controller describe "$name" || true
      echo "FAILED: $name"
      FAILED=1
    fi
  done
  CHECKS=()
}

# ---- all ----------------------------------------------------------------------------------------

TRAINING_KINDS="pytorchjob tfjob xgboostjob paddlejob jaxjob mpijob mxjob"
[ $# != 0 ] || {
  # shellcheck disable=SC2086 # words
  set -- job $TRAINING_KINDS trainjob workflow pipelinerun
}
NAMES=" $* "

# asked NAME…: whether one of them is to be tried.
asked() {
  local name
  for name; do
    [[ $NAMES != *" $name "* ]] || return 0
  done
  return 1
}

# start OPERATOR NAME…: if one of its examples is to be tried.
start() { ! asked "${@:2}" || "start_$1"; }
# await OPERATOR NAME…
await() { ! asked "${@:2}" || eventually 120 "the operator: $1" "$1_is_there"; }

step "install, and the operators"
cluster load "$("$HERE/images.sh" tiny)" >/dev/null
if asked mpijob workflow pipelinerun; then
  "$TIER/image.sh" "$CLUSTER/operators.tar"
  cluster load "$CLUSTER/operators.tar" >/dev/null
fi
install_shirabe
# shellcheck disable=SC2086 # words
start training $TRAINING_KINDS
start argo workflow
start tekton pipelinerun
start trainer trainjob
# shellcheck disable=SC2086 # words
await training $TRAINING_KINDS
await argo workflow
await tekton pipelinerun
await trainer trainjob

step "Kubernetes' Job, and those of the training operator"
try job plainly
try pytorchjob plainly
try tfjob plainly
try xgboostjob plainly
finish
try paddlejob plainly
try jaxjob plainly
try mpijob plainly
try mxjob waits
finish

step "TrainJob, Workflow and PipelineRun, each with a pod that is evicted"
try trainjob evicted jobset.sigs.k8s.io/replicatedjob-name=node
try workflow evicted example.org/step=training
try pipelinerun evicted tekton.dev/pipelineTask=training
finish
[ "$FAILED" = 0 ]
