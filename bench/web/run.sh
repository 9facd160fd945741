#!/usr/bin/env bash
# The dashboard beside optuna-dashboard (PyPI), both showing the same studies of 100, 10,000 and
# 100,000 trials with nine parameters in the same chromium; about half an hour, most of it waiting
# for the largest study in optuna-dashboard:
#   bench/web/run.sh [TRIALS…]
# Prints the tables of bench/RESULTS.md. WEB_PARTS and WEB_ROUNDS: see web.mjs. optuna-dashboard
# lives in an environment of its own under the user's cache folder.
set -euo pipefail
cd "$(dirname "$0")/../.."

peer=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/bench/optuna-dashboard
work=$PWD/build/bench-web
export PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/node/bin

for program in node npm chromium; do
  command -v "$program" >/dev/null || { echo "no $program (deploy/setup.sh web)"; exit 77; }
done
deploy/setup.sh
cmake --preset release -DSHIRABE_WEB=on >/dev/null
cmake --build --preset release --target shirabe >/dev/null
[ -d web/node_modules ] || (cd web && npm ci --ignore-scripts --no-audit --no-fund)
[ -x "$peer/bin/python3" ] || python3 -m venv "$peer"
"$peer/bin/python3" -m pip install -q --disable-pip-version-check optuna-dashboard

[ $# != 0 ] || set -- 100 10000 100000
for trials in "$@"; do
  [ -f "$work/$trials/study.db" ] && continue
  mkdir -p "$work/$trials"
  "$peer/bin/python3" bench/web/study.py "$trials" "$work/$trials/new.db" >&2
  SHIRABE_HOME=$work/$trials/home build/release/bin/shirabe import optuna "$work/$trials/new.db" >&2
  mv "$work/$trials/new.db" "$work/$trials/study.db"
done
node bench/web/web.mjs build/release/bin/shirabe "$peer/bin/optuna-dashboard" "$work" "$@"
