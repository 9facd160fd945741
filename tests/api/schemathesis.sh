#!/usr/bin/env bash
# The HTTP interface held against its own description, from outside: Schemathesis makes requests out
# of /openapi.json, good and bad ones, and every answer must be one that the document names.
set -euo pipefail
cd "$(dirname "$0")/../.."

ST=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/schemathesis/bin/st
WORK=$(mktemp -d)
SERVER=
cleanup() {
  [ -z "$SERVER" ] || kill "$SERVER" 2>/dev/null || true
  wait
  rm -rf "$WORK"
}
trap cleanup EXIT

SHIRABE_HOME=$WORK build/release/bin/shirabe serve --insecure --grpc 127.0.0.1:0 \
  --http 127.0.0.1:0 --ready-file "$WORK/ready" 2>"$WORK/log" &
SERVER=$!
for _ in $(seq 200); do
  [ ! -s "$WORK/ready" ] || break
  sleep 0.1
done
ADDRESS=$(sed -n 's/.*"http": "\(.*\)".*/\1/p' "$WORK/ready")

# It leaves files where it runs. Event streams do not end, and tests of them are elsewhere.
cd "$WORK"
"$ST" run "http://$ADDRESS/openapi.json" --phases coverage --request-timeout 30 \
  --exclude-path-regex watch --checks not_a_server_error,status_code_conformance,\
content_type_conformance,response_schema_conformance,unsupported_method
