#!/usr/bin/env bash
# The dashboard: types, functions, sizes, and every page in a real browser (chromium) on a real
# server with a real experiment that was preempted.
#   tests/web/run.sh [NAME…]      only tests/web/NAME.test.mjs
# SHIRABE_BINARY: the program to test (default build/release/bin/shirabe). KEEP=1 keeps its home
# and the pictures of pages that failed. WEB_DIST=DIR (of web/build.mjs --out DIR): other files than
# those that are built in. Exits with 77, and says why, where a browser or a Node is
# missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

export PATH=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python/bin:$PATH
export PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/node/bin
export SHIRABE_BINARY=${SHIRABE_BINARY:-$PWD/build/release/bin/shirabe}
unset SHIRABE_HOME SHIRABE_DB SHIRABE_NAMESPACE SHIRABE_SERVER SHIRABE_TOKEN_FILE

for program in node npm chromium; do
  if ! command -v "$program" >/dev/null; then
    echo "no $program (deploy/setup.sh web installs it)"
    exit 77
  fi
done

WORK=$(mktemp -d)
export WEB_TEST_DIR=$WORK
cleanup() {
  if [ -n "${KEEP:-}" ]; then echo "kept: $WORK"; else rm -rf "$WORK"; fi
}
trap cleanup EXIT

# What the tests need beside what the page is built of stays in web/node_modules.
install() {
  local lock=web/node_modules/.tests-installed
  cmp -s "$lock" web/package-lock.json && return 0
  (cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
  cp web/package-lock.json "$lock"
}

# What a browser has to load, of the files as CMake makes them.
sizes() {
  node web/build.mjs --out "$WORK/dist" --meta "$WORK/meta.json"
  node tests/web/sizes.mjs "$WORK/meta.json" "$WORK/dist"
}

unit_tests() {
  web/node_modules/.bin/esbuild tests/web/unit/*.test.ts --bundle --platform=node --format=esm \
    --outdir="$WORK/unit" --out-extension:.js=.mjs --log-level=warning \
    --banner:js='globalThis.sessionStorage ??= { getItem: () => null };'
  node --test "$WORK/unit/"
}

# An experiment whose trials lose their machines again and again, and one that is being run by the
# tests themselves.
experiments() {
  SHIRABE_HOME=$WORK/home "$SHIRABE_BINARY" run -q -f deploy/examples/digits-spot.yaml \
    --nodes deploy/examples/nodes.yaml
}

browser_tests() {
  local files=() name
  for name in "$@"; do files+=("tests/web/$name.test.mjs"); done
  [ "${#files[@]}" != 0 ] || files=(tests/web/*.test.mjs)
  node --test --test-concurrency=1 --test-timeout=300000 "${files[@]}"
}

install
(cd web && node_modules/.bin/tsc --noEmit)
if [ $# = 0 ]; then
  tests/web/embed_test.sh
  node web/picture.mjs --check
  unit_tests
  sizes
fi
experiments
browser_tests "$@"
