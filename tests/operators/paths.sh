# shellcheck shell=bash
# Which operators the tier is about, and where they are kept; sourced by the scripts beside it.

# shellcheck source=tests/cluster/paths.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cluster/paths.sh"
export TRAINING_VERSION=${TRAINING_VERSION:-v1.9.3} # Kubeflow's training operator
export ARGO_VERSION=${ARGO_VERSION:-v3.7.2}
export TEKTON_VERSION=${TEKTON_VERSION:-v1.6.0}
export OPERATORS_BIN=${OPERATORS_BIN:-$CLUSTER_CACHE/operators}
export TRAINING=$OPERATORS_BIN/training-$TRAINING_VERSION
export ARGO=$OPERATORS_BIN/argo-$ARGO_VERSION
export TEKTON=$OPERATORS_BIN/tekton-$TEKTON_VERSION

# Those that are not built yet, on one line.
missing_operators() {
  [ -e "$TRAINING/definitions.yaml" ] || printf 'training '
  [ -e "$ARGO/definitions.yaml" ] || printf 'argo '
  [ -e "$TEKTON/definitions.yaml" ] || printf 'tekton '
}
