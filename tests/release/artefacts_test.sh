#!/usr/bin/env bash
# All that a release consists of, made twice: the same bytes, and what others' tools say of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/release/testing.sh
. tests/release/testing.sh
trap 'rm -rf "$work"' EXIT
tools=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/release/bin
unset SOURCE_DATE_EPOCH

# A key that lives as long as this test.
export GNUPGHOME=$work/gnupg
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'Release <release@example.org>' \
  default default never >"$work/out" 2>&1 || fail "no key for the test"

rm -rf "$ARTEFACTS"
SHIRABE_SIGN_KEY=release@example.org DIST=$ARTEFACTS deploy/release.sh >"$work/out" 2>&1 ||
  fail "release.sh"
DIST=$work/again deploy/release.sh >"$work/out" 2>&1 || fail "release.sh for the second time"
diff -r -x SHA256SUMS.asc "$ARTEFACTS" "$work/again" >"$work/out" || fail "two runs differ"

arch=$(uname -m)
debs=$(dpkg --print-architecture)
for path in "$ARTEFACTS/shirabe-$VERSION-py3-none-manylinux_2_34_$arch.whl" \
  "$ARTEFACTS/shirabe_$VERSION"*"_$debs.deb" "$ARTEFACTS/shirabe-$VERSION"*".$arch.rpm" \
  "$ARTEFACTS/shirabe-$VERSION"-{linux-"$arch".tar.gz,source.tar.gz} \
  "$ARTEFACTS/shirabe-$VERSION-linux-$arch"{-oci.tar,.cdx.json}; do
  [ -s "$path" ] || fail "no $path"
done
[ "$(wc -l <"$ARTEFACTS/SHA256SUMS")" = 7 ] || fail "SHA256SUMS names other files"
(cd "$ARTEFACTS" && sha256sum -c SHA256SUMS) >"$work/out" 2>&1 || fail "SHA256SUMS"
gpg --batch --verify "$ARTEFACTS/SHA256SUMS.asc" "$ARTEFACTS/SHA256SUMS" >"$work/out" 2>&1 ||
  fail "the signature"
! SHIRABE_SIGN_KEY=somebody@else DIST=$work/again deploy/release.sh wheel >"$work/out" 2>&1 ||
  fail "signed with a key that is not there"
! ARCH=m68k DIST=$work/again deploy/release.sh wheel >"$work/out" 2>&1 || fail "ARCH=m68k"
grep -q 'ARCH is "m68k"' "$work/out" || fail "no word about ARCH"
! SOURCE_DATE_EPOCH=yesterday DIST=$work/again deploy/release.sh wheel >"$work/out" 2>&1 ||
  fail "SOURCE_DATE_EPOCH=yesterday"
grep -q 'SOURCE_DATE_EPOCH is "yesterday"' "$work/out" || fail "no word about SOURCE_DATE_EPOCH"

wheel=$(ls "$ARTEFACTS"/*.whl)
"$tools/auditwheel" show "$wheel" >"$work/out" 2>&1 || fail "auditwheel"
grep -q "manylinux_2_34_$arch" "$work/out" || fail "auditwheel takes it for another platform"
"$tools/twine" check --strict "$wheel" >"$work/out" 2>&1 || fail "twine check"
cat >"$work/validate.py" <<'END'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
if wrong:
    sys.exit(str(wrong))
END
"$tools/python3" "$work/validate.py" "$ARTEFACTS/shirabe-$VERSION-linux-$arch.cdx.json" \
  >"$work/out" 2>&1 ||
  fail "the bill of materials"

# The archives: one folder each; the sources name the commit that a build from them is of.
tar -C "$work" -xzf "$ARTEFACTS/shirabe-$VERSION-linux-$arch.tar.gz"
has_page "$work/shirabe-$VERSION-linux-$arch/bin/shirabe" ||
  fail "the tarball has another dashboard"
python3 -m zipfile -e "$wheel" "$work/wheel"
chmod +x "$work/wheel/shirabe-$VERSION.data/scripts/shirabe"
has_page "$work/wheel/shirabe-$VERSION.data/scripts/shirabe" ||
  fail "the wheel has another dashboard"
"$work/shirabe-$VERSION-linux-$arch/bin/shirabe" version -o json >"$work/version.json"
tar -C "$work" -xzf "$ARTEFACTS/shirabe-$VERSION-source.tar.gz"
commit=$(sed -n 's/^ *"commit": "\(.*\)",*/\1/p' "$work/version.json")
[ "$(cut -d ' ' -f 1 "$work/shirabe-$VERSION/COMMIT")" = "$commit" ] || fail "commit of the sources"
cmake -DSOURCE="$work/shirabe-$VERSION" -DOUTPUT="$work/commit.cc" \
  -P "$work/shirabe-$VERSION/cmd/commit.cmake"
grep -q "\"$commit\"" "$work/commit.cc" || fail "a build from the archive knows no commit"
# They have the dashboard built, and say of which packages: no Node is needed, nor asked for.
mkdir "$work/page"
cmake -D MODE=on -D GIVEN= -D NODE= -D NPM= -D SOURCE="$work/shirabe-$VERSION/web" \
  -D OUT="$work/page" -P "$work/shirabe-$VERSION/web/embed.cmake" >"$work/out" 2>&1 ||
  fail "a build from the archive has no dashboard"
grep -q '"index.html"' "$work/page/web_table.cc" || fail "a build from the archive has no page"
grep -q '"pkg:npm/preact@' "$ARTEFACTS/shirabe-$VERSION-linux-$arch.cdx.json" ||
  fail "the bill of materials says nothing of the dashboard"

# Without a Node, and with no way to one, there is no release rather than one without a dashboard.
mkdir "$work/clone" "$work/bin"
git archive HEAD | tar -C "$work/clone" -xf -
printf '%s 0\n' "$commit" >"$work/clone/COMMIT"
for tool in bash cat cut date dirname env git grep head mkdir mktemp python3 realpath rm sed sort \
  tail touch uname; do
  ln -s "$(command -v "$tool")" "$work/bin/$tool"
done
! (cd "$work/clone" && PATH=$work/bin XDG_CACHE_HOME=$work/none PIP_NO_INDEX=1 PIP_FIND_LINKS="" \
  DIST=$work/none/dist deploy/release.sh wheel) >"$work/out" 2>&1 || fail "released without a Node"
grep -q 'no Node to build the dashboard with: put one' "$work/out" || fail "no word about the Node"
echo "$(wc -l <"$ARTEFACTS/SHA256SUMS") artefacts of $VERSION, twice the same"
