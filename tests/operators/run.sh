#!/usr/bin/env bash
# The operators tier: Katib's example kinds, by the real operators, on a Kubernetes of its own (see
# operators_test.sh).
#
#   tests/operators/run.sh [NAME…]   only these of examples/
#
# Exits with 77 and one line where this machine cannot carry it. KEEP=1 leaves the cluster, and says
# how to look at it.
set -euo pipefail
TIER=$(cd "$(dirname "$0")" && pwd)
cd "$TIER/../.."
CLUSTERS=$PWD/tests/cluster
# shellcheck source=tests/bounded.sh
source tests/bounded.sh
RESULTS=$PWD/build/test-results

cannot() {
  echo "$*"
  exit 77
}

bring_down() {
  if [ -n "${KEEP:-}" ]; then
    echo "kept: tests/cluster/cluster.sh exec $FOLDER/cluster bash, and then … down"
  else
    "$CLUSTERS/cluster.sh" down "$FOLDER/cluster"
    rm -rf "$FOLDER"
  fi
}

REASON=$("$CLUSTERS/require.sh") || cannot "$REASON"
deploy/setup.sh cluster || cannot "the packages that it needs could not be installed (see above)"
mkdir -p "$RESULTS"
LOG=$RESULTS/operators-build.log
{ "$CLUSTERS/build.sh" && tests/operators/build.sh; } >"$LOG" 2>&1 ||
  cannot "an operator could not be built from its Go module: $(tail -n 1 "$LOG")"

FOLDER=$(mktemp -d)
trap bring_down EXIT
trap 'exit 130' INT TERM
export SHIRABE_TEST_CLUSTER=$FOLDER/cluster
"$CLUSTERS/cluster.sh" up "$SHIRABE_TEST_CLUSTER" --real 2
STATUS=0
LOG=$RESULTS/operators-test.log
bounded 1500 tests/operators/operators_test.sh "$@" >"$LOG" 2>&1 || STATUS=$?
FAILURES=$(grep -c '^FAILED: ' "$LOG" || true)
if [ "$STATUS" = 0 ]; then
  grep -E '^(ok: |-- )' "$LOG" || true
else
  tail -n 200 "$LOG"
fi
[ "$STATUS" = 0 ] || echo "all of its output: $LOG"
echo "$(grep -c '^ok: ' "$LOG" || true) passed, $FAILURES failed"
[ "$STATUS" = 0 ]
