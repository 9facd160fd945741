#!/usr/bin/env bash
# Runs a command in the root that deploy/setup.sh arm64 makes, where the program is built for arm64:
#
#   deploy/arm64/inside.sh cmake --preset arm64
#   deploy/arm64/inside.sh cmake --build --preset arm64 --target shirabe
#   deploy/arm64/inside.sh build/arm64/bin/shirabe version
#
# It sees this checkout, /tmp and the cache of ccache; what it writes elsewhere is gone at its end.
# QEMU emulates programs of arm64, where the kernel lets a user namespace have a binfmt_misc of its
# own (Linux 6.7) or the machine has qemu-user-static. Needs no root, only user namespaces.
set -euo pipefail
CHECKOUT=$(cd "$(dirname "$0")/../.." && pwd -P)
ROOT=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/arm64

[ $# != 0 ] || {
  sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "$0" >&2
  exit 2
}
[ -x "$ROOT/usr/bin/aarch64-linux-gnu-g++" ] || {
  echo "inside.sh: no root with a compiler for arm64 in $ROOT; first: deploy/setup.sh arm64" >&2
  exit 1
}

# The machine's ccache with its settings, where it has one.
setting() { ccache --get-config "$1" 2>/dev/null || echo "$2"; }
CCACHE_DIR=$(setting cache_dir "${XDG_CACHE_HOME:-$HOME/.cache}/ccache")
mkdir -p "$CCACHE_DIR"
environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
             CCACHE_DIR="$CCACHE_DIR" CCACHE_MAXSIZE="$(setting max_size 5G)")
[ -z "${SOURCE_DATE_EPOCH:-}" ] || environment+=(SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH")

# ELF for AArch64; F opens the interpreter now, wherever a program then has its root.
FORMAT=':shirabe-arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
FORMAT+=':\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
FORMAT+=':/usr/bin/qemu-aarch64-static:F'
export FORMAT

# In a worktree, git keeps its files elsewhere.
shared=$(git -C "$CHECKOUT" rev-parse --path-format=absolute --git-common-dir 2>/dev/null ||
  echo "$CHECKOUT")

# In namespaces of its own. The root is the lower layer of an overlay, whose upper one is in memory.
# shellcheck disable=SC2016 # of the inner shell
exec unshare --user --map-root-user --mount --propagation slave bash -euo pipefail -c '
  root=$0 layers=$0/mnt checkout=$1 shared=$2 cache=$3 temporary=$4
  shift 4
  mount -t tmpfs shirabe "$layers"
  mkdir "$layers/upper" "$layers/work" "$layers/root"
  mount -t overlay shirabe "$layers/root" \
    -o "lowerdir=$root,upperdir=$layers/upper,workdir=$layers/work,userxattr"
  for folder in /proc /sys /dev /tmp "$temporary" "$cache" "$shared" "$checkout"; do
    mkdir -p "$layers/root$folder"
    mount --rbind "$folder" "$layers/root$folder"
  done
  chroot "$layers/root" bash -c "
    mount -t binfmt_misc shirabe /proc/sys/fs/binfmt_misc &&
      echo \"\$FORMAT\" >/proc/sys/fs/binfmt_misc/register" 2>/dev/null || true
  exec chroot "$layers/root" env -i "$@"' \
  "$ROOT" "$CHECKOUT" "$shared" "$CCACHE_DIR" "${TMPDIR:-/tmp}" \
  -C "$CHECKOUT" "${environment[@]}" "$@"
