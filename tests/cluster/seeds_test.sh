#!/usr/bin/env bash
# cluster: --real 2
# The systems of the documents that Shirabe grew from, in a cluster: the command lines of AI
# Platform through kubectl's plugin, a step that deploys what was found, TensorBoard over the
# outputs of all trials, a queue of work in Redis whose workers lose their machines, and a bucket
# from which code comes, and through which a trial goes on elsewhere without a volume. Its
# counterpart on a laptop: tests/e2e/seeds_test.sh, queue_test.sh, loggers_test.sh, stores_test.sh.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
at_exit() {
  show_state
  [ -z "$STORE" ] || kill "$STORE"
}
STORE=
trap at_exit EXIT

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
  evict "${pod#pod/}"
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

# ---- code and models in a bucket ----------------------------------------------------------------

S3_SERVER=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/versitygw-1.8.0/versitygw
S3_ADDRESS=10.99.0.1:7070 # of the bridge that all nodes are at
SECRET=secret-of-the-store
BUCKET=$CLUSTER/s3/data/models
COPIES=$BUCKET/default/seeds/_/packed/1

# An S3 server for all of the cluster, and the controller's file of stores as its component has it.
start_store() {
  local kubernetes
  mkdir -p "$BUCKET" "$CLUSTER/s3/attributes" "$CLUSTER/stores"
  "$HERE/cluster.sh" exec "$CLUSTER" "$S3_SERVER" --access team --secret "$SECRET" --port \
    "$S3_ADDRESS" --quiet posix --sidecar "$CLUSTER/s3/attributes" "$CLUSTER/s3/data" \
    >"$CLUSTER/s3/log" 2>&1 &
  STORE=$!
  cat >"$CLUSTER/stores/stores.yaml" <<END
stores:
  - {name: team, type: s3, endpoint: "http://$S3_ADDRESS", bucket: models, namespaces: [default],
     credentials: {environment: TEAM}}
END
  kubernetes=$(realpath --relative-to="$CLUSTER/stores" "$SOURCE/deploy/kubernetes")
  cat >"$CLUSTER/stores/kustomization.yaml" <<END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: $SYSTEM
generatorOptions: {disableNameSuffixHash: true}
configMapGenerator: [{name: shirabe-stores, files: [stores.yaml]}]
secretGenerator:
  - {name: shirabe-stores, literals: [TEAM_ACCESS_KEY=team, "TEAM_SECRET_KEY=$SECRET"]}
resources: [$kubernetes/overlays/hostpath-test]
components: [$kubernetes/components/stores]
END
  KUSTOMIZATION=$CLUSTER/stores
}

# Its first attempt saves at 1 to 3, and then waits until its machine is taken away.
start_packed() {
  local package
  mkdir -p "$CLUSTER/packed/steps"
  cat >"$CLUSTER/packed/train.py" <<'END'
import os, pathlib, time
from steps import last

assert os.getcwd() == os.environ["SHIRABE_CODE_DIR"], os.getcwd()
resumed = os.environ.get("SHIRABE_RESUME_FROM")
step = int(pathlib.Path(resumed, "step").read_text()) if resumed else 0
print(f"began at step {step}", flush=True)
while step < last.STEP:
    if step == 3 and os.environ["SHIRABE_ATTEMPT"] == "1":
        time.sleep(600)
    step += 1
    folder = pathlib.Path(os.environ["SHIRABE_CHECKPOINT_DIR"])
    (folder / f"{step}.tmp").mkdir(parents=True)
    (folder / f"{step}.tmp" / "step").write_text(str(step))
    (folder / f"{step}.tmp").rename(folder / str(step))
    print(f"loss={1 / step}", flush=True)
output = pathlib.Path(os.environ["SHIRABE_OUTPUT_DIR"])
output.mkdir(parents=True, exist_ok=True)
(output / "model").write_text(f"trained to step {step}\n")
END
  echo 'STEP = 5' >"$CLUSTER/packed/steps/last.py"
  package=$(TEAM_ACCESS_KEY=team TEAM_SECRET_KEY=$SECRET shirabe upload "$CLUSTER/packed" \
    --stores "$CLUSTER/stores/stores.yaml" -o name) || fail "upload: $package"
  kubectl apply -f - >/dev/null <<END
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: packed}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 1
  parallelTrialCount: 1
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.1", max: "1"}}
  shirabe:
    code: {store: team, package: "$package"}
    artifacts: {store: team, prefix: seeds, checkpoints: true, outputs: true}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            securityContext: $USER_OF_PODS
            containers:
              - name: main
                image: $IMAGE
                command: [python3, train.py, "\${trialParameters.lr}"]
            restartPolicy: Never
