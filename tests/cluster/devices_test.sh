#!/usr/bin/env bash
# cluster: --real 1
# GPUs: what a trial asks for reaches its pod, one that finds all of them in use says so, and goes
# on once they are free. The node only says that it has a device; nothing here computes on one.
# Pools and prices: a preemptible pool of Google's, as `gcloud container node-pools create
# preemptible-gpu-pool --preemptible --node-taints=preemptible=true:NoSchedule
# --accelerator=type=nvidia-tesla-k80,count=4` makes it, whose only machine comes late and goes.
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

budgeted() {
  manifest "$1" | sed -e 's#parallelTrialCount: 2#parallelTrialCount: 1#' \
    -e 's#shirabe:#&\n    budget: {maxCost: 50}\n    capacity: {spot: preferred}#' \
    -e 's#gracePeriodSeconds: 5#&, onDemandAfter: 1#' -e 's#maxTrialCount: 3#maxTrialCount: 1#' \
    -e 's#^\( *\)image: localhost/tiny:1#&\n\1resources: {limits: {cpu: 500m}}#' "${@:2}" |
    kubectl apply -f - >/dev/null
}
events_of() {
  kubectl get events --field-selector="involvedObject.name=$1" -o wide | grep -c "$2" || true
}
column() { kubectl get experiments.kubeflow.org "$1" --no-headers; }

step "as installed nothing has a price, and a budget says that it keeps nothing"
budgeted unpriced -e 's#-lt 15#-lt 1#'
eventually 30 "the condition" is False condition unpriced BudgetEnforced
eventually 120 "its success" is True condition unpriced Succeeded
equal "the condition stays" NoPrices "$(kubectl get experiments.kubeflow.org unpriced \
  -o 'jsonpath={.status.conditions[?(@.type=="BudgetEnforced")].reason}')"
eventually 10 "the event, once" is 1 events_of unpriced BudgetNotEnforced

step "what a node itself says that it costs"
kubectl annotate node node-0 shirabe.dev/price-per-hour=7200 >/dev/null
budgeted priced -e 's#-lt 15#-lt 3#'
eventually 120 "its success" is True condition priced Succeeded
eventually 10 "its cost" has ' [0-9]+\.[0-9]{2} USD ' column priced
equal "what no event says" 0 "$(events_of priced BudgetNotEnforced)"

step "pools by the ConfigMap, of which the preemptible one has no machine yet"
kubectl annotate node node-0 shirabe.dev/price-per-hour- >/dev/null
kubectl label node node-0 cloud.google.com/gke-nodepool=default-pool >/dev/null
cat >"$CLUSTER/pools.yaml" <<'END'
pools:
  - name: preemptible-gpu-pool
    capacity: spot
    pricePerHour: 720
    nodeSelector: {cloud.google.com/gke-nodepool: preemptible-gpu-pool}
    tolerations:
      - {key: preemptible, operator: Equal, value: "true", effect: NoSchedule}
  - name: default-pool
    capacity: on-demand
    pricePerHour: 7200
    nodeSelector: {cloud.google.com/gke-nodepool: default-pool}
END
kubectl -n "$SYSTEM" create configmap shirabe-pools --from-file="$CLUSTER/pools.yaml" \
  --dry-run=client -o yaml | kubectl replace -f - >/dev/null
# The kubelet looks at a pod that changes at once, and else each minute.
kubectl -n "$SYSTEM" annotate pods -l app.kubernetes.io/name=shirabe-controller look=now >/dev/null
eventually 90 "that the controller has them" has 'pools of --nodes have changed' \
  kubectl -n "$SYSTEM" logs deployment/shirabe-controller
controller_is_ready

step "a trial that waits for a spot machine, which comes late"
budgeted spot -e 's#spot: preferred#spot: required#' -e 's#-lt 15#-lt 3#' \
  -e 's#cpu: 500m#&, nvidia.com/gpu: 4#'
eventually 60 "why it waits" has "node affinity|node selector" inside_controller describe spot
expect "no pod of it has run" is "" kubectl get pods -l katib.kubeflow.org/experiment=spot \
  --field-selector=status.phase!=Pending -o name
LABELS=cloud.google.com/gke-nodepool=preemptible-gpu-pool,cloud.google.com/gke-preemptible=true
cluster join-node node-1 "$LABELS,cloud.google.com/gke-accelerator=nvidia-tesla-k80" \
  preemptible=true:NoSchedule "$("$HERE/images.sh" tiny)" "$("$HERE/images.sh" shirabe)"
cluster gpu node-1 4
eventually 120 "its success" is True condition spot Succeeded
expect "where it ran" has 'node-1 .*preemptible-gpu-pool' \
  inside_controller get attempts spot -o wide
eventually 10 "its cost" has ' [0-9]+\.[0-9]{2} USD ' column spot

step "a trial that loses its spot machine goes on on demand"
budgeted moves -e 's#-lt 15#-lt 8#'
on_spot() {
  kubectl get pods -l katib.kubeflow.org/experiment=moves --field-selector=status.phase=Running \
    -o 'jsonpath={.items[*].spec.nodeName}'
}
eventually 60 "that it runs on the spot machine" is node-1 on_spot
eventually 30 "a checkpoint" compgen -G \
  "$CLUSTER/checkpoints/trials/default/moves/*/*/checkpoints/[0-9]*"
cluster taint node-1 cloud.google.com/impending-node-termination=:NoExecute
eventually 120 "its success" is True condition moves Succeeded
expect "first there" has '^moves-1-a1 .*node-1 .*preemptible-gpu-pool' \
  inside_controller get attempts moves -o wide --no-headers
expect "then here" has '^moves-1-a2 .*node-0 .*default-pool' \
  inside_controller get attempts moves -o wide --no-headers
expect "of both the price" has 'saved' inside_controller describe moves
