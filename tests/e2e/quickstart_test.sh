#!/usr/bin/env bash
# The README's first command as it builds, and every example: real training in a home of its own.
# With a wheel: wheel_test.sh.
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

deploy/quickstart.sh --build >"$out" 2>&1 || fail "quickstart.sh"
contains "building it here"
contains "algorithm auto"
contains "validation-accuracy"
contains "--lr="
contains "trials 1 to 12; * the best until then"

# Better than guessing by far: the search has really trained something.
accuracy=$("$shirabe" best digits -o json | sed -n 's/.*"value": *\([0-9.]*\).*/\1/p')
awk -v a="$accuracy" 'BEGIN {exit !(a > 0.9 && a <= 1)}' || fail "best accuracy is \"$accuracy\""
[ "$("$shirabe" get trials digits -o name | wc -l)" -ge 12 ] || fail "fewer than 12 trials"

# Again: nothing new is trained, the same best trial is shown. Nor is the program, which other tests
# run now, linked again, whatever has changed outside of the sources.
built=$(stat -c '%i, of %y' "$shirabe")
touch /tmp
deploy/quickstart.sh --build >"$out" 2>&1 || fail "quickstart.sh for the second time"
[ "$(stat -c '%i, of %y' "$shirabe")" = "$built" ] || fail "the program was linked again"
contains "$(printf '%.6g' "$accuracy")"
[ "$("$shirabe" get trials digits -o name | wc -l)" = 12 ] || fail "the second run made new trials"

# One that is installed is used as it is; what is no wheel, and what is no argument, is said.
mkdir "$SHIRABE_HOME/installed"
ln -s "$PWD/$shirabe" "$SHIRABE_HOME/installed/shirabe"
if ! compgen -G "dist/*.whl" >/dev/null; then
  PATH=$SHIRABE_HOME/installed:$PATH deploy/quickstart.sh >"$out" 2>&1 ||
    fail "an installed shirabe"
  contains "$SHIRABE_HOME/installed/shirabe is installed"
fi
echo "not a zip" >"$SHIRABE_HOME/broken.whl"
! SHIRABE_WHEEL=$SHIRABE_HOME/broken.whl deploy/quickstart.sh >"$out" 2>&1 || fail "a broken wheel"
contains "quickstart: $SHIRABE_HOME/broken.whl is no wheel of shirabe"
! deploy/quickstart.sh --fast >"$out" 2>&1 || fail "--fast"
contains 'unknown argument "--fast"'

# The drawing, of what there may be: nothing yet, one result, a failure, more trials than columns.
draw() { deploy/curve.py loss minimize >"$out" || fail "curve.py"; }
echo '{"items": []}' | draw
contains "no trial has given a result yet"
echo '{"items": [{"metadata": {"name": "a-1"}, "status": {"observation": {"metrics":
  [{"name": "loss", "min": "nan", "max": "nan"}]}}}, {"metadata": {"name": "a-2"}}]}' | draw
contains "no trial has given a result yet"
python3 -c 'import json
print(json.dumps({"items": [{"metadata": {"name": f"a-{n}"}, "status": {"observation": {"metrics":
    [{"name": "loss", "min": str(200 - n), "max": "1e9"}]}}} for n in range(200, 0, -1)]}))' | draw
contains "trials 1 to 200, 4 in a column"
awk 'NR == 1 {exit !($1 == 199 && $2 ~ /^\|\*/)}' "$out" || fail "the first is not on top"
awk 'NR == 8 {exit !($1 == 0 && $3 == "****")}' "$out" || fail "the best is not at the bottom"
awk 'length > 90 {exit 1}' "$out" || fail "wider than a terminal"

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
