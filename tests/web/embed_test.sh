#!/usr/bin/env bash
# Where the dashboard in the program comes from: given files, a Node, or neither; and what is said
# when there is none. Runs web/embed.cmake as the build does.
set -euo pipefail
cd "$(dirname "$0")/../.."

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
COUNT=0

# embed NAME OPTION…: into $WORK/NAME; its output in $WORK/NAME.log.
embed() {
  local name=$1
  shift
  cmake -D NODE= -D NPM= -D GIVEN= -D SOURCE="$WORK/source" -D OUT="$WORK/$name" "$@" \
    -P web/embed.cmake >"$WORK/$name.log" 2>&1
}

expect() {
  local what=$1
  shift
  COUNT=$((COUNT + 1))
  if "$@"; then
    echo "ok $COUNT - $what"
  else
    echo "not ok $COUNT - $what"
    tail -n 5 "$WORK"/*.log
    exit 1
  fi
}

refused() { ! embed "$@"; }

mkdir -p "$WORK/source" "$WORK/given/assets"
cp web/*.json web/*.mjs web/*.html "$WORK/source"
cp -r web/src "$WORK/source/src"
echo '<!doctype html>' >"$WORK/given/index.html"
echo 'let x' >"$WORK/given/assets/main-ABC.js"
echo 'not really' >"$WORK/given/assets/main-ABC.js.br"

expect "without a Node there is no dashboard" embed none -D MODE=auto
expect "which is said, with what helps" grep -q 'deploy/setup.sh web' "$WORK/none.log"
expect "and the table is empty" bash -c "! grep -q incbin '$WORK/none/web_table.cc'"
expect "SHIRABE_WEB=on fails instead" refused on -D MODE=on
expect "and says why" grep -q 'SHIRABE_WEB=on, but there is no dashboard' "$WORK/on.log"
expect "SHIRABE_WEB=off builds nothing, though files are given" \
  embed off -D MODE=off -D GIVEN="$WORK/given"
expect "nor embeds any" bash -c "! grep -q incbin '$WORK/off/web_table.cc'"
expect "given files are taken" embed given -D MODE=on -D GIVEN="$WORK/given"
expect "both of them, one also compressed" \
  test "$(grep -c incbin "$WORK/given/web_table.cc")" = 3
expect "a folder without index.html is refused" \
  refused bad -D MODE=auto -D GIVEN="$WORK/given/assets"
expect "by name" grep -q 'has no index.html' "$WORK/bad.log"
mkdir -p "$WORK/source/dist/assets"
cp "$WORK/given/index.html" "$WORK/source/dist"
expect "web/dist of a release is taken without a Node" embed dist -D MODE=on
expect "and nothing else" test "$(grep -c incbin "$WORK/dist/web_table.cc")" = 1
rm -r "$WORK/source/dist"
echo '#!/bin/false' >"$WORK/npm" && chmod +x "$WORK/npm"
expect "an npm that fails leaves the build as it is" \
  embed offline -D MODE=auto -D NODE="$(command -v node)" -D NPM="$WORK/npm"
expect "and is named" grep -q 'npm ci has failed' "$WORK/offline.log"
expect "but is an error where a dashboard was asked for" \
  refused wanted -D MODE=on -D NODE="$(command -v node)" -D NPM="$WORK/npm"
expect "with a Node it is built" \
  embed built -D MODE=on -D NODE="$(command -v node)" -D NPM="$(command -v npm)"
expect "in the build folder alone" test ! -e "$WORK/source/node_modules"
expect "and complete" bash -c "[ \$(grep -c incbin '$WORK/built/web_table.cc') -gt 20 ]"
echo "# pass $COUNT"
