#!/usr/bin/env bash
# The program on a processor of 2008, without AVX, and on one of 2013, as QEMU plays them: on both
# experiments are searched, by the algorithms that suit.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/release/testing.sh
. tests/release/testing.sh
trap 'rm -rf "$work"' EXIT
[ "$(uname -m)" = x86_64 ] || { echo "left out: of x86-64 only" && exit 0; }
tar -C "$work" -xzf "$ARTEFACTS/shirabe-$VERSION-linux-x86_64.tar.gz"
program=$work/shirabe-$VERSION-linux-x86_64/bin/shirabe

for pair in Nehalem:baseline Haswell:x86-64-v3; do
  on=(qemu-x86_64 -cpu "${pair%:*}" "$program")
  export SHIRABE_HOME=$work/${pair%:*}
  "${on[@]}" version -o json >"$work/out" 2>"$work/log" || fail "version on ${pair%:*}"
  grep -q "\"processor\": \"${pair#*:}\"" "$work/out" || fail "level on ${pair%:*}"
  for algorithm in bayesianoptimization cmaes tpe; do
    # The program itself is played, its trials are not.
    timeout 300 "${on[@]}" run --name "$algorithm" --algorithm "$algorithm" --param x=0..1 \
      --param y=0..1 --minimize loss --max-trials 12 --parallel 1 --quiet \
      -- echo 'loss={x} y={y}' >"$work/out" 2>&1 ||
      fail "$algorithm on ${pair%:*}"
    "${on[@]}" best "$algorithm" -o json >"$work/out" 2>"$work/log" || fail "best on ${pair%:*}"
    loss=$(sed -n 's/^ *"value": *\([-0-9.e]*\).*/\1/p' "$work/out" | head -n 1)
    awk -v l="$loss" 'BEGIN {exit !(l >= 0 && l < 0.1)}' || fail "$algorithm finds only $loss"
  done
  echo "${pair%:*}: ${pair#*:}"
done
