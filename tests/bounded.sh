# shellcheck shell=bash
# Scripts with a time limit; sourced by what runs them.

# show_processes PID: of what runs below it, where the threads of our own programs are, if there is
# a gdb, and what every process waits for: state, place in the kernel, age in seconds, command.
show_processes() {
  local self=$BASHPID table pid
  table=$(ps -eo pid,ppid,stat,wchan:20,etimes,args --cols 160 --sort=pid)
  table=$(awk -v root="$1" -v self="$self" '
    $1 != self && ($2 == root || $2 in below) {below[$1]; print}' <<<"$table")
  while read -r pid _; do
    [[ $(readlink "/proc/$pid/exe") == */build/* ]] || continue
    command -v gdb >/dev/null || continue
    echo "-- $pid:"
    timeout 20 gdb -p "$pid" -batch -ex 'set print frame-arguments none' \
      -ex 'thread apply all bt 8' 2>/dev/null | grep '^#\|^Thread' | cut -c 1-160 || true
  done <<<"$table"
  echo "-- its time is over; these still run:"
  echo "$table"
}

# bounded SECONDS COMMAND…: a script and what it started, ended after so long with status 124, so
# that what hangs is one failure with a name, not a run without an end. In a terminal they stay in
# its group, where Ctrl-C reaches them.
bounded() {
  local limit=$1 options=(--kill-after=30) caller=$BASHPID watcher status=0
  shift
  [ ! -t 2 ] || options+=(--foreground)
  # Not by `sleep`, which would outlive the watcher.
  (
    read -r -t "$limit" _ <> <(:) || true
    show_processes "$caller" >&2
  ) &
  watcher=$!
  timeout "${options[@]}" "$((limit + 30))" "$@" || status=$?
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  return "$status"
}
