#!/usr/bin/env bash
# What follows an experiment: the example as its head says, a run that is killed while the follow-up
# runs and goes on with it, one that fails as often as it may, and the same on a server.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/until_true.sh
source tests/support/until_true.sh

work=$(mktemp -d)
pids=
cleanup() {
  for pid in $pids; do kill -9 "$pid" 2>/dev/null || true; done
  touch "$work/gate"
  rm -rf "$work"
}
trap cleanup EXIT
export SHIRABE_HOME=$work/home
shirabe=${SHIRABE_TEST_BINARY:-build/release/bin/shirabe}
out=$work/out

fail() {
  echo "FAILED: $1" >&2
  [ ! -s "$out" ] || tail -n 40 "$out" >&2
  exit 1
}

# field EXPERIMENT NAME: of status.shirabe.onSuccess
field() {
  "$shirabe" get experiment "$1" -o json "${remote[@]}" |
    python3 -c 'import json, sys
status = json.load(sys.stdin)["status"]["shirabe"].get("onSuccess", {})
print(status.get(sys.argv[1], ""))' "$2"
}
in_phase() { [ "$(field "$1" phase 2>/dev/null)" = "$2" ]; }
remote=()

example() {
  sed -e "s|/tmp/shirabe-served|$work/served|" -e "s|^  name: deploy$|  name: $1|" \
    deploy/examples/deploy.yaml
}

# ---- the example --------------------------------------------------------------------------------
example deploy >"$work/deploy.yaml"
"$shirabe" run -f "$work/deploy.yaml" >"$out" 2>&1 || fail "run -f deploy.yaml"
best=$("$shirabe" best deploy -o json | python3 -c 'import json, sys
best = json.load(sys.stdin)
print(best["trial"], best["assignments"]["x"], best["value"])')
read -r trial x value <<<"$best"
[ "$(field deploy phase)" = Succeeded ] || fail "phase $(field deploy phase)"
[ "$(field deploy bestTrialName)" = "$trial" ] || fail "the best trial is $trial"
"$shirabe" logs deploy/on-success >"$out"
grep -Fxq "serving $trial: loss $value at x=$x" "$out" || fail "its log has not $best"
grep -Fxq "x=$x after 3 steps" "$work/served/model" || fail "not the newest checkpoint of $trial"
"$shirabe" describe deploy >"$out"
grep -q "^On success: *Succeeded, with the parameters of $trial" "$out" || fail "describe"
"$shirabe" events deploy >"$out"
[ "$(grep -c OnSuccess "$out")" = 3 ] || fail "events: queued, started, succeeded"
"$shirabe" get trials deploy --no-headers >"$out"
[ "$(wc -l <"$out")" = 6 ] || fail "it is listed as a trial"
cp "$work/served/model" "$work/before"
echo changed >"$work/served/model"
"$shirabe" run -f "$work/deploy.yaml" >"$out" 2>&1 || fail "the same command again"
grep -q "on success: Succeeded" "$out" || fail "the second run does not say what became of it"
grep -q changed "$work/served/model" || fail "it was run twice"

# ---- killed while it runs -----------------------------------------------------------------------
# It waits for a file; each start leaves a line.
cat >"$work/wait.sh" <<END
echo start >>$work/starts
while [ ! -e $work/gate ]; do sleep 0.05; done
END
gated() { example "$1" | sed "s|mkdir -p \"\$SERVED\"|. $work/wait.sh; &|"; }
gated killed >"$work/killed.yaml"
"$shirabe" run -f "$work/killed.yaml" >"$out" 2>&1 &
pids=$!
until_true 60 in_phase killed Running || fail "it does not run"
kill -9 "$pids"
wait "$pids" 2>/dev/null || true
touch "$work/gate"
"$shirabe" run -f "$work/killed.yaml" >"$out" 2>&1 || fail "the run after the kill"
[ "$(field killed phase)" = Succeeded ] || fail "after the kill: $(field killed phase)"
[ "$(cat "$work/starts")" = start ] || fail "it was started again though it ran on"

# ---- one that fails -----------------------------------------------------------------------------
example failing | sed "s|mkdir -p \"\$SERVED\"|echo again >>$work/tries; exit 3|" \
  >"$work/failing.yaml"
code=0
"$shirabe" run -f "$work/failing.yaml" >"$out" 2>&1 || code=$?
[ "$code" = 8 ] || fail "exit code $code, not that of an experiment without success"
[ "$(wc -l <"$work/tries")" = 3 ] || fail "backoffLimit 2 is three attempts"
[ "$(field failing reason)" = BackoffLimitExceeded ] || fail "reason $(field failing reason)"
grep -q "logs failing/on-success" "$out" || fail "it does not say where the log is"

# ---- on a server --------------------------------------------------------------------------------
rm -f "$work/gate" "$work/starts"
"$shirabe" serve --grpc 127.0.0.1:0 --http 127.0.0.1:0 --insecure --ready-file "$work/ready" \
  >"$work/serve" 2>&1 &
pids=$!
is_ready() { [ -s "$work/ready" ]; }
until_true 60 is_ready || fail "the server does not start"
address() {
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' \
    "$work/ready" "$1"
}
remote=(--server "$(address grpc)")
gated served >"$work/served.yaml"
"$shirabe" apply -f "$work/served.yaml" "${remote[@]}" >"$out" 2>&1 || fail "apply"
until_true 60 in_phase served Running || fail "it does not run on the server"
# Its server is killed; the next one goes on with the same attempt.
kill -9 "$pids"
wait "$pids" 2>/dev/null || true
rm -f "$work/ready"
"$shirabe" serve --grpc 127.0.0.1:0 --http 127.0.0.1:0 --insecure --ready-file "$work/ready" \
  >"$work/serve" 2>&1 &
pids=$!
until_true 60 is_ready || fail "the server does not start again"
remote=(--server "$(address grpc)")
touch "$work/gate"
until_true 60 in_phase served Succeeded || fail "on the server: $(field served phase)"
[ "$(cat "$work/starts")" = start ] || fail "the next server has started it again"
"$shirabe" logs served/on-success "${remote[@]}" >"$out" || fail "its log by the server"
grep -q "^serving served-" "$out" || fail "its log by the server"
python3 - "$(address http)" >"$out" 2>&1 <<'END' || fail "by HTTP"
import json, sys, urllib.request

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
path = f"http://{sys.argv[1]}/api/v1/namespaces/default/experiments/served"
status = json.load(opener.open(path))["status"]["shirabe"]["onSuccess"]
assert status["phase"] == "Succeeded" and status["attempts"] == 1, status
assert status["name"] == "served-on-success" and "attempt" not in status, status
log = f"{path}/on-success/attempts/1/log"
assert opener.open(log).read().startswith(b"serving served-"), "its log"
assert b"event: end" in opener.open(f"{log}?follow=true").read(), "its log, followed"
END
"$shirabe" delete experiment served "${remote[@]}" >"$out" 2>&1 || fail "delete"
[ ! -e "$SHIRABE_HOME/trials/default/served" ] || fail "its files are there after the deletion"
echo "what follows an experiment is run once"
