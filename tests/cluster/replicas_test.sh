#!/usr/bin/env bash
# cluster: --real 2
# overlays/postgres: two replicas on one database. One leads; when it is killed the other goes on
# within a lease's time, and no attempt is lost by it.
set -euo pipefail
# shellcheck source=tests/cluster/testing.sh
source "$(dirname "$0")/testing.sh"
# shellcheck source=tests/cluster/installing.sh
source "$HERE/installing.sh"
# shellcheck source=tests/cluster/training.sh
source "$HERE/training.sh"

POSTGRES=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort | tail -n 1)
[ -n "$POSTGRES" ] || fail "no PostgreSQL is here; run: deploy/setup.sh test"
ADDRESS=10.99.0.1
# Not below $CLUSTER, where nobody but root may look.
DATABASE=$(mktemp -d)
chown nobody "$DATABASE"

as_postgres() { "$HERE/cluster.sh" exec "$CLUSTER" setpriv --reuid nobody --clear-groups "$@"; }
stop_postgres() { as_postgres "$POSTGRES/pg_ctl" -D "$DATABASE/data" -m immediate stop; }
at_exit() {
  show_state
  stop_postgres >/dev/null 2>&1 || true
  rm -rf "$DATABASE"
}
trap at_exit EXIT

start_postgres() {
  as_postgres "$POSTGRES/initdb" -D "$DATABASE/data" -U shirabe --auth=trust >/dev/null
  echo "host all all 0.0.0.0/0 trust" >>"$DATABASE/data/pg_hba.conf"
  as_postgres "$POSTGRES/pg_ctl" -D "$DATABASE/data" -l "$DATABASE/log" -w start \
    -o "-c listen_addresses=$ADDRESS -c unix_socket_directories=$DATABASE" >/dev/null
  as_postgres "$POSTGRES/createdb" -h "$ADDRESS" -U shirabe shirabe
}

# The overlay as it is, with this database, and the volume and the image of the tests.
make_overlay() {
  cp -r "$SOURCE/deploy/kubernetes" "$CLUSTER/kubernetes"
  KUSTOMIZATION=$CLUSTER/kubernetes/overlays/hostpath-test
  echo "SHIRABE_DB=postgres://shirabe@$ADDRESS:5432/shirabe" \
    >"$CLUSTER/kubernetes/overlays/postgres/database.env"
  sed -i -e '/- ..\/..\/crds/d' -e 's#- ../../base#- ../postgres#' \
    "$KUSTOMIZATION/kustomization.yaml"
  sed -i 's/ReadWriteOnce/ReadWriteMany/' "$KUSTOMIZATION/volume.yaml"
}

holder() {
  kubectl -n "$SYSTEM" get lease shirabe-controller -o 'jsonpath={.spec.holderIdentity}' | grep .
}
another_than() {
  local now
  now=$(holder) && [ "$now" != "$1" ]
}

step "a PostgreSQL outside of the pods, and two replicas on it"
start_postgres
make_overlay
cluster load "$("$HERE/images.sh" tiny)"
install_shirabe
eventually 30 "the other one" has '^2$' kubectl -n "$SYSTEM" get deployment shirabe-controller \
  -o 'jsonpath={.status.replicas}'

step "the one that leads is killed"
begun failover
LEADER=$(holder)
echo "$LEADER leads"
kubectl -n "$SYSTEM" delete pod "${LEADER%%_*}" --force --grace-period=0 >/dev/null 2>&1
eventually 60 "another one" another_than "$LEADER"
step "$(holder) leads"
ended_well failover

step "it is drained politely"
begun drained
LEADER=$(holder)
kubectl -n "$SYSTEM" delete pod "${LEADER%%_*}" --wait=false >/dev/null
eventually 60 "another one" another_than "$LEADER"
ended_well drained

# One trial of two steps, and a Job that reads its checkpoint and takes its time.
followed() {
  cat >"$CLUSTER/on-success.yaml" <<'END'
    onSuccess:
      job:
        apiVersion: batch/v1
        kind: Job
        spec:
          template:
            spec:
              containers:
                - name: deploy
                  image: localhost/tiny:1
                  command:
                    - sh
                    - -c
                    - |
                      echo "deploys $SHIRABE_BEST_TRIAL of step $(cat "$SHIRABE_RESUME_FROM/step")"
                      sleep 8
END
  manifest followed | sed -e 's/maxTrialCount: 3/maxTrialCount: 1/' -e 's/-lt 15/-lt 2/' \
    -e 's/parallelTrialCount: 2/parallelTrialCount: 1/' \
    -e "/^    checkpoint:/r $CLUSTER/on-success.yaml"
}
follow_up() {
  kubectl get experiment followed -o "jsonpath={.status.shirabe.onSuccess.$1}" | grep .
}

step "the one that leads is killed while a follow-up runs"
followed | kubectl apply -f - >/dev/null
eventually 90 "a follow-up" is Running follow_up phase
LEADER=$(holder)
kubectl -n "$SYSTEM" delete pod "${LEADER%%_*}" --force --grace-period=0 >/dev/null 2>&1
eventually 90 "its end" is Succeeded follow_up phase
[ "$(follow_up attempts)" = 1 ] || fail "it was started again: $(follow_up message)"
inside_controller logs followed/on-success | grep -qx "deploys followed-1 of step 2" ||
  fail "its log is not there"
kubectl delete experiment followed --wait=true --timeout=60s >/dev/null
eventually 30 "no Job of it" is "" kubectl get jobs -o name \
  -l katib.kubeflow.org/experiment=followed

step "the database goes away and comes back"
begun outage
stop_postgres >/dev/null
sleep 5
as_postgres "$POSTGRES/pg_ctl" -D "$DATABASE/data" -l "$DATABASE/log" -w start \
  -o "-c listen_addresses=$ADDRESS -c unix_socket_directories=$DATABASE" >/dev/null
ended_well outage
