#!/usr/bin/env bash
# The README's first command, and every example: real training in a home of its own.
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

# contains TEXT: what the last command printed.
contains() { grep -qF -- "$1" "$out" || fail "no \"$1\" in the output"; }

deploy/quickstart.sh >"$out" 2>&1 || fail "quickstart.sh"
contains "validation-accuracy"
contains "--lr="

# Better than guessing by far: the search has really trained something.
accuracy=$("$shirabe" best digits -o json | sed -n 's/.*"value": *\([0-9.]*\).*/\1/p')
awk -v a="$accuracy" 'BEGIN {exit !(a > 0.9 && a <= 1)}' || fail "best accuracy is \"$accuracy\""
[ "$("$shirabe" get trials digits -o name | wc -l)" -ge 12 ] || fail "fewer than 12 trials"

# Again: nothing new is trained, the same best trial is shown.
deploy/quickstart.sh >"$out" 2>&1 || fail "quickstart.sh for the second time"
contains "$(printf '%.6g' "$accuracy")"
[ "$("$shirabe" get trials digits -o name | wc -l)" = 12 ] || fail "the second run made new trials"

for example in deploy/examples/*.yaml; do
  # Machines, not an experiment.
  if [ "$example" = deploy/examples/nodes.yaml ]; then
    "$shirabe" validate --nodes "$example" >"$out" 2>&1 || fail "validate --nodes $example"
    continue
  fi
  "$shirabe" validate -f "$example" >"$out" 2>&1 || fail "validate -f $example"
done
"$shirabe" run -f deploy/examples/bash.yaml >"$out" 2>&1 || fail "run -f deploy/examples/bash.yaml"
echo "best accuracy $accuracy"
