# shellcheck shell=bash
# The operators of the tier, beside the cluster of a test; sourced after testing.sh, trainer.sh and
# paths.sh. Outside of pods, since no image of them is here. The API server reaches their webhooks
# as it would in any cluster: by a Service, whose only address is that of this namespace's bridge.

OPERATOR_PIDS=()
BRIDGE=10.99.0.1

# program NAME COMMAND…: in the network of the cluster, its output in the folder of the cluster.
program() {
  local log=$CLUSTER/$1.log
  shift
  "$HERE/cluster.sh" exec "$CLUSTER" "$@" >"$log" 2>&1 &
  OPERATOR_PIDS+=($!)
}

# service NAMESPACE NAME PORT: HTTPS at 443, served by a program at PORT.
service() {
  kubectl apply -f - >/dev/null <<END
apiVersion: v1
kind: Service
metadata: {name: $2, namespace: $1}
spec: {ports: [{name: https-webhook, port: 443, targetPort: $3}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: $2, namespace: $1, labels: {kubernetes.io/service-name: $2}}
addressType: IPv4
ports: [{name: https-webhook, port: $3}]
endpoints: [{addresses: ["$BRIDGE"]}]
END
}

# ---- Kubeflow's training operator ---------------------------------------------------------------

# Its webhooks are registered as its own installation does. It makes a certificate for them, and
# waits to find it in a volume.
start_training() {
  local keys=$CLUSTER/certificates
  mkdir -p "$TRAINER_PLACE" "$keys"
  kubectl apply --server-side -f "$TRAINING/definitions.yaml" >/dev/null
  kubectl create namespace kubeflow >/dev/null
  kubectl -n kubeflow create secret generic training-operator-webhook-cert >/dev/null
  service kubeflow training-operator 9443
  sed -e 's/^  name: validating-.*/  name: validator.training-operator.kubeflow.org/' \
    -e 's/name: webhook-service/name: training-operator/' \
    -e 's/namespace: system/namespace: kubeflow/' \
    "$TRAINING/webhooks.yaml" | kubectl apply -f - >/dev/null
  # Workers need not wait for the name of their master: busybox asks for names in a way of its own.
  echo '[{name: init-pytorch, image: "localhost/tiny:1", command: ["true"]}]' >"$CLUSTER/init.yaml"
  # shellcheck disable=SC2016 # for the inner shell
  program training-operator unshare --mount \
    bash -c 'mount --bind "$0" "$1" && exec "${@:2}"' "$keys" "$TRAINER_PLACE" \
    "$TRAINING/training-operator.v1" --pytorch-init-container-template-file="$CLUSTER/init.yaml" \
    --mpi-kubectl-delivery-image=localhost/operators:1 --metrics-bind-address=0 \
    --health-probe-bind-address=127.0.0.1:18446
  eventually 60 "the training operator's certificate" secret_into "$keys"
}

training_is_there() { grep -q "Starting workers.*paddlejob" "$CLUSTER/training-operator.log"; }

trainer_is_there() { trainer_runtime; }

# ---- Argo ---------------------------------------------------------------------------------------

# Pods of workflows tell the controller what they have printed by an object, for which their
# account, `workflows`, needs the right.
start_argo() {
  kubectl apply --server-side -f "$ARGO/definitions.yaml" >/dev/null
  kubectl create namespace argo >/dev/null
  kubectl -n argo create configmap workflow-controller-configmap \
    --from-literal=metricsConfig='{enabled: false}' \
    --from-literal=executor='{imagePullPolicy: IfNotPresent}' >/dev/null
  kubectl create serviceaccount workflows >/dev/null
  kubectl create role workflows --verb=create,patch \
    --resource=workflowtaskresults.argoproj.io >/dev/null
  kubectl create rolebinding workflows --role=workflows --serviceaccount=default:workflows \
    >/dev/null
  established workflows.argoproj.io workflowtaskresults.argoproj.io
  program argo env LEADER_ELECTION_DISABLE=true "$ARGO/workflow-controller" --namespace argo \
    --kubeconfig "$CLUSTER/admin.kubeconfig" --executor-image localhost/operators:1
}

argo_is_there() { grep -q "starting leading" "$CLUSTER/argo.log"; }

# ---- Tekton -------------------------------------------------------------------------------------

# Their settings are Tekton's own; what differs are the images, and the ports of two programs on one
# machine.
tekton_program() {
  local name=$1 ports=$2
  shift 2
  program "tekton-$name" env SYSTEM_NAMESPACE=tekton-pipelines POD_NAME="$name" \
    KUBERNETES_MIN_VERSION=v1.28.0 CONFIG_LOGGING_NAME=config-logging \
    CONFIG_OBSERVABILITY_NAME=config-observability CONFIG_DEFAULTS_NAME=config-defaults \
    CONFIG_FEATURE_FLAGS_NAME=feature-flags CONFIG_SPIRE=config-spire \
    CONFIG_LEADERELECTION_NAME="config-leader-election-$name" METRICS_DOMAIN=tekton.dev/pipeline \
    METRICS_PROMETHEUS_PORT="${ports}90" PROFILING_PORT="${ports}08" PROBES_PORT="${ports}80" \
    WEBHOOK_PORT=9446 WEBHOOK_SERVICE_NAME=tekton-pipelines-webhook \
    WEBHOOK_SECRET_NAME=webhook-certs "$TEKTON/$name" "$@"
}

start_tekton() {
  local image=localhost/operators:1
  kubectl create namespace tekton-pipelines >/dev/null
  kubectl apply --server-side -f "$TEKTON/definitions.yaml" >/dev/null
  kubectl apply --server-side -f "$TEKTON/settings.yaml" -f "$TEKTON/webhooks.yaml" >/dev/null
  service tekton-pipelines tekton-pipelines-webhook 9446
  established pipelineruns.tekton.dev taskruns.tekton.dev
  tekton_program webhook 191
  tekton_program controller 192 -entrypoint-image $image -nop-image $image \
    -sidecarlogresults-image $image -workingdirinit-image $image -shell-image $image \
    -shell-image-win $image
}

# Whatever is made before its webhook has registered itself would stay as it was written.
tekton_is_there() {
  grep -q "Started workers" "$CLUSTER/tekton-controller.log"
  has caBundle kubectl get mutatingwebhookconfigurations webhook.pipeline.tekton.dev -o yaml
  has caBundle kubectl get crd pipelineruns.tekton.dev -o yaml
}
