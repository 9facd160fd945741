#!/usr/bin/env bash
# A real Kubernetes cluster inside one network namespace: up in five seconds, gone without a trace.
# Needs root, the packages of `deploy/setup.sh cluster` and the programs that build.sh makes. Any
# number of clusters can stand side by side, each with a folder of its own.
#
#   cluster.sh up DIR [--real N] [--fake N] [--qps N] [--kwok FILE]
#                                 a control plane; N kubelets with containerd (node-0, …); N nodes
#                                 that kwok plays (fake-0, …); client rates of the control plane;
#                                 how kwok plays their pods (its Stages, in place of its own)
#   cluster.sh exec DIR COMMAND…  inside the namespace, with KUBECONFIG set
#   cluster.sh load DIR IMAGE.tar a docker-archive, into every real node
#   cluster.sh kill-node DIR NODE power it off: kubelet, containerd and containers, without a word
#   cluster.sh start-node DIR NODE
#                                 the machine boots again
#   cluster.sh join-node DIR NODE LABELS TAINTS [IMAGE.tar…]
#                                 one more machine, with these labels (a=b,…), taints and images
#   cluster.sh cut-node DIR NODE  its network is gone: pods run on and reach nobody, the kubelet
#   cluster.sh heal-node DIR NODE is not heard of
#   cluster.sh gpu DIR NODE N [RESOURCE]
#                                 the node offers N devices (default: nvidia.com/gpu)
#   cluster.sh taint DIR NODE KEY=VALUE:EFFECT
#   cluster.sh stop DIR PART      kill -9 of a part of the control plane, and its start again:
#   cluster.sh start DIR PART     apiserver etcd controller-manager scheduler proxy dns kwok; it
#                                 waits until the API server answers
#   cluster.sh restart-apiserver DIR, restart-etcd DIR
#   cluster.sh down DIR
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cluster/paths.sh
source "$HERE/paths.sh"
# shellcheck source=tests/cluster/node.sh
source "$HERE/node.sh"

usage() {
  sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "$0" >&2
  exit 2
}

fail() {
  echo "cluster.sh: $*" >&2
  exit 1
}

# ---- the namespace ------------------------------------------------------------------------------

inside() { "${ENTER[@]}" "$@"; }

# daemon NAME GROUP COMMAND…: starts it in the namespace and in the group of processes.
daemon() {
  local name=$1 group=$2
  shift 2
  mkdir -p "$GROUPS_ROOT/$group"
  rm -f "$DIR/run/$name.pid"
  # shellcheck disable=SC2016 # for the inner shell
  "${ENTER[@]}" setsid bash -c 'echo $$ >"$0/cgroup.procs" && echo $$ >"$1" && exec "${@:2}"' \
    "$GROUPS_ROOT/$group" "$DIR/run/$name.pid" "$@" >>"$DIR/log/$name.log" 2>&1 </dev/null &
  await "the start of $name" 10 test -s "$DIR/run/$name.pid"
}

# signal NAME SIGNAL: to a daemon.
signal() {
  [ ! -f "$DIR/run/$1.pid" ] || kill "-$2" "$(cat "$DIR/run/$1.pid")" 2>/dev/null || true
}

# Also a zombie is, where nobody takes note of orphans that end.
is_gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status"; }

stop_daemon() {
  local pid
  [ -f "$DIR/run/$1.pid" ] || return 0
  pid=$(cat "$DIR/run/$1.pid")
  kill -KILL "$pid" 2>/dev/null || true
  await "the end of $1" 10 is_gone "$pid"
  rm -f "$DIR/run/$1.pid"
}

# await WHAT SECONDS COMMAND…: until it succeeds.
await() {
  local what=$1 until=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || fail "gave up waiting for $what; its log is in $DIR/log"
    sleep 0.1
  done
}

# ---- keys ---------------------------------------------------------------------------------------

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }

# certificate NAME SUBJECT ADDRESS…
certificate() {
  local name=$1 subject=$2 names=DNS:localhost address
  shift 2
  for address in "$@"; do names+=,$address; done
  new_key "$DIR/pki/$name.key"
  openssl req -new -key "$DIR/pki/$name.key" -out "$DIR/pki/$name.csr" -subj "$subject"
  openssl x509 -req -in "$DIR/pki/$name.csr" -CA "$DIR/pki/ca.crt" -CAkey "$DIR/pki/ca.key" \
    -set_serial "0x$(openssl rand -hex 8)" -days 30 -out "$DIR/pki/$name.crt" 2>/dev/null \
    -extfile <(echo "subjectAltName=$names")
}

# A user of the API server: kubeconfig NAME.
kubeconfig() {
  cat >"$DIR/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
clusters:
  - name: test
    cluster: {server: "https://$HOST:6443", certificate-authority: "$DIR/pki/ca.crt"}
users:
  - name: $1
    user: {client-certificate: "$DIR/pki/$1.crt", client-key: "$DIR/pki/$1.key"}
contexts:
  - name: test
    context: {cluster: test, user: $1}
current-context: test
END
}

