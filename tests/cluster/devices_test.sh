#!/usr/bin/env bash
# cluster: --real 1
# GPUs: what a trial asks for reaches its pod, one that finds all of them in use says so, and goes
# on once they are free. The node only says that it has a device; nothing here computes on one.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
# shellcheck source=tests/cluster/training.sh
source "$HERE/training.sh"
trap show_state EXIT

with_limits() {
  manifest "$1" |
    sed "s#^\( *\)image: localhost/tiny:1#&\n\1resources: {limits: {$2}}#" |
    kubectl apply -f - >/dev/null
}

step "one GPU for two trials at a time"
cluster load "$("$HERE/images.sh" tiny)"
install_shirabe
cluster gpu node-0 1
with_limits gpus 'nvidia.com/gpu: 1'
eventually 60 "that one waits" has 'gpus-. .*Insufficient nvidia.com/gpu.*All GPUs are in use' \
  inside_controller describe experiment gpus
eventually 60 "the limit of the one that runs" is 1 kubectl get pods \
  -l katib.kubeflow.org/experiment=gpus --field-selector=status.phase=Running \
  -o 'jsonpath={.items[*].spec.containers[?(@.name=="main")].resources.limits.nvidia\.com/gpu}'
ended_well gpus

step "a slice and a GPU in one container, on a node that has no slices"
with_limits slices 'nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 1'
eventually 30 "the warning" has 'asks for devices of several types' kubectl get \
  experiments.kubeflow.org slices -o 'jsonpath={.status.conditions[?(@.type=="Created")].message}'
eventually 30 "its event" has 'SpecWarning.*asks for devices of several types' kubectl get events \
  --field-selector=involvedObject.name=slices
eventually 30 "that nothing starts, and why" has 'Insufficient nvidia.com/' kubectl get \
  experiments.kubeflow.org slices -o wide
kubectl delete experiment.kubeflow.org slices --timeout=60s >/dev/null
