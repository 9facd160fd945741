# shellcheck shell=bash
# Kubeflow's Trainer with JobSet, beside a cluster of a test; sourced after testing.sh and paths.sh.
# Outside of pods, since no image of them is here: the API server calls their webhooks on the
# loopback address, with a certificate of the cluster's own authority.

TRAINER_PIDS=()
TRAINER_KEYS= # folder of the certificate; each operator has this place for its own
TRAINER_PLACE=/tmp/k8s-webhook-server/serving-certs

webhook_certificate() {
  TRAINER_KEYS=$CLUSTER/webhooks
  mkdir -p "$TRAINER_KEYS" "$TRAINER_PLACE"
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=webhooks \
    -keyout "$TRAINER_KEYS/tls.key" -out "$TRAINER_KEYS/csr" 2>/dev/null
  openssl x509 -req -in "$TRAINER_KEYS/csr" -CA "$CLUSTER/pki/ca.crt" -CAkey "$CLUSTER/pki/ca.key" \
    -set_serial "0x$(openssl rand -hex 8)" -days 2 -out "$TRAINER_KEYS/tls.crt" 2>/dev/null \
    -extfile <(echo "subjectAltName=IP:127.0.0.1")
}

# webhooks NAME PORT: as its module registers them, at that port. JobSet's own installation limits
# those for pods to pods of JobSets.
webhooks() {
  local authority pods='{key: jobset.sigs.k8s.io/jobset-name, operator: Exists}'
  authority=$(base64 -w0 "$CLUSTER/pki/ca.crt")
  sed -e '/^    service:$/d; /^      name: webhook-service$/d; /^      namespace: system$/d' \
    -e "s#^      path: \(.*\)#    url: https://127.0.0.1:$2\1\n    caBundle: $authority#" \
    -e "s/^  name: \(mutating\|validating\)-/  name: $1-\1-/" \
    -e "/^  name: [mv]pod\.kb\.io\$/a\\  objectSelector: {matchExpressions: [$pods]}" \
    "$KUBERNETES_BIN/$1.webhooks.yaml" | kubectl apply -f - >/dev/null
}

# secret_into FOLDER: what the training operator has made for its webhooks, and waits to find in a
# volume; it waits for the certificate, which comes last.
secret_into() {
  local key
  for key in ca.crt tls.key tls.crt; do
    kubectl -n kubeflow get secret training-operator-webhook-cert \
      -o "jsonpath={.data.${key/./\\.}}" | base64 -d >"$1/new"
    [ -s "$1/new" ] || return 1
    mv "$1/new" "$1/$key"
  done
}

# operator NAME: with its configuration on the standard input.
operator() {
  cat >"$CLUSTER/$1.yaml"
  # shellcheck disable=SC2016 # for the inner shell
  "$HERE/cluster.sh" exec "$CLUSTER" unshare --mount \
    bash -c 'mount --bind "$0" "$1" && exec "${@:2}"' "$TRAINER_KEYS" "$TRAINER_PLACE" \
    "$1" --config "$CLUSTER/$1.yaml" >"$CLUSTER/$1.log" 2>&1 &
  TRAINER_PIDS+=($!)
}

# The webhooks stand before what they are called for: trials that wait for the kind come at once.
start_trainer() {
  webhook_certificate
  webhooks jobset 9444
  webhooks trainer-controller-manager 9445
  kubectl apply --server-side -f "$KUBERNETES_BIN/jobset.yaml" \
    -f "$KUBERNETES_BIN/trainer-controller-manager.yaml" >/dev/null
  established jobsets.jobset.x-k8s.io trainjobs.trainer.kubeflow.org \
    clustertrainingruntimes.trainer.kubeflow.org
  operator jobset <<'END'
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {port: 9444}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "127.0.0.1:18444"}
END
  operator trainer-controller-manager <<'END'
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
certManagement: {enable: false}
webhook: {port: 9445}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "127.0.0.1:18445"}
END
}

# A runtime as Trainer brings it, with an image that the cluster of a test has. Once its webhook
# answers, Trainer is there.
trainer_runtime() {
  kubectl apply -f - 2>&1 <<'END'
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: torch-distributed
  labels: {trainer.kubeflow.org/framework: torch}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata:
              labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}
            spec:
              template:
                spec:
                  containers:
                    - {name: node, image: "localhost/tiny:1"}
END
}

# One without a framework, for programs that are Python functions: with the bash and the python3 of
# this machine, in a container that has neither.
plain_runtime() {
  mkdir "$CLUSTER/tools"
  ln -s /usr/bin/python3 "$CLUSTER/tools/python"
  kubectl apply -f - >/dev/null <<END
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: plain
  labels: {trainer.kubeflow.org/framework: plainml}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata:
              labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}
            spec:
              template:
                spec:
                  volumes:
                    - {name: usr, hostPath: {path: /usr}}
                    - {name: lib, hostPath: {path: /usr/lib}}
                    - {name: lib64, hostPath: {path: /usr/lib64}}
                    - {name: tools, hostPath: {path: "$CLUSTER/tools"}}
                  containers:
                    - name: node
                      image: localhost/tiny:1
                      workingDir: /tmp
                      env: [{name: PATH, value: "/tools:/bin:/usr/bin"}]
                      volumeMounts:
                        - {name: usr, mountPath: /usr}
                        - {name: lib, mountPath: /lib}
                        - {name: lib64, mountPath: /lib64}
                        - {name: tools, mountPath: /tools}
END
}
