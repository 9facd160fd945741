#!/usr/bin/env bash
# cluster: --real 1
# Installing, the rights of the controller, a first experiment, a wrong one, and uninstalling.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
trap show_state EXIT

status_of() { kubectl get experiments.kubeflow.org "$1" -o "jsonpath={.status.$2}"; }
# The program as kubectl finds it, as whoever the variable KUBECONFIG says.
plugin() {
  "$HERE/cluster.sh" exec "$CLUSTER" env "PATH=$CLUSTER/plugin:$PATH" \
    "KUBECONFIG=${AS:-$CLUSTER/admin.kubeconfig}" kubectl shirabe "$@"
}
ACCOUNT=system:serviceaccount:$SYSTEM:shirabe-controller

may() { kubectl auth can-i --quiet --as "$ACCOUNT" "$@"; }
may_not() { ! may "$@" 2>/dev/null; }

check_rights() {
  local right
  while read -r right; do
    # shellcheck disable=SC2086 # words
    expect "the controller may" may $right
  done <<'END'
watch experiments.kubeflow.org -A
patch experiments.kubeflow.org --subresource=status -n team
create trials.kubeflow.org -n team
create jobs.batch -n team
delete jobs.batch -n team
deletecollection jobs.batch -n team
patch pods -n team
get pods --subresource=log -n team
watch nodes
create events.events.k8s.io -n team
create tokenreviews.authentication.k8s.io
create subjectaccessreviews.authorization.k8s.io
get namespaces
get configmaps -n team
create persistentvolumeclaims -n team
update leases.coordination.k8s.io/shirabe-controller -n shirabe-system
get secrets/shirabe-tls -n shirabe-system
END
  while read -r right; do
    # shellcheck disable=SC2086 # words
    expect "the controller may not" may_not $right
  done <<'END'
get secrets -n team
list secrets -n shirabe-system
create pods --subresource=exec -n team
patch nodes
delete namespaces
list namespaces
delete configmaps -n team
patch experiments.kubeflow.org --subresource=finalizers -n team
create deployments.apps -n shirabe-system
create clusterroles.rbac.authorization.k8s.io
create serviceaccounts --subresource=token -n shirabe-system
delete customresourcedefinitions.apiextensions.k8s.io
impersonate users
END
}

# Three trials of a shell: no training, but all of the way there and back.
small_experiment() {
  sed "s/NAME/$1/; s/ALGORITHM/$2/" <<'END'
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: NAME, namespace: default}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: ALGORITHM}
  parallelTrialCount: 2
  maxTrialCount: 3
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "-1", max: "1"}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
              - name: main
                image: localhost/tiny:1
                command: [sh, -c, "echo x=${trialParameters.x}; echo loss=0.5"]
END
}

# slow_experiment NAME JOB POD CONTAINER: the same with one trial, which ends, and well, only if it
# is asked to. JOB and POD are lines of them, CONTAINER the field that has the program.
slow_experiment() {
  {
    small_experiment "$1" random | sed -e 's/parallelTrialCount: 2/maxFailedTrialCount: 0/' \
      -e 's/maxTrialCount: 3/maxTrialCount: 1/' -e "s/^        template:/        $2\n&/" \
      -e "s/^            containers:/            $3\n&/" -e '/^                command:/d'
    cat <<END
                $4:
                  - sh
                  - -c
                  - |
                    trap 'exit 0' TERM
                    echo loss=\${trialParameters.x}
                    while :; do sleep 0.2; done
END
  } | kubectl apply -f - >/dev/null
}

# outran NAME ATTEMPTS WHOSE: it has failed for that, and every attempt says whose time was over.
outran() {
  eventually 120 "the end of $1" is True condition "$1" Failed
  expect "$1: why" has "^Ended: .*\(DeadlineExceeded: .*activeDeadlineSeconds of its $3" \
    inside_controller describe trial "$1/1"
  equal "$1: attempts" "$2" "$(inside_controller get attempts "$1" -o wide --no-headers |
    grep -c " app-error .*activeDeadlineSeconds of its $3")"
  equal "$1: all of them" "$2" "$(inside_controller get attempts "$1" -o name | wc -l)"
}

