#!/usr/bin/env bash
# Other people's trackers have what Shirabe has: TensorBoard and MLflow read what `export` and
# `tensorboard` write, with their own packages; and programs that log to MLflow and to Weights &
# Biases by themselves have one run for each trial, though attempts of it are killed.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/until_true.sh
source tests/support/until_true.sh

loggers=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/loggers
work=$(mktemp -d)
follower=
run=
trap 'for pid in $follower $run; do kill "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT
export SHIRABE_HOME=$work/home
# No program here has an account, or a look for a newer version of itself.
export WANDB_MODE=offline MLFLOW_ALLOW_FILE_STORE=true
PATH=$PWD/build/release/bin:$loggers/bin:$PATH

fail() {
  echo "FAILED: $1" >&2
  cat "$work/out" >&2
  exit 1
}

if ! python3 -c 'import mlflow, tensorboard, wandb' 2>/dev/null; then
  echo "left out: python3 has no mlflow, tensorboard or wandb (deploy/setup.sh test installs them)"
  exit 0
fi

tree=$PWD
cd "$work" # where MLflow's and W&B's own folders go

# pid_of TRIAL ATTEMPT: of its program.
pid_of() {
  local process
  for process in /proc/[0-9]*; do
    grep -qsz "^SHIRABE_TRIAL=$1\$" "$process/environ" || continue
    grep -qsz "^SHIRABE_ATTEMPT=$2\$" "$process/environ" || continue
    # Not the supervisor, which has the command behind its own name.
    head -zqn 1 "$process/cmdline" 2>/dev/null | grep -qz 'python3$' || continue
    echo "${process#/proc/}"
    return
  done
  return 1
}
has_saved() { [ -n "$(shirabe get checkpoints "$1" --no-headers 2>/dev/null)" ]; }

# interrupt TOOL SIGNAL: ends the first attempts of two trials, once they have saved something.
interrupt() {
  local trial pid
  for trial in 1 2; do
    until_true 120 has_saved "$1/$trial" || fail "$1/$trial saves nothing"
    pid=$(pid_of "$1-$trial" 1) || fail "the program of $1/$trial is not to be found"
    kill "-$2" "$pid"
  done
}

