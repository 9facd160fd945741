#!/usr/bin/env bash
# The promise of the product, with real training: machines that are taken away without notice, more
# than ten times, change neither what is tried nor what is found; nothing fails; and the ledger's
# cost is seconds × price. One trial at a time, then four.
set -euo pipefail
set -E # the trap below holds for functions, too
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'echo "line $LINENO: $BASH_COMMAND: $?" >&2' ERR
PATH=$PWD/build/release/bin:${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python/bin:$PATH

# Each slot is taken again and again, after a sixth longer each time, from 1.2 to 14 s, so that some
# reclaims come while it trains on a quick machine and on a slow one, where imports alone take
# seconds; and sixteen times in all, so that a machine however slow comes to the end.
nodes() {
  local times
  times=$(awk -v n="$1" 'BEGIN {for (i = 1; i < 17; i++) printf "%.2f, ", t += 1.18 ^ i / n}')
  cat >"$work/nodes.yaml" <<END
pools:
  - name: spot
    capacity: spot
    pricePerHour: 3.6
    slots: $1
    reclaim: {times: [${times%, }], noticeSeconds: 0}
END
}

# Whatever a trial that was preempted has printed: the log of each attempt, once, in their order.
all_logs() {
  local trial attempts attempt
  read -r trial attempts < <(SHIRABE_HOME=$work/spot shirabe get attempts "$1" -o json |
    python3 -c '
import collections, json, sys
attempts = collections.Counter(one["trial"] for one in json.load(sys.stdin)["items"])
print(*attempts.most_common(1)[0])')
  [ "$attempts" -gt 1 ]
  for attempt in $(seq "$attempts"); do
    SHIRABE_HOME=$work/spot shirabe logs "$trial" --attempt "$attempt"
  done >"$work/each.log"
  SHIRABE_HOME=$work/spot shirabe logs "$trial" --all-attempts >"$work/all.log" 2>"$work/all.err"
  cmp "$work/each.log" "$work/all.log"
  [ "$(grep -c -- "^-- attempt $trial-a[0-9]* --$" "$work/all.err")" = "$attempts" ]
  SHIRABE_HOME=$work/spot shirabe logs "$trial" --all-attempts -f 2>/dev/null |
    cmp - "$work/all.log"
}

# run HOME OPTION…: an experiment, to its end.
run() {
  SHIRABE_HOME=$work/$1 timeout 600 shirabe run "${@:2}" >"$work/run.log" 2>&1 || {
    tail -n 40 "$work/run.log" >&2
    return 1
  }
}

# compare NAME FILE PARALLEL
compare() {
  local name=$1 parallel=$3
  sed "s/parallelTrialCount: .*/parallelTrialCount: $parallel/" "$2" >"$work/$name.yaml"
  nodes "$parallel"
  run plain -f "$work/$name.yaml"
  run spot -f "$work/$name.yaml" --nodes "$work/nodes.yaml"
  SHIRABE_HOME=$work/plain shirabe best "$name" -o json >"$work/plain.json"
  SHIRABE_HOME=$work/spot shirabe best "$name" -o json >"$work/spot.json"
  cmp "$work/plain.json" "$work/spot.json"
  SHIRABE_HOME=$work/spot shirabe get attempts "$name" -o json >"$work/attempts.json"
  SHIRABE_HOME=$work/spot shirabe get trials "$name" -o json >"$work/trials.json"
  python3 - "$work/attempts.json" "$work/trials.json" <<'END'
import collections, json, sys

attempts, trials = (json.load(open(path))["items"] for path in sys.argv[1:])
causes = collections.Counter(attempt["cause"] for attempt in attempts)
assert set(causes) == {"completed", "preempted-spot"}, causes
assert causes["completed"] == len(trials), causes
assert causes["preempted-spot"] >= 5, f"too quick a machine to take away: {causes}"
for trial in trials:
    states = {c["type"] for c in trial["status"]["conditions"] if c["status"] == "True"}
    assert "Succeeded" in states and "Failed" not in states, trial
for attempt in attempts:
    assert abs(attempt["cost"] - attempt["seconds"] * 3.6 / 3600) < 1e-12, attempt
resumed = sum(attempt["resumedFromStep"] > 0 for attempt in attempts)
redone = sum(attempt["stepsRedone"] for attempt in attempts)
print(f"{len(trials)} trials, {causes['preempted-spot']} reclaims, {resumed} resumes, "
      f"{redone} epochs done again, the same best trial")
END
}

# How many attempts of both experiments went on from a checkpoint.
resumes() {
  for name in digits digits-sobol; do
    SHIRABE_HOME=$work/spot shirabe get attempts "$name" -o json
  done | grep -c '"resumedFromStep": *[1-9]' || true
}

compare digits deploy/examples/digits.yaml 1
all_logs digits
compare digits-sobol deploy/examples/digits-sobol.yaml 4
[ "$(resumes)" -gt 0 ] || {
  echo "no attempt went on from a checkpoint" >&2
  exit 1
}
