#!/usr/bin/env bash
# Latency of GetSuggestions on loopback, server and clients in processes of their own, as a table.
#   bench/scale/suggestions.sh [SECONDS]     for each row, by default 5
set -euo pipefail
cd "$(dirname "$0")/../.."

bench=build/release/bin/suggestions_bench
seconds=${1:-5}
out=$(mktemp)
"$bench" serve >"$out" &
server=$!
trap 'kill $server; rm -f "$out"' EXIT
until [ -s "$out" ]; do sleep 0.05; done
port=$(cat "$out")

echo "| algorithm | history | trials | clients | requests | p50 ms | p99 ms | per s |"
echo "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
for algorithm in random tpe bayesianoptimization; do
  for history in repeated fresh; do
    for trials in 100 1000; do
      for clients in 1 16 64; do
        "$bench" load "$port" "$algorithm" "$trials" "$clients" "$history" "$seconds"
      done
    done
  done
done
