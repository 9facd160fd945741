#!/usr/bin/env bash
# The command lines of AI Platform, as a team would have them in a script: a search and a single job
# that come from files and a package of this machine, on a local store and on a server.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/until_true.sh
source tests/support/until_true.sh

SHIRABE_HOME=$(mktemp -d)
export SHIRABE_HOME
shirabe=$PWD/build/release/bin/shirabe
out=$SHIRABE_HOME/out
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$SHIRABE_HOME"' EXIT

fail() {
  echo "FAILED: $*" >&2
  [ ! -s "$out" ] || tail -n 40 "$out" >&2
  exit 1
}

# has TEXT WHAT: it is in the last output.
has() { grep -q -- "$1" "$out" || fail "$2: no \"$1\""; }

mkdir "$SHIRABE_HOME/bin"
ln -s "$shirabe" "$SHIRABE_HOME/bin/kubectl-ai_platform"
PATH=$SHIRABE_HOME/bin:$PATH
# The plugin goes to a cluster; here to a store of this machine.
export SHIRABE_DB=sqlite:$SHIRABE_HOME/shirabe.db
cd deploy/examples/ai-platform

# A script as in front of gcloud: name by date, package and config by variables.
MODEL_NAME=test-model
PACKAGE_PATH=./trainer
JOB_NAME=${MODEL_NAME}-$(date +%Y%m%d-%H%M%S)
kubectl-ai_platform jobs submit training "$JOB_NAME" \
  --package-path "$PACKAGE_PATH" --config ./config.yaml --stream-logs >"$out" 2>&1 ||
  fail "the search"
has "Job \[$JOB_NAME\] submitted successfully" "the search"
has 'left out: trials run where' "what has no counterpart"
has '^4\.1  step 20 of learning rate' "the output of the fourth trial"
has 'job-dir gs://some-bucket/line/3 ' "the folder of the third trial"
kubectl-ai_platform jobs describe "$JOB_NAME" --format json >"$out" 2>&1 || fail "describe"
python3 - "$out" <<'END' || fail "what describe shows"
import json, sys
job = json.load(open(sys.argv[1]))
output = job["trainingOutput"]
values = [t["finalMetric"]["objectiveValue"] for t in output["trials"]]
assert job["state"] == "SUCCEEDED", job
assert output["completedTrialCount"] == 4 and output["isHyperparameterTuningJob"], output
assert values == sorted(values, reverse=True) and 0 < values[0] <= 1, values
assert set(output["trials"][0]["hyperparameters"]) == {"learning_rate", "batch_size"}, output
END

# A job without a search, by flags and with arguments of its program; names with capitals.
kubectl-ai_platform jobs submit training One_Job --package-path trainer/ \
  --module-name trainer.task --job-dir "$SHIRABE_HOME/job" --region us-east1 --scale-tier BASIC \
  --labels team=a,kind=test --stream-logs \
  -- --learning_rate 0.2 --note=mine >"$out" 2>&1 || fail "a single job"
has "^job-dir $SHIRABE_HOME/job note mine" "arguments of a single job"
has '^step 20 of learning rate 0.2' "its output"

# One whose program fails fails, with gcloud's code.
code=0
kubectl-ai_platform jobs submit training bad --package-path trainer --module-name trainer.missing \
  --stream-logs >"$out" 2>&1 || code=$?
[ "$code" = 1 ] || fail "a failing job ends with $code"
has 'No module named trainer.missing' "why"

# Wrong calls, and what is there already.
code_of() {
  code=0
  "$@" >"$out" 2>&1 || code=$?
  echo "$code"
}
[ "$(code_of kubectl-ai_platform jobs submit training bad --module-name a --async)" = 1 ] ||
  fail "the same name again"
[ "$(code_of kubectl-ai_platform jobs describe nothing)" = 1 ] || fail "a job that is not there"
[ "$(code_of kubectl-ai_platform jobs describe)" = 2 ] || fail "a missing name"
[ "$(code_of kubectl-ai_platform jobs submit training x --no-such-flag)" = 2 ] ||
  fail "a wrong flag"
[ "$(code_of kubectl-ai_platform jobs list)" = 0 ] || fail "list"
has '^one-job *SUCCEEDED' "list"
has '^bad *FAILED' "list"

# kubectl asks a program beside a plugin what may come next.
ln -s "$shirabe" "$SHIRABE_HOME/bin/kubectl_complete-ai_platform"
completes() {
  kubectl_complete-ai_platform "$@" >"$out" 2>&1 || fail "completion of $*"
  [ "$(tail -n 1 "$out")" = :4 ] || fail "the directive after the completion of $*"
}
completes ""
has '^jobs$' "completion of nothing"
completes jobs str
[ "$(cat "$out")" = $'stream-logs\n:4' ] || fail "completion of jobs str"
completes jobs describe one
has '^one-job$' "completion of a job's name"

