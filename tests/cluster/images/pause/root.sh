#!/usr/bin/env bash
# root.sh ROOT: a static program of a few kilobytes.
set -euo pipefail
compiler=$(command -v musl-gcc || echo gcc)
"$compiler" -static -Os -s "$(dirname "$0")/pause.c" -o "$1/pause"
