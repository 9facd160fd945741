#!/usr/bin/env bash
# Katib's own tests of its Suggestion services against a server of ours (suites.py says how). Their
# sources come from Katib's Go module, whose digest stands below; nothing of them is kept here.
# Ends with 77, and the reason in the last line, where something is missing.
#   tests/katib/suites.sh [OPTION of pytest …]
set -euo pipefail
cd "$(dirname "$0")/../.."

VERSION=v0.19.0
DIGEST=h1:uexj303nRkGtTFtTkY4McCt6J0TCtnerX3i3E7TRA5M=
DIGEST_OF_MOD=h1:DajQuzItqb4RbihF8mzBAdY4QNBrE8WrzMSSPNrD2tk=
PYTHON=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/katib-suites

cannot() {
  echo "$1"
  exit 77
}

[ -x "$PYTHON/bin/python3" ] || cannot "there is no pytest with gRPC (python3 -m venv $PYTHON; \
$PYTHON/bin/pip install pytest grpcio grpcio-testing)"
command -v go >/dev/null || cannot "there is no Go, which fetches Katib's sources"

WORK=$(mktemp -d)
SERVER=
cleanup() {
  [ -z "$SERVER" ] || kill "$SERVER" 2>/dev/null || true
  wait
  rm -rf "$WORK"
}
trap cleanup EXIT

# With go.sum, Go accepts these very sources only.
fetch() {
  printf 'module suites\n\ngo 1.21\n\nrequire %s %s\n' "$MODULE" "$VERSION" >"$WORK/go.mod"
  printf '%s\n' "$MODULE $VERSION $DIGEST" "$MODULE $VERSION/go.mod $DIGEST_OF_MOD" >"$WORK/go.sum"
  (cd "$WORK" && GOTOOLCHAIN=local GOFLAGS='' timeout 120 go mod download -json "$MODULE") \
    >"$WORK/download" 2>&1 || return 1
  sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' "$WORK/download"
}

MODULE=github.com/kubeflow/katib
KATIB=$(fetch) || cannot "Katib's sources could not be fetched: $(tail -n 3 "$WORK/download")"

SHIRABE_HOME=$WORK build/release/bin/shirabe serve --insecure --grpc 127.0.0.1:0 \
  --http 127.0.0.1:0 --ready-file "$WORK/ready" 2>"$WORK/log" &
SERVER=$!
for _ in $(seq 200); do
  [ ! -s "$WORK/ready" ] || break
  sleep 0.1
done
ADDRESS=$(sed -n 's/.*"grpc": "\([^"]*\)".*/\1/p' "$WORK/ready")
"$PYTHON/bin/python3" tests/katib/suites.py "$KATIB" "$ADDRESS" "$@"
