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
# While there are controllers of one namespace each, it names them and deletes nothing.
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
# What experiments share, one a line: namespace, claim, and path of the nodes.
VOLUME=.spec.shirabe.checkpoint.volume
SHARED="custom-columns=:.metadata.namespace,:$VOLUME.claim,:$VOLUME.hostPath"
# The same of the Jobs that delete checkpoints, with whether they have.
CLEANERS=":.metadata.namespace,:.spec.template.spec.volumes[*].persistentVolumeClaim.claimName"
CLEANERS=custom-columns=$CLEANERS,:.status.succeeded
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

# exists NAMESPACE CLAIM
exists() { kubectl -n "$1" get pvc "$2" >/dev/null 2>&1; }

# How many experiments of the selection keep something where it can be deleted: on a path, or on a
# claim that is there.
count_shared() {
  local namespace claim path
  kubectl get experiments.kubeflow.org --all-namespaces "$@" --no-headers -o "$SHARED" |
    while read -r namespace claim path; do
      [ "$path" = '<none>' ] && { [ "$claim" = '<none>' ] || ! exists "$namespace" "$claim"; } ||
        echo .
    done | wc -l
}

# Whether a Job that has not succeeded yet still can: not one whose claim is missing.
may_clean() {
  local namespace claim succeeded
  while read -r namespace claim succeeded; do
    [ "$succeeded" = '<none>' ] || continue
    [ "$claim" = '<none>' ] || exists "$namespace" "$claim" || continue
    return 0
  done < <(kubectl get jobs -A -l "shirabe.dev/cleaner=true" --no-headers -o "$CLEANERS")
  return 1
}

# clean_volumes COUNT: so many experiments kept checkpoints on a volume of yours; a Job for each,
# which the controller makes, deletes them, and would stay for an hour.
clean_volumes() {
  local selector=(-A -l "shirabe.dev/cleaner=true")
  [ "$1" -eq 0 ] || say "waiting for $1 Jobs that delete checkpoints"
  for _ in $(seq 60); do
    [ "$(kubectl get jobs "${selector[@]}" -o name | wc -l)" -lt "$1" ] || break
    sleep 1
  done
  for _ in $(seq 120); do
    may_clean || break
    sleep 1
  done
  if kubectl get jobs "${selector[@]}" --no-headers -o "$CLEANERS" | grep -q '<none>$'; then
    say "some checkpoints are still on their volumes, or their claims are not there"
  fi
  kubectl delete jobs "${selector[@]}" --cascade=foreground --timeout=60s
}

# All of them where the CRDs are ours, else those that were given to us by their label.
delete_experiments() {
  local selector=() shared
  kubectl get crd experiments.kubeflow.org >/dev/null 2>&1 || return 0
  crds_are_ours || selector=(-l shirabe.dev/managed=true)
  # Or they would be made again.
  if kubectl get crd scheduledexperiments.kubeflow.org >/dev/null 2>&1; then
    kubectl delete scheduledexperiments.kubeflow.org --all-namespaces --all --timeout=120s
  fi
  say "deleting experiments, while the controller can still clear up after them"
  shared=$(count_shared "${selector[@]}")
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

# Controllers of one namespace each (install.sh --one-namespace) live by the rights, policies and
# CRDs that would go.
controllers=$(kubectl get deployments -A -l app.kubernetes.io/name=shirabe-controller \
  -o 'jsonpath={range .items[*]}{.metadata.namespace}{"\n"}{end}')
others=$(grep -vx "$NAMESPACE" <<<"$controllers" | paste -sd' ' || true)
if [ -n "$others" ]; then
  say "nothing was deleted: controllers of these namespaces live by the same rights, policies and" \
    "CRDs: $others. Take each out first: delete its experiments, then" \
    "deploy/kubernetes/install.sh --image IMAGE --one-namespace NAMESPACE --print |" \
    "kubectl delete -f - (its database goes too; shirabe export saves the results)"
  exit 1
fi
[ -z "$EXPERIMENTS" ] || delete_experiments
say "deleting the controller"
kubectl -n "$NAMESPACE" delete deployment shirabe-controller --ignore-not-found \
  --cascade=foreground --timeout=120s
release_pods
kubectl delete namespace "$NAMESPACE" --ignore-not-found --timeout=120s
kubectl -n kubeflow delete services -l app.kubernetes.io/part-of=shirabe # of katib-clients
kubectl delete clusterrole,clusterrolebinding -l app.kubernetes.io/part-of=shirabe
kubectl delete "$(admission_kinds)" -l app.kubernetes.io/part-of=shirabe
if [ -n "$CRDS" ]; then
  if crds_are_ours; then
    kubectl delete crd -l app.kubernetes.io/part-of=shirabe --timeout=120s
  elif kubectl get crd experiments.kubeflow.org >/dev/null 2>&1; then
    say "the CRDs of kubeflow.org are not ours and stay"
  fi
fi
