#!/usr/bin/env bash
# Installs Shirabe in the cluster of kubectl's context, and waits until it is ready. Done again, it
# upgrades. Needs nothing but kubectl.
#
#   deploy/kubernetes/install.sh --image IMAGE [--overlay NAME] [--storage-class NAME] [--print]
#       for all namespaces, in shirabe-system; NAME is a folder of overlays (default: none)
#   deploy/kubernetes/install.sh --image IMAGE --one-namespace NAMESPACE [--storage-class NAME]
#       for that namespace alone, in it; its administrator may do so, after an administrator of the
#       cluster has once run: kubectl apply --server-side -k deploy/kubernetes/administrator
#
#   --image IMAGE         where nodes find it, as registry.example.com/shirabe:0.2 (deploy/image.sh)
#   --storage-class NAME  of the volume with the database; without it that of the volume that is
#                         there, or the cluster's default class
#   --force-conflicts     takes over what was edited by hand (kubectl edit) since the last time
#   --print               only shows the manifests
#
# SECONDS_TO_WAIT: how long it may take to be ready (default 180).
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)

usage() {
  sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "$0" >&2
  exit 2
}

say() { echo "install: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

IMAGE=
NAMESPACE=shirabe-system
FOLDER=$HERE
OVERLAY=
ALONE=
STORAGE_CLASS=
FORCE=
PRINT=
while [ $# -gt 0 ]; do
  case $1 in
    --image) IMAGE=${2:-} && shift ;;
    --overlay) OVERLAY=${2:-} FOLDER=$HERE/overlays/${2:-} && shift ;;
    --one-namespace) NAMESPACE=${2:-} ALONE=1 FOLDER=$HERE/overlays/one-namespace && shift ;;
    --storage-class) STORAGE_CLASS=${2:-} && shift ;;
    --force-conflicts) FORCE=--force-conflicts ;;
    --print) PRINT=1 ;;
    *) usage ;;
  esac
  shift || usage
done
# What goes into YAML below; kubectl says what is wrong with a name of the right letters.
[[ $IMAGE =~ ^[A-Za-z0-9][A-Za-z0-9._/:@-]*$ ]] ||
  fail "--image IMAGE is missing, or is not one: '$IMAGE'"
[[ $NAMESPACE =~ ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$ ]] || fail "'$NAMESPACE' is not a namespace"
[[ $STORAGE_CLASS =~ ^([a-z0-9][-.a-z0-9]*)?$ ]] || fail "'$STORAGE_CLASS' is not a StorageClass"
[ -z "$ALONE" ] || [ -z "$OVERLAY" ] || fail "--overlay and --one-namespace exclude each other"
[ "$OVERLAY" != one-namespace ] || fail "give --one-namespace NAMESPACE for that overlay"
[ -f "$FOLDER/kustomization.yaml" ] ||
  fail "there is no overlay ${FOLDER##*/}; there are: $(cd "$HERE/overlays" && echo *)"

if [ "$OVERLAY$PRINT" = postgres ] && grep -q :change-me@ "$FOLDER/database.env"; then
  fail "write the address of your database into $FOLDER/database.env"
fi

# That of a claim stays as it is; to leave it out would be to change it.
if [ -z "$PRINT" ]; then
  class=$(kubectl -n "$NAMESPACE" get pvc shirabe-home \
    -o 'jsonpath={.spec.storageClassName}' 2>/dev/null || true)
  STORAGE_CLASS=${STORAGE_CLASS:-$class}
  [ -z "$class" ] || [ "$class" = "$STORAGE_CLASS" ] ||
    fail "the volume shirabe-home is of the StorageClass $class, and stays so: give no" \
      "--storage-class; or, while it is Pending and has no data," \
      "kubectl -n $NAMESPACE delete pvc shirabe-home"
fi

