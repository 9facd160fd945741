#!/usr/bin/env bash
# From a bare Debian 12 to a tuned model: finds or builds shirabe, tunes scikit-learn on its
# handwritten digits, and ends with the best result and how it came about. It uses the first of
#   1. the wheel named in $SHIRABE_WHEEL
#   2. a wheel in dist/, as deploy/release.sh makes it
#   3. a `shirabe` on the PATH
#   4. what it builds here: minutes for the first time, seconds from then on
# With --build it builds whatever is there. Run again, it prints the result again. JOBS=n: compilers
# at a time.
set -euo pipefail
cd "$(dirname "$0")/.."

example=deploy/examples/digits.yaml
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe
# The Python of the examples, where setup.sh had to make one.
PATH=$cache/python/bin:$PATH

say() { printf '\n== %s\n' "$*"; }

fail() {
  echo "quickstart: $*" >&2
  exit 1
}

# ---- a program that is there already ------------------------------------------------------------

# The wheel to use; empty where there is none.
find_wheel() {
  local found
  if [ -n "${SHIRABE_WHEEL:-}" ]; then
    [ -f "$SHIRABE_WHEEL" ] || fail "SHIRABE_WHEEL is $SHIRABE_WHEEL, which is no file"
    echo "$SHIRABE_WHEEL"
    return 0
  fi
  for found in dist/shirabe-*"$(uname -m)".whl; do
    [ ! -f "$found" ] || echo "$found"
  done | sort -V | tail -n 1
}

# unpack WHEEL: its program, without changing any Python that is installed. Prints where it is.
unpack() {
  local digest folder
  digest=$(sha256sum "$1")
  folder=$cache/quickstart/${digest:0:12}
  if [ ! -x "$folder/shirabe" ]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    python3 - "$1" "$folder" <<'END' || fail "$1 is no wheel of shirabe"
import pathlib, sys, zipfile

try:
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        (name,) = [n for n in wheel.namelist() if n.endswith(".data/scripts/shirabe")]
        content = wheel.read(name)
except (zipfile.BadZipFile, ValueError) as error:
    sys.exit(str(error))
program = pathlib.Path(sys.argv[2], "shirabe")
program.write_bytes(content)
program.chmod(0o755)
END
  fi
  echo "$folder/shirabe"
}

# ---- building -----------------------------------------------------------------------------------

# Not more compilers than there is memory for: a batch of sources takes up to 2 GB.
jobs_for_this_machine() {
  local by_memory
  by_memory=$(awk '/^MemAvailable/ {print int($2 / 2000000)}' /proc/meminfo)
  echo $((by_memory < 1 ? 1 : by_memory < $(nproc) ? by_memory : $(nproc)))
}

# Reads what ninja says, writes it to FILE, and shows how far it is and how long it will take. What
# it begins with is generated in no time, so the first tenth says nothing about the rest.
follow() {
  local line began=$SECONDS ready all left shown=0 percent text
  while IFS= read -r line; do
    echo "$line" >>"$1"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]] || continue
    ready=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
    percent=$((100 * ready / all))
    text="$percent % of $all steps"
    if [ "$percent" -ge 10 ]; then
      left=$(((SECONDS - began) * (all - ready) / ready))
      text+=$(printf ', about %d:%02d left' $((left / 60)) $((left % 60)))
    fi
    if [ -t 1 ]; then
      printf '\r  %-40s' "$text"
    elif [ $((percent / 10)) != "$shown" ]; then
      echo "  $text"
    fi
    shown=$((percent / 10))
  done
  [ ! -t 1 ] || echo
}

build() {
  local log=build/quickstart.log
  mkdir -p build
  if ! cmake --preset release >"$log" 2>&1 ||
    ! cmake --build --preset release -j "${JOBS:-$(jobs_for_this_machine)}" --target shirabe 2>&1 |
    follow "$log"; then
    tail -n 40 "$log" >&2
    fail "the build failed; all of its output is in $log"
  fi
}

# ---- one after another --------------------------------------------------------------------------

wheel="" installed=""
case "${1:-}" in
  --build) ;;
  "")
    wheel=$(find_wheel)
    installed=$(command -v shirabe || true)
    ;;
  *) fail "unknown argument \"$1\": there is only --build" ;;
esac
say "1/3 shirabe"
if [ -n "$wheel" ]; then
  deploy/setup.sh python
  shirabe=$(unpack "$wheel")
  echo "from $wheel"
elif [ -n "$installed" ]; then
  deploy/setup.sh python
  shirabe=$installed
  echo "$shirabe is installed"
else
  deploy/setup.sh
  echo "building it here: 10 to 25 minutes of a processor for the first time"
  build
  shirabe=build/release/bin/shirabe
fi
"$shirabe" version || fail "$shirabe does not run here"
say "2/3 tune: $shirabe run -f $example"
"$shirabe" run -f "$example"
say "3/3 how the best was found"
"$shirabe" get trials digits -o json | deploy/curve.py validation-accuracy maximize

cat <<END

Look further:
  $shirabe describe trial digits/1        all about one, and why it was tried
  $shirabe best digits -o json            for a program
  $shirabe export digits -o csv           for a spreadsheet
  $shirabe run --name mine --param lr=log:1e-5..1e-1 --minimize loss -- python3 train.py --lr {lr}
                                          your own: any program that prints loss=…
  $shirabe --help
END
