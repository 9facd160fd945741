#!/usr/bin/env bash
# The rpm as rpm's own tools see it, and its program unpacked and run. It was never installed on a
# Red Hat: there is none to be had here.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/release/testing.sh
. tests/release/testing.sh
trap 'rm -rf "$work"' EXIT
package=$(ls "$ARTEFACTS"/shirabe-*.rpm)

query() { rpm --dbpath "$work/db" -qp "$@" "$package" 2>/dev/null; }

rpm --dbpath "$work/db" -K --nosignature "$package" >"$work/out" 2>&1 || fail "rpm -K"
[ "$(query --queryformat '%{NAME} %{VERSION} %{LICENSE}')" = "shirabe $VERSION Apache-2.0" ] ||
  fail "name, version, licence"
query -l >"$work/files"
for file in /usr/bin/shirabe /usr/share/man/man1/shirabe.1.gz /etc/default/shirabe \
  /usr/lib/systemd/system/shirabe.service; do
  grep -qx "$file" "$work/files" || fail "no $file"
done
[ "$(query -c)" = /etc/default/shirabe ] || fail "the file of settings would be overwritten"
query --requires | grep -q '^libc.so.6(GLIBC_2.34)' || fail "says nothing of glibc"
query --scripts >"$work/out"
grep -q 'useradd --system' "$work/out" || fail "makes no user"
grep -q 'disable --now shirabe.service' "$work/out" || fail "leaves the service running"
mkdir "$work/root"
(cd "$work/root" && rpm2cpio "$package" | cpio -idm --quiet --no-absolute-filenames)
[ "$("$work/root/usr/bin/shirabe" version)" = "shirabe $VERSION" ] || fail "the program"
has_page "$work/root/usr/bin/shirabe" || fail "the rpm has another dashboard"
echo "$(wc -l <"$work/files") files; not installed on a Red Hat"
