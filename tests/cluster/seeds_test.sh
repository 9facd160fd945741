#!/usr/bin/env bash
# cluster: --real 2
# The systems of the documents that Shirabe grew from, in a cluster: the command lines of AI
# Platform through kubectl's plugin, a step that deploys what was found, TensorBoard over the
# outputs of all trials, and a queue of work in Redis whose workers lose their machines. Its
# counterpart on a laptop: tests/e2e/seeds_test.sh, queue_test.sh, loggers_test.sh.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
trap show_state EXIT

IMAGE=docker.io/shirabe/example-tensorboard:0.1
USER_OF_PODS='{runAsUser: 65532, runAsGroup: 65532}'
out=$CLUSTER/out

# The program as kubectl finds it, in the folder of the example.
ai_platform() {
  "$HERE/cluster.sh" exec "$CLUSTER" env -C "$SOURCE/deploy/examples/ai-platform" \
    "PATH=$CLUSTER/plugin:$PATH" "KUBECONFIG=$CLUSTER/admin.kubeconfig" kubectl ai-platform "$@"
}

says() { grep -q -- "$1" "$out" || fail "$2: no \"$1\" in: $(cat "$out")"; }

# make_volume CLAIM FOLDER MODE: what a claim of that name is given, below the cluster's folder.
make_volume() {
  install -d -m 1777 "$CLUSTER/$2"
  kubectl apply -f - >/dev/null <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec:
  capacity: {storage: 1Gi}
  accessModes: [$3]
  storageClassName: ""
  claimRef: {namespace: default, name: $1}
  hostPath: {path: $CLUSTER/$2}
END
}

# One claim that all trials share, as NFS would be one.
make_claim() {
  make_volume checkpoints checkpoints ReadWriteMany
  kubectl apply -f - >/dev/null <<END
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: checkpoints, namespace: default}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: checkpoints
  resources: {requests: {storage: 1Gi}}
END
}

# example FILE SED…: an example in our image and as one user, its checkpoints on the claim.
example() {
  local file=$1
  shift
  sed -e 's#image: .*#image: '"$IMAGE"'#' \
    -e "s#^\( *\)restartPolicy: Never#&\n\1securityContext: $USER_OF_PODS#" \
    "$@" "$SOURCE/deploy/examples/$file" | kubectl apply -f - >/dev/null
}

VOLUME='volume: {claim: checkpoints}'

# ---- a queue in Redis ---------------------------------------------------------------------------

redis() { kubectl exec deployment/redis-queue -- redis-cli "$@"; }

# The example as it is, but for its image and how long its work takes.
start_queue() {
  make_volume redis-queue queue ReadWriteMany
  make_volume redis-queue-log queue-log ReadWriteOnce
  install -d -m 1777 "$CLUSTER/queue/parts"
  sed -e 's#image: .*#image: '"$IMAGE"'#' -e 's#--items=24#--items=9#' \
    -e 's#^\( *\)- --lease=30#\1- --lease=5\n\1- --pause=1#' \
    "$SOURCE/deploy/examples/kubernetes/redis-queue.yaml" | kubectl apply -f - >/dev/null
}

# A machine under one of the workers goes.
evict_worker() {
  local pod
  pod=$(kubectl get pods -l katib.kubeflow.org/experiment=redis-queue -o name \
    --field-selector=status.phase=Running | sed -n 1p)
  [ -n "$pod" ] || return 1
  kubectl create --raw "/api/v1/namespaces/default/pods/${pod#pod/}/eviction" -f - >/dev/null <<END
{"apiVersion": "policy/v1", "kind": "Eviction",
 "metadata": {"name": "${pod#pod/}", "namespace": "default"}}
END
}

some_done() { [ "$(redis hlen digits:done)" -ge "$1" ]; }

# Each item once, by the worker whose last checkpoint knows it; and one lost its machine.
check_queue() {
  redis hgetall digits:done >"$CLUSTER/done"
  inside_controller get attempts redis-queue -o json >"$CLUSTER/workers.json"
  python3 - "$CLUSTER" <<'END'
import collections, json, pathlib, sys

work = pathlib.Path(sys.argv[1])
lines = (work / "done").read_text().split()
done = dict(zip(lines[::2], lines[1::2]))
assert len(done) == 9, done
learned = collections.defaultdict(list)
for folder in (work / "queue/trials/default/redis-queue").glob("redis-queue-?"):
    files = sorted(folder.glob("**/files.json"), key=lambda path: int(path.parent.name))
    learned[folder.name] = json.loads(files[-1].read_text()) if files else []
for worker, files in learned.items():
    assert len(files) == len(set(files)), (worker, files)
    assert set(files) == {file for file, who in done.items() if who == worker}, (worker, done)
attempts = json.loads((work / "workers.json").read_text())["items"]
assert any(one["cause"] == "preempted-eviction" for one in attempts), attempts
END
}

