#!/usr/bin/env bash
# The image by a containerd of its own: imported from the archive, it runs an experiment, serves a
# client outside, and is removed.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/release/testing.sh
. tests/release/testing.sh
daemon=""
stop() {
  if [ -n "$daemon" ]; then
    kill "$daemon"
    wait "$daemon" || true
  fi
  rm -rf "$work"
}
trap stop EXIT

cat >"$work/containerd.toml" <<END
version = 2
root = "$work/containerd"
state = "$work/state"
[grpc]
  address = "$work/containerd.sock"
END
containerd -c "$work/containerd.toml" >"$work/containerd.log" 2>&1 &
daemon=$!
ctr() { command ctr -a "$work/containerd.sock" "$@"; }
for _ in {1..100}; do
  ! ctr version >/dev/null 2>&1 || break
  sleep 0.1
done

image=localhost/shirabe:$VERSION
ctr images import "$ARTEFACTS/shirabe-$VERSION-linux-$(uname -m)-oci.tar" >"$work/out" 2>&1 ||
  fail "import"
ctr images ls -q >"$work/out"
grep -qx "$image" "$work/out" || fail "the archive has no $image"

has_page ctr run --rm "$image" "version-$$" /usr/bin/shirabe ||
  fail "the image has another dashboard"

# The image has no shell: the trial is a program of ours.
cat >"$work/trial.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(int count, char** words) {
  const double x = atof(words[count - 1]) - 0.3;
  return printf("loss=%g\n", x * x) < 0;
}
END
cc -static -O1 "$work/trial.c" -o "$work/trial"
mount=(--mount "type=bind,src=$work/trial,dst=/trial,options=rbind:ro")
ctr run --rm "${mount[@]}" "$image" run-$$ /usr/bin/shirabe run --name quick --param x=0..1 \
  --minimize loss --max-trials 8 -- /trial '{x}' >"$work/out" 2>&1 || fail "run"
grep -q 'experiment quick has ended: 8 trials' "$work/out" || fail "the experiment has not ended"
ctr run --rm "$image" doctor-$$ /usr/bin/shirabe doctor >"$work/out" 2>&1 || fail "doctor"

port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
ctr run --rm --net-host "${mount[@]}" "$image" serve-$$ /usr/bin/shirabe serve --insecure \
  --grpc "127.0.0.1:$port" --http 127.0.0.1:0 >"$work/serve.log" 2>&1 &
server=$!
tar -C "$work" -xzf "$ARTEFACTS/shirabe-$VERSION-linux-$(uname -m).tar.gz"
outside() {
  "$work/shirabe-$VERSION-linux-$(uname -m)/bin/shirabe" "$@" --server "127.0.0.1:$port"
}
for _ in {1..100}; do
  ! outside get exp >/dev/null 2>&1 || break
  sleep 0.1
done
sed 's|command: .*|command: [/trial]|' deploy/examples/ask-and-tell.yaml >"$work/served.yaml"
outside apply -f "$work/served.yaml" >"$work/out" 2>&1 || fail "apply from outside"
outside ask ask-and-tell >"$work/out" 2>&1 || fail "ask from outside"
ctr task kill -s SIGTERM serve-$$ >"$work/out" 2>&1 || fail "SIGTERM"
wait "$server" || fail "serve ends with $?: $(cat "$work/serve.log")"
ctr images rm "$image" >"$work/out" 2>&1 || fail "removal"
echo "$image"