# Two would both run the experiments of a namespace, and each call what the other makes foreign.
# As far as it can be seen: an administrator of one namespace may not look into the others.
other_install() {
  local where=(-A)
  [ -z "$ALONE" ] || where=(-n shirabe-system)
  kubectl get deployments "${where[@]}" -l app.kubernetes.io/name=shirabe-controller \
    -o 'jsonpath={range .items[*]}{.metadata.namespace}{"\n"}{end}' 2>/dev/null |
    grep -vx "$NAMESPACE" | paste -sd' ' || true
}
if [ -z "$PRINT" ]; then
  other=$(other_install)
  [ -z "$other" ] ||
    fail "there is a controller in $other already, and of two each would run the experiments of" \
      "the other: take that one out first"
fi

# What `kustomize edit` would write, around the folder, and elsewhere than in it.
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# What the cluster's ConfigMap of pools has, as JSON, where this folder has none, as a fresh copy of
# it: without them experiments that name one wait.
pools_to_keep() {
  local data
  grep -q '^pools: \[\]' "$HERE/controller/pools.yaml" || return 0
  data=$(kubectl -n "$NAMESPACE" get configmap shirabe-pools --ignore-not-found \
    -o 'jsonpath={.data}') || return
  [[ $data == *'\npools: []'* ]] || echo "$data"
}

