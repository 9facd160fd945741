#!/usr/bin/env bash
# cluster: --real 3
# The promise of the product in a cluster: real training, a node without power in the middle of it,
# and the same best trial as on a laptop where nothing happened; no failure booked, the loss in the
# ledger, and the training gone on from its checkpoint.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/paths.sh
source "$HERE/paths.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
trap show_state EXIT

# The example as it stands, with checkpoints on a folder that all nodes have, and longer epochs: the
# power goes while trials are well on their way.
experiment() {
  sed -e "s/^    checkpoint:/    checkpoint:\n      volume: {hostPath: ${1//\//\\/}}/" \
    -e 's/--pause=0.05/--pause=0.4/' -e 's/parallelTrialCount: .*/parallelTrialCount: 3/' \
    -e 's/maxTrialCount: .*/maxTrialCount: 6/' "$SOURCE/deploy/examples/digits-spot.yaml"
}

# The same experiment on this machine, undisturbed: seconds, since nothing waits between epochs.
on_a_laptop() {
  local home=$CLUSTER/laptop
  experiment /nowhere | sed -e '/volume:/d' -e '/--pause/d' >"$CLUSTER/laptop.yaml"
  (
    cd "$SOURCE"
    export SHIRABE_HOME=$home PATH=$SOURCE/build/release/bin:$CLUSTER_CACHE/python/bin:$PATH
    timeout 300 shirabe run -f "$CLUSTER/laptop.yaml" >/dev/null 2>&1
    shirabe best digits-spot -o json
  )
}

# A node with a trial of ours on it, and without the controller.
victim() {
  kubectl get pods -l shirabe.dev/attempt --field-selector=status.phase=Running \
    -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' |
    grep -v "^$(controller_node)$" | sort | uniq -c | sort -rn | awk 'NR == 1 {print $2}' | grep .
}

# The controller knows a checkpoint of every trial on that node.
saved_on() {
  local trial
  for trial in $(kubectl get pods -l shirabe.dev/attempt --field-selector="spec.nodeName=$1" \
    -o 'jsonpath={.items[*].metadata.labels.katib\.kubeflow\.org/trial}'); do
    inside_controller get checkpoints "$trial" --no-headers | grep -q . || return 1
  done
}

logs_of_all() {
  local number
  for number in 1 2 3 4 5 6; do inside_controller logs "digits-spot/$number" || return 1; done
}

step "on a laptop"
on_a_laptop >"$CLUSTER/wanted.json"

step "install"
cluster load "$("$HERE/images.sh" digits)"
install_shirabe

step "train, and take the power from a node"
experiment "$CLUSTER/checkpoints" | kubectl apply -f - >/dev/null
eventually 90 "a trial away from the controller" has node victim
NODE=$(victim)
eventually 180 "a checkpoint" saved_on "$NODE"
cluster kill-node "$NODE"
step "$NODE has no power"
kubectl get experiments.kubeflow.org
eventually 400 "success all the same" is True condition digits-spot Succeeded

step "what people see"
kubectl get experiments.kubeflow.org
kubectl describe experiment.kubeflow.org digits-spot | tail -n 60
kubectl get trials.kubeflow.org
inside_controller get attempts digits-spot
inside_controller describe trial digits-spot/1
expect "logs outlive pods" has 'going on after epoch' logs_of_all

step "what it found"
inside_controller best digits-spot -o json >"$CLUSTER/got.json"
inside_controller get attempts digits-spot -o json >"$CLUSTER/attempts.json"
kubectl get experiments.kubeflow.org digits-spot -o json >"$CLUSTER/experiment.json"
python3 "$HERE/digits_check.py" "$CLUSTER"/{wanted,got,attempts,experiment}.json

step "uninstall"
"$HERE/cluster.sh" exec "$CLUSTER" "$SOURCE/deploy/kubernetes/uninstall.sh" --experiments --crds
equal "jobs" "" "$(kubectl get jobs -A -o name)"
equal "CRDs" "" "$(kubectl get crds -o name)"
