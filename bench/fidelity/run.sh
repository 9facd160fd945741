#!/usr/bin/env bash
# Successive halving beside that of Optuna, Ray Tune and Syne Tune, by the training that it costs;
# prints the tables of bench/RESULTS.md. Needs build/release/bin/regret_ask; installs the peers and
# scikit-learn into the user's cache folder.
set -euo pipefail
cd "$(dirname "$0")/../.."

peers=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/bench/fidelity
if [ ! -x "$peers/bin/python3" ]; then
  echo "bench: installing optuna, ray, syne-tune and scikit-learn into $peers" >&2
  python3 -m venv "$peers"
  "$peers/bin/python3" -m pip install -q --disable-pip-version-check \
    optuna scipy 'ray[tune]' syne-tune scikit-learn
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"$peers/bin/python3" bench/fidelity/fidelity.py --problem sgd --budget 12 --seeds 5
echo
"$peers/bin/python3" bench/fidelity/fidelity.py --problem crossing --budget 20 --seeds 30