# To a server: submit returns, then describe, stream-logs and cancel.
"$shirabe" serve --db "sqlite:$SHIRABE_HOME/server.db" --http 127.0.0.1:0 --grpc 127.0.0.1:0 \
  >"$SHIRABE_HOME/serve.out" 2>&1 &
server=$!
port_of() {
  sed -n 's/.* on 127.0.0.1:\([0-9]*\) (gRPC).*/\1/p' "$SHIRABE_HOME/serve.out" 2>/dev/null
}
has_port() { [ -n "$(port_of)" ]; }
until_true 60 has_port || { cp "$SHIRABE_HOME/serve.out" "$out" && fail "no server"; }
on_server() { kubectl-ai_platform --server "127.0.0.1:$(port_of)" "$@"; }
on_server jobs submit training remote --package-path ./trainer --config config.yaml \
  >"$out" 2>&1 || fail "submit to a server"
has '^jobId: remote' "submit to a server"
timeout 120 "$SHIRABE_HOME/bin/kubectl-ai_platform" jobs stream-logs remote \
  --server "127.0.0.1:$(port_of)" >"$out" 2>&1 || fail "stream-logs"
has '^4\.1  step 20' "stream-logs"
on_server jobs submit training endless --module-name http.server -- 0 --bind 127.0.0.1 \
  >"$out" 2>&1 || fail "an endless job"
on_server jobs cancel endless >"$out" 2>&1 || fail "cancel"
cancelled() { on_server jobs describe endless 2>/dev/null | grep -q '^state: CANCELLED'; }
until_true 60 cancelled || fail "it is not cancelled"
on_server jobs cancel endless >"$out" 2>&1 || fail "cancel again"

# The files of the other systems, as they are.
unset SHIRABE_DB
for file in ../ai-platform/config.yaml ../converted/sweep.yaml; do
  cd "$(dirname "$file")"  # where their programs are
  timeout 120 "$shirabe" run -f "$file" >"$out" 2>&1 || fail "run -f $file"
  has ': converted from ' "run -f $file"
  has ' has ended: ' "run -f $file"
done
for file in *; do
  case $file in *.py | __pycache__) continue ;; esac
  "$shirabe" convert -f "$file" -o "$SHIRABE_HOME/made.yaml" --report "$SHIRABE_HOME/report.json" \
    >"$out" 2>&1 || fail "convert -f $file"
  "$shirabe" validate -f "$SHIRABE_HOME/made.yaml" >"$out" 2>&1 || fail "what $file becomes"
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["fields"]' \
    "$SHIRABE_HOME/report.json" || fail "the report of $file"
done

# Copying split from training: whatever machines are taken away, a newer file stays.
cd ../../..
cat >"$SHIRABE_HOME/nodes.yaml" <<'END'
pools:
  - name: spot
    capacity: spot
    pricePerHour: 3.6
    slots: 2
    reclaim: {times: [1.5, 1.7, 3.5, 3.7], noticeSeconds: 0}
END
sed 's/\( *\)- --lr=.*/&\n\1- --pause=0.2/' deploy/examples/copy-once.yaml \
  >"$SHIRABE_HOME/copy.yaml"
timeout 300 "$shirabe" run -f "$SHIRABE_HOME/copy.yaml" --nodes "$SHIRABE_HOME/nodes.yaml" \
  >"$out" 2>&1 || fail "run -f copy-once.yaml"
"$shirabe" get attempts copy-once -o json >"$SHIRABE_HOME/attempts.json"
python3 - "$shirabe" "$SHIRABE_HOME" >"$out" 2>&1 <<'END' || fail "what was copied when"
import json, re, subprocess, sys

again, reached = 0, {}
for attempt in json.load(open(f"{sys.argv[2]}/attempts.json"))["items"]:
    number = str(attempt["number"])
    command = [sys.argv[1], "logs", attempt["trial"], "--attempt", number]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    print(attempt["trial"], number, log)
    began = re.search(r"^begins at epoch (\d+)$", log, re.M)
    if not began:
        continue  # it lost its machine before that
    last = reached.get(attempt["trial"], 10)
    assert int(began[1]) >= last, "a newer file was overwritten"
    epochs = [int(epoch) for epoch in re.findall(r"^epoch=(\d+) ", log, re.M)]
    reached[attempt["trial"]] = max([last, *epochs])
    again += "is there already" in log and int(began[1]) > 10
assert set(reached.values()) == {30}, reached
assert again > 0, "no attempt went on from a newer file"
END
echo "the command lines of the seeds work"
