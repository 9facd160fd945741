#!/usr/bin/env bash
# Can this machine carry a cluster? Exits with 0 if it can; else prints why not, in one line with
# the next step, and exits with 1. Installs and changes nothing.
set -euo pipefail
# shellcheck source=tests/cluster/paths.sh
source "$(dirname "$0")/paths.sh"

no() {
  echo "$*"
  exit 1
}

# What only a machine of one's own gives: namespaces, a bridge, nftables, mounts, control groups.
try_kernel() {
  unshare -n -m true 2>/dev/null ||
    no "no network namespaces may be made here (a container without privileges?)"
  # These two come with the packages of the tier; until then the kernel is believed.
  ! command -v ip >/dev/null || unshare -n ip link add probe type bridge 2>/dev/null ||
    no "the kernel makes no bridges"
  ! command -v ip >/dev/null || unshare -n ip link add a0 type veth peer name a1 2>/dev/null ||
    no "the kernel makes no veth pairs"
  ! command -v nft >/dev/null || unshare -n nft add table ip probe 2>/dev/null ||
    no "the kernel has no nftables"
  local work
  work=$(mktemp -d)
  mkdir "$work"/{lower,upper,work,merged}
  unshare -m mount -t overlay -o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/work" \
    overlay "$work/merged" 2>/dev/null ||
    { rm -rf "$work" && no "no overlay can be mounted below ${TMPDIR:-/tmp}"; }
  rm -rf "$work"
  try_groups
}

try_groups() {
  local group=/sys/fs/cgroup/pids
  [ ! -f /sys/fs/cgroup/cgroup.controllers ] || group=/sys/fs/cgroup
  mkdir "$group/shirabe-probe-$$" 2>/dev/null || no "control groups cannot be made in $group"
  rmdir "$group/shirabe-probe-$$"
}

try_room() {
  local memory disk
  memory=$(awk '/^MemAvailable/ {print int($2 / 1000)}' /proc/meminfo)
  [ "$memory" -ge 3000 ] || no "$memory MB of memory are free and a cluster wants 3000"
  disk=$(df -m --output=avail "${TMPDIR:-/tmp}" | tail -n 1)
  [ "$disk" -ge 8000 ] || no "$disk MB are free in ${TMPDIR:-/tmp} and a cluster wants 8000"
}

try_programs() {
  [ -n "$(missing_parts)" ] || return 0
  find_go >/dev/null || no "Kubernetes is built from source, which needs Go 1.21 or newer in PATH" \
    "(Debian 12 has 1.19)"
}

[ "$(uname -s)" = Linux ] || no "a cluster needs Linux"
[ "$(id -u)" = 0 ] || no "a cluster needs root"
try_kernel
try_room
try_programs
