#!/usr/bin/env bash
# Other people's trackers have what Shirabe has: TensorBoard and MLflow read what `export` and
# `tensorboard` write, with their own packages; and programs that log to MLflow and to Weights &
# Biases by themselves have one run for each trial, though machines are taken away from them.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/until_true.sh
source tests/support/until_true.sh

loggers=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/loggers
work=$(mktemp -d)
follower=
trap '[ -z "$follower" ] || kill -9 "$follower" 2>/dev/null || true; rm -rf "$work"' EXIT
export SHIRABE_HOME=$work/home
# No program here has an account, or a look for a newer version of itself.
export WANDB_MODE=offline MLFLOW_ALLOW_FILE_STORE=true
PATH=$PWD/build/release/bin:$loggers/bin:$PATH

fail() {
  echo "FAILED: $1" >&2
  cat "$work/out" >&2
  exit 1
}

if ! python3 -c 'import mlflow, tensorboard, wandb' 2>/dev/null; then
  echo "left out: python3 has no mlflow, tensorboard or wandb (deploy/setup.sh test installs them)"
  exit 0
fi

# Each trial loses its machine, and its next attempt goes on.
cat >"$work/nodes.yaml" <<'END'
pools:
  - name: spot
    capacity: spot
    pricePerHour: 3.6
    slots: 2
    reclaim: {times: [4, 5, 9, 10], noticeSeconds: 0}
END
tree=$PWD
cd "$work" # where MLflow's and W&B's own folders go
for tool in mlflow wandb; do
  sed "s#deploy/examples#$tree/deploy/examples#; s/\(.*--lr=.*\)/\1\n                  - --pause=0.1/" \
    "$tree/deploy/examples/$tool.yaml" >"$work/$tool.yaml"
  timeout 300 shirabe run -f "$work/$tool.yaml" --nodes "$work/nodes.yaml" >"$work/out" 2>&1 ||
    fail "run -f $tool.yaml"
  shirabe get attempts "$tool" -o json >"$work/$tool-attempts.json"
  shirabe get metrics "$tool/1" -o json >"$work/$tool-metrics.json"
done