# At once, and politely: W&B writes its file when a program ends.
for tool in mlflow:KILL wandb:TERM; do
  signal=${tool#*:} tool=${tool%:*}
  sed "s#deploy/examples#$tree/deploy/examples#; s/\( *\)- --lr=.*/&\n\1- --pause=0.2/" \
    "$tree/deploy/examples/$tool.yaml" >"$work/$tool.yaml"
  timeout 400 shirabe run -f "$work/$tool.yaml" >"$work/out" 2>&1 &
  run=$!
  interrupt "$tool" "$signal"
  wait "$run" || fail "run -f $tool.yaml"
  run=
  shirabe get attempts "$tool" -o json >"$work/$tool-attempts.json"
  shirabe get metrics "$tool/1" -o json >"$work/$tool-metrics.json"
done

# ---- what the programs logged themselves --------------------------------------------------------
cat >"$work/logged.py" <<'END'
"""logged.py mlflow|wandb: one run a trial, with every step of it."""
import glob
import json
import struct
import sys

TOOL = sys.argv[1]


def mlflow_runs():
    import mlflow

    client = mlflow.MlflowClient("file:mlruns")
    (experiment,) = [e for e in client.search_experiments() if e.name == "mlflow"]
    for run in client.search_runs([experiment.experiment_id]):
        steps = {m.step: m.value for m in client.get_metric_history(run.info.run_id, "loss")}
        yield run.data.tags["shirabe.trial"], steps


def records(path):
    """Of a file of W&B, which has the format of LevelDB's log after seven bytes."""
    from wandb.proto import wandb_internal_pb2

    data, at, part = open(path, "rb").read(), 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        part += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield wandb_internal_pb2.Record.FromString(part)
            part = b""


def wandb_runs():
    runs = {}
    for path in sorted(glob.glob("wandb/offline-run-*/run-*.wandb")):
        name = None
        for record in records(path):
            name = record.run.run_id or name
            steps = runs.setdefault(name, {}) if name else {}
            for item in record.history.item:
                if list(item.nested_key) == ["loss"] or item.key == "loss":
                    steps[record.history.step.num] = json.loads(item.value_json)
    return runs.items()


attempts = json.load(open(f"{TOOL}-attempts.json"))["items"]
assert len(attempts) == 6, "two attempts were interrupted"
found = list(mlflow_runs() if TOOL == "mlflow" else wandb_runs())
assert sorted(name for name, _ in found) == [f"{TOOL}-{n}" for n in range(1, 5)], found
for name, steps in found:
    assert sorted(steps) == list(range(1, 41)), (name, sorted(steps))
print(f"{TOOL}: 4 runs of {len(attempts)} attempts")
END
for tool in mlflow wandb; do
  python3 "$work/logged.py" "$tool" >"$work/out" 2>&1 || fail "the runs that programs log to $tool"
  cat "$work/out"
done

# ---- exports ------------------------------------------------------------------------------------
shirabe export mlflow -o tensorboard --to "$work/runs" 2>"$work/out" || fail "-o tensorboard"
shirabe export mlflow -o mlflow --to "$work/store" 2>"$work/out" || fail "-o mlflow"
shirabe export mlflow -o mlflow --to "$work/store" 2>"$work/out" && fail "the same export again"
grep -q 'exported before' "$work/out" || fail "what an export that is there already says"
cat >"$work/exported.py" <<'END'
import json

import mlflow
from tensorboard import context as base_context
from tensorboard.backend.event_processing import data_provider as providers
from tensorboard.backend.event_processing import event_accumulator, plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment
from tensorboard.plugins.hparams import list_session_groups

metrics = json.load(open("mlflow-metrics.json"))["items"]
wanted = {m["step"]: m["value"] for m in metrics if m["metric"] == "loss"}
assert sorted(wanted) == list(range(1, 41)), metrics[:2]

run = event_accumulator.EventAccumulator("runs/mlflow-1").Reload()
assert run.Tags()["scalars"] == ["loss"], run.Tags()
scalars = run.Scalars("loss")
assert [s.step for s in scalars] == sorted(wanted), scalars
assert all(abs(s.value - wanted[s.step]) <= 1e-6 * abs(wanted[s.step]) for s in scalars)
assert all(s.wall_time > 1.7e9 for s in scalars)

multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory("runs")
multiplexer.Reload()
provider = providers.MultiplexerDataProvider(multiplexer, "runs")
context = backend_context.Context(base_plugin.TBContext(data_provider=provider))
request = base_context.RequestContext()
asked = api_pb2.GetExperimentRequest()
experiment = get_experiment.Handler(request, context, "", asked).run()
assert [h.name for h in experiment.hparam_infos] == ["lr"], experiment
assert experiment.hparam_infos[0].domain_interval.max_value == 0.5
assert [m.name.tag for m in experiment.metric_infos] == ["loss"], experiment
every = [api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING]
asked = api_pb2.ListSessionGroupsRequest(start_index=0, slice_size=100, allowed_statuses=every)
groups = list_session_groups.Handler(request, context, "", asked).run().session_groups
assert sorted(g.name for g in groups) == [f"mlflow-{n}" for n in range(1, 5)], groups
for group in groups:
    (session,) = group.sessions
    assert session.status == api_pb2.STATUS_SUCCESS, session
    assert session.end_time_secs > session.start_time_secs, session
    assert 0.01 <= group.hparams["lr"].number_value <= 0.5, group
    assert [(m.name.tag, m.training_step) for m in group.metric_values] == [("loss", 40)], group

client = mlflow.MlflowClient("file:store")
(experiment,) = [e for e in client.search_experiments() if e.name == "mlflow"]
runs = {r.info.run_name: r for r in client.search_runs([experiment.experiment_id])}
assert sorted(runs) == [f"mlflow-{n}" for n in range(1, 5)], runs
first = runs["mlflow-1"]
assert first.info.status == "FINISHED" and first.info.end_time > first.info.start_time, first
assert 0.01 <= float(first.data.params["lr"]) <= 0.5, first
assert first.data.tags["shirabe.state"] == "Succeeded", first
history = client.get_metric_history(first.info.run_id, "loss")
assert {m.step: m.value for m in history} == wanted, "every value, exactly"
print("TensorBoard's and MLflow's own packages read what was exported")
END
python3 "$work/exported.py" >"$work/out" 2>&1 || fail "what was exported"
cat "$work/out"

# ---- lineage ------------------------------------------------------------------------------------
shirabe describe mlflow --lineage >"$work/out" 2>&1 || fail "describe --lineage"
grep -q 'mlflow-[1-4]-a2 .* mlflow-[1-4]-a1, step [1-9]' "$work/out" || fail "a resumed attempt"
shirabe export mlflow --lineage >"$work/lineage.csv" 2>"$work/out" || fail "export --lineage"
python3 - "$work" >"$work/out" 2>&1 <<'END' || fail "the lineage as CSV"
import csv, json, sys

rows = list(csv.DictReader(open(f"{sys.argv[1]}/lineage.csv")))
attempts = json.load(open(f"{sys.argv[1]}/mlflow-attempts.json"))["items"]
assert len(rows) == len(attempts), (len(rows), len(attempts))
for row in rows:
    resumed = row["resumed_from"]
    assert (resumed == "") == (row["attempt"] == "1"), row
    assert not resumed or resumed == f"{row['trial']}-a{int(row['attempt']) - 1}", row
gained = {}
for row in rows:
    gained[row["trial"]] = gained.get(row["trial"], 0) + int(row["steps_gained"])
assert set(gained.values()) == {40}, gained
END

# ---- of a server --------------------------------------------------------------------------------
shirabe serve --http 127.0.0.1:0 --grpc 127.0.0.1:0 >"$work/serve" 2>&1 &
run=$!
port_of() { sed -n 's/.* on 127.0.0.1:\([0-9]*\) (gRPC).*/\1/p' "$work/serve" 2>/dev/null; }
has_port() { [ -n "$(port_of)" ]; }
until_true 60 has_port || { cp "$work/serve" "$work/out" && fail "no server"; }
server=127.0.0.1:$(port_of)
far() { shirabe "$@" --server "$server" 2>"$work/out" || fail "$* on a server"; }
mkdir "$work/far"
far export mlflow -o tensorboard --to "$work/far/runs"
far export mlflow -o mlflow --to "$work/far/store"
far describe mlflow --lineage >"$work/far/lineage"
shirabe describe mlflow --lineage >"$work/near"
cmp "$work/near" "$work/far/lineage" >"$work/out" 2>&1 || fail "the lineage of a server differs"
diff -r "$work/runs" "$work/far/runs" >"$work/out" 2>&1 || fail "event files of a server differ"
rm -r "$work/store/.trash" # made by MLflow when it looked
diff -r -x meta.yaml "$work/store" "$work/far/store" >"$work/out" 2>&1 ||
  fail "a store for MLflow differs if it comes from a server"
kill "$run"
wait "$run" || fail "the server ends with $?"
run=

# ---- live ---------------------------------------------------------------------------------------
# A port that is free now: tests run side by side.
port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
sed 's/name: mlflow$/name: live/; s/maxTrialCount: 4/maxTrialCount: 2/' "$work/mlflow.yaml" \
  >"$work/live.yaml"
# Shown from before its first value on.
shirabe apply -f "$work/live.yaml" >"$work/out" 2>&1 || fail "apply -f live.yaml"
shirabe tensorboard live --port "$port" >"$work/follow" 2>&1 &
follower=$!
# ask PATH [JSON]: a page of TensorBoard.
ask() {
  python3 - "http://127.0.0.1:$port/data/plugin/$1" "${2:-}" 2>/dev/null <<'END'
import sys, urllib.request

body = sys.argv[2].encode() or None
request = urllib.request.Request(sys.argv[1], body, {"Content-Type": "application/json"})
print(urllib.request.urlopen(request, timeout=10).read().decode())
END
}
asks() { ask scalars/tags >/dev/null; }
until_true 120 asks || { cp "$work/follow" "$work/out" && fail "TensorBoard does not answer"; }
timeout 300 shirabe run -f "$work/live.yaml" >"$work/out" 2>&1 || fail "run -f live.yaml"
points() {
  ask 'scalars/scalars?run=live-2&tag=loss' |
    python3 -c 'import json, sys; sys.exit(len(json.load(sys.stdin)) != 40)'
}
until_true 60 points || fail "TensorBoard has not got all values of a run that it followed"
sessions() {
  ask hparams/session_groups \
    '{"startIndex": 0, "sliceSize": 10, "allowedStatuses": ["STATUS_SUCCESS"]}' 2>/dev/null |
    python3 -c 'import json, sys
groups = json.load(sys.stdin)["sessionGroups"]
sys.exit(sorted(group["name"] for group in groups) != ["live-1", "live-2"])'
}
until_true 60 sessions || fail "TensorBoard does not show how the trials ended"

# It ends with the command, however that ends, and its folder goes.
child=$(pgrep -P "$follower") || fail "tensorboard is not a child of the command"
folder=$(sed -n 's/.* trials of live in \([^;]*\);.*/\1/p' "$work/follow")
[ -d "$folder" ] || fail "the folder of the event files: \"$folder\""
# Not counted is what has ended, and has only not been asked for its end.
group_is_gone() { ! pgrep -r R,S,D,T -g "$child" >/dev/null; }
kill -TERM "$follower"
wait "$follower" || fail "SIGTERM is no way to end it: $?"
until_true 10 group_is_gone || fail "processes are left"
[ ! -e "$folder" ] || fail "the temporary folder is left"
shirabe tensorboard live --port "$port" --logdir "$work/kept" >"$work/follow" 2>&1 &
follower=$!
until_true 120 asks || fail "TensorBoard does not answer a second time"
child=$(pgrep -P "$follower")
kill -KILL "$follower"
wait "$follower" 2>/dev/null || true
until_true 30 group_is_gone || fail "processes are left after SIGKILL"
follower=
[ -d "$work/kept/live-1" ] || fail "--logdir does not stay"

# Without TensorBoard it says how to get one.
code=0
PATH=${PATH/$loggers\/bin:/} shirabe tensorboard live >"$work/out" 2>&1 || code=$?
[ "$code" = 3 ] || fail "without tensorboard it ends with $code"
grep -q 'pip install tensorboard' "$work/out" || fail "how to install it"
echo "TensorBoard follows what runs, and ends with the command"
