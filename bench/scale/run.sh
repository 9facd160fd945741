#!/usr/bin/env bash
# The whole system beside its peers and the floor of the machine, in one run; about 15 minutes:
#   bench/scale/run.sh [--trials N] [--many N] [--points N] [--only PART]
# PART is throughput, ingest, latency or memory.
# Prints the tables of bench/RESULTS.md. The peers live in environments of their own under the
# user's cache folder; one that cannot be installed is left out, and the table says so.
set -euo pipefail
cd "$(dirname "$0")/../.."

peers=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/bench
work=$PWD/build/bench

# peer NAME PACKAGE: its Python, made if it is not there.
peer() {
  if [ ! -x "$peers/$1/bin/python3" ]; then
    echo "bench: installing $2 into $peers/$1" >&2
    python3 -m venv "$peers/$1" >&2
  fi
  "$peers/$1/bin/python3" -m pip install -q --disable-pip-version-check "$2" >&2 || true
  echo "--peer=$1=$peers/$1/bin/python3"
}

mkdir -p "$work"
deploy/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release --target shirabe >/dev/null
g++ -O2 -std=c++20 -o "$work/floor" bench/scale/floor.cc
optuna=$(peer optuna optuna)
ray=$(peer ray 'ray[tune]')
trap 'rm -rf "$work"' EXIT
python3 bench/scale/scale.py build/release/bin/shirabe "$work/floor" "$work" \
  "$optuna" "$ray" "$@"
