#!/usr/bin/env bash
# cluster: --real 2
# Trials that are no Jobs, by Kubeflow's own operators: a PyTorchJob of two pods, of which the
# master's log is read; a TrainJob, whose pod comes of a runtime, evicted; and a TFJob of one pod,
# which has all of our injection and is evicted in the middle of its training. An experiment whose
# kind comes later than itself waits for it. An OptimizationJob of three TrainJobs, beside one that
# is not ours.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/paths.sh
source "$HERE/paths.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
# shellcheck source=tests/cluster/training.sh
source "$HERE/training.sh"
# shellcheck source=tests/cluster/trainer.sh
source "$HERE/trainer.sh"

OPERATOR=
at_exit() {
  show_state
  [ -z "$OPERATOR" ] || kill "$OPERATOR"
  [ -z "${TRAINER_PIDS[*]}" ] || kill "${TRAINER_PIDS[@]}"
}
trap at_exit EXIT

# Outside of pods, since no image of it is here; nobody calls its webhooks.
start_operator() {
  mkdir -p "$TRAINER_PLACE" "$CLUSTER/certificates"
  kubectl apply --server-side -f "$KUBERNETES_BIN/training-operator.v1.yaml" >/dev/null
  kubectl create namespace kubeflow >/dev/null
  kubectl -n kubeflow create secret generic training-operator-webhook-cert >/dev/null
  kubectl apply -f - >/dev/null <<'END'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validator.training-operator.kubeflow.org}
webhooks:
  - name: validator.tfjob.training-operator.kubeflow.org
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {service: {name: training-operator, namespace: kubeflow}}
END
  # Workers need not wait for the name of their master: busybox asks for names in a way of its own.
  echo '[{name: init-pytorch, image: "localhost/tiny:1", command: ["true"]}]' >"$CLUSTER/init.yaml"
  # shellcheck disable=SC2016 # for the inner shell
  "$HERE/cluster.sh" exec "$CLUSTER" unshare --mount \
    bash -c 'mount --bind "$0" "$1" && exec "${@:2}"' "$CLUSTER/certificates" "$TRAINER_PLACE" \
    training-operator.v1 --enable-scheme=pytorchjob --enable-scheme=tfjob \
    --pytorch-init-container-template-file="$CLUSTER/init.yaml" \
    >"$CLUSTER/operator.log" 2>&1 &
  OPERATOR=$!
  eventually 60 "the operator's certificate" secret_into "$CLUSTER/certificates"
  eventually 60 "the operator" grep -q "Starting workers.*tfjob" "$CLUSTER/operator.log"
}

# apply_as KIND: the Experiment on the standard input, see kinds.py.
apply_as() {
  kubectl create --dry-run=client -o json -f - | python3 "$HERE/kinds.py" "$1" |
    kubectl apply -f - >/dev/null
}

# optimization_job NAME ANNOTATIONS: of three TrainJobs, each of a second.
optimization_job() {
  sed "s/NAME/$1/; s#ANNOTATIONS#$2#" <<'END'
apiVersion: trainer.kubeflow.org/v1alpha1
kind: OptimizationJob
metadata: {name: NAME, namespace: jobs, annotations: ANNOTATIONS}
spec:
  objectives: [{metric: loss}]
  searchAlgorithm: {random: {seed: 7}}
  parameters:
    - {name: x, searchSpace: {uniform: {min: "0.1", max: "0.9"}}}
  numTrials: 3
  parallelTrials: 3
  trainJobTemplate:
    spec:
      runtimeRef: {name: torch-distributed}
      trainer:
        image: localhost/tiny:1
        command:
          - sh
          - -c
          - |
            echo "both are $KUBEFLOW_TRAINER_OPT_x $KUBEFLOW_TRAINER_OPT_X"
            echo "loss=$KUBEFLOW_TRAINER_OPT_x"
            sleep 1
END
}

# optimization_job_of USER ANNOTATIONS: one that this user creates.
optimization_job_of() { optimization_job carols "$2" | kubectl --as "$1" create -f -; }

