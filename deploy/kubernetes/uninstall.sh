#!/usr/bin/env bash
# Takes Shirabe out of a cluster, and nothing that it did not create:
#
#   deploy/kubernetes/uninstall.sh [--experiments] [--crds]
#
#   (nothing)       the controller, its namespace and its rights. Experiments stay as objects, and
#                   trials that run are left to end and not watched any more.
#   --experiments   first every Experiment that it took, in all namespaces, with Jobs and pods
#   --crds          at last the CRDs too, if they are ours; all objects of these kinds go with them
#
# The results are in the database: the volume goes with the namespace unless its reclaim policy is
# Retain; `shirabe export` saves them before. Needs nothing but kubectl and its context.
set -euo pipefail

usage() {
  sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "$0" >&2
  exit 2
}

NAMESPACE=${SHIRABE_SYSTEM_NAMESPACE:-shirabe-system}
EXPERIMENTS=
CRDS=
# The claims and paths that experiments share, one a line.
VOLUME=.spec.shirabe.checkpoint.volume
VOLUMES="{range .items[*]}{$VOLUME.claim}{$VOLUME.hostPath}{\"\\n\"}{end}"
for word in "$@"; do
  case $word in
    --experiments) EXPERIMENTS=1 ;;
    --crds) CRDS=1 ;;
    *) usage ;;
  esac
done

say() { echo "uninstall: $*" >&2; }

crds_are_ours() {
  [ "$(kubectl get crd experiments.kubeflow.org --ignore-not-found \
    -o 'jsonpath={.metadata.labels.app\.kubernetes\.io/part-of}')" = shirabe ]
}

# clean_volumes COUNT: so many experiments kept checkpoints on a volume of yours; a Job for each,
# which the controller makes, deletes them, and would stay for an hour.
clean_volumes() {
  local selector=(-A -l "shirabe.dev/cleaner=true")
  [ "$1" -gt 0 ] || return 0
  say "waiting for $1 Jobs that delete checkpoints"
  for _ in $(seq 60); do
    [ "$(kubectl get jobs "${selector[@]}" -o name | wc -l)" -lt "$1" ] || break
    sleep 1
  done
  kubectl wait jobs "${selector[@]}" --for=condition=Complete --timeout=120s >/dev/null ||
    say "some checkpoints are still on their volumes"
  kubectl delete jobs "${selector[@]}" --cascade=foreground --timeout=60s
}

# All of them where the CRDs are ours, else those that were given to us by their label.
delete_experiments() {
  local selector=() shared
  kubectl get crd experiments.kubeflow.org >/dev/null 2>&1 || return 0
  crds_are_ours || selector=(-l shirabe.dev/managed=true)
  say "deleting experiments, while the controller can still clear up after them"
  shared=$(kubectl get experiments.kubeflow.org --all-namespaces "${selector[@]}" \
    -o "jsonpath=$VOLUMES" | wc -w)
  kubectl delete experiments.kubeflow.org --all-namespaces "${selector[@]:---all}" --timeout=120s
  # Jobs go with their Experiment, pods with their Job.
  for _ in $(seq 60); do
    [ -n "$(kubectl get pods -A -l shirabe.dev/attempt -o name)" ] || break
    sleep 1
  done
  [ -z "$(kubectl get pods -A -l shirabe.dev/attempt -o name)" ] ||
    say "some pods of trials are still there; they are released below"
  clean_volumes "$shared"
}

# A pod of ours keeps its name until its log is stored. Without a controller it is not stored, so
# the finalizer is taken off; the pod itself runs on if it runs.
release_pods() {
  local namespace pod
  kubectl get pods -A -l shirabe.dev/attempt --no-headers \
    -o 'custom-columns=:.metadata.namespace,:.metadata.name,:.metadata.finalizers' |
    while read -r namespace pod finalizers; do
      [[ $finalizers == *shirabe.dev/log* ]] || continue
      say "releasing pod $namespace/$pod"
      release_pod "$namespace" "$pod" || true
    done
}

# By its place in the list, and only if it still stands there: other finalizers are not ours.
release_pod() {
  local i=0 name
  for name in $(kubectl -n "$1" get pod "$2" -o 'jsonpath={.metadata.finalizers[*]}'); do
    if [ "$name" = shirabe.dev/log ]; then
      kubectl -n "$1" patch pod "$2" --type=json -p "[
        {\"op\": \"test\", \"path\": \"/metadata/finalizers/$i\", \"value\": \"$name\"},
        {\"op\": \"remove\", \"path\": \"/metadata/finalizers/$i\"}]" >/dev/null
      return
    fi
    i=$((i + 1))
  done
}

# Those of the policies that this cluster has, with commas: not each has those that write.
admission_kinds() {
  kubectl api-resources --api-group=admissionregistration.k8s.io -o name |
    grep -E '^(validating|mutating)admissionpolic' | paste -sd,
}

[ -z "$EXPERIMENTS" ] || delete_experiments
say "deleting the controller"
kubectl -n "$NAMESPACE" delete deployment shirabe-controller --ignore-not-found \
  --cascade=foreground --timeout=120s
release_pods
kubectl delete namespace "$NAMESPACE" --ignore-not-found --timeout=120s
kubectl delete clusterrole,clusterrolebinding -l app.kubernetes.io/part-of=shirabe
kubectl delete "$(admission_kinds)" -l app.kubernetes.io/part-of=shirabe
if [ -n "$CRDS" ]; then
  if crds_are_ours; then
    kubectl delete crd -l app.kubernetes.io/part-of=shirabe --timeout=120s
  elif kubectl get crd experiments.kubeflow.org >/dev/null 2>&1; then
    say "the CRDs of kubeflow.org are not ours and stay"
  fi
fi
