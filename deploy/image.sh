#!/usr/bin/env bash
# Makes the image of Shirabe from what is built here, with buildah and without a registry.
#
#   deploy/image.sh ARCHIVE [NAME:TAG]   a docker-archive, for `podman load`, `ctr images import`, …
#   deploy/image.sh --oci ARCHIVE [NAME:TAG]
#                                        an OCI archive; with $SOURCE_DATE_EPOCH of that time, and
#                                        the same bytes each time
#   deploy/image.sh --root FOLDER        only the files of it, for deploy/Dockerfile
#
# $BUILD names another build folder than build/release: with build/arm64 the image is one for arm64.
# Prints what the image weighs.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build/release}

usage() {
  sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' deploy/image.sh >&2
  exit 2
}

# Of the architecture that the program is for: Debian's name for its folders and tools, that of
# images, and what loads its programs.
architecture() {
  case $(LC_ALL=C readelf -h "$BUILD/bin/shirabe" | sed -n 's/^ *Machine: *//p') in
    *X86-64) MACHINE=x86_64 IMAGE_ARCH=amd64 ;;
    AArch64) MACHINE=aarch64 IMAGE_ARCH=arm64 ;;
    *)
      echo "image.sh: $BUILD/bin/shirabe is neither for x86-64 nor for arm64" >&2
      return 1
      ;;
  esac
  TRIPLET=$MACHINE-linux-gnu
  LOADER=$(readelf -p .interp "$BUILD/bin/shirabe" | grep -oE '/[^ ]+')
}

# libraries FILE: the shared ones that it loads, and what loads them.
libraries() { "$LOADER" --list "$1" | grep -oE '/[^ ]+' | sort -u; }

# copy_library PATH ROOT: to the place where the loader looks for it, whatever links lead there.
copy_library() {
  local target=$2/lib/$TRIPLET/${1##*/}
  case $1 in */ld-linux*) target=$2$1 ;; esac
  [ -e "$target" ] || install -D -m 755 "$(realpath "$1")" "$target"
}

# stand_in SONAME VERSION PREFIX ROOT: what libpq and libcurl want of a library that is not wanted
# here and would bring many more. libpq can look its parameters up in an LDAP directory, libcurl can
# speak LDAP and RTMP: libldap and librtmp want GnuTLS and seven more libraries (7 MB). Each
# function answers 0, which is nothing: ldap_init() gives no directory, and libpq says so.
stand_in() {
  local soname=$1 version=$2 prefix=$3 root=$4 work
  work=$(mktemp -d)
  "$TRIPLET-nm" -D --undefined-only "$LIBPQ" "$LIBCURL" |
    sed -n "s/.* U \(${prefix}_[A-Za-z0-9_]*\).*/\1/p" | sort -u |
    sed 's/.*/void* &(void) { return 0; }/' >"$work/stand_in.c"
  echo "$version { global: *; };" >"$work/stand_in.map"
  "$TRIPLET-gcc" -shared -fPIC -Os -s -nostdlib -Wl,-soname,"$soname" \
    -Wl,--version-script="$work/stand_in.map" "$work/stand_in.c" \
    -o "$root/lib/$TRIPLET/$soname"
  rm -rf "$work"
}

# opened LIBRARY: one that the program opens by itself, and what it needs but for the stand-ins.
opened() {
  local library
  echo "$1"
  for library in $(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
    case $library in
      libldap* | librtmp* | ld-linux*) ;;
      *)
        library=$(path_of "$library")
        echo "$library" "$(libraries "$library")"
        ;;
    esac
  done
}

# path_of SONAME: where Debian has it; its ldconfig lists none of another architecture.
path_of() {
  local path=/lib/$TRIPLET/$1
  [ -e "$path" ] || {
    echo "image.sh: no $path: is the package that has it installed?" >&2
    return 1
  }
  echo "$path"
}

# make_files FOLDER: root/ for /, and state/ for /var/lib, which the Dockerfile gives to the user.
make_files() {
  local root=$1/root path
  install -d "$1/state/shirabe"
  install -D -m 755 "$BUILD/bin/shirabe" "$root/usr/bin/shirabe"
  "$TRIPLET-strip" "$root/usr/bin/shirabe"
  ln -s shirabe "$root/usr/bin/kubectl-shirabe"
  ln -s shirabe "$root/usr/bin/kubectl-ai_platform"
  # Opened for a PostgreSQL and for requests over HTTP, and so named by no ldd.
  LIBPQ=$(path_of libpq.so.5)
  LIBCURL=$(path_of libcurl.so.4)
  for path in $(libraries "$BUILD/bin/shirabe") $(opened "$LIBPQ") $(opened "$LIBCURL"); do
    copy_library "$path" "$root"
  done
  stand_in libldap-2.5.so.0 OPENLDAP_2.5 ldap "$root"
  stand_in librtmp.so.1 RTMP RTMP "$root"
  install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  printf 'shirabe:x:65532:65532::/var/lib/shirabe:/sbin/nologin\n' >"$root/etc/passwd"
  printf 'shirabe:x:65532:\n' >"$root/etc/group"
  install -d -m 1777 "$root/tmp"
}

# The last stage of the Dockerfile, with the files made here in the place of the first.
make_archive() {
  local kind=$1 archive=$2 tag=$3 work=$4
  local -a when=()
  [ -z "${SOURCE_DATE_EPOCH:-}" ] || when=(--timestamp "$SOURCE_DATE_EPOCH")
  if [ "$MACHINE" = "$(uname -m)" ]; then
    make_files "$work/image"
  else
    deploy/arm64/inside.sh env BUILD="$BUILD" deploy/image.sh --root "$work/image"
  fi
  sed -n '/^FROM scratch/,$p' deploy/Dockerfile | sed 's/--from=build //' >"$work/Dockerfile"
  buildah bud -q --isolation chroot --arch "$IMAGE_ARCH" "${when[@]}" -t "$tag" \
    -f "$work/Dockerfile" "$work" >/dev/null
  rm -f "$archive"
  if [ "$kind" = oci ]; then
    # As a folder first: buildah's own archives have the present time in them.
    buildah push -q "$tag" "oci:$work/layout:$tag"
    tar --sort=name --mtime="@${SOURCE_DATE_EPOCH:-$(date +%s)}" --owner=0 --group=0 \
      --numeric-owner -C "$work/layout" -cf "$archive" .
  else
    buildah push -q "$tag" "docker-archive:$archive:$tag"
  fi
  buildah rmi "$tag" >/dev/null
  echo "$tag: $(du -sm "$work/image" | cut -f1) MB," \
    "$(gzip -c "$archive" | wc -c | awk '{printf "%.0f", $1 / 1e6}') MB compressed"
}

[ -x "$BUILD/bin/shirabe" ] || {
  echo "image.sh: no $BUILD/bin/shirabe; first: cmake --build --preset release --target shirabe" >&2
  exit 1
}
# archive KIND FILE [NAME:TAG]
archive() {
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
  make_archive "$1" "$(realpath -m "$2")" "${3:-localhost/shirabe:latest}" "$WORK"
}

architecture
case "${1:-}" in
  --root) make_files "${2:?a folder is missing}" ;;
  --oci) archive oci "${2:?an archive is missing}" "${3:-}" ;;
  "" | -*) usage ;;
  *) archive docker "$1" "${2:-}" ;;
esac
