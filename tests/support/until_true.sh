# shellcheck shell=bash
# Sourced by tests that wait for what a command says.

# until_true SECONDS COMMAND…
until_true() {
  local tries=$(($1 * 10))
  shift
  until "$@"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || return 1
    sleep 0.1
  done
}
