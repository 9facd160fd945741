#!/usr/bin/env bash
# Installs the Debian 12 packages that are missing; does nothing, fast, where all are there.
#   deploy/setup.sh        what building and the examples need
#   deploy/setup.sh test   also what the checks of tests/run.sh need beyond that
#   deploy/setup.sh build  only the packages for building, without a Python for the examples
#   deploy/setup.sh cluster  what tests/cluster needs to run a Kubernetes here
# Packages are named here and nowhere else.
set -euo pipefail

BUILD_PACKAGES=(
  build-essential cmake ninja-build ccache pkg-config musl-tools
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler
  libyaml-dev libsqlite3-dev nlohmann-json3-dev libcli11-dev libboost1.81-dev libeigen3-dev
  libssl-dev libpq-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
TEST_PACKAGES=(clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev shellcheck git
               postgresql-15)
# Containers, their network and their images. No Go: Debian's is too old (tests/cluster/build.sh).
CLUSTER_PACKAGES=(containerd runc buildah containernetworking-plugins nftables conntrack iproute2
                  openssl debootstrap procps)
# A Python with scikit-learn, made if the python3 of PATH has none.
PYTHON_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python
# One with gRPC, for the plug-in algorithm of deploy/examples/plugin.
PLUGIN_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/plugin

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

# What other people's programs report with: the tests of the collectors run the real ones.
install_reporters() {
  local python
  python=$(command -v python3 || true)
  if has "$python" tensorboardX hypertune prometheus_client; then return 0; fi
  [ -x "$PYTHON_DIR/bin/python3" ] || "$python" -m venv --system-site-packages "$PYTHON_DIR"
  if has "$PYTHON_DIR/bin/python3" tensorboardX hypertune prometheus_client; then return 0; fi
  say "installing tensorboardX, cloudml-hypertune and prometheus_client into $PYTHON_DIR"
  "$PYTHON_DIR/bin/python3" -m pip install -q --disable-pip-version-check \
    "tensorboardX>=2.6" cloudml-hypertune prometheus_client ||
    { say "none of them from PyPI (see above); only tests of collectors need them" && return 1; }
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

case "${1:-}" in
  "")
    install_packages "${BUILD_PACKAGES[@]}"
    install_python
    ;;
  test)
    install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
    install_python
    install_reporters
    install_plugin_python
    ;;
  build)
    install_packages "${BUILD_PACKAGES[@]}"
    ;;
  cluster)
    install_packages "${CLUSTER_PACKAGES[@]}"
    ;;
  *)
    echo "usage: deploy/setup.sh [test|build|cluster]" >&2
    exit 2
    ;;
esac
