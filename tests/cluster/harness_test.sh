#!/usr/bin/env bash
# The harness itself: what cluster.sh promises holds, beside another cluster, and nothing is left.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
CLUSTER=$(mktemp -d)/cluster
trap '"$HERE/cluster.sh" down "$CLUSTER"; rm -rf "${CLUSTER%/cluster}"' EXIT
NAME=shirabe-$(printf %s "$CLUSTER" | cksum | cut -d' ' -f1)

pod() {
  kubectl apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  nodeName: $2
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]
  containers:
    - name: main
      image: localhost/tiny:1
      command: [sh, -c, "$3"]
      resources: {limits: {memory: 32Mi${4:-}}}
END
}

phase() { kubectl get pod "$1" -o 'jsonpath={.status.phase}'; }
ready() {
  kubectl get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
}
reason() {
  kubectl get pod "$1" -o 'jsonpath={.status.containerStatuses[0].state.terminated.reason}'
}

step "two real nodes and two that are played"
"$HERE/cluster.sh" up "$CLUSTER" --real 2 --fake 2 --qps 500
equal "nodes" 4 "$(kubectl get nodes -o name | wc -l)"
expect "a folder is used once" bash -c "! $HERE/cluster.sh up $CLUSTER 2>/dev/null"
cluster load "$("$HERE/images.sh" tiny)"

step "a pod runs, resolves names, and its log is read"
pod talk node-0 "nslookup kubernetes.default.svc.cluster.local && wget -qO- --no-check-certificate \
https://kubernetes.default.svc.cluster.local/livez; echo; echo done"
eventually 30 "the end of the pod" is Succeeded phase talk
eventually 5 "its log" has '^done$' kubectl logs talk
expect "DNS and the API server's service" has '10.0.0.1' kubectl logs talk

step "memory limits, devices and taints"
pod big node-0 "tail /dev/zero"
eventually 60 "the end of the pod" is OOMKilled reason big
cluster gpu node-1 2
pod trains node-1 "sleep 1000" ", nvidia.com/gpu: 2"
eventually 30 "the pod with devices" is Running phase trains
cluster taint node-1 gone=soon:NoExecute
kubectl taint node node-1 gone- >/dev/null

step "a node that is cut off is missed, and comes back with its pods"
cluster cut-node node-1
eventually 60 "that it is missed" is Unknown ready node-1
cluster heal-node node-1
eventually 60 "that it is back" is True ready node-1
equal "its pod" Running "$(phase trains)"

step "a node without power says nothing; its pods are known to be lost when it boots again"
cluster kill-node node-1
equal "what the API server knows" Running "$(phase trains)"
eventually 60 "that it is missed" is Unknown ready node-1
equal "what the API server knows" Running "$(phase trains)"
cluster start-node node-1
cluster load "$("$HERE/images.sh" tiny)"
eventually 60 "that the pod is known to be lost" is Failed phase trains
pod again node-1 "echo here"
eventually 30 "a new pod on it" is Succeeded phase again

step "the control plane is killed and comes back with what it knew"
cluster restart-apiserver
cluster restart-etcd
equal "what was known" Succeeded "$(phase again)"
cluster stop scheduler
cluster start scheduler

step "nothing is left"
"$HERE/cluster.sh" down "$CLUSTER"
expect "no folder" test ! -e "$CLUSTER"
equal "mounts" "" "$(grep -F "$CLUSTER" /proc/mounts || true)"
equal "groups" "" "$(find /sys/fs/cgroup -maxdepth 3 -name "$NAME" 2>/dev/null)"
equal "namespaces" "" "$(ip netns list | grep "$NAME" || true)"
equal "networks" "" "$(find /var/lib/cni -name "*$NAME*" 2>/dev/null)"
equal "processes" "" "$(pgrep -af "$CLUSTER" | grep -v harness_test || true)"
"$HERE/cluster.sh" down "$CLUSTER" # a second time is harmless
