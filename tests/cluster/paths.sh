# shellcheck shell=bash
# Where the cluster tier keeps what takes long to make; sourced by the scripts beside it.

export CLUSTER_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe
export KUBERNETES_VERSION=${KUBERNETES_VERSION:-v1.36.3}
export KUBERNETES_BIN=${KUBERNETES_BIN:-$CLUSTER_CACHE/kubernetes-$KUBERNETES_VERSION}
export KUBERNETES_PARTS="etcd kube-apiserver kube-controller-manager kube-scheduler kubelet
  kube-proxy kubectl coredns kwok training-operator.v1 jobset trainer-controller-manager"

# The parts that are not built yet, on one line.
missing_parts() {
  local part
  for part in $KUBERNETES_PARTS; do
    [ -x "$KUBERNETES_BIN/$part" ] || printf '%s ' "$part"
  done
}

# A Go that can build them: 1.21 fetches by itself the newer one that the modules ask for.
find_go() {
  local go version
  for go in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go-*/bin/go; do
    [ -x "$go" ] || continue
    version=$(GOTOOLCHAIN=local "$go" env GOVERSION 2>/dev/null |
      sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    if [ "${version:-0}" -ge 21 ]; then
      echo "$go"
      return 0
    fi
  done
  return 1
}

# ---- for scripts that build Go's modules, in a folder of theirs, with $GO set --------------------

export CGO_ENABLED=0 GOTOOLCHAIN=auto GOFLAGS=

# Go tells each module that it downloads; that is of interest only when it fails.
quietly() {
  "$@" >output.log 2>&1 || {
    tail -n 20 output.log >&2
    return 1
  }
}

# source_of MODULE@VERSION: the folder of its sources.
source_of() {
  "$GO" mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

# build_at FOLDER PROGRAM: where its sources lie, since `go install` asks for the list of the
# module's versions, which not every proxy has.
build_at() {
  (cd "$1" && "$GO" build -trimpath -ldflags "-s -w" -o "$2.new" .) && mv "$2.new" "$2"
}
