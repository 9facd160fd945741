#!/usr/bin/env bash
# Builds the operators of the kinds that Katib's examples are of, each at one version, from its Go
# module: Kubeflow's training operator, Argo Workflows and Tekton Pipelines, with the programs that
# the latter two put into pods and the definitions of their kinds. (Kubeflow's Trainer and JobSet
# come with the cluster: tests/cluster/build.sh.) What is there already is left. Prints the folder.
#
#   tests/operators/build.sh    into ~/.cache/shirabe/operators/NAME-VERSION/
#
# Cold, on two cores that do much else: an hour. It says how long each took.
set -euo pipefail
# shellcheck source=tests/operators/paths.sh
source "$(dirname "$0")/paths.sh"

# built FOLDER PROGRAM SOURCES PACKAGE
built() {
  local began=$SECONDS
  [ ! -x "$1/$2" ] || return 0
  quietly build_at "$3/$4" "$1/$2"
  echo "built $(basename "$1")/$2 in $((SECONDS - began)) s" >&2
}

# documents INTO FILE…
documents() {
  local into=$1 file
  shift
  for file; do
    echo ---
    cat "$file"
  done >"$into.new"
  mv "$into.new" "$into"
}

# definitions FOLDER FILE…: of its kinds; the last to be written, so that a folder with them is
# whole.
definitions() { documents "$1/definitions.yaml" "${@:2}"; }

build_training() {
  local source
  source=$(source_of "github.com/kubeflow/training-operator@$TRAINING_VERSION")
  built "$TRAINING" training-operator.v1 "$source" cmd/training-operator.v1
  cp --no-preserve=mode "$source/manifests/base/webhook/manifests.yaml" "$TRAINING/webhooks.yaml"
  definitions "$TRAINING" "$source"/manifests/base/crds/kubeflow.org_*.yaml
}

# What is a link in its repository is missing in its module: signals are on Linux as they are on
# macOS.
build_argo() {
  local source part
  source=$(source_of "github.com/argoproj/argo-workflows/v3@$ARGO_VERSION")
  cp -r --no-preserve=mode "$source" argo
  cp argo/workflow/executor/osspecific/signal_{darwin,linux}.go
  for part in argoexec workflow-controller; do built "$ARGO" "$part" "$PWD/argo" "cmd/$part"; done
  definitions "$ARGO" "$source"/manifests/base/crds/minimal/argoproj.io_*.yaml
}

# With its settings, and the registration of its webhooks, as they stand there.
build_tekton() {
  local source part
  source=$(source_of "github.com/tektoncd/pipeline@$TEKTON_VERSION")
  for part in entrypoint nop workingdirinit controller webhook; do
    built "$TEKTON" "$part" "$source" "cmd/$part"
  done
  cp --no-preserve=mode "$source/config/500-webhooks.yaml" "$TEKTON/webhooks.yaml"
  documents "$TEKTON/settings.yaml" "$source"/config/config-*.yaml
  definitions "$TEKTON" "$source"/config/300-crds/*.yaml
}

main() {
  local work name
  mkdir -p "$TRAINING" "$ARGO" "$TEKTON"
  if [ -n "$(missing_operators)" ]; then
    GO=$(find_go) || {
      echo "build.sh: no Go 1.21 or newer is here; put one from https://go.dev/dl in PATH" >&2
      exit 1
    }
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder is known now
    trap "rm -rf '$work'" EXIT
    cd "$work"
    for name in $(missing_operators); do "build_$name"; done
  fi
  echo "$OPERATORS_BIN"
}

main
