#!/usr/bin/env bash
# What a package would hold: installs into a folder, and uses what is there, the program, its manual
# and its completions.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $1" >&2
  cat "$work/out" >&2
  exit 1
}

cmake --install build/release --prefix "$work/usr" >"$work/out" 2>&1 || fail "the installation"
share=$work/usr/share
PATH=$work/usr/bin:$PATH
export SHIRABE_HOME=$work/home

[ "$(command -v shirabe)" = "$work/usr/bin/shirabe" ] || fail "no program in bin"
shirabe run -f "$share/doc/shirabe/examples/bash.yaml" --quiet >"$work/out" 2>&1 || fail "a run"
shirabe get exp >"$work/out" 2>&1 || fail "get exp"

# Every verb has its section, every option its line.
shirabe --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' | sort -u >"$work/verbs"
[ "$(wc -l <"$work/verbs")" -ge 30 ] || fail "the list of verbs"
manual=$share/man/man1/shirabe.1
if command -v groff >/dev/null; then
  groff -ww -b -z -man -Tutf8 "$manual" >"$work/out" 2>&1 || fail "groff"
  [ ! -s "$work/out" ] || fail "groff warns"
  groff -man -Tutf8 -P-cbou -rLL=200n "$manual" >"$work/page"
  while read -r verb; do
    grep -q "^ *shirabe $verb\$" "$work/page" || fail "the manual without $verb"
    for option in $(shirabe "$verb" --help | grep -o '^  -[^ ]*\(, --[a-z-]*\)\?' |
      grep -o -- '--[a-z-]*'); do
      grep -q -- "$option\b" "$work/page" || fail "the manual without $option of $verb"
    done
  done <"$work/verbs"
else
  echo "left out: groff is not installed (deploy/setup.sh test installs it)"
fi

bash -c "source '$share/bash-completion/completions/shirabe'
  COMP_WORDS=(shirabe comple) COMP_CWORD=1
  _shirabe
  [ \"\${COMPREPLY[*]}\" = completion ]" >"$work/out" 2>&1 || fail "completion in bash"
for file in zsh/site-functions/_shirabe fish/vendor_completions.d/shirabe.fish \
  doc/shirabe/README.md doc/shirabe/LICENSE doc/shirabe/design/invariants.md; do
  [ -s "$share/$file" ] || fail "no share/$file"
done
