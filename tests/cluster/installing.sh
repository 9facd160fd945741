# shellcheck shell=bash
# Installing Shirabe in the cluster of a test; sourced after testing.sh.

SYSTEM=shirabe-system

# The test overlay, with the volume in the folder of the cluster, so that several can be side by
# side and nothing is left of it.
render() {
  kubectl kustomize "${KUSTOMIZATION:-$SOURCE/deploy/kubernetes/overlays/hostpath-test}" |
    sed -e "s#/tmp/shirabe-test-home#$CLUSTER/home#" \
      -e "s#/tmp/shirabe-test-checkpoints#$CLUSTER/checkpoints#"
}

install_shirabe() {
  mkdir -p "$CLUSTER"/{home,checkpoints}
  chown 65532:65532 "$CLUSTER/home"
  chmod 1777 "$CLUSTER/checkpoints"
  cluster load "$("$HERE/images.sh" shirabe)"
  render >"$CLUSTER/install.yaml"
  kubectl apply --server-side -f "$CLUSTER/install.yaml" >/dev/null
  established experiments.kubeflow.org
  controller_is_ready
}

# One that leads; a standby is not ready.
controller_is_ready() {
  eventually 90 "the controller" is 1 kubectl -n "$SYSTEM" get deployment shirabe-controller \
    -o 'jsonpath={.status.readyReplicas}'
}

# The program beside the controller's database: what an administrator would run there.
inside_controller() {
  kubectl -n "$SYSTEM" exec deployment/shirabe-controller -- shirabe "$@"
}

controller_node() {
  kubectl -n "$SYSTEM" get pods -l app.kubernetes.io/name=shirabe-controller \
    -o 'jsonpath={.items[0].spec.nodeName}'
}

# condition EXPERIMENT TYPE: True, False or nothing.
condition() {
  kubectl get experiments.kubeflow.org "$1" \
    -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status}"
}

# What a failure looks like to whoever reads the log of the test.
show_state() {
  local status=$?
  [ "$status" != 0 ] || return 0
  set +e
  kubectl get experiments.kubeflow.org,jobs,pods -A -o wide
  kubectl get events -A --sort-by=.lastTimestamp | tail -n 30
  kubectl -n "$SYSTEM" logs -l app.kubernetes.io/name=shirabe-controller --tail=60
}
