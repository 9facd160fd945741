#!/usr/bin/env bash
# cluster: --real 2
# What happens to a cluster in a bad week, one after the other, each on an experiment of its own:
# afterwards every trial has ended once and well, and the ledger says what it went through.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
# shellcheck source=tests/cluster/training.sh
source "$HERE/training.sh"
trap show_state EXIT

other_node() { [ "$(controller_node)" = node-0 ] && echo node-1 || echo node-0; }

restarts() {
  kubectl -n "$SYSTEM" get pods -l app.kubernetes.io/name=shirabe-controller \
    -o 'jsonpath={.items[0].status.containerStatuses[0].restartCount}'
}

fault_controller_killed() {
  local count
  begun killed
  for count in 1 2 3; do
    kubectl -n "$SYSTEM" delete pod -l app.kubernetes.io/name=shirabe-controller --force \
      --grace-period=0 >/dev/null 2>&1
    [ "$count" != 3 ] || let_end killed # while there is no controller
    sleep 2
    controller_is_ready
  done
  ended_well killed
}

# Restarted, and then away for longer than a lease is renewed, and for longer than it lasts: the
# controller stays, and goes on. Who ends, and is started anew ever later, is away for longer than
# the API server was.
fault_control_plane() {
  local seconds
  begun plane
  cluster restart-apiserver
  sleep 2
  cluster restart-etcd
  cluster stop apiserver
  sleep 5
  cluster start apiserver
  begun away
  for seconds in 12 20; do
    cluster stop apiserver
    [ "$seconds" != 20 ] || let_end away # while nothing hears of it
    sleep "$seconds"
    cluster start apiserver
    # On a slow machine its node has gone NotReady meanwhile, and takes its pods with it until the
    # kubelet has said otherwise.
    eventually 60 "the controller after $seconds s" is 1 kubectl -n "$SYSTEM" get deployment \
      shirabe-controller -o 'jsonpath={.status.readyReplicas}'
  done
  ended_well plane
  ended_well away
}

# What an attempt sees of the volume: its own folders. What its pod tells whoever may view it: no
# secret.
fault_nosy() {
  local pod
  begun nosy
  pod=$(one_pod_of nosy)
  eventually 30 "its own folder, and no other trial's" is 1 \
    kubectl exec "${pod#pod/}" -c main -- sh -c 'ls /shirabe/home/trials/default/nosy | wc -l'
  expect "no token in the pod" bash -c \
    "! $HERE/cluster.sh exec $CLUSTER kubectl get $pod -o yaml | grep -q '\"token\"'"
  expect "no token of the sidecar" bash -c \
    "! $HERE/cluster.sh exec $CLUSTER kubectl exec ${pod#pod/} -c main -- \
      ls /var/run/secrets/shirabe 2>/dev/null"
  ended_well nosy
}

job_of() { kubectl get "$1" -o 'jsonpath={.metadata.labels.batch\.kubernetes\.io/job-name}'; }

# Nobody says who it was: the platform was not, and nor was the program.
fault_by_hand() {
  local pods
  begun hand
  mapfile -t pods < <(pods_of hand)
  kubectl delete "${pods[0]}" --wait=false >/dev/null
  kubectl delete job --wait=false "$(job_of "${pods[1]}")" >/dev/null
  ended_well hand unknown
}

# drain NODE NAME FLAG…: of the trials of that experiment alone.
drain() { kubectl drain "$1" --pod-selector="katib.kubeflow.org/experiment=$2" "${@:3}" 2>&1; }

# As an administrator does it: what is asked for, and that giving it loses nothing.
fault_eviction() {
  local node
  begun evicted
  node=$(kubectl get "$(one_pod_of evicted)" -o 'jsonpath={.spec.nodeName}')
  if drain "$node" evicted >"$CLUSTER/drain.out"; then fail "it is drained without a flag"; fi
  expect "the flag" grep -q 'use --delete-emptydir-data.*/evicted-' "$CLUSTER/drain.out"
  expect "a drain" drain "$node" evicted --delete-emptydir-data --timeout=60s
  kubectl uncordon "$node" >/dev/null
  ended_well evicted preempted-eviction
}

