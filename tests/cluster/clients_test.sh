#!/usr/bin/env bash
# cluster: --real 2
# Katib's clients as they are installed, with Katib's SDK 0.19: a custom collector as Katib's own,
# report_metrics, get_trial_metrics and get_job_logs call katib-db-manager.kubeflow:6789.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/paths.sh
source "$HERE/paths.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
trap show_state EXIT

SDK=$CLUSTER_CACHE/katib-sdk-0.19.0

# The python3 and the SDK of this machine, in containers that have neither.
MOUNTS='[{name: usr, mountPath: /usr}, {name: lib, mountPath: /lib},
  {name: lib64, mountPath: /lib64}, {name: sdk, mountPath: /sdk}, {name: tests, mountPath: /tests}]'
VOLUMES="[{name: usr, hostPath: {path: /usr}}, {name: lib, hostPath: {path: /usr/lib}},
  {name: lib64, hostPath: {path: /usr/lib64}}, {name: sdk, hostPath: {path: $SDK}},
  {name: tests, hostPath: {path: $HERE}}]"
PYTHON='env: [{name: PYTHONPATH, value: /sdk}], image: "localhost/tiny:1"'
CLIENTS='/usr/bin/python3, /tests/clients.py'

# experiment NAME COLLECTOR COMMAND
experiment() {
  kubectl apply -f - <<END >/dev/null
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: $1, namespace: default}
spec:
  objective: {type: maximize, objectiveMetricName: accuracy}
  algorithm: {algorithmName: random}
  parallelTrialCount: 1
  maxTrialCount: 1
  metricsCollectorSpec: $2
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.03"}}
  trialTemplate:
    primaryContainerName: training-container
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            volumes: $VOLUMES
            containers:
              - {name: training-container, $PYTHON, volumeMounts: $MOUNTS, command: $3}
END
}

# collector ARGUMENTS…: a container of the user's, which knows its trial as that of Katib's example.
collector() {
  cat <<END
{source: {fileSystemPath: {path: /katib/mnist.log, kind: File}}, collector: {kind: Custom,
  customCollector: {name: logger-and-collector, image: "localhost/tiny:1", command: [$1],
  volumeMounts: $MOUNTS, env: [{name: PYTHONPATH, value: /sdk},
  {name: TrialNamePrefix, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}}}
END
}

trial() { kubectl get trials.kubeflow.org "$1" -o "jsonpath={.status.conditions[-1:].$2}"; }

step "install, with the name that Katib's clients call"
cluster load "$("$HERE/images.sh" tiny)"
mkdir "$CLUSTER/katib"
cat >"$CLUSTER/katib/kustomization.yaml" <<END
resources: [$(realpath --relative-to="$CLUSTER/katib" \
  "$SOURCE/deploy/kubernetes/overlays/hostpath-test")]
components: [$(realpath --relative-to="$CLUSTER/katib" \
  "$SOURCE/deploy/kubernetes/components/katib-clients")]
END
KUSTOMIZATION=$CLUSTER/katib
install_shirabe

step "a custom collector, one that reports nothing, and a program that pushes"
# shellcheck disable=SC2016 # for the pod's shell
PROGRAM='[sh, -c, "echo ${trialParameters.lr}; sleep 6; printf \"accuracy=%s\\n\" 0.5 0.75
  >/katib/mnist.log"]'
experiment custom "$(collector "$CLIENTS, collect, /katib/mnist.log")" "$PROGRAM"
experiment mute "$(collector 'sh, -c, exit 3')" "$PROGRAM"
experiment pushed '{collector: {kind: Push}}' \
  "[$CLIENTS, push, \"\${trialParameters.lr}\"]"
kubectl create rolebinding asks --clusterrole=cluster-admin --serviceaccount=default:default \
  >/dev/null
kubectl apply -f - <<END >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: notebook, namespace: default}
spec:
  restartPolicy: Never
  volumes: $VOLUMES
  containers:
    - {name: main, $PYTHON, volumeMounts: $MOUNTS, command: [$CLIENTS, ask, pushed]}
END
eventually 90 "the end of what asks by Katib's SDK" has 'Succeeded|Failed' \
  kubectl get pod notebook -o 'jsonpath={.status.phase}'
expect "its answers" has answered kubectl logs notebook
eventually 60 "the success of custom" is True condition custom Succeeded
equal "the end of its trial" Succeeded "$(trial custom-1 type)"
expect "its best value" has '"latest":"0.75"' kubectl get experiments.kubeflow.org custom \
  -o 'jsonpath={.status.currentOptimalTrial}'
expect "why that of the other has none" \
  has 'its collector logger-and-collector ended with exit code 3' trial mute-1 message
equal "and so" MetricsUnavailable "$(trial mute-1 type)"
eventually 60 "the success of pushed" is True condition pushed Succeeded

step "population-based training, with the checkpoint where Katib's programs have it"
mkdir -m 1777 "$CLUSTER/pbt"
kubectl apply -f - <<END >/dev/null
apiVersion: v1
kind: PersistentVolume
metadata: {name: pbt}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: $CLUSTER/pbt}
END
kubectl create --dry-run=client -o json -f "$SOURCE/deploy/examples/katib-pbt.yaml" |
  python3 "$HERE/clients.py" shell | kubectl apply -f - >/dev/null
eventually 90 "the success of katib-pbt" is True condition katib-pbt Succeeded
inside_controller get attempts katib-pbt -o json >"$CLUSTER/attempts.json"
expect "three generations, each from its parent's checkpoint" \
  python3 "$HERE/clients.py" generations "$CLUSTER/attempts.json"
expect "where the last one began" has 'from step [1-9]' inside_controller describe trial katib-pbt/6
kubectl delete experiments.kubeflow.org katib-pbt >/dev/null
eventually 60 "that its claim is gone" is "" kubectl get persistentvolumeclaims -o name
