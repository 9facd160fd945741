#!/usr/bin/env bash
# The wheel of a release, as `pip install shirabe` brings it: made twice it is the same, it asks
# nothing of the machine but an older glibc, and from an environment of its own, away from the
# checkout, it runs an experiment, tunes a function, serves a client, and goes without a trace.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
server=""
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
source=$PWD
unset PYTHONPATH SHIRABE_BINARY SHIRABE_SIGN_KEY SOURCE_DATE_EPOCH

fail() {
  echo "FAILED: $1" >&2
  [ ! -s "$work/out" ] || tail -n 40 "$work/out" >&2
  exit 1
}

# ---- what it is ---------------------------------------------------------------------------------

for dist in first second; do
  DIST=$work/$dist deploy/release.sh wheel >"$work/out" 2>&1 || fail "release.sh wheel"
done
diff -r "$work/first" "$work/second" >"$work/out" || fail "two runs give different files"
(cd "$work/first" && sha256sum -c SHA256SUMS >"$work/out" 2>&1) || fail "SHA256SUMS"
wheel=$(echo "$work"/first/shirabe-*-py3-none-manylinux_2_34_"$(uname -m)".whl)
[ -f "$wheel" ] || fail "no wheel"
bytes=$(stat -c %s "$wheel")
[ "$bytes" -lt 16000000 ] || fail "the wheel has $bytes bytes"

python3 -m venv "$work/venv"
"$work/venv/bin/python3" -m pip install -q --no-index --no-deps --disable-pip-version-check \
  "$wheel" >"$work/out" 2>&1 || fail "pip install"
PATH=$work/venv/bin:/usr/bin:/bin
cd "$work"
export SHIRABE_HOME=$work/home
[ "$(command -v shirabe)" = "$work/venv/bin/shirabe" ] || fail "no shirabe on the PATH"

newest=$(objdump -T venv/bin/shirabe | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
[ "$(printf '%s\n' "$newest" GLIBC_2.34 | sort -V | tail -n 1)" = GLIBC_2.34 ] || fail "$newest"
! objdump -T venv/bin/shirabe | grep -E 'GLIBCXX|CXXABI|GCC_' >out || fail "needs libstdc++"
[ "$(objdump -p venv/bin/shirabe | awk '$1 == "NEEDED" {print $2}' | grep -vc 'ld-linux')" = 2 ] ||
  fail "loads more than libc and libm"

python3 - "$wheel" <<'END' >out 2>&1 || fail "what the wheel holds"
import base64, hashlib, importlib.metadata, json, subprocess, sys

wheel = importlib.metadata.distribution("shirabe")
said = json.loads(subprocess.run(["shirabe", "version", "-o", "json"], check=True,
                                 capture_output=True).stdout)
assert wheel.version == said["version"], (wheel.version, said)
assert wheel.requires is None, wheel.requires
names = {str(path) for path in wheel.files}
for file in wheel.files:  # pip believes the wheel
    if file.hash is not None and not str(file).endswith("INSTALLER"):
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_binary()).digest())
        assert digest.rstrip(b"=").decode() == file.hash.value, file
bill = json.loads(next(f for f in wheel.files if str(f).endswith(".cdx.json")).read_text())
assert bill["metadata"]["component"]["version"] == said["version"]
assert bill["metadata"]["component"]["properties"][0]["value"] == said["commit"] or \
    said["commit"] == "unknown", said
parts = {c["name"]: c for c in bill["components"]}
for name in ("grpc", "protobuf", "sqlite3", "openssl", "gcc-12", "eigen3", "musl", "zlib"):
    assert parts[name]["licenses"] and parts[name]["version"], name
assert parts["preact"]["purl"].startswith("pkg:npm/preact@") and said["dashboard"], said
static = [p for p in parts["sqlite3"]["properties"] if p["value"] == "libsqlite3.a"]
assert static, parts["sqlite3"]
assert "glibc" not in parts and "googletest" not in parts, sorted(parts)
texts = next(f for f in wheel.files if str(f).endswith("THIRD-PARTY.txt")).read_text()
for name in parts:
    assert f"\n{name} {parts[name]['version']}\n" in texts, name
END

# ---- what it does -------------------------------------------------------------------------------

cp "$source/deploy/examples/bash.yaml" "$source/deploy/examples/ask-and-tell.yaml" .
timeout 120 shirabe run -f bash.yaml >out 2>&1 || fail "run -f bash.yaml"
shirabe doctor >out 2>&1 || fail "doctor"

cat >tune.py <<'END'
import shirabe

def valley(x, kind):
    return (x - 0.3) ** 2 + (kind == "b")

assert "site-packages" in shirabe.__file__, shirabe.__file__
best = shirabe.optimize(valley, {"x": shirabe.float(0, 1), "kind": ["a", "b"]},
                        minimize="loss", trials=15)
assert best.params["kind"] == "a" and best.value < 0.05, best
END
timeout 120 python3 tune.py >out 2>&1 || fail "shirabe.optimize"

shirabe serve --insecure --grpc 127.0.0.1:0 --http 127.0.0.1:0 --ready-file ready \
  >serve.log 2>&1 &
server=$!
for _ in $(seq 300); do
  [ ! -s ready ] || break
  sleep 0.1
done
[ -s ready ] || fail "serve does not answer: $(cat serve.log)"
grpc=$(python3 -c 'import json; print(json.load(open("ready"))["grpc"])')
http=$(python3 -c 'import json; print(json.load(open("ready"))["http"])')
shirabe apply -f ask-and-tell.yaml --server "$grpc" >out 2>&1 || fail "apply --server"
sed '/^sys.path.insert/d' "$source/deploy/examples/ask-and-tell.py" >worker.py
timeout 120 python3 worker.py "http://$http" >out 2>&1 || fail "shirabe_client"
grep -q '^best: ' out || fail "the client found no best trial"
kill "$server"
wait "$server" || fail "serve ends with $?"
server=""

# ---- and the quick start with it ----------------------------------------------------------------

SHIRABE_WHEEL=$wheel "$source/deploy/quickstart.sh" >out 2>&1 || fail "quickstart.sh"
grep -q "from $wheel" out || fail "quickstart.sh has taken another program"
grep -q '^experiment digits has ended: 12 trials' out || fail "quickstart.sh has not tuned"
grep -q 'trials 1 to 12; ' out || fail "quickstart.sh draws nothing"
! SHIRABE_WHEEL=$work/none.whl "$source/deploy/quickstart.sh" >out 2>&1 || fail "no wheel"
grep -q "SHIRABE_WHEEL is $work/none.whl, which is no file" out || fail "says nothing of it"

# ---- and no more --------------------------------------------------------------------------------

python3 -m pip uninstall -q -y shirabe >out 2>&1 || fail "pip uninstall"
[ -z "$(find venv -iname '*shirabe*')" ] || fail "left behind: $(find venv -iname '*shirabe*')"
echo "wheel of $((bytes / 1000000)) MB, needs $newest"
