#!/usr/bin/env bash
# The cluster tier: every *_test.sh of this folder, and the cases of the C++ tests that ask for a
# real API server, each on a Kubernetes of its own, which is taken down again whatever happens.
# Three at a time, since most of what they do is to wait.
#
#   tests/cluster/run.sh [PATTERN]   only the tests whose name contains it
#
# LANES=n: so many at a time. Exits with 77 and one line where this machine cannot carry a cluster.
# KEEP=1 leaves the cluster of a test that failed, and says how to look at it.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
cd "$HERE/../.."
# shellcheck source=tests/cluster/paths.sh
source "$HERE/paths.sh"
# shellcheck source=tests/bounded.sh
source "$HERE/../bounded.sh"
RESULTS=$PWD/build/test-results
LANES=${LANES:-3}
# C++ programs that know SHIRABE_TEST_KUBECONFIG, and how their cases are called.
PROGRAMS="integration_test kube_test crd_test trial_test cmd_test"
CASES='*Cluster*:*RealServer*:*RealCluster*'
LONGEST="faults integration_test install digits seeds kinds"

# ---- one lane -----------------------------------------------------------------------------------

bring_down() {
  [ -n "${FOLDER:-}" ] || return 0
  "$HERE/cluster.sh" down "$FOLDER/cluster"
  rm -rf "$FOLDER"
  FOLDER=
}

fresh_cluster() {
  bring_down
  FOLDER=$(mktemp -d)
  export SHIRABE_TEST_CLUSTER=$FOLDER/cluster
  "$HERE/cluster.sh" up "$SHIRABE_TEST_CLUSTER" "$@" >/dev/null
}

# report NAME SECONDS STATUS LOG
report() {
  if [ "$3" = 0 ]; then
    echo "ok: $1 ($2 s)" | tee -a "$WORK/results"
  else
    tail -n 100 "$4"
    echo "FAILED: $1 ($2 s; all of its output: $4)" | tee -a "$WORK/results"
  fi
}

# run_test NAME COMMAND…
run_test() {
  local name=$1 log=$RESULTS/cluster-${1%%,*}.log began=$SECONDS status=0
  shift
  bounded 900 "$@" >"$log" 2>&1 || status=$?
  report "$name" $((SECONDS - began)) "$status" "$log"
  if [ "$status" != 0 ] && [ -n "${KEEP:-}" ]; then
    echo "kept: tests/cluster/cluster.sh exec $FOLDER/cluster bash, and then … down"
    FOLDER=
    exit 1
  fi
}

# A test says which cluster it wants: "# cluster: --real 3", or nothing.
run_script() {
  local nodes
  nodes=$(sed -n 's/^# cluster: //p' "$HERE/$1_test.sh")
  # shellcheck disable=SC2086 # words
  [ -z "$nodes" ] || fresh_cluster $nodes
  run_test "$1" "$HERE/$1_test.sh"
}

run_program() {
  local program=$1
  fresh_cluster --real 2
  "$HERE/cluster.sh" load "$SHIRABE_TEST_CLUSTER" "$("$HERE/images.sh" tiny)"
  if [ "$program" = integration_test ]; then # it runs attempts with our containers, too
    "$HERE/cluster.sh" load "$SHIRABE_TEST_CLUSTER" "$("$HERE/images.sh" shirabe)"
    export SHIRABE_TEST_IMAGE=localhost/shirabe:test
  fi
  run_test "$program, $(count_cases "$program") cases" \
    "$HERE/cluster.sh" exec "$SHIRABE_TEST_CLUSTER" \
    "build/release/bin/$program" --gtest_filter="$CASES"
}

# The next one of the list that all lanes share; nothing at its end.
next_test() {
  (
    flock 8
    sed -n 1p "$WORK/tests"
    sed -i 1d "$WORK/tests"
  ) 8>"$WORK/lock"
}

lane() {
  local kind name
  trap bring_down EXIT
  trap 'exit 130' INT TERM
  while read -r kind name < <(next_test); do "run_$kind" "$name"; done
}

# ---- all of them --------------------------------------------------------------------------------

count_cases() {
  "build/release/bin/$1" --gtest_list_tests --gtest_filter="$CASES" | grep -c '^ '
}

every_test() {
  local script program
  for program in $PROGRAMS; do
    [[ $program == *$1* && -x build/release/bin/$program ]] || continue
    ! count_cases "$program" >/dev/null || echo "program $program"
  done
  for script in "$HERE"/*_test.sh; do
    [[ $(basename "$script" _test.sh) != *$1* ]] || echo "script $(basename "$script" _test.sh)"
  done
}

# list_tests PATTERN: the longest first, so that no lane waits for another at the end.
list_tests() {
  local all name
  all=$(every_test "$1")
  for name in $LONGEST; do grep " $name\$" <<<"$all" || true; done
  grep -vE " (${LONGEST// /|})\$" <<<"$all" | grep . || true
}

cannot() {
  echo "$*"
  exit 77
}

REASON=$("$HERE/require.sh") || cannot "$REASON"
deploy/setup.sh cluster || cannot "the packages that it needs could not be installed (see above)"
mkdir -p "$RESULTS"
BUILD_LOG=$RESULTS/cluster-build.log
"$HERE/build.sh" >"$BUILD_LOG" 2>&1 ||
  cannot "Kubernetes could not be built from its Go modules: $(tail -n 1 "$BUILD_LOG")"

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
list_tests "${1:-}" >"$WORK/tests"
ALL=$(wc -l <"$WORK/tests")
touch "$WORK/results"
for ((i = 0; i < LANES; i++)); do lane & done
wait
echo "$(grep -c ^ok "$WORK/results") passed, $(grep -c ^FAILED "$WORK/results") failed"
# Of a test whose cluster did not come up there is no line.
[ "$(grep -c ^ok "$WORK/results")" = "$ALL" ]
