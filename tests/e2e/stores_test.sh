#!/usr/bin/env bash
# The example of artifact stores, with a real S3 server: checkpoints are in the bucket; the machine
# is lost in the middle with all of its files, and the same command goes on from the copies. Then
# the files are lost once more, and models come back from the bucket, here and through a server.
# Then the program itself comes from there.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/support/until_true.sh
source tests/support/until_true.sh

work=$(mktemp -d)
server=
serving=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$serving" ] || kill "$serving" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
export SHIRABE_HOME=$work/home
shirabe=build/release/bin/shirabe
gateway=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/versitygw-1.8.0/versitygw

if [ ! -x "$gateway" ]; then
  echo "left out: there is no versitygw (deploy/setup.sh test builds it where there is a Go)"
  exit 0
fi

fail() {
  echo "FAILED: $1" >&2
  [ ! -s "$work/out" ] || tail -n 40 "$work/out" >&2
  exit 1
}

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
mkdir -p "$work/data/checkpoints" "$work/attributes"
"$gateway" --access team --secret of-the-team --port "127.0.0.1:$port" --quiet \
  posix --sidecar "$work/attributes" "$work/data" >"$work/server.log" 2>&1 &
server=$!
# shellcheck disable=SC2317 # called by until_true
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
until_true 60 listens || fail "the S3 server does not listen"

sed "s|http://127.0.0.1:7070|http://127.0.0.1:$port|" deploy/examples/stores/stores.yaml \
  >"$work/stores.yaml"
export TEAM_ACCESS_KEY=team TEAM_SECRET_KEY=of-the-team
run=("$shirabe" run -f deploy/examples/stores/copied.yaml --stores "$work/stores.yaml")
copies=$work/data/checkpoints/default/examples/_/copied

"${run[@]}" >"$work/out" 2>&1 &
first=$!
# shellcheck disable=SC2317 # called by until_true
has_copy() { compgen -G "$copies/1/1/*/manifest.json" >/dev/null; }
until_true 60 has_copy || fail "no checkpoint is in the bucket"
# A copy may be made before its record is.
# shellcheck disable=SC2317 # called by until_true
has_record() { "$shirabe" events copied | grep -q 'CheckpointCommitted.*copied-1-a1'; }
until_true 60 has_record || fail "no checkpoint is recorded"
kill -9 "$first"
wait "$first" 2>/dev/null || true
# The files go with the machine, and programs that can no longer save end; the database is left.
# shellcheck disable=SC2317 # called by until_true
lose_files() { rm -rf "$SHIRABE_HOME/trials" 2>/dev/null; }
until_true 60 lose_files || fail "programs go on saving"

"${run[@]}" >"$work/out" 2>&1 || fail "the same command goes on"
"$shirabe" events copied >"$work/out"
grep -q 'TrialResumed.*from step' "$work/out" || fail "a trial went on from a copy"
grep -q 'CheckpointsCopied' "$work/out" || fail "an event says what was copied"
grep -q 'OutputsCopied' "$work/out" || fail "an event says that outputs were copied"
! grep -q 'NotCopied' "$work/out" || fail "all were copied"
for trial in 1 2 3 4; do
  newest=$(find "$copies/$trial" -path '*/10/manifest.json')
  [ -n "$newest" ] || fail "the last checkpoint of trial $trial is in the bucket"
done
if grep -rq of-the-team "$SHIRABE_HOME"; then fail "the secret is nowhere on the disk"; fi

"$shirabe" cp copied/1/checkpoint "$work/back" --stores "$work/stores.yaml" >"$work/out" 2>&1 ||
  fail "cp"
[ "$(cat "$work/back/step")" = 10 ] || fail "cp brings the last checkpoint back"
rm -rf "$SHIRABE_HOME/trials"
"$shirabe" cp copied/2/output "$work/model" --stores "$work/stores.yaml" >"$work/out" 2>&1 ||
  fail "cp of outputs"
grep -q 'lr=0.* steps=10' "$work/model/model" || fail "cp brings the model back"
"$shirabe" serve --stores "$work/stores.yaml" --grpc 127.0.0.1:0 --http 127.0.0.1:0 \
  --ready-file "$work/ready" >"$work/served" 2>&1 &
serving=$!
# shellcheck disable=SC2317 # called by until_true
is_ready() { [ -s "$work/ready" ]; }
until_true 60 is_ready || fail "the server is ready"
grpc=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["grpc"])' "$work/ready")
"$shirabe" cp copied/2/output "$work/served-model" --server "$grpc" >"$work/out" 2>&1 ||
  fail "cp of outputs from a server"
cmp "$work/model/model" "$work/served-model/model" || fail "a server sends the same model"
"$shirabe" prune --copies --dry-run --stores "$work/stores.yaml" >"$work/out" 2>&1
! grep -q copied "$work/out" || fail "thirty days have not passed"
kill "$serving"
wait "$serving" 2>/dev/null || true
serving=
echo "trials went on from the copies of their checkpoints"

# A program that is nowhere but in the bucket; killed while trials run, the same command goes on.
upload=("$shirabe" run -f deploy/examples/stores/uploaded.yaml --stores "$work/stores.yaml"
  --code deploy/examples/stores/program)