# A kubeconfig of somebody with the role `edit` in team, and nothing else.
member_config() {
  kubectl -n team create serviceaccount member >/dev/null
  kubectl -n team create rolebinding member --clusterrole=edit --serviceaccount=team:member \
    >/dev/null
  local token
  token=$(kubectl -n team create token member)
  sed -e "s#user: {client-cert.*#user: {token: $token}#" \
    -e "s#user: admin}#user: admin, namespace: team}#" \
    "$CLUSTER/admin.kubeconfig" >"$CLUSTER/member.kubeconfig"
}

# ---- what is refused when it is applied ---------------------------------------------------------

# refused PATTERN SED…: the small experiment, changed so, is not taken by the API server.
refused() {
  local pattern=$1 said
  shift
  if said=$(small_experiment refused random | sed "$@" |
    kubectl apply --dry-run=server -f - 2>&1); then
    fail "this was taken: $*"
  fi
  grep -qE "$pattern" <<<"$said" || fail "nothing like '$pattern' in: $said"
}

check_refusals() {
  local file list
  # All of what we show is taken; and null is as if it were not there.
  while read -r file; do
    kubectl apply --dry-run=server -f "$file" >/dev/null || fail "$file is refused"
  done < <(grep -l '^kind: Experiment' "$SOURCE"/deploy/examples/{,kubernetes/}*.yaml)
  small_experiment nulls random | sed -e 's#^spec:#&\n  nasConfig: null\n  shirabe: null#' \
    -e 's#trialTemplate:#&\n    configMap: null#' -e 's#maxTrialCount: 3#maxTrialCount: "3"#' |
    kubectl apply --dry-run=server -f - >/dev/null || fail "null, or a number as text, is refused"
  refused 'spec.maxTrialCount.*is not a number' 's#maxTrialCount: 3#maxTrialCount: many#'
  refused 'parallelTrialCount.*1000000' 's#parallelTrialCount: 2#parallelTrialCount: 2000000#'
  refused 'give at least one parameter' 's#^  parameters:#  parameters: []\n  ignored:#'
  refused 'shirabe.askAndTell' 's#^spec:#&\n  shirabe: {askAndTell: true}#'
  refused 'trialSpec.*and configMap' \
    's#trialTemplate:#&\n    configMap: {configMapName: a, templatePath: b}#'
  refused 'give one of claim' \
    's#^spec:#&\n  shirabe: {checkpoint: {volume: {claim: a, size: 1Gi}}}#'
  refused 'customCollector is required' \
    's#^spec:#&\n  metricsCollectorSpec: {collector: {kind: Custom}}#'
  refused 'objectiveMetricName.*at least 1 char' 's#objectiveMetricName: loss#&""#; s#loss""#""#'
  list=$(seq -s, 101)
  refused 'pools.*at most 100 items' \
    "s#^spec:#&\n  shirabe: {capacity: {pools: ['${list//,/\',\'}']}}#"
}

# fails COMMAND…: what it says, with its errors.
fails() { ! "$@" 2>&1; }

# author FILE: applies it as a user who may write Experiments in `team`, and make no Jobs there.
author() { kubectl --as=system:serviceaccount:team:author apply -f "$CLUSTER/$1.yaml"; }

# authored FILE SED…
authored() {
  small_experiment authored random | sed -e 's/namespace: default/namespace: team/' \
    -e 's#algorithmName: random#&, algorithmSettings: [{name: random_state, value: "1"}]#' \
    -e 's#^spec:#&\n  shirabe: {seed: 1}#' "${@:2}" >"$CLUSTER/$1.yaml"
}