# job_status NAME JSONPATH
job_status() {
  kubectl -n jobs get optimizationjobs.trainer.kubeflow.org "$1" -o "jsonpath=$2"
}

# refused COMMAND…: by a policy.
refused() {
  local said
  said=$("$@" 2>&1) && return 1
  grep -q "denied request" <<<"$said"
}

optimizer() {
  PYTHONPATH=$CLUSTER_CACHE/kubeflow-sdk-0.5.0 "$HERE/cluster.sh" exec "$CLUSTER" \
    python3 "$HERE/optimizer.py" "$@"
}

# pods_that_never_succeed NAME FIELD: of trials that are bare pods, by a condition that never holds.
pods_that_never_succeed() {
  sed "s/NAME/$1/; s/FIELD/$2/" <<'END'
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: NAME, namespace: bare}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 1
  parallelTrialCount: 1
  parameters: [{name: x, parameterType: double, feasibleSpace: {min: "0", max: "1", step: ""}}]
  trialTemplate:
    primaryContainerName: main
    successCondition: status.phase=="Succeeded"
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: v1
      kind: Pod
      spec:
        FIELD: {}
        containers:
          - name: main
            image: localhost/tiny:1
            command: [sh, -c, "echo loss=${trialParameters.x}"]
END
}

step "install, beside the training operator"
cluster load "$("$HERE/images.sh" tiny)"
mkdir "$CLUSTER/kubeflow"
cat >"$CLUSTER/kubeflow/kustomization.yaml" <<END
resources: [$(realpath --relative-to="$CLUSTER/kubeflow" \
  "$SOURCE/deploy/kubernetes/overlays/hostpath-test")]
components: [$(realpath --relative-to="$CLUSTER/kubeflow" \
  "$SOURCE/deploy/kubernetes/components/optimizer-client")]
END
KUSTOMIZATION=$CLUSTER/kubeflow
install_shirabe
start_operator

step "bare pods whose condition never holds go with their namespace, and a misspelt field is said"
kubectl create namespace bare >/dev/null
pods_that_never_succeed misspelt nodeSelectors | kubectl apply -f - >/dev/null
eventually 60 "which field it is" has 'unknown field "spec.nodeSelectors"' \
  inside_controller describe experiment misspelt -n bare
pods_that_never_succeed one nodeSelector | kubectl apply -f - >/dev/null
eventually 60 "the end of its pod" has Succeeded kubectl -n bare get pods \
  -o 'jsonpath={.items[*].status.phase}'
kubectl delete namespace bare --timeout=90s >/dev/null

step "a TrainJob, before its operator is there"
apply_as trainjob <"$SOURCE/deploy/examples/kubernetes/trainjob.yaml"
start_trainer

step "a PyTorchJob of two pods"
apply_as pytorch <"$SOURCE/deploy/examples/kubernetes/pytorchjob.yaml"
eventually 60 "a master and a worker of two trials" is 4 bash -c \
  "$HERE/cluster.sh exec $CLUSTER kubectl get pods -l katib.kubeflow.org/experiment \
    --field-selector=status.phase=Running -o name | wc -l"
eventually 120 "the success of torch-distributed" is True condition torch-distributed Succeeded
inside_controller logs torch-distributed/1 >"$CLUSTER/master.log"
expect "the log of its master" grep -q 'this is .*-master-0, of 2' "$CLUSTER/master.log"
expect "its metric" has '"latest":"0\.' kubectl get experiments.kubeflow.org torch-distributed \
  -o 'jsonpath={.status.currentOptimalTrial}'

step "the TrainJob, whose operator is there by now"
eventually 60 "Trainer's webhook" trainer_runtime
eventually 60 "a running trial of torch-trainjob" has pod pods_of torch-trainjob
POD=$(one_pod_of torch-trainjob)
evict "${POD#pod/}"
ended_well torch-trainjob preempted-eviction
inside_controller logs torch-trainjob/1 >"$CLUSTER/trainjob.log"
expect "the log of its node" grep -q 'this is .*, of 1 as torch-trainjob-1' "$CLUSTER/trainjob.log"
expect "its metric" has '"latest":"0\.' kubectl get experiments.kubeflow.org torch-trainjob \
  -o 'jsonpath={.status.currentOptimalTrial}'

