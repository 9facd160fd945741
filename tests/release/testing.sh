# What the tests of a release share; they source it, from the top of the repository. $ARTEFACTS is a
# folder that deploy/release.sh has filled.
# shellcheck shell=bash disable=SC2034 # of those who source it

ARTEFACTS=${ARTEFACTS:-$PWD/build/test-results/release}
VERSION=$(sed -n 's/^project(shirabe VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
work=$(mktemp -d)

fail() {
  echo "FAILED: $1" >&2
  [ ! -s "$work/out" ] || tail -n 40 "$work/out" >&2
  exit 1
}

# The dashboard that every artefact is to have, as `shirabe version -o json` names it: by the files
# in the archive of the sources.
page() {
  tar -xzOf "$ARTEFACTS/shirabe-$VERSION-source.tar.gz" "shirabe-$VERSION/web/dist/index.html" |
    sha256sum | cut -c 1-12
}

# has_page COMMAND…: the program that this starts has it.
has_page() {
  local wanted
  wanted=$(page)
  "$@" version -o json >"$work/out" 2>&1
  grep -q "\"dashboard\": \"$wanted\"" "$work/out"
}

# debian SUITE FOLDER: a fresh root of that release, whose base is made once and kept.
debian() {
  local base=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/images/debian-$1.tar
  if [ ! -f "$base" ]; then
    mkdir -p "${base%/*}"
    debootstrap --variant=minbase "$1" "$work/base" >"$work/out" 2>&1 || fail "debootstrap $1"
    tar -C "$work/base" -cf "$base.new" .
    mv "$base.new" "$base"
    rm -rf "$work/base"
  fi
  mkdir -p "$2"
  tar -C "$2" -xf "$base"
}

# inside ROOT COMMAND…: in that root, with processes and mounts of its own that end with it.
inside() {
  local root=$1
  shift
  # shellcheck disable=SC2016 # of the inner shell
  unshare --mount --pid --fork --kill-child bash -c '
    mount -t proc proc "$0/proc"
    exec chroot "$0" "$@"' "$root" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "${INSIDE[@]}" "$@"
}
INSIDE=()