check_authors() {
  kubectl -n team create serviceaccount author >/dev/null
  kubectl -n team create rolebinding author --clusterrole=shirabe-edit \
    --serviceaccount=team:author >/dev/null
  authored jobs -e ''
  authored torch -e 's#batch/v1#kubeflow.org/v1#' -e 's#kind: Job#kind: PyTorchJob#'
  authored pods -e 's#batch/v1#v1#' -e 's#kind: Job#kind: Pod#'
  authored follows -e 's#batch/v1#v1#' -e 's#kind: Job#kind: Pod#' \
    -e 's#name: authored#name: late#' \
    -e 's#shirabe: {#&onSuccess: {job: {apiVersion: batch/v1, kind: Job}}, #'
  authored more -e 's#maxTrialCount: 3#maxTrialCount: 4#'
  expect "who may make no Jobs" has 'may not create jobs.batch in namespace team' \
    fails author jobs
  expect "another kind" has 'may not create pytorchjobs.kubeflow.org in namespace team' \
    fails author torch
  kubectl -n team create token author --audience shirabe >"$CLUSTER/author.token"
  expect "nor by another door" has 'may not create jobs.batch in namespace team' \
    fails plugin apply -f "$CLUSTER/jobs.yaml" -n team --token-file "$CLUSTER/author.token"
  kubectl -n team create role jobs --verb=create --resource=jobs.batch >/dev/null
  kubectl -n team create rolebinding jobs --role=jobs --serviceaccount=team:author >/dev/null
  expect "who may" author jobs
  expect "not what it runs later" has 'may not create pods in namespace team' fails author pods
  kubectl -n team delete rolebinding jobs >/dev/null
  kubectl -n team create role pods --verb=create --resource=pods >/dev/null
  kubectl -n team create rolebinding pods --role=pods --serviceaccount=team:author >/dev/null
  expect "nor what follows them" has 'onSuccess makes a Job.*may not create jobs.batch' \
    fails author follows
  expect "more trials of the same" author more
  kubectl -n team wait --for=jsonpath='{.status.shirabe.uid}' --timeout=60s \
    experiments.kubeflow.org/authored >/dev/null
  authored program -e 's#loss=0.5#loss=0.4#'
  expect "not another program" has 'trialSpec of an experiment that has begun stays as it is' \
    fails kubectl apply -f "$CLUSTER/program.yaml"
  authored grid -e 's#: random#: grid#'
  expect "nor another search" has 'algorithmName of an experiment that has begun stays as it is' \
    fails kubectl apply -f "$CLUSTER/grid.yaml"
  authored setting -e 's#value: "1"#value: "2"#'
  expect "nor with another setting" has 'Settings of an experiment that has begun stays as it is' \
    fails kubectl apply -f "$CLUSTER/setting.yaml"
  authored seed -e 's#seed: 1#seed: 2#'
  expect "nor another seed" has 'spec.shirabe of an experiment that has begun stays as it is' \
    fails kubectl apply -f "$CLUSTER/seed.yaml"
  authored parameter -e 's#reference: x#&, description: other#'
  expect "nor other parameters" has 'trialParameters of an experiment that has begun stays as it' \
    fails kubectl apply -f "$CLUSTER/parameter.yaml"
  authored maximize -e 's#minimize#maximize#'
  expect "nor for another end" has 'objective.type of an experiment that has begun stays as it' \
    fails kubectl apply -f "$CLUSTER/maximize.yaml"
  authored aim -e 's#type: minimize#&, goal: 0.1#' -e 's#"-1", max: "1"#"-2", max: "2"#'
  expect "a goal and a wider range" kubectl apply -f "$CLUSTER/aim.yaml"
  kubectl -n team delete experiments.kubeflow.org authored --timeout=60s >/dev/null
}

# ---- for one namespace --------------------------------------------------------------------------

