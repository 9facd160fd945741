#!/usr/bin/env bash
# Makes what a release consists of, in dist/ ($DIST), from this checkout and package registries:
#
#   deploy/release.sh                all of it
#   deploy/release.sh wheel          for PyPI: the program, `shirabe` and `shirabe_client`
#   deploy/release.sh packages       deb and rpm: also manual, completions, a service for systemd
#   deploy/release.sh tarball        the program as a folder, and the sources
#   deploy/release.sh image          the container image, as an OCI archive
#   deploy/release.sh cuda           only by name: the library for GPUs as deb, rpm and wheel
#
# Each with a bill of materials (CycloneDX) and SHA256SUMS, signed with $SHIRABE_SIGN_KEY (a key of
# gpg) where that is given. The same commit gives the same bytes: the time in them is
# $SOURCE_DATE_EPOCH, by default that of the commit. JOBS=n: compilers at a time. ARCH=arm64: for
# machines of that architecture, built in the root of `deploy/setup.sh arm64`.
set -euo pipefail
cd "$(dirname "$0")/.."
DIST=$(realpath -m "${DIST:-dist}")
ARCH=${ARCH:-$(uname -m)}
# What the program may want of the machine: glibc of Debian 12, Ubuntu 22.04, RHEL 9 and newer.
GLIBC=2.34
NFPM=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/release/bin/nfpm
umask 022
# What was compiled before comes from ccache in the locale that it was compiled in.
LOCALE=(-u LC_ALL)
[ -z "${LC_ALL+set}" ] || LOCALE=("LC_ALL=$LC_ALL")
export TZ=UTC LC_ALL=C

