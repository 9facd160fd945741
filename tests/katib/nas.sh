#!/usr/bin/env bash
# deploy/examples/nas.yaml with Katib's own enas service, from its sources: the architectures that
# it answers reach the programs, and what these report reaches it. Ends with 77, and the reason in
# the last line, where something is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/katib/sources.sh
source tests/katib/sources.sh
PYTHON=$CACHE/katib-nas
SHIRABE=$PWD/build/release/bin/shirabe

[ -x "$PYTHON/bin/python3" ] || cannot "there is no TensorFlow (python3 -m venv $PYTHON; \
$PYTHON/bin/pip install tensorflow-cpu==2.16.1 grpcio 'protobuf<5' googleapis-common-protos)"
KATIB=$(fetch) || cannot "Katib's sources could not be fetched: $(tail -n 3 "$WORK/download")"

# It keeps what its controller has learned below the folder that it runs in.
(cd "$WORK" && exec "$PYTHON/bin/python3" "$OLDPWD/tests/katib/enas.py" "$KATIB" "$WORK/address") \
  >"$WORK/log" 2>&1 &
PIDS+=($!)
for _ in $(seq 600); do
  [ ! -s "$WORK/address" ] || break
  kill -0 "${PIDS[0]}" 2>/dev/null || { cat "$WORK/log" && exit 1; }
  sleep 0.1
done
[ -s "$WORK/address" ] || {
  echo "Katib's service has told no address within 60 s:"
  tail -n 40 "$WORK/log"
  exit 1
}

sed "s/endpoint: .*/endpoint: $(cat "$WORK/address")/" deploy/examples/nas.yaml >"$WORK/nas.yaml"
export SHIRABE_HOME=$WORK/home
timeout 300 "$SHIRABE" run -f "$WORK/nas.yaml" >"$WORK/run" 2>&1 || {
  tail -n 40 "$WORK/log" "$WORK/run"
  exit 1
}
"$SHIRABE" get trials nas -o json >"$WORK/trials.json"
python3 tests/katib/nas_outcome.py "$WORK/trials.json"
# It has been told of results, not only asked.
grep -q 'LSTM Controller Training' "$WORK/log" || {
  tail -n 40 "$WORK/log"
  exit 1
}
