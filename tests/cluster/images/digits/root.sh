#!/usr/bin/env bash
# root.sh ROOT: Debian 12 with its Python and the scikit-learn of this machine's examples, so that
# a trial gives the same numbers here and there. Slow (a minute or two), so it is kept.
set -euo pipefail
root=$1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe
base=$cache/images/digits-root-$(sed -n "/^make_base/,/^}/p" "$0" | sha256sum | cut -c1-12).tar
source=$(cd "$(dirname "$0")/../../../.." && pwd)
PATH=$PATH:$cache/python/bin

# The python3 that the examples run with.
find_python() {
  local python
  for python in python3 "$cache/python/bin/python3"; do
    "$python" -c 'import sklearn, pip' 2>/dev/null && echo "$python" && return 0
  done
  echo "no python3 with scikit-learn and pip is here; run: deploy/setup.sh" >&2
  return 1
}

make_base() {
  local work=$1 python packages
  python=$(find_python)
  debootstrap --variant=minbase --include=python3-minimal,libpython3-stdlib bookworm "$work/root" \
    >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2 && return 1; }
  mapfile -t packages < <("$python" -c '
import importlib.metadata as installed
for name in ("scikit-learn", "numpy", "scipy", "joblib", "threadpoolctl"):
    print(f"{name}=={installed.version(name)}")')
  "$python" -m pip install -q --disable-pip-version-check --root-user-action=ignore \
    --python-version 3.11 --only-binary=:all: \
    --target "$work/root/usr/local/lib/python3.11/dist-packages" "${packages[@]}"
  find "$work/root/usr/local" -type d \( -name tests -o -name __pycache__ \) -prune \
    -exec rm -rf {} +
  rm -rf "$work/root"/{var/cache,var/lib/apt,var/log,usr/share/{doc,man,locale,info}}
  tar -C "$work/root" -cf "$base.new" .
  mv "$base.new" "$base"
}

if [ ! -f "$base" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$cache/images"
  make_base "$work"
fi
tar -C "$root" -xf "$base"
install -D -m 644 "$source/sdk/python/shirabe/helper.py" "$root/example/sdk/python/shirabe.py"
install -D -m 644 -t "$root/example/deploy/examples/digits" "$source"/deploy/examples/digits/*.py
