#!/usr/bin/env bash
# Early stopping with real training: poor trials end early, each says why, and the best trial is as
# good as without the rule.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$PWD/build/release/bin:${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python/bin:$PATH

sed '/earlyStopping:/,/value: "4"/d' deploy/examples/early-stopping.yaml >"$work/plain.yaml"
SHIRABE_HOME=$work/plain timeout 600 shirabe run -f "$work/plain.yaml" >/dev/null 2>&1
SHIRABE_HOME=$work/early timeout 600 shirabe run -f deploy/examples/early-stopping.yaml \
  >/dev/null 2>&1
for home in plain early; do
  SHIRABE_HOME=$work/$home shirabe get trials early-stopping -o json >"$work/$home.json"
  SHIRABE_HOME=$work/$home shirabe get attempts early-stopping -o json >"$work/$home-attempts.json"
done
SHIRABE_HOME=$work/early shirabe events early-stopping >"$work/events.txt"
python3 - "$work" <<'END'
import json, sys

work = sys.argv[1]


def items(name):
    return json.load(open(f"{work}/{name}.json"))["items"]


def conditions(trial):
    return {c["type"]: c for c in trial["status"]["conditions"] if c["status"] == "True"}


def best(trials):
    return max(
        float(m["max"]) for t in trials for m in t["status"]["observation"]["metrics"]
        if m["name"] == "validation-accuracy"
    )


def epochs(name):
    return sum(attempt["stepsGained"] for attempt in items(name + "-attempts"))


plain, early = items("plain"), items("early")
stopped = [trial for trial in early if "EarlyStopped" in conditions(trial)]
assert len(plain) == len(early) == 16
assert stopped, "nothing was stopped"
events = open(work + "/events.txt").read()
for trial in stopped:
    message = conditions(trial)["EarlyStopped"]["message"]
    assert message.startswith("at step ") and " < median " in message, message
    assert message in events, message
assert best(early) >= best(plain) - 0.005, (best(early), best(plain))
saved = 1 - epochs("early") / epochs("plain")
assert saved > 0, saved
print(f"{len(stopped)} of 16 trials stopped early, {saved:.0%} of the epochs saved, "
      f"best {best(early):.4f} instead of {best(plain):.4f}")
END

# rule NAME REASON [SETTING VALUE]…: the same example, smaller, with another rule.
rule() {
  local name=$1 reason=$2
  shift 2
  {
    sed '/earlyStopping:/,$d' deploy/examples/early-stopping.yaml
    printf '  earlyStopping:\n    algorithmName: %s\n    algorithmSettings:\n' "$name"
    printf '      - {name: %s, value: "%s"}\n' "$@"
    sed '1,/value: "4"/d; s/maxTrialCount: 16/maxTrialCount: 10/; s/--epochs=30/--epochs=12/
         s/--pause=0.1/--pause=0.05/' deploy/examples/early-stopping.yaml
  } >"$work/$name.yaml"
  stops "$name" "$reason"
}

# stops NAME REASON: it runs to its end, stops some and not all of its trials, and says why.
stops() {
  export SHIRABE_HOME=$work/$1
  timeout 600 shirabe run -f "$work/$1.yaml" >"$work/$1.out" 2>&1
  local stopped ended
  stopped=$(grep -cE "^trial .* EarlyStopped .*: .*$2" "$work/$1.out" || true)
  ended=$(grep -c '^trial .* Succeeded ' "$work/$1.out" || true)
  echo "$1: $stopped trials stopped, $ended trained to the end"
  if [ "$stopped" = 0 ] || [ "$ended" = 0 ]; then
    cat "$work/$1.out"
    return 1
  fi
}

rule percentile 'at step [0-9]+ best .* < ' percentile 50 min_trials_required 2 start_step 3
rule asha-stop 'at step [0-9]+ ' min_resource 2
rule threshold 'at step [0-9]+ .* < lower bound 0.7' lower 0.7 start_step 5
rule patience 'no report of the last [0-9]+ was better than' patience 2
sed 's/maxTrialCount: 20/maxTrialCount: 8/' deploy/examples/folds.yaml >"$work/wilcoxon.yaml"
stops wilcoxon 'worse than trial [0-9]+ on [0-9]+ folds, p = '

# A search that ends by a rule, long before its last trial, and says which.
export SHIRABE_HOME=$work/stop-when
timeout 600 shirabe run -f deploy/examples/stop-when.yaml >"$work/stop-when.out" 2>&1
shirabe describe exp stop-when >>"$work/stop-when.out"
if ! grep -q 'within 0.0[0-9]* of the optimum, by the model of [1-9][0-9] results' \
  "$work/stop-when.out"; then
  cat "$work/stop-when.out"
  exit 1
fi
echo "stop-when: ended by a rule"