# What Redis has said to be done is there after it has lost its pod.
check_log() {
  local pod
  pod=$(kubectl get pods -l app=redis-queue -o name)
  kubectl delete "$pod" >/dev/null
  eventually 180 "Redis again" is 1 kubectl get deployment redis-queue \
    -o 'jsonpath={.status.readyReplicas}'
  eventually 30 "what was done" is 9 redis hlen digits:done
}

# ---- TensorBoard --------------------------------------------------------------------------------

tensorboard() { kubectl get --raw "/api/v1/namespaces/default/services/tensorboard:http/proxy/$1"; }
runs() { tensorboard data/runs | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))'; }

# ---- the test -----------------------------------------------------------------------------------

step "install"
cluster load "$("$HERE/images.sh" seeds)"
install_shirabe
make_claim
mkdir -p "$CLUSTER/plugin"
ln -s "$SOURCE/build/release/bin/shirabe" "$CLUSTER/plugin/kubectl-ai_platform"

step "what takes its time: a queue, and trials with outputs and a step after them"
start_queue
example tensorboard.yaml -e 's/maxTrialCount: 8/maxTrialCount: 2/' \
  -e "s#^spec:#&\n  shirabe: {checkpoint: {$VOLUME}}#"
example deploy.yaml -e 's/maxTrialCount: 6/maxTrialCount: 2/' \
  -e "s#^  shirabe:#&\n    checkpoint: {$VOLUME}#"

step "the command lines of AI Platform"
MODEL_NAME=test-model
PACKAGE_PATH=./trainer
JOB_NAME=${MODEL_NAME}-$(date +%Y%m%d-%H%M%S)
ai_platform jobs submit training "$JOB_NAME" \
  --package-path "$PACKAGE_PATH" --config ./config.yaml --master-machine-type n1-standard-1 \
  --master-image-uri "$IMAGE" >"$out" 2>&1 || fail "submit: $(cat "$out")"
says "Job \[$JOB_NAME\] submitted successfully" submit
says "^jobId: $JOB_NAME" submit
ai_platform jobs list >"$out" 2>&1 || fail "list: $(cat "$out")"
says "^$JOB_NAME " list
eventually 240 "something done" some_done 2
evict_worker || fail "no worker to evict"
ai_platform jobs stream-logs "$JOB_NAME" >"$out" 2>&1 || fail "stream-logs: $(cat "$out")"
says '^4\.1  step 20 of learning rate' stream-logs
says 'job-dir gs://some-bucket/line/3 ' stream-logs
ai_platform jobs describe "$JOB_NAME" --format json >"$CLUSTER/job.json" || fail "describe"
python3 - "$CLUSTER/job.json" <<'END'
import json, sys
job = json.load(open(sys.argv[1]))
assert job["state"] == "SUCCEEDED" and job["trainingOutput"]["completedTrialCount"] == 4, job
END
ai_platform jobs submit training endless --module-name http.server --master-image-uri "$IMAGE" \
  -- 0 --bind 127.0.0.1 >"$out" 2>&1 || fail "an endless job: $(cat "$out")"
ai_platform jobs cancel endless >"$out" 2>&1 || fail "cancel: $(cat "$out")"
eventually 60 "that it is cancelled" has '^state: CANCELLED' ai_platform jobs describe endless

step "TensorBoard over the outputs of all trials"
kubectl apply -f "$SOURCE/deploy/examples/kubernetes/tensorboard.yaml" >/dev/null
eventually 90 "its readiness" is 1 kubectl get deployment tensorboard \
  -o 'jsonpath={.status.readyReplicas}'
eventually 30 "a run for each trial" is 2 runs
expect "their scalars" has 'loss/valid' tensorboard data/plugin/scalars/tags

step "the step after a search"
eventually 120 "the success of deploy" is True condition deploy Succeeded
eventually 60 "what follows it" is Succeeded kubectl get experiments.kubeflow.org deploy \
  -o 'jsonpath={.status.shirabe.onSuccess.phase}'
inside_controller logs deploy/on-success >"$out"
says '^serving deploy-[12]: loss' "the log of the step"

step "the queue"
eventually 240 "the end of the workers" is True condition redis-queue Succeeded
check_queue
check_log
echo ok
