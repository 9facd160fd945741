#!/bin/sh
# Before a package is removed, not before an upgrade ($1 is "remove" for dpkg, 0 for rpm): the
# service ends. What it kept in /var/lib/shirabe stays.
set -e
case "${1:-}" in
  remove | 0)
    if [ -d /run/systemd/system ]; then systemctl disable --now shirabe.service || true; fi
    ;;
esac
