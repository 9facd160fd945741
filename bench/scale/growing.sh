#!/usr/bin/env bash
# Katib's wire beside ask-and-tell, for an experiment that grows (growing.cc), a new server for each
# row: so the first request is one after a restart.
#   bench/scale/growing.sh [COUNT [TRIALS…]]     by default 60 steps, after 50, 100, 200, 300, 600
set -euo pipefail
cd "$(dirname "$0")/../.."

count=${1:-60}
shift || true
[ $# != 0 ] || set -- 50 100 200 300 600
out=$(mktemp)
server=
trap '[ -z "$server" ] || kill $server; rm -f "$out"' EXIT

echo "| trials | ask and tell: mean | median | wire: mean | median | ratio \
| passed: mean | median | wire: mean | median | ratio | first | second |"
echo "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
for trials in "$@"; do
  : >"$out"
  build/release/bin/suggestions_bench serve >"$out" &
  server=$!
  until [ -s "$out" ]; do sleep 0.05; done
  build/release/bin/growing_bench "$(cat "$out")" "$server" "$trials" "$count"
  kill $server
  wait $server || true
  server=
done
