#!/usr/bin/env bash
# A queue of work in a real Redis, done by trials on machines that are taken away, and killed beside
# that: each file is done exactly once, by the worker whose model has learned from it; a worker that
# is gone for good leaves its file to the others; and Redis itself may be away for a while.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/until_true.sh
source tests/support/until_true.sh

work=$(mktemp -d)
redis=
cleanup() {
  [ -z "$redis" ] || kill "$redis" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
export SHIRABE_HOME=$work/home
PATH=$PWD/build/release/bin:${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python/bin:$PATH
export REDIS_URL=unix://$work/redis.sock

if ! command -v redis-server >/dev/null || ! python3 -c 'import redis' 2>/dev/null; then
  echo "left out: no redis-server, or python3 has no redis (deploy/setup.sh test installs them)"
  exit 0
fi

fail() {
  echo "FAILED: $1" >&2
  [ ! -s "$work/out" ] || tail -n 40 "$work/out" >&2
  exit 1
}

ask() { redis-cli -s "$work/redis.sock" "$@" 2>/dev/null; }
answers() { [ "$(ask ping)" = PONG ]; }

start_redis() {
  redis-server --port 0 --unixsocket "$work/redis.sock" --dir "$work" --save '' --appendonly yes \
    --appendfsync always --daemonize no >>"$work/redis.log" 2>&1 &
  redis=$!
  until_true 60 answers || fail "Redis does not answer"
}

start_redis
python3 deploy/examples/redis-queue/fill.py --data "$work/parts" --items 18 >"$work/out" 2>&1 ||
  fail "fill.py"
grep -q '18 of them wait' "$work/out" || fail "fill.py says how many wait"
python3 deploy/examples/redis-queue/fill.py --data "$work/parts" --items 18 >"$work/out" 2>&1
grep -q '18 of them wait' "$work/out" || fail "fill.py adds nothing the second time"

# A worker without Shirabe takes a file, and is killed with it.
REDIS_URL=$REDIS_URL python3 deploy/examples/redis-queue/worker.py --data "$work/parts" --lease 2 \
  --pause 600 >"$work/out" 2>&1 &
lost=$!
has_lease() { [ "$(ask zcard digits:leases)" = 1 ]; }
until_true 60 has_lease || fail "no worker takes a file"
kill -9 "$lost"
wait "$lost" 2>/dev/null || true

cat >"$work/nodes.yaml" <<'END'
pools:
  - name: spot
    capacity: spot
    pricePerHour: 1
    slots: 3
    reclaim: {times: [3, 5, 7], noticeSeconds: 0}
  - name: also-spot
    capacity: spot
    pricePerHour: 2
    slots: 1
    reclaim: {times: [4, 6], noticeSeconds: 5}
END
sed -e "s#redis://127.0.0.1:6379/0#$REDIS_URL#" -e "s#/tmp/digits-parts#$work/parts#" \
  -e 's#--pause=0.5#--pause=0.7\n                  - --lease=3#' \
  deploy/examples/redis-queue.yaml >"$work/queue.yaml"
timeout 300 shirabe run -f "$work/queue.yaml" --nodes "$work/nodes.yaml" >"$work/out" 2>&1 &
run=$!

# One of them is killed by somebody, and Redis is away for a while.
done_count() { [ "$(ask hlen digits:done)" -ge "$1" ]; }
until_true 60 done_count 3 || fail "nothing is done"
pkill -9 -f "[w]orker.py --data=$work/parts" -n || true
until_true 60 done_count 6 || fail "it does not go on"
kill "$redis"
wait "$redis" 2>/dev/null || true
sleep 1
start_redis

wait "$run" || fail "run -f redis-queue.yaml"
shirabe get trials redis-queue -o json >"$work/trials.json"
shirabe get attempts redis-queue -o json >"$work/attempts.json"
python3 - "$work" <<'END'
import collections, json, os, sys
from pathlib import Path

import redis

client = redis.Redis.from_url(os.environ["REDIS_URL"])
work = Path(sys.argv[1])
done = {k.decode(): v.decode() for k, v in client.hgetall("digits:done").items()}
parts = {path.name for path in work.glob("parts/part-*.npz")}
assert set(done) == parts and len(parts) == 18, (done, parts)
for rest in ("waiting", "leases", "owners"):
    assert not client.exists(f"digits:{rest}"), rest

trials = json.load(open(work / "trials.json"))["items"]
attempts = json.load(open(work / "attempts.json"))["items"]
assert len(trials) == 3, trials
learned = {}
for trial in trials:
    name = trial["metadata"]["name"]
    states = {c["type"] for c in trial["status"]["conditions"] if c["status"] == "True"}
    assert "Succeeded" in states, (name, states)
    # The newest checkpoint: of the highest step.
    found = sorted(work.glob(f"home/**/{name}/**/files.json"), key=lambda p: int(p.parent.name))
    files = json.loads(found[-1].read_text()) if found else []
    assert len(files) == len(set(files)), (name, files)
    learned[name] = set(files)
by_worker = collections.defaultdict(set)
for file, worker in done.items():
    by_worker[worker].add(file)
for name, files in learned.items():
    assert files == by_worker[name], (name, files ^ by_worker[name])
assert sum(map(len, learned.values())) == 18, learned
lost = [a for a in attempts if a["cause"] != "completed"]
assert len(lost) >= 4, [a["cause"] for a in attempts]
print(f"18 files by {[len(f) for f in learned.values()]}, {len(lost)} attempts lost")
END
