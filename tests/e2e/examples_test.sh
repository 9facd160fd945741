#!/usr/bin/env bash
# Every example of an algorithm runs to its end and finds something, with at most twelve trials each
# where its file has more; the others have tests of their own.
set -euo pipefail
cd "$(dirname "$0")/../.."

SHIRABE_HOME=$(mktemp -d)
export SHIRABE_HOME
trap 'rm -rf "$SHIRABE_HOME"' EXIT
shirabe=build/release/bin/shirabe
out=$SHIRABE_HOME/out

fail() {
  echo "FAILED: $*" >&2
  [ ! -s "$out" ] || tail -n 40 "$out" >&2
  exit 1
}

for example in deploy/examples/{cmaes,katib-pbt,models}.yaml deploy/examples/digits-*.yaml; do
  case $example in
    *-spot.yaml | *-sobol.yaml) continue ;; # preemption_test.sh
  esac
  few=$SHIRABE_HOME/$(basename "$example")
  awk '$1 == "maxTrialCount:" && $2 > 12 {sub($2, 12)} {print}' "$example" >"$few"
  timeout 600 "$shirabe" run -f "$few" >"$out" 2>&1 || fail "run -f $example"
  name=$(awk '$1 == "name:" {print $2; exit}' "$few")
  accuracy=$("$shirabe" best "$name" -o json | sed -n 's/^ *"value": *\([0-9.]*\).*/\1/p')
  awk -v a="$accuracy" 'BEGIN {exit !(a > 0.5 && a <= 1)}' || fail "$name: accuracy \"$accuracy\""
  echo "$name $accuracy"
done

# Of two objectives it is the front that is found, and nothing on it breaks the constraint.
"$shirabe" best digits-front -o json >"$out"
size=$(sed -n 's/^ *"size": *\([0-9]*\).*/\1/p' "$out")
[ "${size:-0}" -ge 2 ] || fail "digits-front: a front of ${size:-no} trials"
"$shirabe" get trials digits-front -o json |
  python3 -c '
import json, sys
trials = {t["metadata"]["name"]: t["status"]["shirabe"] for t in json.load(sys.stdin)["items"]}
front = [t["trial"] for t in json.load(open(sys.argv[1]))["front"]["trials"]]
broken = [n for n in front if any(c.get("brokenBy", 0) > 0 for c in trials[n]["constraints"])]
sys.exit(f"{broken} break the constraint" if broken else 0)' "$out" || fail "digits-front"
# Every trial has the parameters that exist in it, and its program was handed no others.
"$shirabe" get trials models -o json |
  python3 -c '
import json, sys
names = {"svm": {"c", "kernel"}, "forest": {"trees", "depth"}, "knn": {"neighbours"}}
for trial in json.load(sys.stdin)["items"]:
    has = {p["name"]: p["value"] for p in trial["spec"]["parameterAssignments"]}
    wanted = {"model"} | names[has["model"]]
    wanted |= {"gamma"} if has.get("kernel") == "rbf" else set()
    if set(has) != wanted:
        sys.exit(f"{has} has not exactly {wanted}")
    if int(has.get("trees", 0)) >= 150 and int(has.get("depth", 0)) >= 12:
        sys.exit(f"{has} is forbidden")' || fail "models"
"$shirabe" best digits-front --order weights -o json |
  python3 -c '
import json, sys
front = json.load(open(sys.argv[1]))["front"]["trials"]
smallest = min(front, key=lambda one: one["values"]["weights"])
best = json.load(sys.stdin)
if best["trial"] != smallest["trial"] or best["assignments"] != smallest["assignments"]:
    sys.exit(f"{best} is not {smallest}")' "$out" || fail "best --order"
