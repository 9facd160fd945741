#!/usr/bin/env bash
# What preemption costs, in the tables of bench/RESULTS.md: the waste beside its floor on traces of
# hours, over simulated machines (two minutes), and for real on a short one (three), and the
# recovery of a real controller from kill -9.
set -euo pipefail
cd "$(dirname "$0")/../.."

cmake --preset release >/dev/null
cmake --build --preset release --target shirabe preemption_bench >/dev/null
build/release/bin/preemption_bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 bench/preemption/real.py build/release/bin/shirabe "$work"
python3 bench/preemption/recovery.py build/release/bin/shirabe "$work"
