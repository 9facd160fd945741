#!/usr/bin/env bash
# Run in the root for arm64: `kill -9` while both trials of an experiment run; the next start adopts
# them, and starts neither again.
#   adopted.sh PROGRAM FOLDER
set -euo pipefail
program=$1
folder=$2
export SHIRABE_HOME=$folder/adopted
cat >"$folder/train.sh" <<'END'
echo "$1" >>"$2/started"
until [ -e "$2/go" ]; do sleep 0.1; done
echo "loss=$1"
END
command=("$program" run --name adopted --param 'x=0..1' --minimize loss --max-trials 2
         --parallel 2 --quiet -- bash "$folder/train.sh" '{x}' "$folder")
touch "$folder/started"

"${command[@]}" &
first=$!
for _ in {1..600}; do
  [ "$(wc -l <"$folder/started")" != 2 ] || break
  sleep 0.1
done
kill -9 "$first"
wait "$first" || true
touch "$folder/go"
"${command[@]}"
[ "$(wc -l <"$folder/started")" = 2 ]
[ "$("$program" get trials adopted -o json | grep -c '"phase": "Succeeded"')" = 2 ]
