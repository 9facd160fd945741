#!/usr/bin/env bash
# The program for arm64, made and tried on a machine of another architecture: compiled in the root
# of `deploy/setup.sh arm64`, and emulated by QEMU; no real processor of arm64 has a part in it.
# Programs of trials are those of the root, for this machine; their supervisor is one for arm64.
#
#   tests/arm64/run.sh            all tests
#   tests/arm64/run.sh release    those of that name
#
# Exits with 77 where this machine cannot, with the reason on the last line.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec </dev/null
RESULTS=$PWD/build/test-results/arm64
BUILD=build/arm64
DIST=$RESULTS/dist
# Of the unit tests those of what may differ: text and files, numbers, specifications, mathematics.
# SLOW takes QEMU ten minutes.
UNIT=(base metrics experiment suggestion)
SLOW='Bayesian*:Cmaes.*:GpFitChain.*:FittedHistoryTest.*'
PATTERN=${1:-}
PASSED=0
FAILED=0
unset SHIRABE_HOME SHIRABE_DB SHIRABE_NAMESPACE SHIRABE_SIGN_KEY SOURCE_DATE_EPOCH

inside() { deploy/arm64/inside.sh "$@"; }
shirabe() { inside env SHIRABE_HOME="$work/home" "$BUILD/bin/shirabe" "$@"; }

cannot() {
  echo "$*"
  exit 77
}

# expect WHAT COMMAND…: within a test.
expect() {
  local what=$1
  shift
  "$@" || {
    echo "not so: $what"
    return 1
  }
}

# check NAME COMMAND…: one test, whose output is in a file of that name.
check() {
  local name=$1 log=$RESULTS/$1.log
  shift
  [[ $name == *$PATTERN* ]] || return 0
  "$@" >"$log" 2>&1 & # not as a condition, in which bash would go on after a failure
  if wait $!; then
    PASSED=$((PASSED + 1))
    echo "ok: $name$(sed -n 's/^\[  PASSED  \] \(.*\)\./, \1/p' "$log")"
  else
    FAILED=$((FAILED + 1))
    tail -n 40 "$log"
    echo "FAILED: $name"
  fi
}

# ---- the tests ----------------------------------------------------------------------------------

# Both are for arm64; the program wants what is everywhere, the supervisor nothing at all.
test_files() {
  local file
  for file in shirabe shirabe-supervisor; do
    readelf -h "$BUILD/bin/$file" | grep 'Machine: *AArch64'
  done
  objdump -p "$BUILD/bin/shirabe" | awk '$1 == "NEEDED" {print $2}' | sort >"$work/needed"
  printf '%s\n' ld-linux-aarch64.so.1 libc.so.6 libm.so.6 | diff - "$work/needed"
  expect "the supervisor is static" test -z "$(readelf -l "$BUILD/bin/shirabe-supervisor" |
    grep INTERP)"
  (inside "$BUILD/bin/shirabe-supervisor" 2>&1 || true) | grep '^usage: shirabe-supervisor'
}

test_version() {
  shirabe version -o json | tee "$work/version.json"
  grep '"processor": "baseline"' "$work/version.json"
  shirabe doctor
}

# best NAME: the objective of its best trial.
best() { shirabe best "$1" -o json | sed -n 's/^ *"value": *\([-0-9.e]*\).*/\1/p' | head -n 1; }

# below NAME LIMIT: its best trial is.
below() { awk -v loss="$(best "$1")" -v limit="$2" 'BEGIN {exit !(loss >= 0 && loss < limit)}'; }

test_experiment() {
  shirabe run -f deploy/examples/bash.yaml
  expect "16 trials succeeded" \
    test "$(shirabe get trials bash -o json | grep -c '"phase": *"Succeeded"')" = 16
  below bash 4
}

test_algorithms() {
  local algorithm
  for algorithm in bayesianoptimization cmaes tpe; do
    shirabe run --name "$algorithm" --algorithm "$algorithm" --param x=0..1 --param y=0..1 \
      --minimize loss --max-trials 12 --parallel 2 --seed 3 --quiet -- echo 'loss={x} y={y}'
    below "$algorithm" 0.1
  done
}

