#!/usr/bin/env bash
# From a bare Debian 12 to a tuned model: installs what is missing, builds, tunes scikit-learn on
# its handwritten digits, and ends with the best result. Run again, it builds nothing twice and
# prints the result again.
set -euo pipefail
cd "$(dirname "$0")/.."

shirabe=build/release/bin/shirabe
example=deploy/examples/digits.yaml
python=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python/bin

say() { printf '\n== %s\n' "$*"; }

# Not more compilers than there is memory for: a file with gRPC in it takes half a gigabyte.
jobs_for_this_machine() {
  local by_memory
  by_memory=$(awk '/^MemAvailable/ {print int($2 / 1000000)}' /proc/meminfo)
  echo $((by_memory < 1 ? 1 : by_memory < $(nproc) ? by_memory : $(nproc)))
}

build() {
  local log=build/quickstart.log jobs
  jobs=$(jobs_for_this_machine)
  mkdir -p build
  if { cmake --preset release && cmake --build --preset release -j "$jobs" --target shirabe; } \
    >"$log" 2>&1; then
    return 0
  fi
  tail -n 40 "$log" >&2
  echo "quickstart: the build failed; all of its output is in $log" >&2
  return 1
}

say "1/3 set-up"
deploy/setup.sh
say "2/3 build (minutes for the first time, seconds from then on)"
build
"$shirabe" version
say "3/3 tune: $shirabe run -f $example"
PATH=$python:$PATH "$shirabe" run -f "$example"

cat <<END

Look further:
  $shirabe get trials digits
  $shirabe describe trial digits/1
  $shirabe best digits -o json
  $shirabe export digits -o csv
  $shirabe --help
END
