# shellcheck shell=bash
# The real nodes of a cluster, each a containerd and a kubelet of its own; sourced by cluster.sh,
# which sets DIR, NAME, HOST and GROUPS_ROOT.
# shellcheck disable=SC2153 # NAME and DIR are set there
NODE_NET=10.99.0

address_of() { echo "$NODE_NET.$((10 + ${1#node-}))"; }

# ---- groups of processes ------------------------------------------------------------------------

# cgroup v2, or of v1 the hierarchy that only counts processes.
groups_root() {
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    echo /sys/fs/cgroup
  else
    echo /sys/fs/cgroup/pids
  fi
}

# Where containers have a group of their own: cgroup v2, or every hierarchy of v1.
all_groups() {
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    echo /sys/fs/cgroup
  else
    find /sys/fs/cgroup -mindepth 1 -maxdepth 1 -type d
  fi
}

# kill_group NAME: every process in it and below, also those that are born meanwhile.
kill_group() {
  local _ pids
  for _ in $(seq 100); do
    pids=$(find "$GROUPS_ROOT/$1" -name cgroup.procs -exec cat {} + 2>/dev/null || true)
    [ -n "$pids" ] || return 0
    # shellcheck disable=SC2086 # a list
    kill -KILL $pids 2>/dev/null || true
    sleep 0.05
  done
  fail "these processes do not end: ${pids//$'\n'/ }"
}

remove_groups() {
  local group
  for group in $(all_groups); do
    find "$group/$NAME" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}

# ---- a machine ----------------------------------------------------------------------------------