step "an OptimizationJob, whose kind has come after the controller"
kubectl create namespace jobs >/dev/null
kubectl apply --server-side -f "$HERE/optimizationjobs.yaml" >/dev/null
established optimizationjobs.trainer.kubeflow.org
optimization_job upstreams '{}' | kubectl apply -f - >/dev/null
optimization_job tune '{shirabe.dev/managed-by: shirabe}' | kubectl apply -f - >/dev/null
kubectl create clusterrole jobs --verb=create,get,patch \
  --resource=optimizationjobs.trainer.kubeflow.org >/dev/null
kubectl -n jobs create rolebinding jobs --clusterrole=jobs --user=carol >/dev/null
expect "an OptimizationJob of who may not make TrainJobs" refused optimization_job_of carol \
  '{shirabe.dev/managed-by: shirabe}'
expect "one that is not ours" optimization_job_of carol '{}' >/dev/null
expect "to make it ours" refused kubectl -n jobs --as carol annotate \
  optimizationjobs.trainer.kubeflow.org carols shirabe.dev/managed-by=shirabe

step "every call of Kubeflow's OptimizerClient, on a trial whose first attempt is evicted"
plain_runtime
kubectl create namespace sdk >/dev/null
OPTIMIZED=$(optimizer create | tail -n 1)
eventually 60 "a running trial of it" has pod pods_of "$OPTIMIZED" sdk
POD=$(pods_of "$OPTIMIZED" sdk | sed -n 1p)
optimizer succession "$OPTIMIZED" >"$CLUSTER/succession" 2>&1 &
SUCCESSION=$!
eventually 30 "who watches" grep -q watching "$CLUSTER/succession"
evict "${POD#pod/}" sdk
wait "$SUCCESSION" || fail "the TrainJob of its second attempt: $(tail -n 5 "$CLUSTER/succession")"
tail -n 1 "$CLUSTER/succession"
optimizer run "$OPTIMIZED" >"$CLUSTER/optimizer.log" 2>&1 &
OPTIMIZER=$!

step "the OptimizationJob has ended, and the other stands as it stood"
eventually 120 "its completion" is True job_status tune \
  '{.status.conditions[?(@.type=="Complete")].status}'
expect "its TrainJobs" is 3 bash -c "$HERE/cluster.sh exec $CLUSTER kubectl -n jobs get trials \
  -l katib.kubeflow.org/experiment=tune -o name | wc -l"
expect "its best" has '^tune-[123] x$' job_status tune \
  '{.status.result.trainJobName} {.status.result.parameters[0].name}'
expect "its value" has '^0\.[0-9]+$' job_status tune '{.status.result.parameters[0].value}'
inside_controller logs tune/1 -n jobs >"$CLUSTER/tune.log"
expect "its environment" grep -qE '^both are (0\.[0-9]+) (0\.[0-9]+)$' "$CLUSTER/tune.log"
expect "the other" is "" job_status upstreams '{.status}'
expect "experiments" is "experiment.kubeflow.org/tune" kubectl -n jobs get \
  experiments.kubeflow.org -o name
kubectl -n jobs delete optimizationjobs.trainer.kubeflow.org --all >/dev/null
eventually 60 "that its experiment is gone" is "" kubectl -n jobs get \
  experiments.kubeflow.org -o name

step "a TFJob, evicted"
hold tf
manifest tf | apply_as tensorflow
on_its_way tf
POD=$(one_pod_of tf)
evict "${POD#pod/}"
ended_well tf preempted-eviction
wait "$OPTIMIZER" || fail "the OptimizerClient: $(tail -n 30 "$CLUSTER/optimizer.log")"
eventually 30 "that its experiment is gone" optimizer left "$OPTIMIZED"
eventually 60 "that nothing of them is left" is "" \
  kubectl get pytorchjobs.kubeflow.org,tfjobs.kubeflow.org,trainjobs.trainer.kubeflow.org,pods \
  -A -l katib.kubeflow.org/experiment -o name
