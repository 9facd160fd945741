#!/usr/bin/env bash
# Katib's own tests of its Suggestion services against a server of ours (suites.py says how). Their
# sources come from Katib's Go module, whose digest stands below; nothing of them is kept here.
# Ends with 77, and the reason in the last line, where something is missing.
#   tests/katib/suites.sh [OPTION of pytest …]
set -euo pipefail
cd "$(dirname "$0")/../.."

# shellcheck source=tests/katib/sources.sh
source tests/katib/sources.sh
PYTHON=$CACHE/katib-suites

[ -x "$PYTHON/bin/python3" ] || cannot "there is no pytest with gRPC (python3 -m venv $PYTHON; \
$PYTHON/bin/pip install pytest grpcio grpcio-testing)"
KATIB=$(fetch) || cannot "Katib's sources could not be fetched: $(tail -n 3 "$WORK/download")"

SHIRABE_HOME=$WORK build/release/bin/shirabe serve --insecure --grpc 127.0.0.1:0 \
  --http 127.0.0.1:0 --ready-file "$WORK/ready" 2>"$WORK/log" &
PIDS+=($!)
for _ in $(seq 200); do
  [ ! -s "$WORK/ready" ] || break
  sleep 0.1
done
ADDRESS=$(sed -n 's/.*"grpc": "\([^"]*\)".*/\1/p' "$WORK/ready")
"$PYTHON/bin/python3" tests/katib/suites.py "$KATIB" "$ADDRESS" "$@"
