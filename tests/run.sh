#!/usr/bin/env bash
# All tests, or one tier of them:
#   tests/run.sh [unit|integration|attack|web|cluster|e2e|sdk]…
#   tests/run.sh [tidy|thread-safety|contract|simulation]…
#   tests/run.sh [api|arm64|gpu|katib|lint|operators|variants|release|sanitizers|fuzz|soak]…
# Without an argument: the first two lines, as far as this machine can carry them, those of the
# second, which mostly compute, behind the others at the lowest priority. Those of the third fetch,
# build again or run long: api (Schemathesis), arm64 (built for it, and emulated by QEMU), gpu (the
# library for GPUs on a real one), katib (Katib's own tests of its services, and its enas), lint
# (clang-tidy), operators (Katib's example kinds, by the real operators), variants (the recipes of
# ARCHITECTURE.md), release (every artefact, installed somewhere), sanitizers, fuzz and soak.
# What is skipped is said at the end, with the reason. Installs what is missing first
# (deploy/setup.sh test).
#
# JOBS=n: how many at a time (default: as many as processors and memory allow).
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
# shellcheck source=tests/bounded.sh
source tests/bounded.sh

BEGAN=$SECONDS
RESULTS=$PWD/build/test-results
SKIPPED=()
FAILED=()
PASSED_COUNT=0
FAILED_COUNT=0
export PATH=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python/bin:$PATH
# Tests never touch the user's own experiments.
unset SHIRABE_HOME SHIRABE_DB SHIRABE_NAMESPACE

# ---- reporting ----------------------------------------------------------------------------------

headline() {
  local seconds=$((SECONDS - BEGAN))
  printf '\n== %s  (%d:%02d)\n' "$1" $((seconds / 60)) $((seconds % 60))
}

skip() {
  SKIPPED+=("$1")
  echo "skipped: $1"
}

# check NAME COMMAND…: runs one check and counts it; goes on after a failure.
check() {
  local name=$1
  shift
  if "$@"; then
    PASSED_COUNT=$((PASSED_COUNT + 1))
    echo "ok: $name"
  else
    FAILED_COUNT=$((FAILED_COUNT + 1))
    FAILED+=("$name")
    echo "FAILED: $name"
  fi
}

# The same, but quiet unless it fails.
check_quietly() {
  local name=$1 log
  log=$RESULTS/$(tr -c 'a-zA-Z0-9\n' '-' <<<"$name").log
  shift
  check "$name" run_logged "$log" "$@"
}

run_logged() {
  local log=$1 status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  [ "$status" != 0 ] || return 0
  tail -n 60 "$log"
  [ "$status" != 124 ] || echo "it was stopped at its time limit; all of it is in $log"
  return 1
}

# Adds up what the gtest programs of one ctest run wrote: cases, not programs.
count_cases() {
  local folder=$1 file tests failures
  for file in "$folder"/*.xml; do
    [ -e "$file" ] || continue
    tests=$(sed -n '2s/.*<testsuites tests="\([0-9]*\)".*/\1/p' "$file")
    failures=$(sed -n '2s/.* failures="\([0-9]*\)".*/\1/p' "$file")
    PASSED_COUNT=$((PASSED_COUNT + ${tests:-0} - ${failures:-0}))
    FAILED_COUNT=$((FAILED_COUNT + ${failures:-0}))
    note_skips "$file"
    note_failures "$file"
  done
}

# GTEST_SKIP() << "reason" ends up in the XML as message="file:line&#x0A;reason".
note_skips() {
  local reason
  while read -r reason; do
    SKIPPED+=("$(basename "$1" .xml): $reason")
  done < <(sed -n 's/.*<skipped message="\([^"]*\)".*/\1/p' "$1" | sed 's/.*&#x0A;//' | sort -u)
}