# claims_of_pods: --pod-storage-class, with a class that an administrator makes the volumes of, on
# each node.
claims_of_pods() {
  local node i
  kubectl apply -f - >/dev/null <<'END'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: scratch}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
END
  for node in node-0 node-1; do
    for i in 1 2 3 4; do
      install -d -m 1777 "$CLUSTER/scratch/$node-$i"
      kubectl apply -f - >/dev/null <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: $node-$i}
spec:
  capacity: {storage: 8Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: scratch
  persistentVolumeReclaimPolicy: Retain
  local: {path: $CLUSTER/scratch/$node-$i}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$node]}]
END
    done
  done
  kubectl -n "$SYSTEM" patch deployment shirabe-controller --type json -p \
    '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-",
       "value": "--pod-storage-class=scratch"}]' >/dev/null
  kubectl -n "$SYSTEM" rollout status deployment shirabe-controller --timeout=120s >/dev/null
  controller_is_ready
}

claims_of() { kubectl get persistentvolumeclaims -o name | grep "/$1-" || true; }

# Nothing in the pods is an emptyDir, and the claims go with them. Last: the controller keeps its
# flag.
fault_drain() {
  local node
  equal "restarts of the controller before" 0 "$(restarts)"
  claims_of_pods
  begun drained
  node=$(kubectl get "$(one_pod_of drained)" -o 'jsonpath={.spec.nodeName}')
  expect "a drain without a flag" drain "$node" drained --timeout=60s
  kubectl uncordon "$node" >/dev/null
  ended_well drained preempted-eviction
  kubectl delete experiments.kubeflow.org drained >/dev/null
  eventually 60 "that the claims of its pods are gone" is "" claims_of drained
}

# The name of the controller is not resolved, and its sidecars have not been heard of yet.
fault_dns() {
  cluster stop dns
  hold unnamed
  manifest unnamed | sed -e 's/maxTrialCount: 3/maxTrialCount: 1/' \
    -e 's/parallelTrialCount: 2/parallelTrialCount: 1/' | kubectl apply -f - >/dev/null
  eventually 60 "a running trial" has pod pods_of unnamed
  eventually 30 "that it says so" has "has not reached the controller at .*:7450.*DNS" \
    inside_controller describe trial unnamed/1
  eventually 10 "an event" has SidecarUnreachable kubectl get events \
    --field-selector=reason=SidecarUnreachable,involvedObject.name=unnamed \
    -o 'jsonpath={.items[*].reason}'
  cluster start dns
  eventually 30 "that it is heard of" eval \
    "! inside_controller describe trial unnamed/1 | grep -v Warning | grep 'has not reached'"
  let_end unnamed
  eventually 90 "its success" is True condition unnamed Succeeded
}

suspend() { kubectl patch job "$1" --type merge -p "{\"spec\": {\"suspend\": $2}}" >/dev/null; }

# admitted NAME: lets every Job of it go on that is held back; whether all have ended well.
admitted() {
  local job
  for job in $(kubectl get jobs -l "katib.kubeflow.org/experiment=$1" \
    -o 'jsonpath={.items[?(@.spec.suspend==true)].metadata.name}'); do
    suspend "$job" false
  done
  is True condition "$1" Succeeded
}

# What a queue such as Kueue does: it holds every Job back at first, and takes the quota of one that
# runs away again.
fault_suspended() {
  local job
  hold queued
  manifest queued | sed 's/^\( *\)template:/\1suspend: true\n&/' | kubectl apply -f - >/dev/null
  eventually 30 "that it says who holds it back" has 'a queue has not admitted it yet' \
    inside_controller describe experiment queued
  admitted queued >/dev/null || true
  on_its_way queued
  job=$(job_of "$(one_pod_of queued)")
  suspend "$job" true
  # Each controller that is killed beside it (controller_killed) begins to wait for it anew.
  eventually 120 "that the Job goes" is "" kubectl get job "$job" --ignore-not-found -o name
  let_end queued
  eventually 240 "the success of queued" admitted queued
  ended_well queued suspended
}

