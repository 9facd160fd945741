#!/usr/bin/env bash
# Makes the image of Shirabe from what is built here, with buildah and without a registry.
#
#   deploy/image.sh ARCHIVE [NAME:TAG]   a docker-archive, for `podman load`, `ctr images import`, …
#   deploy/image.sh --root FOLDER        only the files of it, for deploy/Dockerfile
#
# $BUILD names another build folder than build/release. Prints what the image weighs.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build/release}

usage() {
  sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' deploy/image.sh >&2
  exit 2
}

# libraries FILE: the shared ones that it loads, and what loads them.
libraries() { ldd "$1" | grep -oE '/[^ ]+' | sort -u; }

# copy_library PATH ROOT: to the place where the loader looks for it, whatever links lead there.
copy_library() {
  local target=$2/lib/x86_64-linux-gnu/${1##*/}
  case $1 in */ld-linux*) target=$2$1 ;; esac
  [ -e "$target" ] || install -D -m 755 "$(realpath "$1")" "$target"
}

# libpq can look its parameters up in an LDAP directory, and for that wants libldap and with it
# GnuTLS and seven more libraries (7 MB), which are not needed here. This one answers that there is
# no directory: ldap_init() gives nothing, and libpq says so.
make_ldap_stand_in() {
  local libpq=$1 root=$2 work
  work=$(mktemp -d)
  nm -D --undefined-only "$libpq" |
    sed -n 's/.* U \(ldap_[a-z0-9_]*\)@.*/void* \1(void) { return 0; }/p' >"$work/ldap.c"
  echo 'OPENLDAP_2.5 { global: *; };' >"$work/ldap.map"
  gcc -shared -fPIC -Os -s -nostdlib -Wl,-soname,libldap-2.5.so.0 \
    -Wl,--version-script="$work/ldap.map" "$work/ldap.c" \
    -o "$root/lib/x86_64-linux-gnu/libldap-2.5.so.0"
  rm -rf "$work"
}

# What libpq needs besides; those of libldap are not followed.
postgres_libraries() {
  local library
  echo "$1"
  for library in $(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
    case $library in
      libldap*) ;;
      *)
        library=$(ldconfig -p | sed -n "s/.* => \(.*\/$library\)$/\1/p" | head -n 1)
        echo "$library" "$(libraries "$library")"
        ;;
    esac
  done
}

make_root() {
  local root=$1 library path
  install -D -m 755 "$BUILD/bin/shirabe" "$root/usr/bin/shirabe"
  strip "$root/usr/bin/shirabe"
  ln -s shirabe "$root/usr/bin/kubectl-shirabe"
  # Read when the database is a PostgreSQL, and so named by no ldd.
  library=$(ldconfig -p | sed -n 's/.*libpq\.so\.5 .*=> //p' | head -n 1)
  for path in $(libraries "$BUILD/bin/shirabe") $(postgres_libraries "$library"); do
    copy_library "$path" "$root"
  done
  make_ldap_stand_in "$library" "$root"
  install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  printf 'shirabe:x:65532:65532::/var/lib/shirabe:/sbin/nologin\n' >"$root/etc/passwd"
  printf 'shirabe:x:65532:\n' >"$root/etc/group"
  install -d -m 755 -o 65532 -g 65532 "$root/var/lib/shirabe"
  install -d -m 1777 "$root/tmp"
}

# The last stage of the Dockerfile, with the files made here in the place of the first.
make_archive() {
  local archive=$1 tag=$2 work=$3
  make_root "$work/root-of-image"
  sed -n '/^FROM scratch/,$p' deploy/Dockerfile | sed 's/--from=build //' >"$work/Dockerfile"
  buildah bud -q --isolation chroot -t "$tag" -f "$work/Dockerfile" "$work" >/dev/null
  rm -f "$archive"
  buildah push -q "$tag" "docker-archive:$archive:$tag"
  buildah rmi "$tag" >/dev/null
  echo "$tag: $(du -sm "$work/root-of-image" | cut -f1) MB," \
    "$(gzip -c "$archive" | wc -c | awk '{printf "%.0f", $1 / 1e6}') MB compressed"
}

[ -x "$BUILD/bin/shirabe" ] || {
  echo "image.sh: no $BUILD/bin/shirabe; first: cmake --build --preset release --target shirabe" >&2
  exit 1
}
case "${1:-}" in
  --root) make_root "${2:?a folder is missing}" ;;
  "" | -*) usage ;;
  *)
    WORK=$(mktemp -d)
    trap 'rm -rf "$WORK"' EXIT
    make_archive "$(realpath -m "$1")" "${2:-localhost/shirabe:latest}" "$WORK"
    ;;
esac