"${upload[@]}" >"$work/out" 2>&1 || fail "a program from the bucket"
package=$(find "$work/data/checkpoints/default/code" -name '*.tar.gz')
digest=$(basename "$package" .tar.gz)
[ "$(sha256sum <"$package")" = "$digest  -" ] || fail "the object is named by its digest"
"$shirabe" describe experiment/uploaded --lineage >"$work/out"
grep -q "sha256:$digest" "$work/out" || fail "lineage names the package"
"$shirabe" upload deploy/examples/stores/program --stores "$work/stores.yaml" >"$work/out" 2>&1
grep -q 'already' "$work/out" || fail "the same files have the same digest"
grep -q "package: sha256:$digest" "$work/out" || fail "upload prints what to write"
echo "trials ran a program from the bucket"

# A job of AI Platform for a server that is elsewhere: its package goes by the bucket.
# By 0.0.0.0, which is no address of this machine's own, and leads to it.
rm "$work/ready"
SHIRABE_HOME=$work/elsewhere "$shirabe" serve --insecure --stores "$work/stores.yaml" \
  --grpc 127.0.0.1:0 --http 127.0.0.1:0 --ready-file "$work/ready" >"$work/served" 2>&1 &
serving=$!
until_true 60 is_ready || { cp "$work/served" "$work/out" && fail "the other server is ready"; }
grpc=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["grpc"])' "$work/ready")
job=("$shirabe" ai-platform jobs submit training far --server "0.0.0.0:${grpc##*:}" --stream-logs
  --package-path deploy/examples/ai-platform/trainer
  --config deploy/examples/ai-platform/config.yaml)
timeout 120 "${job[@]}" >"$work/out" 2>&1 && fail "no files go there by themselves"
grep -q 'by a store (--stores FILE)' "$work/out" || fail "it says how the package gets there"
timeout 120 "${job[@]}" --stores "$work/stores.yaml" >"$work/out" 2>&1 || fail "the job elsewhere"
grep -q 'put in store team' "$work/out" || fail "the package was put into the bucket"
kill "$serving"
wait "$serving" 2>/dev/null || true
serving=
echo "a job's package went to a server elsewhere"

# Packages that a job of AI Platform names: source distributions in a bucket, as gcloud puts them
# there, and one of this machine. Nothing else has the module.
package=$work/package
mkdir -p "$package" "$work/data/packages"
cp -r deploy/examples/ai-platform/trainer "$package/trainer"
rm -rf "$package/trainer/__pycache__"
cat >"$package/setup.py" <<'END'
from setuptools import find_packages, setup
setup(name="trainer", version="0.1", packages=find_packages(),
      install_requires=["not-installed>=1"])
END
python=${XDG_CACHE_HOME:-$HOME/.cache}/shirabe/python/bin/python3
(cd "$package" && "$python" setup.py -q sdist) >"$work/out" 2>&1 || fail "setup.py sdist"
sdist=$package/dist/trainer-0.1.tar.gz
digest=$(sha256sum <"$sdist" | cut -d' ' -f1)
curl -fsS --aws-sigv4 aws:amz:us-east-1:s3 --user team:of-the-team -X PUT \
  --data-binary "@$sdist" -H 'Content-Type: application/gzip' \
  -H "x-amz-content-sha256: $digest" \
  "http://127.0.0.1:$port/packages/line/0a1b/trainer-0.1.tar.gz" || fail "the upload of a package"
cat >"$work/google.yaml" <<END
stores:
  - name: google
    type: gcs
    endpoint: http://127.0.0.1:$port
    region: us-east-1 # which this server insists on
    bucket: packages
    namespaces: [default]
    credentials: {environment: TEAM}
END
sed 1d "$work/google.yaml" >>"$work/stores.yaml"
uri=gs://packages/line/0a1b/trainer-0.1.tar.gz
sed "s#^  pythonModule#  packageUris: [$uri]\n&#" deploy/examples/ai-platform/config.yaml \
  >"$work/packaged.yaml"
packaged=("$PWD/$shirabe" run -f "$work/packaged.yaml")
cd "$work" # where no trainer is
"${packaged[@]}" >"$work/out" 2>&1 && fail "without the bucket's store there is no program"
grep -q 'trainingInput.packageUris\[0\].*no store of type gcs.*--stores FILE' "$work/out" ||
  fail "it says which store is missing"
"${packaged[@]}" --stores "$work/stores.yaml" >"$work/out" 2>&1 || fail "a job with its package"
grep -q "$uri: sha256:$digest" "$work/out" || fail "it says what was fetched"
grep -q 'requires not-installed>=1, which is not installed' "$work/out" || fail "what is missing"
"${packaged[0]}" get experiment packaged -o json >"$work/out"
grep -q "$uri@sha256:$digest" "$work/out" || fail "the experiment names the package by its digest"
grep -q '"package": "sha256:' "$work/out" || fail "its trials have it as their code"
"${packaged[0]}" convert -f "$work/packaged.yaml" -o "$work/converted.yaml" >"$work/out" 2>&1
sed 's#^  name: packaged#  name: converted#' "$work/converted.yaml" >"$work/named.yaml"
"${packaged[0]}" run -f "$work/named.yaml" --stores "$work/stores.yaml" >"$work/out" 2>&1 ||
  fail "what convert has made names the same packages"
jobs=0
for packages in "$uri" "$sdist"; do
  "${packaged[0]}" ai-platform jobs submit training "of-$((++jobs))" --packages "$packages" \
    --module-name trainer.task --stores "$work/google.yaml" --stream-logs -- --learning_rate 0.2 \
    >"$work/out" 2>&1 || fail "submit --packages $packages"
  grep -q '^step 20 of learning rate 0.2' "$work/out" || fail "the output of $packages"
done
echo "jobs ran with the packages that they name"
