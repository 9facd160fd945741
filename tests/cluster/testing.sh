# shellcheck shell=bash
# What the tests of this folder share; sourced by them. tests/cluster/run.sh gives each the folder
# of a running cluster in SHIRABE_TEST_CLUSTER; a test that wants another starts it itself.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SOURCE=$(cd "$HERE/../.." && pwd)
export CLUSTER=${SHIRABE_TEST_CLUSTER:-}

cluster() { "$HERE/cluster.sh" "$1" "$CLUSTER" "${@:2}"; }
kubectl() { "$HERE/cluster.sh" exec "$CLUSTER" kubectl "$@"; }
shirabe() { "$HERE/cluster.sh" exec "$CLUSTER" "$SOURCE/build/release/bin/shirabe" "$@"; }

step() { echo "-- $*  ($SECONDS s)"; }

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# expect WHAT COMMAND…
expect() {
  local what=$1
  shift
  "$@" || fail "$what: $*"
}

# equal WHAT WANTED GOT
equal() { [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"; }

# eventually SECONDS WHAT COMMAND…: until it succeeds; else its last output is shown.
eventually() {
  local until=$((SECONDS + $1)) what=$2 output
  shift 2
  until output=$("$@" 2>&1); do
    [ "$SECONDS" -lt "$until" ] || fail "$what did not come: $* said: $output"
    sleep 0.25
  done
}

# established DEFINITION…: the API server serves them. One that was just made has no conditions yet,
# which `kubectl wait` takes for a mistake.
established() {
  local name
  for name; do
    eventually 30 "the definition of $name" kubectl wait --for=condition=Established --timeout=5s \
      "crd/$name"
  done
}

# is WANTED COMMAND…: prints exactly that. For `eventually`.
is() {
  local wanted=$1 got
  shift
  got=$("$@") || return 1
  [ "$got" = "$wanted" ] || {
    echo "'$got' instead of '$wanted'"
    return 1
  }
}

# has PATTERN COMMAND…: prints a line with that. For `eventually`.
has() {
  local pattern=$1 got
  shift
  got=$("$@") || return 1
  grep -qE "$pattern" <<<"$got" || {
    echo "nothing like '$pattern' in: $got"
    return 1
  }
}

# evict POD [NAMESPACE]
evict() {
  kubectl create --raw "/api/v1/namespaces/${2:-default}/pods/$1/eviction" -f - >/dev/null <<END
{"apiVersion": "policy/v1", "kind": "Eviction",
 "metadata": {"name": "$1", "namespace": "${2:-default}"}}
END
}
