#!/usr/bin/env bash
# Every command that the README shows behind a `$ ` does what it did there: it succeeds. The
# quickstart and the whole test run are left out: the first has its own test, the second calls this.
set -euo pipefail
cd "$(dirname "$0")/../.."

SHIRABE_HOME=$(mktemp -d)
export SHIRABE_HOME
# What they write into the checkout goes as well.
trap 'rm -rf "$SHIRABE_HOME" before-the-weekend digits.svg digits-{runs,mlruns}' EXIT
# The examples need a Python with scikit-learn, which deploy/setup.sh has seen to.
PATH=$PWD/build/release/bin:${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python/bin:$PATH

count=0
while IFS= read -r line; do
  command=${line#\$ }
  case $command in
    *quickstart.sh* | *tests/run.sh*) continue ;;
  esac
  echo "+ $command"
  bash -c "$command" </dev/null || {
    echo "FAILED: README says: $command" >&2
    exit 1
  }
  count=$((count + 1))
done < <(grep '^\$ ' README.md)
[ "$count" -gt 0 ] || { echo "the README shows no command" >&2 && exit 1; }
echo "$count commands of the README"