write_network() {
  cat >"$DIR/$1/cni/10-bridge.conflist" <<END
{"cniVersion": "1.0.0", "name": "$NAME-$1", "plugins": [
  {"type": "bridge", "bridge": "cni${1#node-}", "isGateway": true,
   "ipam": {"type": "host-local", "dataDir": "$DIR/$1/ipam", "routes": [{"dst": "0.0.0.0/0"}],
            "ranges": [[{"subnet": "10.88.${1#node-}.0/24"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
}

write_containerd() {
  cat >"$DIR/$1/containerd.toml" <<END
version = 2
root = "$DIR/$1/containerd"
state = "$DIR/$1/state"
[grpc]
  address = "$DIR/$1/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$DIR/$1/cni"
END
}

write_kubelet() {
  cat >"$DIR/$1/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: "$DIR/pki/ca.crt"}
authorization: {mode: AlwaysAllow}
address: $(address_of "$1")
healthzPort: 0
cgroupDriver: cgroupfs
cgroupRoot: /$NAME/$1
cgroupsPerQOS: true
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: "unix://$DIR/$1/containerd.sock"
evictionHard: {}
imageGCHighThresholdPercent: 100
podLogsDir: "$DIR/$1/pod-logs"
volumePluginDir: "$DIR/$1/volume-plugins"
clusterDomain: cluster.local
clusterDNS: ["$HOST"]
resolvConf: "$DIR/resolv.conf"
END
}

# boot_node NODE [IMAGE.tar…]: the first time, or after power_off. The images are there before the
# kubelet is, which starts with the flags in the node's file of that name, if it has one.
boot_node() {
  local root=$DIR/$1 image flags=()
  mkdir -p "$root/cni"
  inside ip addr add "$(address_of "$1")/24" dev host0 2>/dev/null || true
  [ -f "$DIR/$1.kubeconfig" ] || {
    certificate "$1" "/O=system:nodes/CN=system:node:$1" "IP:$(address_of "$1")"
    kubeconfig "$1"
  }
  for group in $(all_groups); do mkdir -p "$group/$NAME/$1"; done
  write_network "$1"
  write_containerd "$1"
  write_kubelet "$1"
  # In a group below the node's: with cgroup v2 a group of processes may have no children.
  daemon "$1-containerd" "$1/daemons" containerd -c "$root/containerd.toml"
  await "containerd of $1" 20 ctr -a "$root/containerd.sock" version
  for image in "$("$HERE/images.sh" pause)" "${@:2}"; do load_into "$1" "$image"; done
  [ ! -f "$root/flags" ] || mapfile -t flags <"$root/flags"
  daemon "$1-kubelet" "$1/daemons" "$KUBERNETES_BIN/kubelet" --config "$root/kubelet.yaml" \
    --kubeconfig "$DIR/$1.kubeconfig" --root-dir "$root/kubelet" --hostname-override "$1" \
    --cert-dir "$root/pki" --node-ip "$(address_of "$1")" "${flags[@]}"
}

await_node() {
  await "the node $1" 60 inside kubectl get node "$1"
  inside kubectl wait --for=condition=Ready --timeout=60s "node/$1" >/dev/null
}

# join_node NODE LABELS TAINTS [IMAGE.tar…]: a machine that an autoscaler adds, as it registers.
join_node() {
  mkdir -p "$DIR/$1"
  printf '%s\n' "--node-labels=$2" "--register-with-taints=$3" >"$DIR/$1/flags"
  boot_node "$1" "${@:4}"
  await_node "$1"
}

# A machine that loses its power says nothing to anyone: first the kubelet and containerd are
# stopped, so that they do not report how the containers die, and the network goes with it.
power_off() {
  signal "$1-kubelet" STOP
  signal "$1-containerd" STOP
  remove_pod_networks "$1"
  inside ip addr del "$(address_of "$1")/24" dev host0 2>/dev/null || true
  kill_group "$1"
  rm -f "$DIR/run/$1-kubelet.pid" "$DIR/run/$1-containerd.pid"
  remove_shim_sockets "$1"
  # What a machine forgets when it boots.
  unmount_below "$DIR/$1/state"
  rm -rf "$DIR/$1/state"
}

# Containerd's helpers listen outside its folder.
remove_shim_sockets() {
  local file socket
  for file in "$DIR/$1"/state/io.containerd.runtime.v2.task/k8s.io/*/address; do
    [ -e "$file" ] || continue
    socket=$(cat "$file")
    rm -f "${socket#unix://}"
  done
}

# The network plug-ins remember under /var/lib/cni which namespace they made for which pod.
remove_pod_networks() {
  local record space pod
  for record in /var/lib/cni/results/"$NAME-$1"-*-eth0; do
    [ -e "$record" ] || continue
    while read -r space; do
      ip netns del "${space##*/}" 2>/dev/null || true
    done < <(grep -o '/netns/cni-[0-9a-f-]*' "$record" | sort -u)
    pod=${record##*/"$NAME-$1"-}
    rm -f "$record" "/var/lib/cni/results/cni-loopback-${pod%-eth0}-lo"
  done
}

# Only what lies in the folder, the deepest first.
unmount_below() {
  { grep -oE " $1/[^ ]+" /proc/mounts || true; } | sort -r | while read -r place; do
    umount -l "$place" 2>/dev/null || true
  done
}

# ---- what a test does to it ---------------------------------------------------------------------

# In one network namespace a kubelet cannot be cut from the API server, so it is stopped: to
# everybody else that is the same.
cut_node() {
  local i=${1#node-}
  signal "$1-kubelet" STOP
  inside nft -f - <<END
table ip cut$i {
  chain from_pods { type filter hook prerouting priority -300; iifname "cni$i" drop; }
  chain to_pods { type filter hook postrouting priority 300; oifname "cni$i" drop; }
}
END
}

heal_node() {
  inside nft delete table ip "cut${1#node-}"
  signal "$1-kubelet" CONT
}

# offer_devices NODE N [RESOURCE]
offer_devices() {
  local name=${3:-nvidia.com/gpu}
  inside kubectl patch node "$1" --subresource=status --type=json -p \
    "[{\"op\": \"add\", \"path\": \"/status/capacity/${name//\//~1}\", \"value\": \"$2\"}]" \
    >/dev/null
}

# load_into NODE ARCHIVE
load_into() {
  ctr -a "$DIR/$1/containerd.sock" -n k8s.io images import "$2" >/dev/null
}

load() {
  local node
  for node in "$DIR"/node-*/containerd.sock; do
    [ ! -S "$node" ] || load_into "$(basename "$(dirname "$node")")" "$1"
  done
}