# one COMMAND…: as the administrator of namespace one, who has the role `admin` there.
one() {
  "$HERE/cluster.sh" exec "$CLUSTER" env "PATH=$CLUSTER/plugin:$PATH" \
    SECONDS_TO_WAIT="${WAIT:-90}" "KUBECONFIG=$CLUSTER/one.kubeconfig" "$@"
}

one_config() {
  kubectl create namespace one >/dev/null
  kubectl label namespace one pod-security.kubernetes.io/enforce=restricted >/dev/null
  kubectl -n one create serviceaccount boss >/dev/null
  kubectl -n one create rolebinding boss --clusterrole=admin --serviceaccount=one:boss >/dev/null
  sed -e "s#user: {client-cert.*#user: {token: $(kubectl -n one create token boss)}#" \
    -e "s#user: admin}#user: admin, namespace: one}#" \
    "$CLUSTER/admin.kubeconfig" >"$CLUSTER/one.kubeconfig"
}

# A volume whose folder belongs to root: the controller's user may not write there.
one_volume() {
  mkdir -p "$CLUSTER/one-home"
  sed -e 's#name: .*#name: one-home#' -e "s#/tmp/shirabe-test-home#$CLUSTER/one-home#" \
    "$SOURCE/deploy/kubernetes/overlays/hostpath-test/volume.yaml" | kubectl apply -f - >/dev/null
}

install_one() {
  one "$SOURCE/deploy/kubernetes/install.sh" --image localhost/shirabe:test --one-namespace one "$@"
}

# Of the strictest profile, as its namespace asks for: so must be what is put beside the program.
one_experiment() {
  small_experiment "$1" random | sed -e 's/namespace: default/namespace: one/' \
    -e 's#^\( *\)restartPolicy: Never#&\n\1securityContext: {PROFILE}#' \
    -e 's#^\( *\)image: localhost/tiny:1#&\n\1securityContext: {LESS}#' \
    -e 's#PROFILE#runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}#' \
    -e 's#LESS#allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}#' |
    kubectl apply -f - >/dev/null
}

# The dashboard of the cluster on loopback, for whoever has the kubeconfig: with a token of its own,
# and none of the cluster's.
check_page() {
  local said=$CLUSTER/ui.out page token
  # shellcheck disable=SC2016 # the inner shell's process
  one sh -c 'echo $$ >"$1"; exec kubectl shirabe ui --no-open alone -n one --server \
    kube://one/shirabe' sh "$CLUSTER/ui.pid" >"$said" 2>&1 &
  eventually 30 "the page's address" has '^http://127.0.0.1' cat "$said"
  page=$(grep -o '^http://[^/]*' "$said")
  token=$(sed -n 's/.*token=\([^&]*\).*/\1/p' "$said")
  expect "the page" has '<title>Shirabe' one curl -sf "$page/"
  expect "what it shows" has '"alone"' one curl -sf -H "Authorization: Bearer $token" \
    "$page/api/v1/namespaces/one/experiments"
  expect "the columns of its trials" one curl -sf -o "$CLUSTER/columns" \
    -H "Authorization: Bearer $token" "$page/api/v1/namespaces/one/experiments/alone/columns"
  expect "nothing without a token" eval "! one curl -sf '$page/api/v1/namespaces/one/experiments'"
  expect "no token of the cluster" eval "[[ '$token' != *.*.* ]]"
  kill "$(cat "$CLUSTER/ui.pid")"
  eventually 20 "its end" eval "! one curl -s '$page/livez'"
}

