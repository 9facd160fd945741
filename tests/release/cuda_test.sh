#!/usr/bin/env bash
# The packages `shirabe-cuda`: small, the same bytes twice, and the library where the program of the
# same form looks for it, from which it can be opened on a machine without a GPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# opens FILE: it has the version of the header, and says what it finds.
opens() {
  python3 - "$1" <<'END'
import ctypes, re, sys
header = open("suggestion/gpu/shirabe_cuda.h").read()
library = ctypes.CDLL(sys.argv[1])
wanted = int(re.search(r"kAbiVersion = (\d+)", header)[1])
assert library.shirabe_cuda_version() == wanted, "another version of the interface"
context, info = ctypes.c_void_p(), ctypes.create_string_buffer(1024)
code = library.shirabe_cuda_open(-1, ctypes.byref(context), info)
reason = info.raw[128:384].split(b"\0")[0].decode()
assert (code, bool(context.value)) == (0, True) or (code == 2 and reason), (code, reason)
print(f"opened: {reason or info.raw[:128].split(bytes(1))[0].decode()}")
END
}

deploy/setup.sh cuda || fail "no CUDA compiler"
export SOURCE_DATE_EPOCH=1700000000
for run in first second; do
  DIST=$WORK/$run deploy/release.sh cuda >"$WORK/log" 2>&1 || fail "no packages: $(cat "$WORK/log")"
done
diff -r "$WORK/first" "$WORK/second" || fail "the second time gives other bytes"
[ "$(find "$WORK/first" -name 'shirabe*cuda*' | wc -l)" = 3 ] ||
  fail "not a deb, an rpm and a wheel"
[ "$(du -sk "$WORK/first" | cut -f1)" -lt 20000 ] || fail "more than 20 MB"

dpkg-deb -x "$WORK"/first/*.deb "$WORK/deb"
opens "$WORK/deb/usr/lib/shirabe/libshirabe-cuda.so"
grep -q NVIDIA "$WORK/deb/usr/share/doc/shirabe-cuda/copyright" || fail "no licence of the runtime"
mkdir "$WORK/rpm"
rpm2cpio "$WORK"/first/*.rpm | (cd "$WORK/rpm" && cpio -id --quiet)
cmp "$WORK/rpm/usr/lib/shirabe/libshirabe-cuda.so" "$WORK/deb/usr/lib/shirabe/libshirabe-cuda.so"

python3 -m venv "$WORK/venv"
"$WORK/venv/bin/python3" -m pip install -q --disable-pip-version-check --no-deps \
  "$WORK"/first/*.whl
opens "$WORK/venv/bin/../lib/shirabe/libshirabe-cuda.so"
"$WORK/venv/bin/python3" -m pip uninstall -q -y shirabe-cuda
[ ! -e "$WORK/venv/lib/shirabe/libshirabe-cuda.so" ] || fail "it is still there when it is removed"
echo "ok"
