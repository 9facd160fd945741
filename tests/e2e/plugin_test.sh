#!/usr/bin/env bash
# An algorithm in Python, in another process, drives an experiment; it is killed in the middle, and
# the experiment waits for it and goes on.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/until_true.sh
source tests/support/until_true.sh

SHIRABE_HOME=$(mktemp -d)
export SHIRABE_HOME
python=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/plugin/bin/python3
shirabe=build/release/bin/shirabe
plugin=
running=
trap 'kill $plugin $running 2>/dev/null || true; rm -rf "$SHIRABE_HOME"' EXIT

fail() {
  echo "FAILED: $*" >&2
  tail -n 40 "$SHIRABE_HOME"/*.out >&2 || true
  exit 1
}

start_plugin() {
  rm -f "$SHIRABE_HOME/plugin.out"  # of the one before: the new one's is made a moment later
  "$python" deploy/examples/plugin/plugin.py "127.0.0.1:${port:-0}" \
    >"$SHIRABE_HOME/plugin.out" 2>&1 &
  plugin=$!
  until_true 60 grep -qs "^ready on port [1-9]" "$SHIRABE_HOME/plugin.out" ||
    fail "the plug-in does not start"
  port=$(sed -n 's/^ready on port //p' "$SHIRABE_HOME/plugin.out")
}

succeeded() { [ "$("$shirabe" get trials plugin -o name 2>/dev/null | wc -l)" -ge "$1" ]; }
waits() { "$shirabe" describe experiment plugin 2>/dev/null | grep -q "trying again in"; }

[ -x "$python" ] || fail "no $python: run deploy/setup.sh test"
start_plugin
sed "s/127.0.0.1:6789/127.0.0.1:$port/" deploy/examples/plugin.yaml >"$SHIRABE_HOME/plugin.yaml"
"$shirabe" run -f "$SHIRABE_HOME/plugin.yaml" >"$SHIRABE_HOME/run.out" 2>&1 &
running=$!
until_true 60 succeeded 2 || fail "no trials"
kill -9 "$plugin"
wait "$plugin" 2>/dev/null || true
until_true 60 waits || fail "describe does not say that the algorithm is gone"
start_plugin
wait "$running" || fail "the experiment has failed"
running=

[ "$("$shirabe" get trials plugin -o name | wc -l)" = 16 ] || fail "not 16 trials"
loss=$("$shirabe" best plugin -o json | sed -n 's/.*"value": *\([0-9.]*\).*/\1/p')
awk -v loss="$loss" 'BEGIN {exit !(loss > 0 && loss < 5)}' || fail "the best loss is \"$loss\""
"$shirabe" events plugin >"$SHIRABE_HOME/events.out"
grep -q "SuggestionFailed.*algorithm hill at 127.0.0.1:$port: cannot be reached" \
  "$SHIRABE_HOME/events.out" || fail "no event of the crash"
echo "best loss $loss"

# Architectures: what is searched reaches a service on Katib's stubs, and its texts the programs.
"$shirabe" validate -f deploy/examples/nas.yaml >"$SHIRABE_HOME/nas.out" 2>&1 ||
  fail "validate nas.yaml"
code=0
sed '/^  shirabe:/,/endpoint:/d' deploy/examples/nas.yaml >"$SHIRABE_HOME/nas.yaml"
"$shirabe" run -f "$SHIRABE_HOME/nas.yaml" >"$SHIRABE_HOME/nas.out" 2>&1 || code=$?
[ "$code" = 5 ] || fail "without a service it ends with $code"
refused='spec.algorithm.algorithmName: "enas" searches architectures.*shirabe.algorithm.endpoint'
grep -q "$refused" "$SHIRABE_HOME/nas.out" || fail "it does not say what to do without a service"
sdk=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/katib-sdk-0.19.0
if [ ! -d "$sdk" ]; then
  echo "left out: Katib's SDK is not in $sdk (deploy/setup.sh cluster installs it)"
  exit 0
fi
PYTHONPATH=$sdk python3 tests/e2e/architectures.py 127.0.0.1:0 >"$SHIRABE_HOME/service.out" 2>&1 &
running=$!
until_true 60 grep -qs "^ready on port [1-9]" "$SHIRABE_HOME/service.out" || fail "no service"
port=$(sed -n 's/^ready on port //p' "$SHIRABE_HOME/service.out")
sed "s/127.0.0.1:6789/127.0.0.1:$port/" deploy/examples/nas.yaml >"$SHIRABE_HOME/nas.yaml"
timeout 120 "$shirabe" run -f "$SHIRABE_HOME/nas.yaml" >"$SHIRABE_HOME/nas.out" 2>&1 ||
  fail "run nas.yaml"
"$shirabe" get trials nas -o json >"$SHIRABE_HOME/trials.json"
"$shirabe" describe trial nas/1 >"$SHIRABE_HOME/nas.out"
grep -q '\[\[[0-7]\], \[' "$SHIRABE_HOME/nas.out" || fail "describe shows no architecture"
python3 - "$SHIRABE_HOME/trials.json" <<'END' || fail "the trials of nas.yaml"
import json, sys
trials = json.load(open(sys.argv[1]))["items"]
assert len(trials) == 6, len(trials)
for trial in trials:
    assigned = {p["name"]: p["value"] for p in trial["spec"]["parameterAssignments"]}
    assert json.loads(assigned["architecture"]), assigned
    assert "'num_layers': 4" in assigned["nn_config"], assigned
    links = assigned["architecture"].count("1")
    value = float(trial["status"]["observation"]["metrics"][0]["latest"])
    assert value == (40 + links) / 100, trial
    assert not trial["metadata"].get("labels", {}).get("shirabe.io/assigned/architecture"), trial
END
echo "architectures of a remote service are trained"
