# shellcheck shell=bash
# Katib's sources, for the scripts beside it, which source this: WORK is a folder of theirs, and
# what they add to PIDS is ended with them.

VERSION=v0.19.0
DIGEST=h1:uexj303nRkGtTFtTkY4McCt6J0TCtnerX3i3E7TRA5M=
DIGEST_OF_MOD=h1:DajQuzItqb4RbihF8mzBAdY4QNBrE8WrzMSSPNrD2tk=
MODULE=github.com/kubeflow/katib
# shellcheck disable=SC2034 # for those scripts
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe

cannot() {
  echo "$1"
  exit 77
}

WORK=$(mktemp -d)
PIDS=()
cleanup() {
  [ -z "${PIDS[*]}" ] || kill "${PIDS[@]}" 2>/dev/null || true
  wait
  rm -rf "$WORK"
}
trap cleanup EXIT

# fetch: prints their folder. With go.sum, Go accepts these very sources only.
fetch() {
  command -v go >/dev/null || { echo "there is no Go" >"$WORK/download" && return 1; }
  printf 'module suites\n\ngo 1.21\n\nrequire %s %s\n' "$MODULE" "$VERSION" >"$WORK/go.mod"
  printf '%s\n' "$MODULE $VERSION $DIGEST" "$MODULE $VERSION/go.mod $DIGEST_OF_MOD" >"$WORK/go.sum"
  (cd "$WORK" && GOTOOLCHAIN=local GOFLAGS='' timeout 120 go mod download -json "$MODULE") \
    >"$WORK/download" 2>&1 || return 1
  sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' "$WORK/download"
}
