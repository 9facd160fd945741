#!/usr/bin/env bash
# Builds a real Kubernetes from its Go modules: API server, controller manager, scheduler, kubelet,
# kube-proxy, kubectl and etcd, with CoreDNS, kwok (fake nodes), Kubeflow's training operator
# (PyTorchJob, TFJob and others) and its Trainer (TrainJob) with JobSet beside them. What is there
# already is left. Prints the folder.
#
#   tests/cluster/build.sh          into ~/.cache/shirabe/kubernetes-VERSION, or $KUBERNETES_BIN
#
# Cold, on two cores: fifteen minutes, most of it the API server, the kubelet, CoreDNS and Trainer.
# Debian's etcd 3.4 is too old for this API server: it has no progress requests for watches.
set -euo pipefail
# shellcheck source=tests/cluster/paths.sh
source "$(dirname "$0")/paths.sh"
COREDNS_VERSION=${COREDNS_VERSION:-v1.11.4}
KWOK_VERSION=${KWOK_VERSION:-v0.7.0}
OPERATOR_VERSION=${OPERATOR_VERSION:-v1.8.1} # 1.7 does not know native sidecars
TRAINER_VERSION=${TRAINER_VERSION:-v2.3.0}   # the first that has runtimePatches
JOBSET_VERSION=${JOBSET_VERSION:-v0.12.0}
MODULE_PARTS="etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl"

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

# Kubernetes points its k8s.io/* requirements at folders that its module does not hold. The same
# modules are published as v0.MINOR.PATCH: a module of ours puts those in their place.
write_module() {
  local source part
  source=$(source_of "k8s.io/kubernetes@$KUBERNETES_VERSION")
  {
    echo "module shirabe.test/kubernetes"
    grep -E '^go [0-9]' "$source/go.mod"
    echo "require k8s.io/kubernetes $KUBERNETES_VERSION"
    echo "replace ("
    sed -nE "s#^\s*(k8s\.io/[a-z-]+) => \./staging.*#\t\1 => \1 v0.${KUBERNETES_VERSION#v1.}#p" \
      "$source/go.mod"
    echo ")"
  } >go.mod
  {
    echo '//go:build tools'
    echo 'package tools'
    for part in $MODULE_PARTS; do echo "import _ \"$(package_of "$part")\""; done
  } >tools.go
  quietly "$GO" mod tidy
}

build_part() {
  local began=$SECONDS version=k8s.io/component-base/version
  local minor=${KUBERNETES_VERSION#v1.}
  [ ! -x "$KUBERNETES_BIN/$1" ] || return 0
  case $1 in
    kwok) install_part "sigs.k8s.io/kwok/cmd/kwok@$KWOK_VERSION" ;;
    coredns) install_part "github.com/coredns/coredns@$COREDNS_VERSION" ;;
    training-operator.v1) install_operator github.com/kubeflow/training-operator ;;
    trainer-controller-manager)
      build_webhooked "$1" "github.com/kubeflow/trainer/v2@$TRAINER_VERSION" "cmd/$1" \
        manifests/base/crds manifests/base/webhook
      ;;
    jobset)
      build_webhooked "$1" "sigs.k8s.io/jobset@$JOBSET_VERSION" . \
        config/components/crd/bases config/components/webhook
      ;;
    *)
      [ -f go.mod ] || write_module
      # A version without numbers is refused by clients that compare them.
      quietly "$GO" build -trimpath -o "$KUBERNETES_BIN/$1.new" -ldflags "-s -w
        -X $version.gitVersion=$KUBERNETES_VERSION -X $version.gitMajor=1
        -X $version.gitMinor=${minor%%.*}" "$(package_of "$1")"
      mv "$KUBERNETES_BIN/$1.new" "$KUBERNETES_BIN/$1"
      ;;
  esac
  echo "built $1 in $((SECONDS - began)) s" >&2
}

install_part() {
  GOBIN=$KUBERNETES_BIN quietly "$GO" install -trimpath "$1"
}

# build_webhooked NAME MODULE PACKAGE CRDS WEBHOOKS: with the definitions of its kinds, as
# NAME.yaml, and the registration of its webhooks, as NAME.webhooks.yaml.
build_webhooked() {
  local source name=$1 crd
  source=$(source_of "$2")
  for crd in "$source/$4"/*[_.]*.yaml; do
    [[ $crd != *kustom* ]] || continue
    echo ---
    cat "$crd"
  done >"$KUBERNETES_BIN/$name.yaml"
  cp --no-preserve=mode "$source/$5/manifests.yaml" "$KUBERNETES_BIN/$name.webhooks.yaml"
  quietly build_at "$source/$3" "$KUBERNETES_BIN/$name"
}

# With the definitions of its kinds, as training-operator.v1.yaml.
install_operator() {
  local source
  source=$(source_of "$1@$OPERATOR_VERSION")
  cat "$source"/manifests/base/crds/kubeflow.org_*.yaml >"$KUBERNETES_BIN/training-operator.v1.yaml"
  install_part "$1/cmd/training-operator.v1@$OPERATOR_VERSION"
}

main() {
  mkdir -p "$KUBERNETES_BIN"
  if [ -n "$(missing_parts)" ]; then
    GO=$(find_go) || {
      echo "build.sh: no Go 1.21 or newer is here; put one from https://go.dev/dl in PATH" >&2
      exit 1
    }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    local part
    # One at a time: what another one builds is there then.
    {
      flock -n 9 || { echo "waiting for another build of the same" >&2 && flock 9; }
      for part in $KUBERNETES_PARTS; do build_part "$part" 9>&-; done
    } 9>"$KUBERNETES_BIN/lock"
  fi
  echo "$KUBERNETES_BIN"
}

main