make_keys() {
  new_key "$DIR/pki/ca.key"
  openssl req -x509 -key "$DIR/pki/ca.key" -out "$DIR/pki/ca.crt" -subj /CN=test -days 30
  certificate api /CN=kube-apiserver "IP:$HOST" IP:127.0.0.1 "IP:$API_SERVICE" \
    DNS:kubernetes DNS:kubernetes.default DNS:kubernetes.default.svc
  certificate admin /O=system:masters/CN=admin
  kubeconfig admin
  new_key "$DIR/pki/accounts.key"
  openssl pkey -in "$DIR/pki/accounts.key" -pubout -out "$DIR/pki/accounts.pub"
}

# ---- the control plane --------------------------------------------------------------------------

start_etcd() {
  # Without fsync: what matters is kill -9, not the loss of power of the machine that tests.
  daemon etcd control-plane "$KUBERNETES_BIN/etcd" --data-dir "$DIR/etcd" --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --quota-backend-bytes=$((8 << 30))
}

start_apiserver() {
  daemon apiserver control-plane "$KUBERNETES_BIN/kube-apiserver" \
    --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 --advertise-address="$HOST" \
    --tls-cert-file="$DIR/pki/api.crt" --tls-private-key-file="$DIR/pki/api.key" \
    --client-ca-file="$DIR/pki/ca.crt" --authorization-mode=Node,RBAC \
    --service-cluster-ip-range=10.0.0.0/24 \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$DIR/pki/accounts.pub" \
    --service-account-signing-key-file="$DIR/pki/accounts.key" \
    --kubelet-client-certificate="$DIR/pki/admin.crt" \
    --kubelet-client-key="$DIR/pki/admin.key" --kubelet-preferred-address-types=InternalIP
}

# The rates at which these two may ask: a bench of ours must not measure them.
rates() {
  local qps
  qps=$(cat "$DIR/qps")
  [ "$qps" = 0 ] || echo "--kube-api-qps=$qps" "--kube-api-burst=$((2 * qps))"
}

# And how many Jobs are looked after at the same time, each with calls one after the other.
job_workers() {
  [ "$(cat "$DIR/qps")" = 0 ] || echo --concurrent-job-syncs=50
}

# A node that was not heard of for 20 s (Kubernetes: 50) is NotReady.
start_controller_manager() {
  # shellcheck disable=SC2046 # words
  daemon controller-manager control-plane "$KUBERNETES_BIN/kube-controller-manager" \
    --kubeconfig="$DIR/admin.kubeconfig" --leader-elect=false --root-ca-file="$DIR/pki/ca.crt" \
    --service-account-private-key-file="$DIR/pki/accounts.key" --node-monitor-grace-period=20s \
    --cluster-signing-cert-file="$DIR/pki/ca.crt" --cluster-signing-key-file="$DIR/pki/ca.key" \
    $(rates) $(job_workers)
}

start_scheduler() {
  # shellcheck disable=SC2046 # words
  daemon scheduler control-plane "$KUBERNETES_BIN/kube-scheduler" --leader-elect=false \
    --kubeconfig="$DIR/admin.kubeconfig" $(rates)
}

start_proxy() {
  daemon proxy control-plane "$KUBERNETES_BIN/kube-proxy" --kubeconfig "$DIR/admin.kubeconfig" \
    --hostname-override node-0 --cluster-cidr 10.88.0.0/16 --proxy-mode nftables \
    --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s \
    --conntrack-tcp-timeout-close-wait 0s
}

start_dns() {
  printf '.:53 {\n bind %s\n kubernetes cluster.local {\n  kubeconfig %s\n }\n}\n' \
    "$HOST" "$DIR/admin.kubeconfig" >"$DIR/Corefile"
  daemon dns control-plane "$KUBERNETES_BIN/coredns" -conf "$DIR/Corefile"
}

start_kwok() {
  local config=()
  [ ! -f "$DIR/kwok.yaml" ] || config=(--config "$DIR/kwok.yaml")
  daemon kwok control-plane "$KUBERNETES_BIN/kwok" --kubeconfig "$DIR/admin.kubeconfig" \
    --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake \
    --node-lease-duration-seconds=12 "${config[@]}"
}

start_part() {
  case $1 in
    etcd | apiserver | scheduler | proxy | dns | kwok) "start_$1" ;;
    controller-manager) start_controller_manager ;;
    *) usage ;;
  esac
}

await_api() { await "the API server" 60 inside kubectl get --raw /readyz; }

make_network() {
  ip netns add "$NAME"
  inside ip link set lo up
  inside ip link add host0 type bridge
  inside ip addr add "$HOST/24" dev host0
  inside ip link set host0 up
  inside ip route add default dev host0
  inside sysctl -qw net.ipv4.ip_forward=1
  printf 'nameserver %s\n' "$HOST" >"$DIR/resolv.conf"
}