check_one_namespace() {
  local account=system:serviceaccount:one:shirabe-controller right
  equal "no right for the cluster" "" "$(kubectl get clusterrolebindings -o json |
    grep -c '"namespace": "one"' | grep -v '^0$' || true)"
  for right in 'list nodes' 'create tokenreviews.authentication.k8s.io' 'list pods -A' \
    'get experiments.kubeflow.org -n default' 'get secrets -n one' \
    'get customresourcedefinitions.apiextensions.k8s.io'; do
    # shellcheck disable=SC2086 # words
    expect "the controller may not" eval "! kubectl auth can-i --quiet --as $account $right"
  done
  one_experiment alone
  small_experiment elsewhere random | kubectl apply -f - >/dev/null
  eventually 90 "its success" is True kubectl -n one get experiments.kubeflow.org alone \
    -o 'jsonpath={.status.conditions[?(@.type=="Succeeded")].status}'
  equal "its trials" 3 "$(kubectl -n one get experiments.kubeflow.org alone \
    -o 'jsonpath={.status.trialsSucceeded}')"
  equal "what is not its own" "" "$(kubectl get experiments.kubeflow.org elsewhere \
    -o 'jsonpath={.status}')"
  expect "the plugin" has '^alone +Succeeded' one kubectl shirabe get experiments -n one \
    --server kube://one/shirabe
  expect "a log" has '^loss=0.5' one kubectl shirabe logs alone/1 -n one --server kube://one/shirabe
  expect "where it ran" has ' node-0 ' one kubectl shirabe get attempts alone -n one \
    --server kube://one/shirabe
  check_page
}

