#!/usr/bin/env bash
# Programs that report with other people's libraries, and know nothing of Shirabe: tensorboardX,
# cloudml-hypertune, prometheus_client. Each trial has the values that its program reported.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SHIRABE_HOME=$work/home
PATH=$PWD/build/release/bin:${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python/bin:$PATH

fail() {
  echo "FAILED: $1" >&2
  cat "$work/out" >&2
  exit 1
}

# run NAME FILE: to its end, with every trial a success.
run() {
  timeout 300 shirabe run -f "$2" >"$work/out" 2>&1 || fail "run -f $2"
  shirabe get trials "$1" -o json >"$work/$1.json"
}

for module in tensorboardX hypertune prometheus_client; do
  python3 -c "import $module" 2>/dev/null && continue
  echo "left out: python3 has no $module (deploy/setup.sh test installs it)"
  exit 0
done

run tensorboard deploy/examples/tensorboard.yaml
run hypertune deploy/examples/hypertune.yaml
# A port that is free now: tests run side by side.
port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
sed "s/9464/$port/" deploy/examples/prometheus.yaml >"$work/prometheus.yaml"
run prometheus "$work/prometheus.yaml"

python3 - "$work" <<'END'
import json, sys


def trials(name):
    return json.load(open(f"{sys.argv[1]}/{name}.json"))["items"]


def metric(trial, name):
    found = [m for m in trial["status"]["observation"]["metrics"] if m["name"] == name]
    assert len(found) == 1, (name, trial["status"])
    return {key: float(found[0][key]) for key in ("min", "max", "latest")}


def phase(trial):
    return [c["type"] for c in trial["status"]["conditions"] if c["status"] == "True"]


for name, count in (("tensorboard", 8), ("hypertune", 4), ("prometheus", 3)):
    assert len(trials(name)) == count, name
    for trial in trials(name):
        assert "Succeeded" in phase(trial), trial["status"]
for trial in trials("tensorboard"):
    valid, train = metric(trial, "loss/valid"), metric(trial, "loss/train")
    assert valid["min"] < valid["max"] and train != valid, (valid, train)
for trial in trials("hypertune"):
    # The first report, at step 0, is the greatest; 250 came, in a file that holds 100.
    assert metric(trial, "loss")["max"] == 25, trial["status"]
    assert metric(trial, "loss")["latest"] < 0.1
for trial in trials("prometheus"):
    loss = metric(trial, 'loss{split="valid"}')
    assert 0.1 <= loss["latest"] < 25 and loss["latest"] == loss["min"], loss
END
echo "tensorboardX, cloudml-hypertune and prometheus_client are read as they report"
