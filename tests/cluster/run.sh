#!/usr/bin/env bash
# The cluster tier: every *_test.sh of this folder, and the cases of the C++ tests that ask for a
# real API server, on a Kubernetes of its own, which is taken down again whatever happens.
#
#   tests/cluster/run.sh [PATTERN]   only the tests whose name contains it
#
# Exits with 77 and one line where this machine cannot carry a cluster. KEEP=1 leaves the cluster
# of a test that failed, and says how to look at it.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
cd "$HERE/../.."
# shellcheck source=tests/cluster/paths.sh
source "$HERE/paths.sh"
RESULTS=$PWD/build/test-results
PASSED=0
FAILED=0
# C++ programs that know SHIRABE_TEST_KUBECONFIG, and how their cases are called.
PROGRAMS="kube_test crd_test trial_test integration_test cmd_test"
CASES='*Cluster*:*RealServer*:*RealCluster*'

bring_down() {
  [ -n "${FOLDER:-}" ] || return 0
  "$HERE/cluster.sh" down "$FOLDER/cluster"
  rm -rf "$FOLDER"
}
trap bring_down EXIT
trap 'exit 130' INT TERM

# report NAME SECONDS STATUS LOG
report() {
  if [ "$3" = 0 ]; then
    PASSED=$((PASSED + 1))
    echo "ok: $1 ($2 s)"
  else
    FAILED=$((FAILED + 1))
    tail -n 60 "$4"
    echo "FAILED: $1 ($2 s; all of its output: $4)"
  fi
}

# run_test NAME LIMIT COMMAND…
run_test() {
  local name=$1 limit=$2 log=$RESULTS/cluster-$1.log began=$SECONDS status=0
  shift 2
  timeout --kill-after=60 "$limit" "$@" >"$log" 2>&1 || status=$?
  report "$name" $((SECONDS - began)) "$status" "$log"
  if [ "$status" != 0 ] && [ -n "${KEEP:-}" ]; then
    echo "kept: tests/cluster/cluster.sh exec $FOLDER/cluster bash, and then … down"
    FOLDER=
    exit 1
  fi
}

fresh_cluster() {
  bring_down
  FOLDER=$(mktemp -d)
  export SHIRABE_TEST_CLUSTER=$FOLDER/cluster
  "$HERE/cluster.sh" up "$SHIRABE_TEST_CLUSTER" "$@" >/dev/null
}

run_scripts() {
  local script name nodes
  for script in "$HERE"/*_test.sh; do
    name=$(basename "$script" _test.sh)
    [[ $name == *$1* ]] || continue
    # A test says which cluster it wants: "# cluster: --real 3", or nothing.
    nodes=$(sed -n 's/^# cluster: //p' "$script")
    # shellcheck disable=SC2086 # words
    [ -z "$nodes" ] || fresh_cluster $nodes
    run_test "$name" 900 "$script"
  done
}

run_programs() {
  local program count
  for program in $PROGRAMS; do
    [[ $program == *$1* && -x build/release/bin/$program ]] || continue
    count=$("build/release/bin/$program" --gtest_list_tests --gtest_filter="$CASES" |
      grep -c '^ ') || continue
    fresh_cluster --real 2
    "$HERE/cluster.sh" load "$SHIRABE_TEST_CLUSTER" "$("$HERE/images.sh" tiny)"
    if [ "$program" = integration_test ]; then # it runs attempts with our containers, too
      "$HERE/cluster.sh" load "$SHIRABE_TEST_CLUSTER" "$("$HERE/images.sh" shirabe)"
      export SHIRABE_TEST_IMAGE=localhost/shirabe:test
    fi
    run_test "$program, $count cases" 900 "$HERE/cluster.sh" exec "$SHIRABE_TEST_CLUSTER" \
      "build/release/bin/$program" --gtest_filter="$CASES"
  done
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
run_scripts "${1:-}"
run_programs "${1:-}"
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
