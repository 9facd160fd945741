#!/usr/bin/env bash
# root.sh ROOT: Debian's static busybox, taken out of its package: installing it would remove the
# dynamic one from this machine.
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -qq busybox-static 2>/dev/null ||
  { apt-get update -qq && apt-get download -qq busybox-static; }
dpkg-deb -x busybox-static_*.deb package
mkdir -p "$root"/{bin,tmp,etc}
chmod 1777 "$root/tmp"
cp package/bin/busybox "$root/bin/busybox"
for name in $("$root/bin/busybox" --list); do
  [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
done
