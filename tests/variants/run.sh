#!/usr/bin/env bash
# ARCHITECTURE.md's recipes, followed: copies the tree to build/variants/tree, adds one algorithm,
# early-stopping rule, collector, executor, store, route and verb, each as the recipe says (the
# files of this folder without their ".in", and one value in a .proto), builds it, and uses each.
# What is to be edited besides is a defect of the house. JOBS=n as in tests/run.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

tree=$PWD/build/variants/tree
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $1" >&2
  [ ! -e "$work/out" ] || tail -n 40 "$work/out" >&2
  exit 1
}

# What is tracked, and what is about to be. The build folder of an earlier run is kept.
copy_tree() {
  mkdir -p "$tree"
  find "$tree" -mindepth 1 -maxdepth 1 -not -name build -exec rm -rf {} +
  git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    tar -c --null -T - | tar -x -C "$tree"
}

add_variants() {
  local template
  (cd tests/variants && find . -name '*.cc.in') | while read -r template; do
    cp "tests/variants/$template" "$tree/${template%.in}"
  done
  # The one edit: a collector's kind, and what it reads.
  sed -i 's|^  PUSH = 7 .*|&\
  SEMICOLONS = 100\
      [(value) = {yaml: "Semicolons"}, (collector) = {file: "/var/log/katib/metrics.csv"}];|' \
    "$tree/proto/shirabe/v1/experiment.proto"
  grep -q SEMICOLONS "$tree/proto/shirabe/v1/experiment.proto" || fail "CollectorKind has no PUSH"
}

build_tree() {
  (cd "$tree" && cmake --preset release && cmake --build --preset release -j "${JOBS:-$(nproc)}" \
    --target shirabe contract_test -- -k 0) >"$work/out" 2>&1 || fail "the build"
}

# The algorithm, the rule and the collector in one experiment; the store under another.
use_variants() {
  export SHIRABE_HOME=$work/home
  cat >"$work/experiment.yaml" <<'END'
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: sample}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: drawn}
  earlyStopping: {algorithmName: ceiling}
  metricsCollectorSpec:
    collector: {kind: Semicolons}
    source: {fileSystemPath: {path: $(SHIRABE_OUTPUT_DIR)/loss.csv, kind: File}}
  maxTrialCount: 3
  parallelTrialCount: 1
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - name: main
                image: none
                command: [sh, -c, 'echo "loss;${trialParameters.x}" > $SHIRABE_OUTPUT_DIR/loss.csv']
END
  shirabe run -f "$work/experiment.yaml" >"$work/out" 2>&1 || fail "run -f experiment.yaml"
  shirabe get trials sample -o json >"$work/trials.json"
  python3 - "$work/trials.json" <<'END' || fail "the values of the trials"
import json, sys
trials = json.load(open(sys.argv[1]))["items"]
assert len(trials) == 3, trials
for trial in trials:
    result = trial["status"]["shirabe"]
    assert result["phase"] == "Succeeded", trial
    assert result["explanation"] == "drawn", trial
    x = float(trial["spec"]["parameterAssignments"][0]["value"])
    assert abs(result["objective"] - x) < 1e-9, trial
END
  SHIRABE_HOME=$work/other shirabe run --db "again:$work/again.db" -f "$work/experiment.yaml" \
    >"$work/out" 2>&1 || fail "run --db again:"
  shirabe --help >"$work/out"
  grep -q '^  count  *say how many experiments' "$work/out" || fail "the verb in the list of verbs"
  [ "$(shirabe count)" = 1 ] || fail "the verb"
  [ "$(shirabe __complete cou)" = count ] || fail "the verb's completion"
  shirabe __man >"$work/out"
  grep -q '^\.SS shirabe .*count$' "$work/out" || fail "the verb in the manual"
  for name in drawn ceiling; do
    shirabe algorithms "$name" >"$work/out" || fail "algorithms $name"
  done
}

# The route, of a server over the store with the one experiment: found, described, and refused to
# those who show no token.
use_route() {
  local server
  shirabe serve --http 127.0.0.1:0 --grpc 127.0.0.1:0 --ready-file "$work/ready" \
    >"$work/out" 2>&1 &
  server=$!
  trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
  for _ in $(seq 300); do [ -s "$work/ready" ] || sleep 0.1; done
  [ -s "$work/ready" ] || fail "serve"
  python3 - "$work/ready" "$SHIRABE_HOME/token" <<'END' >"$work/out" 2>&1 || fail "the route"
import json, sys, urllib.error, urllib.request
ready_file, token_file = sys.argv[1:]
server = "http://" + json.load(open(ready_file))["http"]
token = open(token_file).read().split()[-1]
path = "/api/v1/namespaces/default/count"
request = urllib.request.Request(server + path, headers={"Authorization": "Bearer " + token})
with urllib.request.urlopen(request) as reply:
    assert json.load(reply) == {"count": 1}
with urllib.request.urlopen(server + "/openapi.json") as reply:
    operation = json.load(reply)["paths"]["/api/v1/namespaces/{namespace}/count"]["get"]
    assert operation["operationId"] == "countExperiments", operation
try:
    urllib.request.urlopen(server + path)
    raise SystemExit("answered without a token")
except urllib.error.HTTPError as error:
    assert error.code == 401, error
END
  kill "$server"
  wait "$server" || fail "serve ended with $?"
  trap 'rm -rf "$work"' EXIT
}

# contract NAME…: the suites know each by themselves.
contract() {
  local name
  for name in "$@"; do
    contract_test --gtest_filter="*$name*" >"$work/out" 2>&1 || fail "the contract of $name"
    grep -q '\[       OK \]' "$work/out" || fail "no suite has found $name"
  done
}

copy_tree
add_variants
build_tree
PATH=$tree/build/release/bin:$PATH
use_variants
use_route
contract drawn ceiling Semicolons again
echo "an algorithm, rule, collector, executor, store, route and verb were added, and work"
