#!/usr/bin/env bash
# The example of notifications as its head says: a receiver in Python that checks signatures, an
# experiment whose improvements, budget and end it is told, and what describe says of that.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/until_true.sh
source tests/support/until_true.sh

work=$(mktemp -d)
receiver=
cleanup() {
  [ -z "$receiver" ] || kill "$receiver" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
export SHIRABE_HOME=$work/home
shirabe=${SHIRABE_TEST_BINARY:-build/release/bin/shirabe}

fail() {
  echo "FAILED: $1" >&2
  [ ! -s "$work/out" ] || tail -n 40 "$work/out" >&2
  exit 1
}

openssl rand -hex 32 >"$work/team.secret"
python3 deploy/examples/notifications/receiver.py --secret "$work/team.secret" --port 0 \
  --port-file "$work/port" --log "$work/received.jsonl" >"$work/out" 2>&1 &
receiver=$!
has_port() { [ -s "$work/port" ]; }
until_true 60 has_port || fail "the receiver does not listen"
sed -e "s|:8787/|:$(cat "$work/port")/|" -e "s|team.secret$|$work/team.secret|" \
  deploy/examples/notifications/endpoints.yaml >"$work/endpoints.yaml"

"$shirabe" run -f deploy/examples/notifications.yaml --nodes deploy/examples/nodes.yaml \
  --notifications "$work/endpoints.yaml" >"$work/out" 2>&1 || fail "run"
python3 - "$work/received.jsonl" <<'END' >"$work/out" 2>&1 || fail "what was received"
import json, sys

received = [json.loads(line) for line in open(sys.argv[1])]
types = [one["type"] for one in received]
values = [one["best"]["value"] for one in received if one["type"] == "Improved"]
assert types[-1] == "Succeeded" and types.count("Succeeded") == 1, types
assert values and values == sorted(values, reverse=True), values
assert [one["number"] for one in received] == list(range(1, len(received) + 1)), received
assert set(received[-1]["best"]["parameters"]) == {"x", "y"}, received[-1]
END
count=$(wc -l <"$work/received.jsonl")
"$shirabe" describe notifications >"$work/out"
grep -Eq "team +$count +0 +0" "$work/out" || fail "describe says that $count were delivered"

# Who sends without the secret is not believed.
python3 - "$(cat "$work/port")" <<'END' >"$work/out" 2>&1 || fail "a forged notification"
import sys, urllib.error, urllib.request

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    opener.open(f"http://127.0.0.1:{sys.argv[1]}/", data=b'{"id": "forged"}')
    sys.exit("it was taken")
except urllib.error.HTTPError as error:
    assert error.code == 401, error
END
[ "$(wc -l <"$work/received.jsonl")" = "$count" ] || fail "a forged notification was written down"
echo "notifications: $count received"