END
}

# The machine under it goes, and with it the checkpoints that it has saved there.
move_packed() {
  local pod
  eventually 90 "a copy of its third checkpoint" test -e "$COPIES/1/3/manifest.json"
  pod=$(kubectl get pods -l katib.kubeflow.org/trial=packed-1 -o name)
  MOVED_FROM=$(kubectl get "$pod" -o 'jsonpath={.spec.nodeName}')
  kubectl cordon "$MOVED_FROM" >/dev/null
  evict "${pod#pod/}"
  eventually 60 "another pod for it" has '^pod/' kubectl get pods -o name \
    -l shirabe.dev/attempt=2,katib.kubeflow.org/trial=packed-1
  kubectl uncordon "$MOVED_FROM" >/dev/null
}

# It went on there from what it had saved here, and what it has made comes out; no secret went in.
check_packed() {
  eventually 90 "the success of packed" is True condition packed Succeeded
  inside_controller get attempts packed -o json >"$CLUSTER/packed.json"
  python3 - "$CLUSTER/packed.json" "$MOVED_FROM" <<'END'
import json, sys
first, second = sorted(json.load(open(sys.argv[1]))["items"], key=lambda one: one["number"])
assert first["cause"] == "preempted-eviction", first
assert second["resumedFromStep"] == 3, second
assert first["node"] == sys.argv[2] != second["node"], (first, second)
END
  inside_controller events packed >"$out"
  says 'from step 3, saved by packed-1-a1' events
  says 'OutputsCopied' events
  inside_controller logs packed/1 >"$out"
  says 'began at step 3' "its log"
  shirabe cp packed/1/output "$CLUSTER/model" --server "kube://$SYSTEM/shirabe" >"$out" 2>&1 ||
    fail "cp: $(cat "$out")"
  equal "its model" 'trained to step 5' "$(cat "$CLUSTER/model/model")"
  kubectl get pods,jobs,configmaps -o yaml >"$out"
  ! grep -q -e "$SECRET" -e X-Amz "$out" || fail "a secret stands in an object of the namespace"
}

# ---- TensorBoard --------------------------------------------------------------------------------

tensorboard() { kubectl get --raw "/api/v1/namespaces/default/services/tensorboard:http/proxy/$1"; }
runs() { tensorboard data/runs | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))'; }

# ---- the test -----------------------------------------------------------------------------------

step "install"
cluster load "$("$HERE/images.sh" seeds)"
start_store
install_shirabe
make_claim
mkdir -p "$CLUSTER/plugin"
ln -s "$SOURCE/build/release/bin/shirabe" "$CLUSTER/plugin/kubectl-ai_platform"

step "what takes its time: a queue, and trials with outputs and a step after them"
start_queue
start_packed
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
move_packed
ai_platform jobs stream-logs "$JOB_NAME" >"$out" 2>&1 || fail "stream-logs: $(cat "$out")"
says '^4\.1  step 20 of learning rate' stream-logs
says 'job-dir gs://some-bucket/line/3 ' stream-logs
ai_platform jobs describe "$JOB_NAME" --format json >"$CLUSTER/job.json" || fail "describe"
python3 - "$CLUSTER/job.json" <<'END'
import json, sys
job = json.load(open(sys.argv[1]))
assert job["state"] == "SUCCEEDED" and job["trainingOutput"]["completedTrialCount"] == 4, job
END
mkdir -p "$CLUSTER/local/hello"
touch "$CLUSTER/local/hello/__init__.py"
echo 'print("said by a package of this machine")' >"$CLUSTER/local/hello/task.py"
TEAM_ACCESS_KEY=team TEAM_SECRET_KEY=$SECRET ai_platform jobs submit training packaged \
  --package-path "$CLUSTER/local/hello" --module-name hello.task --master-image-uri "$IMAGE" \
  --stores "$CLUSTER/stores/stores.yaml" >"$out" 2>&1 || fail "a package: $(cat "$out")"
ai_platform jobs stream-logs packaged >"$out" 2>&1 || fail "its log: $(cat "$out")"
says 'said by a package of this machine' "its log"
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

step "code, checkpoints and a model by way of a bucket"
check_packed

step "the queue"
eventually 240 "the end of the workers" is True condition redis-queue Succeeded
check_queue
check_log
echo ok