say() { echo "release: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

# ---- which release ------------------------------------------------------------------------------

# Sets VERSION, COMMIT and SOURCE_DATE_EPOCH; from COMMIT in the archive of the sources.
identify() {
  local named
  VERSION=$(sed -n 's/^project(shirabe VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
  if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$PWD" ]; then
    named=$(git log -1 --format='%H %ct')
    [ -z "$(git status --porcelain --untracked-files=no)" ] ||
      say "files differ from the commit: this is no release, but will do for trying"
  else
    named=$(cat COMMIT)
  fi
  grep -q "^## $VERSION " CHANGELOG.md || fail "CHANGELOG.md has no section for $VERSION"
  COMMIT=${named% *}
  export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-${named#* }}
  [[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] ||
    fail "SOURCE_DATE_EPOCH is \"$SOURCE_DATE_EPOCH\": give seconds since 1970"
}

# ---- for which machine --------------------------------------------------------------------------

# Sets ARCH, as uname has it, DEBIAN_ARCH, PRESET, BUILD and INSIDE, the words before a command that
# reads, or runs, what is for that machine. Not build/release: a release has nothing of what was
# configured there, and the program there may be in use.
choose_architecture() {
  case $ARCH in
    x86_64 | amd64) ARCH=x86_64 DEBIAN_ARCH=amd64 ;;
    aarch64 | arm64) ARCH=aarch64 DEBIAN_ARCH=arm64 ;;
    *) fail "ARCH is \"$ARCH\": releases are made for x86_64 and for arm64" ;;
  esac
  PRESET=release BUILD=build/dist INSIDE=()
  if [ "$ARCH" != "$(uname -m)" ]; then
    [ "$ARCH" = aarch64 ] ||
      fail "ARCH is \"$ARCH\", and this machine $(uname -m): such a release is made on an $ARCH"
    deploy/setup.sh arm64
    PRESET=arm64 BUILD=build/arm64 INSIDE=(deploy/arm64/inside.sh)
  fi
}

# configure: the page of a release for another machine is built by a Node of this one, since the
# root has none.
configure() {
  local node npm given=
  if [ "${#INSIDE[@]}" = 0 ]; then
    cmake --preset "$PRESET" -B "$BUILD" -D SHIRABE_WEB=on
    return
  fi
  if [ "$PAGE" != web/dist ]; then
    PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/node/bin
    node=$(command -v node || true) npm=$(command -v npm || true)
    cmake -D MODE=on -D NODE="$node" -D NPM="$npm" -D SOURCE="$PWD/web" -D OUT="$PWD/build/page" \
      -P web/embed.cmake || return
    PAGE=build/page/dist given=$PWD/$PAGE
  fi
  "${INSIDE[@]}" cmake --preset "$PRESET" -D SHIRABE_WEB=on -D SHIRABE_WEB_DIR="$given"
}

# ---- the program --------------------------------------------------------------------------------

# The dashboard's built files, $PAGE: those of an archive of the sources, else made by the build,
# which needs a Node. Every artefact has them, or there is none.
compile() {
  local log=$BUILD.log
  PAGE=$BUILD/web/dist
  if [ -f web/dist/index.html ]; then
    PAGE=web/dist
  else
    deploy/setup.sh node || fail "no Node to build the dashboard with: put one of version 18 or \
newer, with npm, into the PATH, or release from an archive of the sources, which has it built"
  fi
  mkdir -p build
  if ! { configure && "${INSIDE[@]}" env "${LOCALE[@]}" cmake --build "$BUILD" \
    -j "${JOBS:-$(nproc)}" --target shirabe; } >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "the build failed; all of its output is in $log"
  fi
  check_page
  "${INSIDE[@]}" "$ARCH-linux-gnu-objcopy" --strip-all "$BUILD/bin/shirabe" "$WORK/shirabe"
  check_symbols "$WORK/shirabe"
}

# The program has the dashboard of these very files.
check_page() {
  local page
  page=$(sha256sum "$PAGE/index.html")
  "${INSIDE[@]}" "$BUILD/bin/shirabe" version -o json | grep -q "\"dashboard\": \"${page:0:12}\"" ||
    fail "the program does not have the dashboard of $PAGE"
}

# check_symbols PROGRAM: it asks for nothing that an older distribution lacks.
check_symbols() {
  local library version
  while read -r library; do
    case $library in
      libc.so.6 | libm.so.6 | ld-linux-*) ;;
      *) fail "the program loads $library: only the C library may be left to the machine" ;;
    esac
  done < <(objdump -p "$1" | sed -n 's/^ *NEEDED *//p')
  while read -r version; do
    case $version in
      GLIBC_*) ;;
      *) fail "the program needs the symbol version $version: only those of glibc are everywhere" ;;
    esac
    [ "$(printf '%s\n' "${version#GLIBC_}" "$GLIBC" | sort -V | tail -n 1)" = "$GLIBC" ] ||
      fail "the program needs $version: glibc $GLIBC is the oldest that it is made for"
  done < <(objdump -T "$1" | sed -n 's/.*\*UND\*.*[( ]\([A-Z]*_[0-9.]*\)[) ].*/\1/p' | sort -u)
}

describe() {
  SBOM=$DIST/shirabe-$VERSION-linux-$ARCH.cdx.json
  LICENCES=$WORK/licences
  "${INSIDE[@]}" deploy/release/sbom.py --build "$BUILD" --page "$PAGE" --version "$VERSION" \
    --commit "$COMMIT" --sbom "$WORK/bill.json" --licences "$LICENCES"
  install -m 644 "$WORK/bill.json" "$SBOM"
}

# ---- its forms ----------------------------------------------------------------------------------

make_wheel() {
  rm -f "$DIST"/shirabe-*_"$ARCH".whl
  deploy/release/wheel.py --program "$WORK/shirabe" --version "$VERSION" \
    --tag "py3-none-manylinux_${GLIBC/./_}_$ARCH" --licences "$LICENCES" --sbom "$SBOM" \
    --out "$DIST" >/dev/null
}

# What a package holds below /, in $STAGE; once for all that need it.
stage() {
  local doc name
  [ -z "${STAGE:-}" ] || return 0
  STAGE=$WORK/stage
  doc=$STAGE/usr/share/doc/shirabe
  "${INSIDE[@]}" env DESTDIR="$STAGE" cmake --install "$BUILD" --prefix /usr \
    >"$WORK/install.log" 2>&1 ||
    fail "the installation failed: $(tail -n 5 "$WORK/install.log")"
  install -m 755 "$WORK/shirabe" "$STAGE/usr/bin/shirabe"
  for name in kubectl{-,_complete-}{shirabe,ai_platform}; do
    ln -s shirabe "$STAGE/usr/bin/$name"
  done
  gzip -n9 "$STAGE/usr/share/man/man1/shirabe.1"
  install -m 644 "$LICENCES/THIRD-PARTY.txt" "$SBOM" "$doc"
  find "$STAGE" -name __pycache__ -prune -exec rm -rf {} +
  find "$STAGE" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# pack NAME FOLDER ENTRY: what is below FOLDER/ENTRY, without owners, in order.
pack() {
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --format=posix --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime \
    -C "$2" -cf - "$3" >"$1"
}

make_tarball() {
  local name=shirabe-$VERSION-linux-$ARCH sources=shirabe-$VERSION
  stage
  cp -a "$STAGE/usr" "$WORK/$name"
  install -m 644 LICENSE README.md "$WORK/$name"
  pack "$WORK/$name.tar" "$WORK" "$name"
  gzip -n9 <"$WORK/$name.tar" >"$DIST/$name.tar.gz"
  if [ "$(git rev-parse --show-toplevel 2>/dev/null)" != "$PWD" ]; then
    say "no archive of the sources: this is no repository"
    return 0
  fi
  # With the dashboard's built files: to build from it needs no Node.
  mkdir "$WORK/sources"
  git archive --prefix="$sources/" HEAD | tar -C "$WORK/sources" -xf -
  cp -r "$PAGE" "$WORK/sources/$sources/web/dist"
  chmod -R u=rwX,go=rX "$WORK/sources/$sources/web/dist"
  pack "$WORK/sources.tar" "$WORK/sources" "$sources"
  gzip -n9 <"$WORK/sources.tar" >"$DIST/$sources-source.tar.gz"
}

# Of nfpm, which makes all kinds of packages from one description.
describe_package() {
  cat <<END
name: shirabe
arch: $DEBIAN_ARCH
version: $VERSION
maintainer: The Shirabe authors <shirabe@localhost>
description: |
  tunes the hyperparameters of any program
  Reads Katib's Experiment files or a command line, runs each candidate as a process that may be
  interrupted at any moment, and keeps everything in a database.
license: Apache-2.0
section: science
mtime: "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
suggests: [libcurl4, libpq5]
contents:
  - {src: "$STAGE/", dst: /, type: tree}
  - {src: deploy/release/shirabe.service, dst: /usr/lib/systemd/system/shirabe.service}
  - {src: deploy/release/shirabe.default, dst: /etc/default/shirabe, type: "config|noreplace"}
  - {src: "$WORK/copyright", dst: /usr/share/doc/shirabe/copyright}
scripts: {postinstall: deploy/release/after_install.sh, preremove: deploy/release/before_removal.sh}
overrides:
  deb:
    depends: ["libc6 (>= $GLIBC)", passwd]
  rpm:
    depends: ["libc.so.6(GLIBC_$GLIBC)(64bit)", shadow-utils]
    suggests: [libcurl, libpq]
rpm: {buildhost: localhost}
END
}

make_packages() {
  [ -x "$NFPM" ] || deploy/setup.sh release
  stage
  {
    echo "Shirabe is under the Apache License 2.0 (/usr/share/common-licenses/Apache-2.0 or LICENSE"
    echo "beside this file); the libraries in its program as THIRD-PARTY.txt beside this file says."
  } >"$WORK/copyright"
  describe_package >"$WORK/nfpm.yaml"
  rm -f "$DIST"/shirabe*"_$DEBIAN_ARCH.deb" "$DIST"/shirabe*".$ARCH.rpm"
  for kind in deb rpm; do
    "$NFPM" package --config "$WORK/nfpm.yaml" --packager "$kind" --target "$DIST" \
      >"$WORK/nfpm.log" 2>&1 || fail "nfpm makes no $kind: $(cat "$WORK/nfpm.log")"
  done
}

make_image() {
  command -v buildah >/dev/null || deploy/setup.sh cluster
  BUILD=$BUILD deploy/image.sh --oci "$DIST/shirabe-$VERSION-linux-$ARCH-oci.tar" \
    "localhost/shirabe:$VERSION"
}

make_cuda() {
  [ "${#INSIDE[@]}" = 0 ] || fail "the library for GPUs is made on a machine of its architecture"
  DIST=$DIST VERSION=$VERSION ARCH=$ARCH DEBIAN_ARCH=$DEBIAN_ARCH GLIBC=$GLIBC NFPM=$NFPM \
    deploy/release/cuda.sh
}

# ---- together -----------------------------------------------------------------------------------

sum_up() {
  (cd "$DIST" && rm -f SHA256SUMS SHA256SUMS.asc && sha256sum shirabe* >SHA256SUMS)
  [ -z "${SHIRABE_SIGN_KEY:-}" ] ||
    gpg --batch --yes --local-user "$SHIRABE_SIGN_KEY" --armor --detach-sign "$DIST/SHA256SUMS" ||
    fail "SHA256SUMS is not signed: gpg does not sign with \"$SHIRABE_SIGN_KEY\""
  (cd "$DIST" && du --apparent-size --block-size=kB -- shirabe*) >&2
}

main() {
  local form
  for form in "$@"; do
    case $form in
      wheel | packages | tarball | image | cuda) ;;
      *)
        sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' deploy/release.sh >&2
        exit 2
        ;;
    esac
  done
  [ $# != 0 ] || set -- wheel packages tarball image
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
  identify
  choose_architecture
  say "shirabe $VERSION for $ARCH, commit ${COMMIT:0:12}, into $DIST"
  mkdir -p "$DIST"
  if [ "$*" != cuda ]; then
    compile
    describe
  fi
  for form in "$@"; do "make_$form"; done
  sum_up
}

main "$@"