# Which cases have failed: the output between may be long.
note_failures() {
  local name
  while read -r name; do
    FAILED+=("$(basename "$1" .xml): $name")
  done < <(sed -n '/<testcase /{s/.* name="\([^"]*\)".* classname="\([^"]*\)".*/\2.\1/;h}
                   /<failure /{g;p}' "$1" | sort -u)
}

# apart SUMS COMMAND…: with counters of its own, which it leaves in that file.
apart() {
  local sums=$1
  shift
  PASSED_COUNT=0 FAILED_COUNT=0 SKIPPED=() FAILED=()
  "$@"
  declare -p PASSED_COUNT FAILED_COUNT SKIPPED FAILED >"$sums"
}

# add_sums SUMS WHAT: what a command of that name, which ran apart, has counted.
add_sums() {
  local passed=$PASSED_COUNT failed=$FAILED_COUNT skips=("${SKIPPED[@]}") names=("${FAILED[@]}")
  if [ ! -s "$1" ]; then
    FAILED+=("$2: it ended before all tests were run")
    return
  fi
  eval "$(sed 's/^declare -[-a-z]* //' "$1")"
  PASSED_COUNT=$((PASSED_COUNT + passed))
  FAILED_COUNT=$((FAILED_COUNT + failed))
  SKIPPED=("${skips[@]}" "${SKIPPED[@]}")
  FAILED=("${names[@]}" "${FAILED[@]}")
}

finish() {
  local item
  headline "summary"
  for item in "${SKIPPED[@]}"; do echo "skipped: $item"; done
  for item in "${FAILED[@]}"; do echo "failed: $item"; done
  echo "$PASSED_COUNT passed, $FAILED_COUNT failed"
  [ "$FAILED_COUNT" = 0 ] && [ "${#FAILED[@]}" = 0 ]
}

# ---- building and running -----------------------------------------------------------------------

# A batch of sources takes up to 2 GB to compile.
default_jobs() {
  local by_memory
  by_memory=$(awk '/^MemAvailable/ {print int($2 / 2000000)}' /proc/meminfo)
  echo $((by_memory < 1 ? 1 : by_memory < $(nproc) ? by_memory : $(nproc)))
}

# build PRESET TARGET…: nothing can be tested without it, so a failure ends the run.
build() {
  local preset=$1 log=$RESULTS/build-$1.log
  shift
  if ! { cmake --preset "$preset" && cmake --build --preset "$preset" -j "$JOBS" --target "$@"; } \
    >"$log" 2>&1; then
    grep -m 40 -E 'error|undefined|FAILED' "$log" || tail -n 40 "$log"
    FAILED+=("build of the $preset preset (all of its output: $log)")
    FAILED_COUNT=$((FAILED_COUNT + 1))
    finish
    exit 1
  fi
}

# run_ctest PRESET LABELS JOBS [OPTION…]: the programs of these tiers, in parallel, each case
# counted.
run_ctest() {
  local preset=$1 labels=$2 jobs=$3 label
  shift 3
  for label in ${labels//|/ }; do rm -rf "build/$preset/test-results/$label"; done
  if ! ctest --test-dir "build/$preset" -L "^($labels)\$" -j "$jobs" --output-on-failure \
    --no-tests=ignore "$@"; then
    FAILED+=("$labels, built as $preset")
  fi
  for label in ${labels//|/ }; do count_cases "build/$preset/test-results/$label"; done
}

# ---- tiers behind the others --------------------------------------------------------------------

BEHIND=  # what runs them
BEHIND_LOG=$RESULTS/behind.log
BEHIND_SUMS=$RESULTS/behind.sums

# start_behind TIER…: these mostly compute, and get what those in front leave of the processors
# while they wait, which is most of it.
# Not so the Python packages: their programs wait for each other, within limits.
start_behind() {
  rm -f "$BEHIND_SUMS"
  set -m # a process group of its own, to be ended with all that it started
  apart "$BEHIND_SUMS" behind "$@" >"$BEHIND_LOG" 2>&1 &
  BEHIND=$!
  set +m
  trap 'kill -- "-$BEHIND" 2>/dev/null || true' EXIT
}

behind() {
  local tier
  trap - EXIT
  renice -n 19 -p "$BASHPID" >/dev/null
  headline "Kubernetes, for the cluster tier"
  ! tests/cluster/require.sh || tests/cluster/build.sh || true # which says what is wrong, later
  for tier in "$@"; do
    headline "$tier"
    "tier_${tier//-/_}"
  done
  headline "ended"
}

# Waits for them and adds up.
join_behind() {
  [ -n "$BEHIND" ] || return 0
  wait "$BEHIND" || true
  trap - EXIT
  cat "$BEHIND_LOG"
  add_sums "$BEHIND_SUMS" "behind the others"
}

# ---- the tiers ----------------------------------------------------------------------------------

# Our own C++, without what is generated.
cpp_files() {
  find base net kube artifacts db suggestion trial metrics notify experiment schedule client view \
    import convert tracking rehearsal service sidecar crd cmd tests bench \
    -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) -not -path '*/testdata/*' \
    2>/dev/null | sort
}

script_files() {
  find tests deploy bench .ci -type f \( -name '*.sh' -o -path .ci/run \) 2>/dev/null | sort
}

needs() {
  command -v "$1" >/dev/null && return 0
  skip "$2: $1 is not installed (deploy/setup.sh test installs it)"
  return 1
}

tier_tidy() {
  run_ctest release tidy "$JOBS"
  if needs clang-format-14 "the format of the sources"; then
    mapfile -t files < <(cpp_files)
    check_quietly "clang-format" clang-format-14 --dry-run -Werror "${files[@]}"
  fi
  if needs shellcheck "shell scripts"; then
    mapfile -t files < <(script_files)
    check "shellcheck" shellcheck "${files[@]}"
  fi
}

# What a mutex guards is used with that mutex held, and a use without it is refused. Ten sources at
# a time, as in the release preset; what has not changed comes from ccache.
tier_thread_safety() {
  if needs clang++-14 "thread-safety"; then
    cmake --preset thread-safety >/dev/null
    check_quietly "every lock is held where clang expects it" \
      cmake --build --preset thread-safety -j "$JOBS"
    check "a field that is used without its lock is refused" refuses_unlocked_field
  fi
}

refuses_unlocked_field() {
  local log=$RESULTS/unlocked-field.log
  ! cmake --build --preset thread-safety --target unlocked_field >"$log" 2>&1 &&
    [ "$(grep -c 'error:' "$log")" = 1 ] &&
    grep -q "error: reading variable 'count_' requires holding mutex 'mutex_'" "$log"
}

# Two to twenty seconds a file the first time; what is clean is remembered.
tier_lint() {
  if needs clang-tidy-14 "clang-tidy"; then
    cmake --preset debug >/dev/null
    check "each file alone" cmake --build build/debug -j "$JOBS" --target shirabe
    check "clang-tidy" tests/tidy/clang_tidy.py build/debug "$JOBS"
  fi
}

# Most of what these do is to wait: more of them at a time than there are processors.
tier_unit() { run_ctest release unit $((JOBS * 2)); }
tier_integration() { run_ctest release integration 1; }
tier_attack() { run_ctest release attack 2; }

tier_sdk() {
  [ ! -d tests/sdk ] ||
    check_quietly "the Python packages" python3 -m unittest discover -s tests/sdk
  if python3 -c 'import openapi_spec_validator' 2>/dev/null; then
    check_quietly "a server answers what /openapi.json says" \
      python3 -m unittest discover -s tests/api
  else
    skip "/openapi.json: no validator (deploy/setup.sh test installs it)"
  fi
  run_script gpu compile
}

tier_contract() { run_ctest release contract "$JOBS"; }
tier_simulation() { run_ctest release simulation 1; }

# From PyPI, and large: installed by whoever wants it.
tier_api() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/schemathesis
  if [ ! -x "$folder/bin/st" ]; then
    skip "api: no Schemathesis (python3 -m venv $folder; $folder/bin/pip install schemathesis)"
    return
  fi
  check_quietly "the HTTP interface is what /openapi.json says" tests/api/schemathesis.sh
}

# Katib's sources are fetched for it. Each script exits with 77 where they, or its Python, are
# missing.
tier_katib() {
  local name log status
  for name in suites nas; do
    log=$RESULTS/katib-$name.log status=0
    tests/katib/$name.sh >"$log" 2>&1 || status=$?
    if [ "$status" = 77 ]; then
      skip "katib, $name: $(tail -n 1 "$log")"
      continue
    fi
    [ "$status" = 0 ] || tail -n 60 "$log"
    check "Katib's own $name: $(tail -n 1 "$log")" test "$status" = 0
  done
}

# In a real browser. Exits with 77 where there is none.
tier_web() {
  local log=$RESULTS/web.log status=0 counts
  bounded 1200 tests/web/run.sh >"$log" 2>&1 || status=$?
  if [ "$status" = 77 ]; then
    skip "web: $(tail -n 1 "$log")"
    return
  fi
  counts=$(awk '/^# pass / {n += $3} END {print n + 0}' "$log")
  PASSED_COUNT=$((PASSED_COUNT + counts))
  while read -r name; do
    FAILED_COUNT=$((FAILED_COUNT + 1))
    FAILED+=("web: $name")
  done < <(sed -n 's/^not ok [0-9]* - //p' "$log")
  if [ "$status" != 0 ]; then
    grep -A 14 '^not ok' "$log" || tail -n 60 "$log"
    FAILED+=("web: ended with $status; all of it is in $log")
  else
    echo "ok: $counts tests of the dashboard"
  fi
}

# run_script NAME [ARGUMENT]: tests/NAME/run.sh says which tests it ran, and exits with 77 where
# this machine cannot run them.
run_script() {
  local log=$RESULTS/$1.log status=0 counts name
  JOBS=$JOBS bounded 4500 "tests/$1/run.sh" "${@:2}" | tee "$log" || status=$?
  if [ "$status" = 77 ]; then
    skip "$1: $(tail -n 1 "$log")"
    return
  fi
  counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log" | tail -n 1)
  if [ -z "$counts" ] || { [ "$status" != 0 ] && [ "${counts#* }" = 0 ]; }; then
    FAILED+=("$1: it ended with $status before all tests were run")
    return
  fi
  PASSED_COUNT=$((PASSED_COUNT + ${counts% *}))
  FAILED_COUNT=$((FAILED_COUNT + ${counts#* }))
  while read -r name; do FAILED+=("$1: $name"); done < <(sed -n 's/^FAILED: //p' "$log")
}

tier_cluster() { run_script cluster; }
tier_operators() { run_script operators; }
tier_arm64() { run_script arm64; }
tier_gpu() { run_script gpu; }

# Two at a time: they mostly wait for their trials.
tier_e2e() {
  local script name sums=$RESULTS/e2e
  rm -rf "$sums"
  mkdir "$sums"
  (
    for script in tests/e2e/*.sh; do
      [ "$(jobs -r | wc -l)" -lt 2 ] || wait -n || true
      name=${script##*/}
      apart "$sums/$name" check_quietly "$name" bounded 900 "$script" &
    done
    wait
  )
  for script in tests/e2e/*.sh; do add_sums "$sums/${script##*/}" "${script##*/}"; done
}

# Builds the tree once more, with one of each variant in it.
tier_variants() { JOBS=$JOBS check_quietly "the recipes for variants" tests/variants/run.sh; }

# Whatever is published: made, installed into fresh roots, used there, and removed.
tier_release() {
  local script
  if [ "$(id -u)" != 0 ] || ! grep -qx ID=debian /etc/os-release; then
    skip "release: it makes roots of Debian, which needs a Debian, and root"
    return
  fi
  deploy/setup.sh release || skip "release: what is missing could not be installed"
  check_quietly "artefacts_test.sh" tests/release/artefacts_test.sh
  for script in tests/e2e/wheel_test.sh tests/release/*_test.sh; do
    [ "${script##*/}" = artefacts_test.sh ] || check_quietly "${script##*/}" "$script"
  done
}

# Fewer seeds: a sanitizer makes each three to ten times as slow, and finds in the first hundred
# what it finds in a thousand.
tier_sanitizers() {
  export SHIRABE_SEEDS=${SHIRABE_SEEDS:-100}
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  build asan all_tests
  run_ctest asan "unit|contract|simulation|integration|attack" "$JOBS"
  # Debian's gRPC is not instrumented: under TSan those are left out that speak it most.
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp
  build tsan all_tests
  run_ctest tsan "unit|contract|simulation" "$JOBS" -E '^(service|sidecar|cmd)$'
  unset SHIRABE_SEEDS
}

# fuzz_all SECONDS: every target for so long, from its corpus and what it found before.
fuzz_all() {
  local target name
  build fuzz all
  for target in build/fuzz/bin/*_fuzz; do
    [ -x "$target" ] || continue
    name=${target##*/}
    mkdir -p "build/fuzz/corpus/$name"
    local seeds=()
    [ ! -d "tests/fuzz/corpus/${name%_fuzz}" ] || seeds=("tests/fuzz/corpus/${name%_fuzz}")
    check_quietly "$name for $1 s" "$target" -max_total_time="$1" -timeout=10 -rss_limit_mb=2048 \
      -artifact_prefix="$RESULTS/" "build/fuzz/corpus/$name" "${seeds[@]}"
  done
}

tier_fuzz() {
  if ! command -v clang++-14 >/dev/null; then
    skip "fuzz: clang++-14 is not installed (deploy/setup.sh test installs it)"
  else
    fuzz_all "${FUZZ_SECONDS:-20}"
  fi
}

tier_soak() {
  SHIRABE_SEEDS=${SHIRABE_SEEDS:-20000} run_ctest release simulation 1
  fuzz_all 600
}

# ---- main ---------------------------------------------------------------------------------------

usage() {
  sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "$0" >&2
  exit 2
}

main() {
  local tier all="unit integration attack web cluster e2e sdk"
  local computing="tidy thread-safety contract simulation"
  local named="api arm64 gpu katib lint operators variants release sanitizers fuzz soak"
  for tier in "$@"; do
    [[ " $all $computing $named " == *" $tier "* ]] || usage
  done
  if [ $# = 0 ]; then
    local whole=1
    # shellcheck disable=SC2086 # a list of words
    set -- $all
    skip "${named// /, }: they fetch, build again or run long; name them"
  fi
  mkdir -p "$RESULTS"
  headline "set-up"
  deploy/setup.sh test || skip "set-up: what is missing could not be installed; going on without"
  # A Node that is first found later would link the program again, with the dashboard, under tests
  # that run it.
  if [[ " $* " == *" web "* ]]; then
    deploy/setup.sh web || true # tests/web/run.sh says what is missing
  elif [[ " $* " == *" e2e "* ]]; then
    deploy/setup.sh node || true
  fi
  JOBS=${JOBS:-$(default_jobs)}
  if [[ ! "$*" =~ ^(arm64|release|\ )+$ ]]; then # these build what they need
    headline "build"
    build release all
  fi
  # shellcheck disable=SC2086 # a list of words
  [ -z "${whole:-}" ] || start_behind $computing
  for tier in "$@"; do
    headline "$tier"
    "tier_${tier//-/_}"
  done
  join_behind
  finish
}

main "$@"