# naming NAME FROM: a short experiment whose pods take their environment from that as well.
naming() {
  manifest "$1" lacking | sed -e 's/-lt 15/-lt 2/' -e 's/maxTrialCount: 3/maxTrialCount: 1/' \
    -e 's/parallelTrialCount: 2/parallelTrialCount: 1/' \
    -e "s/^\( *\)- name: main\$/&\n\1  envFrom: [$2]/" | kubectl apply -f - >/dev/null
}

lacking() { kubectl -n lacking "$@"; }
says_why() { lacking get experiments.kubeflow.org "$1" -o 'jsonpath={.status.shirabe.waiting}'; }

# What pods name and is not there: said before there is a pod where the controller may look for it,
# else by the pod's own events; and it goes on by itself.
fault_missing() {
  kubectl create namespace lacking >/dev/null
  naming looked '{configMapRef: {name: settings}}, {secretRef: {name: hf, optional: true}}'
  naming unseen '{secretRef: {name: hf}}'
  eventually 30 "the ConfigMap" has 'ConfigMap settings is missing in namespace lacking' \
    says_why looked
  expect "describe" has 'ConfigMap settings is missing in namespace lacking \(envFrom of' \
    inside_controller -n lacking describe trial looked/1
  expect "an event" has ReferenceMissing lacking get events \
    --field-selector=reason=ReferenceMissing -o 'jsonpath={.items[*].reason}'
  equal "pods of looked" "" "$(lacking get pods -l katib.kubeflow.org/experiment=looked -o name)"
  eventually 30 "the Secret, by the pod" has 'secret "hf" not found' says_why unseen
  # Whoever administers the namespace may let it look.
  lacking create role shirabe-names --verb=get --resource=secrets >/dev/null
  lacking create rolebinding shirabe-names --role=shirabe-names \
    --serviceaccount="$SYSTEM:shirabe-controller" >/dev/null
  sleep 11 # answers of before are believed for so long
  naming late '{secretRef: {name: hf}}'
  eventually 30 "the Secret" has 'Secret hf is missing in namespace lacking' says_why late
  equal "pods of late" "" "$(lacking get pods -l katib.kubeflow.org/experiment=late -o name)"
  lacking create configmap settings --from-literal=a=b >/dev/null
  lacking create secret generic hf --from-literal=TOKEN=x >/dev/null
  for name in looked unseen late; do
    eventually 60 "the success of $name" is True lacking get experiments.kubeflow.org "$name" \
      -o 'jsonpath={.status.conditions[?(@.type=="Succeeded")].status}'
    inside_controller -n lacking get attempts "$name" -o json >"$CLUSTER/$name-attempts.json"
    equal "attempts of $name" 1 "$(grep -c '"number"' "$CLUSTER/$name-attempts.json")"
  done
}

# begun_on NODE NAME: runs it until its trials are on their way, all of them on that node. One at a
# time.
begun_on() (
  local others
  flock 7
  others=$(kubectl get nodes -o name | grep -v "/$1\$")
  kubectl cordon "${others#node/}" >/dev/null
  begun "$2"
  kubectl uncordon "${others#node/}" >/dev/null
) 7>"$CLUSTER/cordon"

fault_taint() {
  local node
  node=$(other_node)
  begun_on "$node" tainted
  cluster taint "$node" test=gone:NoExecute
  sleep 5
  kubectl taint node "$node" test- >/dev/null
  ended_well tainted preempted-node
}

# The pods run on behind the cut, as zombies with a token that is no longer current.
fault_partition() {
  local node
  node=$(other_node)
  begun_on "$node" cut
  cluster cut-node "$node"
  let_end cut
  eventually 240 "the success without $node" is True condition cut Succeeded
  cluster heal-node "$node"
  eventually 90 "that it is back" is True kubectl get node "$node" \
    -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
  ended_well cut preempted-node
  eventually 120 "that no zombie is left" is "" kubectl get pods -o name \
    -l katib.kubeflow.org/experiment=cut
}

fault_deleted() {
  begun deleted
  kubectl delete experiment.kubeflow.org deleted --timeout=60s >/dev/null
  eventually 60 "that its Jobs and pods are gone" is "" \
    kubectl get jobs,pods -l shirabe.dev/attempt,katib.kubeflow.org/experiment=deleted -o name
  eventually 60 "that its checkpoints are gone" bash -c \
    "! ls -d $CLUSTER/checkpoints/trials/default/deleted"
  expect "nothing in the store" bash -c \
    "! $HERE/cluster.sh exec $CLUSTER kubectl -n $SYSTEM exec deployment/shirabe-controller -- \
      shirabe get experiment deleted 2>/dev/null"
}

