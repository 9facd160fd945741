#!/usr/bin/env bash
# root.sh ROOT: the root of the digits example, with Debian's Redis of this machine, and
# TensorBoard, tensorboardX and redis-py in the versions that deploy/setup.sh has installed here.
set -euo pipefail
root=$1
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe
source=$(cd "$here/../../../.." && pwd)

# version PYTHON NAME: NAME==VERSION
version() {
  "$cache/$1/bin/python3" -c 'import importlib.metadata as installed, sys
print(f"{sys.argv[1]}=={installed.version(sys.argv[1])}")' "$2"
}

"$here/../digits/root.sh" "$root"
for program in redis-server redis-cli; do
  install -D -t "$root/usr/bin" "$(command -v "$program")"
  ldd "$(command -v "$program")" | grep -o '/[^ ]*' | while read -r library; do
    [ -e "$root$library" ] || install -D "$library" "$root$library"
  done
done
# What is there already, such as numpy, stays.
"$cache/python/bin/python3" -m pip install -q --disable-pip-version-check \
  --root-user-action=ignore --python-version 3.11.2 --only-binary=:all: \
  --target "$root/usr/local/lib/python3.11/dist-packages" "$(version python numpy)" \
  "$(version python redis)" "$(version python tensorboardX)" "$(version loggers tensorboard)" \
  async-timeout 'setuptools<81' 2>"$root/pip.log" || { cat "$root/pip.log" >&2 && exit 1; }
rm "$root/pip.log"
cat >"$root/usr/local/bin/tensorboard" <<'END'
#!/usr/bin/python3
from tensorboard.main import run_main
run_main()
END
chmod 755 "$root/usr/local/bin/tensorboard"
install -D -m 644 -t "$root/example/trainer" "$source"/deploy/examples/ai-platform/trainer/*.py
for example in redis-queue tensorboard; do
  install -D -m 644 -t "$root/example/deploy/examples/$example" \
    "$source/deploy/examples/$example"/*.py
done
install -d -m 1777 "$root/tmp" "$root/data"
chroot "$root" python3 -c 'import redis, sklearn, tensorboard.main, tensorboardX'
