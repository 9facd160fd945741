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

step "the database goes away and comes back"
begun outage
stop_postgres >/dev/null
sleep 5
as_postgres "$POSTGRES/pg_ctl" -D "$DATABASE/data" -l "$DATABASE/log" -w start \
  -o "-c listen_addresses=$ADDRESS -c unix_socket_directories=$DATABASE" >/dev/null
ended_well outage