fake_node() {
  local room='{"cpu": "64", "memory": "256Gi", "pods": "256"}'
  cat <<END
{"apiVersion": "v1", "kind": "Node",
 "metadata": {"name": "fake-$1", "labels": {"type": "kwok"},
              "annotations": {"kwok.x-k8s.io/node": "fake"}},
 "status": {"allocatable": $room, "capacity": $room}}
END
}

up() {
  local real=0 fake=0 qps=0 kwok='' i
  while [ $# -gt 0 ]; do
    case $1 in
      --real) real=$2 ;;
      --fake) fake=$2 ;;
      --qps) qps=$2 ;;
      --kwok) kwok=$2 ;;
      *) usage ;;
    esac
    shift 2
  done
  [ ! -e "$DIR/run" ] || fail "$DIR already holds a cluster; first: cluster.sh down $DIR"
  [ -z "$(missing_parts)" ] || fail "not built yet: $(missing_parts)(tests/cluster/build.sh)"
  mkdir -p "$DIR"/{pki,log,run}
  echo "$qps" >"$DIR/qps"
  [ -z "$kwok" ] || cp "$kwok" "$DIR/kwok.yaml"
  make_network
  make_keys
  for part in etcd apiserver; do start_part $part; done
  await_api
  for part in controller-manager scheduler; do start_part $part; done
  for ((i = 0; i < real; i++)); do boot_node "node-$i"; done
  [ "$real" = 0 ] || { start_proxy && start_dns; }
  if [ "$fake" -gt 0 ]; then
    start_kwok
    for ((i = 0; i < fake; i++)); do fake_node "$i"; done | inside kubectl apply -f - >/dev/null
  fi
  for ((i = 0; i < real; i++)); do await_node "node-$i"; done
  [ "$fake" = 0 ] || inside kubectl wait --for=condition=Ready --timeout=60s node -l type=kwok \
    >/dev/null
  # Pods are refused until their namespace has its account.
  await "the service account" 30 inside kubectl get serviceaccount default
  echo "up: $real real and $fake fake nodes; tests/cluster/cluster.sh exec $DIR kubectl get nodes"
}

# ---- down ---------------------------------------------------------------------------------------

down() {
  local node part
  for node in "$DIR"/node-*/; do
    [ ! -d "$node" ] || power_off "$(basename "$node")"
  done
  for part in "$DIR"/run/*.pid; do
    [ ! -e "$part" ] || stop_daemon "$(basename "$part" .pid)"
  done
  kill_group .
  remove_groups
  ip netns del "$NAME" 2>/dev/null || true
  unmount_below "$DIR"
  find /var/log/containers -lname "$DIR/*" -delete 2>/dev/null || true
  rm -rf "$DIR"
}

# ---- main ---------------------------------------------------------------------------------------

[ $# -ge 2 ] || usage
VERB=$1
DIR=$(realpath -m "$2")
shift 2
# The namespace and everything else outside the folder has this in its name.
NAME=shirabe-$(printf %s "$DIR" | cksum | cut -d' ' -f1)
HOST=10.99.0.1 # of the API server and the DNS, on a bridge that exists only in the namespace
API_SERVICE=10.0.0.1
# nsenter, not `ip netns exec`: that one mounts /sys anew, and the kubelet then finds no cgroups.
ENTER=(nsenter --net="/var/run/netns/$NAME" env PATH="$KUBERNETES_BIN:$PATH"
  KUBECONFIG="$DIR/admin.kubeconfig" SHIRABE_TEST_KUBECONFIG="$DIR/admin.kubeconfig"
  SHIRABE_TEST_CLUSTER="$DIR")
# One hierarchy of control groups is enough to find every process again, whoever its parent is.
GROUPS_ROOT=$(groups_root)/$NAME

[ "$VERB" = up ] || [ -d "$DIR/run" ] || { [ "$VERB" = down ] && exit 0; } ||
  fail "$DIR holds no cluster; first: cluster.sh up $DIR"
case $VERB in
  up | down) "$VERB" "$@" ;;
  exec) exec "${ENTER[@]}" "$@" ;; # so that whoever ends us ends it
  load) load "$1" ;;
  kill-node) power_off "$1" ;;
  start-node) boot_node "$1" && await_node "$1" ;;
  join-node) join_node "$@" ;;
  cut-node) cut_node "$1" ;;
  heal-node) heal_node "$1" ;;
  gpu) offer_devices "$@" ;;
  taint) inside kubectl taint --overwrite node "$@" >/dev/null ;;
  stop) stop_daemon "$1" ;;
  start) start_part "$1" && { [ "$1" != apiserver ] || await_api; } ;;
  restart-apiserver) stop_daemon apiserver && start_apiserver && await_api ;;
  restart-etcd) stop_daemon etcd && start_etcd && await_api ;;
  *) usage ;;
esac
