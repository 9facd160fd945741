# shellcheck shell=bash
# A controller beside the cluster of a test, in its network, for what needs no pods of ours; sourced
# after testing.sh.

export SHIRABE_HOME=$CLUSTER/home
CONTROLLER=

# start_controller [FLAG…]: as whoever CONFIG says, else as an administrator.
# shellcheck disable=SC2120 # the test at hand may give none
start_controller() {
  mkdir -p "$SHIRABE_HOME"
  rm -f "$CLUSTER/ready"
  "$HERE/cluster.sh" exec "$CLUSTER" "$SOURCE/build/release/bin/shirabe" controller \
    --kubeconfig="${CONFIG:-$CLUSTER/admin.kubeconfig}" --image=none -n team --grpc=127.0.0.1:7450 \
    --advertise=127.0.0.1:7450 --http=127.0.0.1:7451 --ready-file="$CLUSTER/ready" "$@" \
    >>"$CLUSTER/controller.log" 2>&1 &
  CONTROLLER=$!
  eventually 30 "the controller" test -s "$CLUSTER/ready"
}

# As if its machine had lost its power.
kill_controller() {
  kill -KILL "$CONTROLLER"
  wait "$CONTROLLER" || true
  CONTROLLER=
}

at_exit() {
  local status=$?
  [ "$status" = 0 ] || tail -n 30 "$CLUSTER/controller.log" || true
  [ -z "$CONTROLLER" ] || kill "$CONTROLLER"
}

# asked VERB…: of that controller.
asked() {
  shirabe "$@" -n team --server tls://127.0.0.1:7450 --ca "$SHIRABE_HOME/tls/ca.crt" \
    --token-file "$SHIRABE_HOME/token"
}