test_adopted() { inside tests/arm64/adopted.sh "$PWD/$BUILD/bin/shirabe" "$work"; }

# What pip makes of the wheel for a machine of arm64, and for one of x86-64.
fetch() {
  python3 -m pip download -q --no-index --no-deps --disable-pip-version-check \
    --only-binary :all: --platform "$1" --dest "$work/wheel" "$DIST"/shirabe-*.whl
}

test_release() {
  ARCH=arm64 DIST=$DIST deploy/release.sh
  (cd "$DIST" && sha256sum -c SHA256SUMS)
  fetch manylinux_2_34_aarch64
  if fetch manylinux_2_34_x86_64; then expect "pip refuses it on x86-64" false; fi
  python3 -m zipfile -e "$work"/wheel/shirabe-*_aarch64.whl "$work/unpacked"
  chmod +x "$work"/unpacked/shirabe-*.data/scripts/shirabe
  inside "$work"/unpacked/shirabe-*.data/scripts/shirabe version
  rpm -qp --queryformat '%{ARCH}\n' "$DIST"/*.rpm | grep -x aarch64
  # With the user already there: useradd cannot work in a user namespace (see deb_test.sh for it).
  # shellcheck disable=SC2016 # of the inner shell
  inside bash -euxc '
    echo "shirabe:x:999:999::/var/lib/shirabe:/usr/sbin/nologin" >>/etc/passwd
    dpkg -i "$0"/shirabe_*_arm64.deb
    [ "$(dpkg-query -W -f "\${Architecture}" shirabe)" = arm64 ]
    cd /
    shirabe version
    gzip -dc /usr/share/man/man1/shirabe.1.gz | grep -q "^.TH SHIRABE 1"
    HOME=/tmp dpkg -P shirabe
    [ ! -e /usr/bin/shirabe ]' "$DIST"
}

# The image: for arm64 by its own words, and its program runs with nothing but what the image has.
test_image() {
  local blob
  mkdir -p "$work/image/root"
  tar -C "$work/image" -xf "$DIST"/shirabe-*-oci.tar
  grep -l '"architecture":"arm64"' "$work"/image/blobs/sha256/*
  for blob in "$work"/image/blobs/sha256/*; do
    ! gzip -t "$blob" 2>/dev/null || tar -C "$work/image/root" -xzf "$blob"
  done
  inside chroot "$work/image/root" /usr/bin/shirabe version
  # Its libpq says so, which the program has opened.
  (inside chroot "$work/image/root" /usr/bin/shirabe get exp \
    --db postgres://user@127.0.0.1:1/none 2>&1 || true) | grep 'port 1 failed: Connection refused'
}

# ---- all of them --------------------------------------------------------------------------------

[ "$(uname -m)" != aarch64 ] || cannot "this machine is one of arm64, where the other tiers try it"
deploy/setup.sh arm64 || cannot "its root could not be made (see above)"
mkdir -p "$RESULTS"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! { inside cmake --preset arm64 &&
  inside cmake --build --preset arm64 -j "${JOBS:-$(nproc)}" --target shirabe \
    "${UNIT[@]/%/_test}"; } >"$RESULTS/build.log" 2>&1; then
  tail -n 40 "$RESULTS/build.log"
  echo "FAILED: build"
  echo "0 passed, 1 failed"
  exit 1
fi
inside "$BUILD/bin/shirabe" version >/dev/null 2>&1 ||
  cannot "programs of arm64 do not run here: install qemu-user-static, or have Linux 6.7"
for folder in "${UNIT[@]}"; do
  check "${folder}_test" inside "$BUILD/bin/${folder}_test" --gtest_filter="-$SLOW"
done
for name in files version experiment algorithms adopted; do check "$name" "test_$name"; done
if [ "$(id -u)" = 0 ] && deploy/setup.sh release; then
  check release test_release
  check image test_image
fi
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