name=${IMAGE%@*} digest=
[ "$name" = "$IMAGE" ] || digest=${IMAGE#*@}
tag=
pools=
if [[ ${name##*/} == *:* ]]; then
  tag=${name##*:}
  name=${name%:*}
fi
{
  [ -z "$ALONE" ] || echo "namespace: $NAMESPACE"
  echo "resources: ['$(realpath --relative-to="$(realpath "$WORK")" "$FOLDER")']"
  echo "images:"
  echo "  - name: shirabe"
  echo "    newName: '$name'"
  [ -z "$tag" ] || echo "    newTag: '$tag'"
  [ -z "$digest" ] || echo "    digest: '$digest'"
  echo "patches:"
  if [ -n "$STORAGE_CLASS" ]; then
    cat <<END
  - target: {kind: PersistentVolumeClaim, name: shirabe-home}
    patch: |-
      - {op: add, path: /spec/storageClassName, value: $STORAGE_CLASS}
END
  fi
  [ -n "$PRINT" ] || pools=$(pools_to_keep)
  if [ -n "$pools" ]; then
    say "the pools in the ConfigMap shirabe-pools stay, as controller/pools.yaml has none; to be" \
      "rid of them: kubectl -n $NAMESPACE delete configmap shirabe-pools, and install again"
    cat <<END
  - target: {kind: ConfigMap, name: shirabe-pools}
    patch: |-
      - {op: replace, path: /data, value: $pools}
END
  fi
} >"$WORK/kustomization.yaml"
kubectl kustomize "$WORK" >"$WORK/install.yaml"
if [ -n "$PRINT" ]; then
  cat "$WORK/install.yaml"
  exit
fi

# Why the controller is not there, in words, as far as this cluster tells.
explain() {
  local claim default mark='@.metadata.annotations.storageclass\.kubernetes\.io/is-default-class'
  claim=$(kubectl -n "$NAMESPACE" get pvc shirabe-home -o 'jsonpath={.status.phase}' 2>/dev/null ||
    true)
  default=$(kubectl get storageclass -o "jsonpath={.items[?($mark==\"true\")].metadata.name}" \
    2>/dev/null || true)
  if [ "$claim" = Pending ] && [ -z "$STORAGE_CLASS$default" ]; then
    say "the volume shirabe-home waits, and no StorageClass is the default that you can see: give" \
      "--storage-class NAME (kubectl get storageclass)"
  elif [ "$claim" = Pending ]; then
    say "the volume shirabe-home waits: kubectl -n $NAMESPACE describe pvc shirabe-home"
  fi
  kubectl -n "$NAMESPACE" get events --field-selector type=Warning --sort-by=.lastTimestamp \
    2>/dev/null | tail -n 5 >&2 || true
  # What it says itself: of a volume that its uid, 65532, may not write to, for one.
  kubectl -n "$NAMESPACE" logs deployment/shirabe-controller --tail=5 >&2 2>/dev/null || true
}

# Objects of an overlay that is not asked for any more stay, with the rights that they give.
left_over() {
  local which='{range .items[*]}{.kind}/{.metadata.name}{"\n"}{end}' kind
  kubectl get -f "$WORK/install.yaml" -o "jsonpath=$which" 2>/dev/null | sort >"$WORK/made"
  for kind in services networkpolicies roles rolebindings configmaps; do
    kubectl -n "$NAMESPACE" get "$kind" -l app.kubernetes.io/part-of=shirabe -o "jsonpath=$which" \
      2>/dev/null || true
  done >"$WORK/there"
  for kind in clusterroles clusterrolebindings validatingadmissionpolicies \
    validatingadmissionpolicybindings mutatingadmissionpolicies mutatingadmissionpolicybindings; do
    [ -n "$ALONE" ] || kubectl get "$kind" -l app.kubernetes.io/part-of=shirabe \
      -o "jsonpath=$which" 2>/dev/null || true
  done >>"$WORK/there"
  sort "$WORK/there" | comm -13 "$WORK/made" - | paste -sd' '
}

# All replicas are those of this install, and one of them leads: a standby is never ready.
is_ready() {
  local seen wanted replicas updated all ready
  local fields='{.status.observedGeneration}|{.metadata.generation}|{.spec.replicas}'
  fields+='|{.status.updatedReplicas}|{.status.replicas}|{.status.readyReplicas}'
  IFS='|' read -r seen wanted replicas updated all ready < <(kubectl -n "$NAMESPACE" get \
    deployment shirabe-controller -o "jsonpath=$fields") || true
  [ "$seen" = "$wanted" ] && [ "$updated" = "$replicas" ] && [ "$all" = "$replicas" ] &&
    [ "${ready:-0}" -ge 1 ]
}

# "Deployment", and how many of it were ready.
read -r before ran < <(kubectl -n "$NAMESPACE" get deployment shirabe-controller \
  -o 'jsonpath={.kind} {.status.readyReplicas}' 2>/dev/null) || true
# First without changing anything: of an install that is taken by half, the controller might be the
# half that works with another database.
if [ -n "$before" ]; then
  kubectl apply --server-side --dry-run=server $FORCE -f "$WORK/install.yaml" >/dev/null ||
    fail "nothing was changed. What was edited by hand belongs into an overlay of your own" \
      "(--print shows the manifests), or --force-conflicts puts it back. A volume stays as it was" \
      "made: README.md, \"Another database\""
fi
kubectl apply --server-side $FORCE -f "$WORK/install.yaml" || fail "not all of it was applied"
say "waiting until it is ready"
for ((second = 0; ; ++second)); do
  ! is_ready || break
  if [ "$second" -ge "${SECONDS_TO_WAIT:-180}" ]; then
    explain
    [ -z "$ran" ] || fail "it is not ready; what ran before comes back by:" \
      "kubectl -n $NAMESPACE rollout undo deployment/shirabe-controller"
    fail "it is not ready; apply it again once that is mended"
  fi
  sleep 1
done
left=$(left_over)
[ -z "$left" ] ||
  say "not of this install, but of another or an earlier one, kubectl delete takes it away: $left"
case ${ALONE:+alone}$OVERLAY in
  alone) next="kubectl -n $NAMESPACE apply -f deploy/examples/digits.yaml" ;;
  beside-katib) next="it takes Experiments with the label shirabe.dev/managed: \"true\" alone" ;;
  *) next="kubectl apply -f deploy/examples/digits.yaml" ;;
esac
say "ready in namespace $NAMESPACE: $next"