step "every overlay renders, and a real API server takes it"
for overlay in "$SOURCE"/deploy/kubernetes/{.,crds,administrator,overlays/*/}; do
  kubectl kustomize "$overlay" >"$CLUSTER/rendered.yaml"
done
for overlay in postgres beside-katib katib-clients trial-account; do
  "$HERE/cluster.sh" exec "$CLUSTER" "$SOURCE/deploy/kubernetes/install.sh" --image shirabe:1 \
    --overlay "$overlay" --print >"$CLUSTER/$overlay.yaml"
done
mkdir -p "$CLUSTER/composed"
MANIFESTS=$(realpath --relative-to="$CLUSTER/composed" "$SOURCE")/deploy/kubernetes
cat >"$CLUSTER/composed/kustomization.yaml" <<END
resources: ['$MANIFESTS/overlays/postgres']
components: ['$MANIFESTS/components/stores']
END
equal "variables of PostgreSQL and of stores" 2 "$(kubectl kustomize "$CLUSTER/composed" |
  grep -A 4 '^ *envFrom:' | grep -c secretRef)"
expect "what is Katib's stays there" grep -q 'namespace: kubeflow' "$CLUSTER/katib-clients.yaml"
kubectl create namespace team >/dev/null
cluster load "$("$HERE/images.sh" tiny)"
install_shirabe
expect "applying it again changes nothing" kubectl apply --server-side -f "$CLUSTER/install.yaml"

step "its rights"
check_rights

step "a first experiment"
small_experiment first random | kubectl apply -f - >/dev/null
eventually 120 "its success" is True condition first Succeeded
kubectl get experiments.kubeflow.org
kubectl describe experiment.kubeflow.org first | tail -n 40
equal "trials" 3 "$(status_of first trialsSucceeded)"
eventually 30 "that no pod is left" is "" kubectl get pods -o name
expect "the log outlives the pod" has '^loss=0.5' inside_controller logs first/1

step "trials that outrun their time"
slow_experiment slow-job 'activeDeadlineSeconds: 6\n        backoffLimit: 2' '' command
slow_experiment bare-job 'activeDeadlineSeconds: 6\n        backoffLimit: 2' '' args
slow_experiment slow-pod 'backoffLimit: 1' 'activeDeadlineSeconds: 6' command
slow_experiment bare-pod 'backoffLimit: 0' 'activeDeadlineSeconds: 6' args
slow_experiment nowhere 'activeDeadlineSeconds: 6\n        backoffLimit: 2' \
  'nodeSelector: {there: is-none}' command
outran slow-job 1 Job
outran bare-job 1 Job
outran slow-pod 2 pod
outran bare-pod 1 pod
outran nowhere 1 Job

step "the plugin of kubectl, as it is for an administrator"
mkdir -p "$CLUSTER/plugin"
ln -sf "$SOURCE/build/release/bin/shirabe" "$CLUSTER/plugin/kubectl-shirabe"
expect "experiments" has '^first +Succeeded' plugin get experiments
expect "all of them" has '^default +first' plugin get experiments -A
expect "what happened" has 'ExperimentMaxTrialsReached|Succeeded' plugin describe first
equal "the log" "$(inside_controller logs first/1)" "$(plugin logs first/1)"
expect "the doctor" has '^ok +token +may use every namespace' plugin doctor
expect "what has ended is not scaled" has 'resumePolicy is Never' \
  eval '! plugin scale first --max-trials 9 2>&1'
expect "where there is none" has 'there is no Shirabe in namespace nowhere' \
  eval '! plugin get experiments --server kube://nowhere/shirabe 2>&1'

step "the plugin for somebody who may edit one namespace"
member_config
AS=$CLUSTER/member.kubeconfig
expect "what he is to ask for" has 'kubectl -n team create rolebinding shirabe' \
  eval '! plugin get experiments 2>&1'
kubectl -n team create serviceaccount shirabe >/dev/null
kubectl -n team create rolebinding shirabe --clusterrole=edit --serviceaccount=team:shirabe \
  >/dev/null
small_experiment mine random | sed 's/namespace: default/namespace: team/' >"$CLUSTER/mine.yaml"
kubectl --kubeconfig "$AS" apply -f "$CLUSTER/mine.yaml" >/dev/null
eventually 20 "his experiment" has 'mine' plugin get experiments -n team
expect "his own" plugin pause mine
expect "not those of all" has 'may not list experiments.kubeflow.org in all namespaces' \
  eval '! plugin get experiments -A 2>&1'
expect "nothing of others" has 'Ask an administrator of namespace default' \
  eval '! plugin get experiments -n default 2>&1'
AS=

step "what the API server refuses by itself"
check_refusals
check_authors

step "a wrong one says why, and starts nothing"
small_experiment wrong nosuch | kubectl apply -f - >/dev/null
eventually 30 "its failure" is True condition wrong Failed
expect "which field" has algorithmName kubectl get experiments.kubeflow.org wrong -o yaml
eventually 10 "an event" has 'wrong.*algorithmName' kubectl get events -o wide

step "a folder of the nodes that no administrator has named"
small_experiment folder random |
  sed 's#^spec:#spec:\n  shirabe: {checkpoint: {volume: {hostPath: /etc}}}#' |
  kubectl apply -f - >/dev/null
eventually 30 "its failure" is True condition folder Failed
expect "the field and the fix" has 'volume.hostPath.*--allow-host-path' \
  kubectl get experiments.kubeflow.org folder -o 'jsonpath={.status.shirabe.specProblem}'
equal "nothing was made" "" \
  "$(kubectl get jobs -l katib.kubeflow.org/experiment=folder -o name)"

step "a namespace of an old name shows nothing of the one before"
kubectl create namespace again >/dev/null
small_experiment old random | sed 's/namespace: default/namespace: again/' |
  kubectl apply -f - >/dev/null
eventually 60 "its success" is True kubectl -n again get experiments.kubeflow.org old \
  -o 'jsonpath={.status.conditions[?(@.type=="Succeeded")].status}'
kubectl delete namespace again --timeout=60s >/dev/null
kubectl create namespace again >/dev/null
eventually 40 "that it is gone" is "" inside_controller get experiments -n again -o name

step "uninstalling takes what is ours and nothing else"
kubectl create configmap mine --from-literal=a=b >/dev/null
small_experiment lost random |
  sed 's#^spec:#spec:\n  shirabe: {checkpoint: {volume: {claim: not-there}}}#' |
  kubectl apply -f - >/dev/null
eventually 60 "that it waits" has 'not-there' kubectl get experiments.kubeflow.org lost -o wide
small_experiment second random | kubectl apply -f - >/dev/null
eventually 60 "a pod of it" has . kubectl get pods -o name
BEGAN=$SECONDS
"$HERE/cluster.sh" exec "$CLUSTER" "$SOURCE/deploy/kubernetes/uninstall.sh" --experiments --crds
expect "a claim that is missing holds up nothing" test $((SECONDS - BEGAN)) -lt 90
equal "pods" "" "$(kubectl get pods,jobs -A -o name)"
equal "rights" "" "$(kubectl get clusterroles,clusterrolebindings -o name | grep shirabe || true)"
equal "CRDs" "" "$(kubectl get crds -o name)"
equal "what is not ours" b "$(kubectl get configmap mine -o 'jsonpath={.data.a}')"

step "for one namespace, by its administrator"
kubectl apply --server-side -k "$SOURCE/deploy/kubernetes/administrator" >/dev/null
one_config
one_volume
expect "what is missing is said" has 'no StorageClass is the default.*--storage-class' \
  eval '! WAIT=8 install_one 2>&1'
kubectl -n one delete pvc shirabe-home --timeout=30s >/dev/null
expect "whose the volume must be" has 'as uid 65532' \
  eval '! WAIT=15 install_one --storage-class shirabe-test 2>&1'
chown 65532:65532 "$CLUSTER/one-home"
install_one --storage-class shirabe-test
step "again, after an edit by hand, and without the class of its volume"
kubectl -n one create role left --verb=get --resource=pods >/dev/null
kubectl -n one label role left app.kubernetes.io/part-of=shirabe >/dev/null
one kubectl -n one patch deployment shirabe-controller --type=json -p '[{"op": "add",
  "path": "/spec/template/spec/containers/0/args/-", "value": "--verbose"}]' >/dev/null
expect "what to do with the edit" \
  has 'nothing was changed.*overlay of your own.*--force-conflicts' eval '! install_one 2>&1'
expect "what is not of it" has 'earlier one, kubectl delete takes it away: Role/left' \
  eval 'install_one --force-conflicts 2>&1'
check_one_namespace
step "what was chosen before stays, and mistakes change nothing"
pools_of() { kubectl -n one get configmap shirabe-pools -o 'jsonpath={.data.pools\.yaml}'; }
kubectl -n one create configmap shirabe-pools --dry-run=client -o yaml \
  --from-literal=pools.yaml='pools: [{name: "any", capacity: on-demand}]' |
  kubectl apply --server-side --force-conflicts -f - >/dev/null
POOLS=$(pools_of)
expect "pools of the cluster" has 'ConfigMap shirabe-pools stay' eval 'install_one 2>&1'
equal "they are as they were" "$POOLS" "$(pools_of)"
expect "another class" has 'is of the StorageClass shirabe-test.*delete pvc shirabe-home' \
  eval '! install_one --storage-class other 2>&1'
expect "a word that is missing" has "'--print' is not a StorageClass" \
  eval '! install_one --storage-class --print 2>&1'
expect "no address of a database" has 'address of your database into .*database.env' \
  eval "! '$SOURCE/deploy/kubernetes/install.sh' --image a:1 --overlay postgres 2>&1"
for_all() {
  "$HERE/cluster.sh" exec "$CLUSTER" "$SOURCE/deploy/kubernetes/install.sh" --image a:1
}
expect "no second one, which would run its experiments too" has 'controller in one already' \
  eval '! for_all 2>&1'
uninstall_all() {
  "$HERE/cluster.sh" exec "$CLUSTER" "$SOURCE/deploy/kubernetes/uninstall.sh" --crds
}
expect "none for the whole cluster to take out" has 'nothing was deleted.* CRDs: one\. Take' \
  eval '! uninstall_all 2>&1'
expect "its rights" kubectl get clusterrole shirabe-namespace-admin >/dev/null
kubectl -n one delete configmap shirabe-pools >/dev/null
expect "and away with the pools" install_one
expect "that there are none" has '^pools: \[\]' pools_of