# One trial of two steps, and what follows it: a Job that reads its checkpoint and takes its time,
# while its controller is killed.
followed() {
  cat >"$CLUSTER/on-success.yaml" <<'END'
    onSuccess:
      job:
        apiVersion: batch/v1
        kind: Job
        spec:
          template:
            spec:
              containers:
                - name: deploy
                  image: localhost/tiny:1
                  command:
                    - sh
                    - -c
                    - |
                      echo "deploys $SHIRABE_BEST_TRIAL of step $(cat "$SHIRABE_RESUME_FROM/step")"
                      sleep 8
END
  manifest followed | sed -e 's/maxTrialCount: 3/maxTrialCount: 1/' -e 's/-lt 15/-lt 2/' \
    -e 's/parallelTrialCount: 2/parallelTrialCount: 1/' \
    -e "/^    checkpoint:/r $CLUSTER/on-success.yaml"
}
follow_up() {
  kubectl get experiment followed -o "jsonpath={.status.shirabe.onSuccess.$1}" | grep .
}

fault_follow_up() {
  followed | kubectl apply -f - >/dev/null
  eventually 90 "a follow-up" is Running follow_up phase
  kubectl -n "$SYSTEM" delete pod -l app.kubernetes.io/name=shirabe-controller --force \
    --grace-period=0 >/dev/null 2>&1
  eventually 90 "its end" is Succeeded follow_up phase
  equal "attempts" 1 "$(follow_up attempts)"
  equal "its log" "deploys followed-1 of step 2" \
    "$(inside_controller logs followed/on-success | sed -n 1p)"
  kubectl delete experiment followed --timeout=60s >/dev/null
  eventually 30 "that no Job of it is left" is "" \
    kubectl get jobs,pods -l katib.kubeflow.org/trial=followed-on-success -o name
}

fault_namespace() {
  kubectl create namespace doomed >/dev/null
  begun doomed doomed
  kubectl delete namespace doomed --timeout=120s >/dev/null
  equal "the controller lives on" 1 "$(kubectl -n "$SYSTEM" get deployment shirabe-controller \
    -o 'jsonpath={.status.readyReplicas}')"
  eventually 30 "that no record of it is left" is "" \
    inside_controller get experiments -n doomed -o name
}

# Its pods wait for the controller to read their log, and for no longer.
fault_namespace_unseen() {
  kubectl create namespace unseen >/dev/null
  begun unseen unseen
  kubectl -n "$SYSTEM" scale deployment shirabe-controller --replicas=0 >/dev/null
  kubectl delete namespace unseen --wait=false >/dev/null
  kubectl -n "$SYSTEM" scale deployment shirabe-controller --replicas=1 >/dev/null
  eventually 90 "the end of the namespace" is "" \
    kubectl get namespace unseen --ignore-not-found -o name
  controller_is_ready
  eventually 30 "that no record of it is left" is "" \
    inside_controller get experiments -n unseen -o name
}

cluster load "$("$HERE/images.sh" tiny)"
install_shirabe
# together FAULT…: those that do nothing to each other, since most of what they do is to wait.
together() {
  local fault i=0
  local pids=() faults=("$@")
  for fault; do
    ("fault_$fault" >"$CLUSTER/$fault.out" 2>&1) &
    pids+=($!)
  done
  for ((i = 0; i < ${#pids[@]}; i++)); do
    wait "${pids[$i]}" || fail "${faults[$i]}: $(tail -n 20 "$CLUSTER/${faults[$i]}.out")"
  done
}

[ $# != 0 ] || set -- control_plane "controller_killed nosy by_hand eviction suspended" \
  "dns deleted namespace missing" taint partition follow_up namespace_unseen \
  drain
for faults; do
  step "$faults"
  # shellcheck disable=SC2086 # words
  together $faults
done
equal "restarts of the controller" 0 "$(restarts)"
