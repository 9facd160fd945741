#!/usr/bin/env bash
# The example of a schedule as its head says: a server that is killed with it and comes back, runs
# that are started by hand and by the clock, each learning from the last; and what `run -f` says.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/until_true.sh
source tests/support/until_true.sh

work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
export SHIRABE_HOME=$work/home
shirabe=${SHIRABE_TEST_BINARY:-build/release/bin/shirabe}

fail() {
  echo "FAILED: $1" >&2
  [ ! -s "$work/out" ] || tail -n 40 "$work/out" >&2
  [ ! -s "$work/server.log" ] || tail -n 20 "$work/server.log" >&2
  exit 1
}

serve() {
  rm -f "$work/ready"
  "$shirabe" serve --grpc 127.0.0.1:0 --http 127.0.0.1:0 --ready-file "$work/ready" \
    >>"$work/server.log" 2>&1 &
  server=$!
  until_true 60 test -s "$work/ready" || fail "the server does not start"
}
crash() {
  kill -9 "$server"
  wait "$server" 2>/dev/null || true
}
field() {
  "$shirabe" get schedule "$1" -o json | sed -n "s/^ *\"$2\": \"\?\([^\",]*\)\"\?,\?$/\1/p"
}

"$shirabe" run -f deploy/examples/schedule.yaml >"$work/out" 2>&1 && fail "run -f takes a schedule"
grep -q 'shirabe apply -f deploy/examples/schedule.yaml' "$work/out" || fail "run says what to do"
"$shirabe" validate -f deploy/examples/schedule.yaml >"$work/out" 2>&1 || fail "validate"

# A minute that is past when the server comes: the start that was missed is made, once.
sed -e 's/^  name: nightly/  name: minutely/' -e 's/schedule: .*/schedule: "* * * * *"/' \
  -e '/startingDeadlineSeconds/d' deploy/examples/schedule.yaml >"$work/minutely.yaml"
"$shirabe" apply -f deploy/examples/schedule.yaml -f "$work/minutely.yaml" >"$work/out" 2>&1 ||
  fail "apply"
grep -q '^schedule/nightly created' "$work/out" || fail "apply says what it did"

serve
name=$("$shirabe" create --from schedule/nightly -o name 2>>"$work/out") || fail "create --from"
crash
serve
"$shirabe" wait "$name" --timeout 60s >"$work/out" 2>&1 || fail "the first run, over a crash"
succeeded() { [ -n "$(field nightly lastSuccessfulTime)" ]; }
until_true 70 succeeded || fail "its schedule does not see that it has succeeded"
second=$("$shirabe" create --from schedule/nightly -o name 2>>"$work/out") || fail "a second"
"$shirabe" get "$second" -o json | grep -q "\"${name#experiment/}\"" || fail "it does not learn"
"$shirabe" wait "$second" --timeout 60s >"$work/out" 2>&1 || fail "the second run"
"$shirabe" describe "$second" | grep -q "trials of ${name#experiment/}" || fail "of its results"

# By the clock, while the server is killed again and again.
started() { [ "$(field minutely starts)" = "${1:-1}" ]; }
until_true 90 started 1 || fail "nothing is started by the clock"
for _ in 1 2 3; do
  crash
  serve
done
"$shirabe" pause schedule/minutely >"$work/out" 2>&1 || fail "pause"
"$shirabe" get schedules >"$work/out"
grep -Eq '^minutely +\* \* \* \* \* +Europe/Berlin +True' "$work/out" || fail "it is suspended"
starts=$(field minutely starts)
made=$("$shirabe" get exp -o name | grep -c '^experiment/minutely-')
[ "$made" = "$starts" ] || fail "$made experiments for $starts starts"
"$shirabe" describe schedule minutely >"$work/out"
grep -q ExperimentStarted "$work/out" || fail "describe has the events"
"$shirabe" delete schedule/minutely >"$work/out" 2>&1 || fail "delete"
"$shirabe" get schedule minutely >"$work/out" 2>&1 && fail "it is still there"
echo "schedule: $name, then $second; $starts by the clock"
