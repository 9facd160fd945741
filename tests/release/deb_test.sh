#!/usr/bin/env bash
# The deb in fresh roots of Debian 12 and 13: installed, used by a user and as the service would,
# removed. tests/release/inside_deb.sh runs in there.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/release/testing.sh
. tests/release/testing.sh
trap 'rm -rf "$work"' EXIT

for suite in bookworm trixie; do
  root=$work/$suite
  debian "$suite" "$root"
  cp "$ARTEFACTS"/shirabe_*.deb "$root/package.deb"
  cp tests/release/inside_deb.sh "$root/inside_deb.sh"
  inside "$root" bash /inside_deb.sh "$VERSION" "$(page)" >"$work/out" 2>&1 ||
    fail "the deb in $suite"
  echo "Debian $(cat "$root/etc/debian_version")"
done
