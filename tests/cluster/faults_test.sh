#!/usr/bin/env bash
# cluster: --real 2
# What happens to a cluster in a bad week, one after the other, each on an experiment of its own:
# afterwards every trial has ended once and well, and the ledger says what it went through.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
trap show_state EXIT

# experiment NAME [NAMESPACE]: two trials at a time, three in all, of fifteen steps of a second,
# each of which is saved; the program goes on from the newest. Two seconds to stop in.
experiment() {
  sed "s/NAME/$1/; s/SPACE/${2:-default}/; s#FOLDER#$CLUSTER/checkpoints#" <<'END' |
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: NAME, namespace: SPACE}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parallelTrialCount: 2
  maxTrialCount: 3
  maxFailedTrialCount: 0
  shirabe:
    attempts: {gracePeriodSeconds: 5}
    checkpoint: {volume: {hostPath: FOLDER}}
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "-1", max: "1"}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
              - name: main
                image: localhost/tiny:1
                args: ["--x=${trialParameters.x}"]
                command:
                  - sh
                  - -c
                  - |
                    step=0
                    [ -z "$SHIRABE_RESUME_FROM" ] || step=$(cat "$SHIRABE_RESUME_FROM/step")
                    trap 'exit 75' TERM
                    while [ "$step" -lt 15 ]; do
                      sleep 1
                      step=$((step + 1))
                      echo "{\"step\": $step, \"metrics\": {\"loss\": $((100 - step))}}" \
                        >>"$SHIRABE_METRICS_FILE"
                      mkdir "$SHIRABE_CHECKPOINT_DIR/$step.tmp"
                      echo "$step" >"$SHIRABE_CHECKPOINT_DIR/$step.tmp/step"
                      mv "$SHIRABE_CHECKPOINT_DIR/$step.tmp" "$SHIRABE_CHECKPOINT_DIR/$step"
                    done
                  - program
END
    kubectl apply -f - >/dev/null
}

pods_of() {
  kubectl get pods -l "katib.kubeflow.org/experiment=$1" --field-selector=status.phase=Running \
    -o name
}

# begun NAME: runs it until its trials are on their way.
begun() {
  experiment "$@"
  eventually 60 "two running trials of $1" is 2 bash -c \
    "$HERE/cluster.sh exec $CLUSTER kubectl get pods -n ${2:-default} \
      -l katib.kubeflow.org/experiment=$1 --field-selector=status.phase=Running -o name | wc -l"
  eventually 30 "a checkpoint of $1" compgen -G \
    "$CLUSTER/checkpoints/trials/${2:-default}/$1/*/*/checkpoints/[0-9]*"
}

# ended_well NAME CAUSE…
ended_well() {
  local name=$1
  shift
  eventually 240 "the success of $name" is True condition "$name" Succeeded
  inside_controller get attempts "$name" -o json >"$CLUSTER/attempts.json"
  inside_controller get trials "$name" -o json >"$CLUSTER/trials.json"
  python3 "$HERE/ledger.py" "$CLUSTER/attempts.json" "$CLUSTER/trials.json" 3 "$@"
}

other_node() { [ "$(controller_node)" = node-0 ] && echo node-1 || echo node-0; }

controller_is_ready() {
  eventually 90 "the controller" is 1 kubectl -n "$SYSTEM" get deployment shirabe-controller \
    -o 'jsonpath={.status.readyReplicas}'
}

restarts() {
  kubectl -n "$SYSTEM" get pods -l app.kubernetes.io/name=shirabe-controller \
    -o 'jsonpath={.items[0].status.containerStatuses[0].restartCount}'
}

fault_controller_killed() {
  local node _
  begun killed
  for _ in 1 2 3; do
    kubectl -n "$SYSTEM" delete pod -l app.kubernetes.io/name=shirabe-controller --force \
      --grace-period=0 >/dev/null 2>&1
    sleep 2
    controller_is_ready
  done
  ended_well killed
}

fault_control_plane() {
  begun plane
  cluster restart-apiserver
  sleep 2
  cluster restart-etcd
  cluster stop apiserver
  sleep 5
  cluster start apiserver
  ended_well plane
}

fault_by_hand() {
  begun hand
  kubectl delete "$(pods_of hand | head -n 1)" --wait=false >/dev/null
  sleep 3
  kubectl delete job -l katib.kubeflow.org/experiment=hand --wait=false >/dev/null
  ended_well hand 'preempted-node?' 'preempted-eviction?' 'infrastructure?' 'user?' 'unknown?' \
    'yielded?'
}

fault_eviction() {
  local pod
  begun evicted
  pod=$(pods_of evicted | head -n 1)
  kubectl create --raw "/api/v1/namespaces/default/pods/${pod#pod/}/eviction" -f - >/dev/null <<END
{"apiVersion": "policy/v1", "kind": "Eviction",
 "metadata": {"name": "${pod#pod/}", "namespace": "default"}}
END
  ended_well evicted preempted-eviction
}

fault_taint() {
  local node
  node=$(other_node)
  begun tainted
  cluster taint "$node" test=gone:NoExecute
  sleep 5
  kubectl taint node "$node" test- >/dev/null
  ended_well tainted 'preempted-node?'
}

# The pods run on behind the cut, as zombies with a token that is no longer current.
fault_partition() {
  local node
  node=$(other_node)
  begun cut
  cluster cut-node "$node"
  eventually 240 "the success without $node" is True condition cut Succeeded
  cluster heal-node "$node"
  eventually 90 "that it is back" is True kubectl get node "$node" \
    -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
  ended_well cut 'preempted-node?' 'infrastructure?'
  eventually 120 "that no zombie is left" is "" kubectl get pods -o name
}

fault_deleted() {
  begun deleted
  kubectl delete experiment.kubeflow.org deleted --timeout=60s >/dev/null
  eventually 60 "that its Jobs and pods are gone" is "" kubectl get jobs,pods -o name
  expect "nothing in the store" bash -c \
    "! $HERE/cluster.sh exec $CLUSTER kubectl -n $SYSTEM exec deployment/shirabe-controller -- \
      shirabe get experiment deleted 2>/dev/null"
}

fault_namespace() {
  kubectl create namespace doomed >/dev/null
  begun doomed doomed
  kubectl delete namespace doomed --timeout=120s >/dev/null
  equal "the controller lives on" 1 "$(kubectl -n "$SYSTEM" get deployment shirabe-controller \
    -o 'jsonpath={.status.readyReplicas}')"
}

cluster load "$("$HERE/images.sh" tiny)"
install_shirabe
mkdir -p "$CLUSTER/checkpoints"
chmod 1777 "$CLUSTER/checkpoints"
FAULTS=${*:-controller_killed control_plane by_hand eviction taint partition deleted namespace}
for fault in $FAULTS; do
  step "$fault"
  "fault_$fault"
done
equal "restarts of the controller" 0 "$(restarts)"
