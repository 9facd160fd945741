#!/usr/bin/env bash
# The library for GPUs, compiled by nvcc.
#
#   tests/gpu/run.sh compile   that it compiles for every GPU, needs the C library alone, shows the
#                              functions of its interface and no others
#   tests/gpu/run.sh           the same, then on this machine's GPU: the tests that it shares with
#                              the processor, a GPU that fails, and compute-sanitizer
#
# Exits with 77, the reason in its last line, where the machine has not what it takes.
set -euo pipefail
cd "$(dirname "$0")/../.."
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe
LIBRARY=build/cuda/bin/libshirabe-cuda.so
DEVICE_TEST=build/cuda/bin/gpu_device_test
PASSED=0
FAILED=0

check() {
  local name=$1
  shift
  if "$@"; then
    PASSED=$((PASSED + 1))
    echo "ok: $name"
  else
    FAILED=$((FAILED + 1))
    echo "FAILED: $name"
  fi
}

compile() {
  local log=build/cuda.log
  mkdir -p build
  if ! deploy/setup.sh cuda >&2; then
    echo "no CUDA compiler could be installed (deploy/setup.sh cuda), so that nothing was compiled"
    exit 77
  fi
  if ! { cmake --preset cuda &&
    cmake --build --preset cuda -j "${JOBS:-2}" --target shirabe_cuda gpu_device_test; } \
    >"$log" 2>&1; then
    grep -m 20 -E 'error|undefined' "$log" || tail -n 20 "$log"
    return 1
  fi
}

needs_the_c_library_alone() {
  ! objdump -p "$LIBRARY" | sed -n 's/^ *NEEDED *//p' |
    grep -vE '^(libc\.so\.6|libm\.so\.6|libdl\.so\.2|librt\.so\.1|libpthread\.so\.0|ld-linux.*)$'
}

needs_no_newer_glibc() {
  [ "$(objdump -T "$LIBRARY" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)" = GLIBC_2.34 ]
}

# Those that the header declares, and all of them.
shows_its_interface() {
  diff <(nm -D --defined-only "$LIBRARY" | awk '{print $3}' | sort) \
    <(grep -o 'shirabe_cuda_[a-z]*(' suggestion/gpu/shirabe_cuda.h | tr -d '(' | sort -u)
}

is_a_few_megabytes() { [ "$(stat -c %s "$LIBRARY")" -lt 8000000 ]; }

# Of what a test that skips says.
reason_for_no_gpu() {
  "$DEVICE_TEST" --gtest_filter=InterfaceTest.OpensOnlyWhatIsThere 2>&1 |
    sed -n 's/^no GPU here: //p' | head -n 1
}

sanitized() {
  local sanitizer
  sanitizer=$(command -v compute-sanitizer ||
    echo "$CACHE/compute-sanitizer/nvidia/cu13/bin/compute-sanitizer")
  if [ ! -x "$sanitizer" ]; then
    echo "compute-sanitizer is not installed (deploy/setup.sh gpu): left out"
    return 0
  fi
  "$sanitizer" --tool "$1" --error-exitcode 9 "$DEVICE_TEST" --gtest_filter=-LostDeviceTest.*
}

on_the_gpu() {
  local reason tool
  reason=$(reason_for_no_gpu)
  if [ -n "$reason" ]; then
    echo "there is no GPU here ($reason): nothing was run on one"
    exit 77
  fi
  deploy/setup.sh gpu >&2 || true
  check "the tests that the processor passes" "$DEVICE_TEST" --gtest_filter=-LostDeviceTest.*
  check "a GPU that fails" "$DEVICE_TEST" --gtest_filter=LostDeviceTest.*
  for tool in memcheck racecheck synccheck initcheck; do
    check "compute-sanitizer, $tool" sanitized "$tool"
  done
}

check "the library for GPUs compiles" compile
if [ "$FAILED" = 0 ]; then
  check "it needs the C library alone" needs_the_c_library_alone
  check "it runs with glibc 2.34" needs_no_newer_glibc
  check "it shows the functions of its interface and no others" shows_its_interface
  check "it has less than 8 MB" is_a_few_megabytes
  check "it is of the version of its header" "$DEVICE_TEST" --gtest_filter=VersionTest.* \
    --gtest_brief=1
  if [ "${1:-}" != compile ]; then on_the_gpu; fi
fi
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
