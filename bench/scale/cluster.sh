#!/usr/bin/env bash
# Many trials on a real Kubernetes with fake nodes: a control plane, 16 nodes whose pods kwok plays,
# `shirabe controller`, and scale_sidecars for what stands in the pods. Prints Markdown for
# bench/RESULTS.md. Needs what tests/cluster needs, 8 GB of memory, and nothing else running.
#
#   cluster.sh burst    120 experiments × 30 parallel trials: 3,600 pods at once
#   cluster.sh long     20,000 trials in one experiment, 500 at a time
#   cluster.sh small    a minute of it, to see whether all of it works
#
# What follows goes to cluster.py. KEEP=1 leaves the cluster, and says where.
set -euo pipefail
cd "$(dirname "$0")/../.."
CLUSTER=tests/cluster/cluster.sh
BUILD=build/release/bin
DIR=$(mktemp -d)/cluster

leave() {
  if [ -n "${KEEP:-}" ]; then
    echo "kept: $CLUSTER exec $DIR bash, and then … down" >&2
  else
    "$CLUSTER" down "$DIR"
    rm -rf "${DIR%/cluster}"
  fi
}

tests/cluster/require.sh
nice cmake --build --preset release -j 2 --target shirabe scale_sidecars >/dev/null
trap leave EXIT
trap 'exit 130' INT TERM
"$CLUSTER" up "$DIR" --fake 16 --qps 2000 --kwok bench/scale/stages.yaml >&2
"$BUILD/shirabe" crds | "$CLUSTER" exec "$DIR" kubectl apply --server-side -f - >/dev/null
"$CLUSTER" exec "$DIR" python3 bench/scale/cluster.py "$BUILD" "$DIR" "$@"
