#!/usr/bin/env bash
# Makes the packages `shirabe-cuda` in $DIST, for deploy/release.sh, which sets the variables: a
# deb, an rpm and a wheel that hold libshirabe-cuda.so alone, where a program of the same form finds
# it (../lib/shirabe from its folder). No package of NVIDIA's is needed but the driver.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${DIST:?}" "${VERSION:?}" "${ARCH:?}" "${DEBIAN_ARCH:?}" "${GLIBC:?}" "${NFPM:?}"
: "${SOURCE_DATE_EPOCH:?}"
LIBRARY=build/cuda/bin/libshirabe-cuda.so
CUDA_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/cuda
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

compile() {
  mkdir -p build
  deploy/setup.sh cuda
  if ! { cmake --preset cuda && cmake --build --preset cuda -j "${JOBS:-$(nproc)}" \
    --target shirabe_cuda; } >build/cuda.log 2>&1; then
    tail -n 40 build/cuda.log >&2
    return 1
  fi
}

# What is in the library beside Shirabe: CUDA's runtime, under NVIDIA's licence, which allows that,
# and gcc's libraries, under the GPL with an exception that allows it.
describe() {
  local runtime
  runtime=$(find "$CUDA_DIR" -path '*nvidia_cuda_runtime*' -name 'License.txt' | head -n 1)
  mkdir "$WORK/licences"
  cp LICENSE "$WORK/licences/LICENSE"
  cp "$runtime" "$WORK/licences/NVIDIA-CUDA-RUNTIME.txt"
  chmod 644 "$WORK/licences"/*
  install -m 644 "$LIBRARY" "$WORK/libshirabe-cuda.so"
  {
    echo "Shirabe is under the Apache License 2.0 (LICENSE). libshirabe-cuda.so contains NVIDIA's"
    echo "CUDA runtime, under its licence (NVIDIA-CUDA-RUNTIME.txt), and libstdc++ and libgcc,"
    echo "under the GPL 3 with the GCC Runtime Library Exception."
  } >"$WORK/licences/copyright"
}

describe_package() {
  cat <<END
name: shirabe-cuda
arch: $DEBIAN_ARCH
version: $VERSION
maintainer: The Shirabe authors <shirabe@localhost>
description: |
  computes Shirabe's Gaussian processes on an NVIDIA GPU
  A library that shirabe opens where it is installed. It needs driver 580 or later, and a GPU of
  compute capability 7.5 or later.
license: Apache-2.0
section: science
mtime: "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
contents:
  - {src: "$WORK/libshirabe-cuda.so", dst: /usr/lib/shirabe/libshirabe-cuda.so}
  - {src: "$WORK/licences/", dst: /usr/share/doc/shirabe-cuda/, type: tree}
overrides:
  deb:
    depends: ["libc6 (>= $GLIBC)", "shirabe (= $VERSION)"]
  rpm:
    depends: ["libc.so.6(GLIBC_$GLIBC)(64bit)", "shirabe = $VERSION"]
rpm: {buildhost: localhost}
END
}

compile
describe
find "$WORK" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
rm -f "$DIST"/shirabe-cuda_*"_$DEBIAN_ARCH.deb" "$DIST"/shirabe-cuda-*".$ARCH.rpm" \
  "$DIST"/shirabe_cuda-*"_$ARCH.whl"
deploy/release/cuda_wheel.py --library "$WORK/libshirabe-cuda.so" --version "$VERSION" \
  --tag "py3-none-manylinux_${GLIBC/./_}_$ARCH" --licences "$WORK/licences" --out "$DIST"
[ -x "$NFPM" ] || deploy/setup.sh release
describe_package >"$WORK/nfpm.yaml"
for kind in deb rpm; do
  "$NFPM" package --config "$WORK/nfpm.yaml" --packager "$kind" --target "$DIST"
done
