#!/usr/bin/env bash
# The images that the cluster tier loads into its nodes, without a registry. Each is built once and
# kept as ~/.cache/shirabe/images/NAME-DIGEST.tar, by the digest of what it is made of.
#
#   tests/cluster/images.sh NAME   prints the archive (docker-archive), built if it is not there
#
#   pause    localhost/pause:1                        every pod's first process
#   tiny     localhost/tiny:1                         busybox: a shell and its tools
#   digits   docker.io/shirabe/example-digits:0.1     the image of deploy/examples/digits.yaml
#   seeds    docker.io/shirabe/example-tensorboard:0.1  and Redis, and the trainer of ai-platform
#   shirabe  localhost/shirabe:test                   build/release/bin/shirabe (deploy/image.sh)
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cluster/paths.sh
source "$HERE/paths.sh"
SOURCE=$(cd "$HERE/../.." && pwd)
IMAGES=$CLUSTER_CACHE/images

# Everything that an image is made of, by name.
inputs() {
  case $1 in
    digits) ls "$SOURCE/sdk/python/shirabe/helper.py" "$SOURCE"/deploy/examples/digits/*.py ;;
    seeds)
      inputs digits
      ls "$HERE"/images/digits/* \
        "$SOURCE"/deploy/examples/{ai-platform/trainer,redis-queue,tensorboard}/*.py
      ;;
    shirabe) ls "$SOURCE"/deploy/{image.sh,Dockerfile} "$SOURCE/build/release/bin/shirabe" ;;
  esac
  [ ! -d "$HERE/images/$1" ] || find "$HERE/images/$1" -type f | sort
}

reference() {
  case $1 in
    pause | tiny) echo "localhost/$1:1" ;;
    digits) echo docker.io/shirabe/example-digits:0.1 ;;
    seeds) echo docker.io/shirabe/example-tensorboard:0.1 ;;
    shirabe) echo localhost/shirabe:test ;;
    *)
      sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "$0" >&2
      exit 2
      ;;
  esac
}

build() {
  local name=$1 archive=$2 work tag
  tag=$(reference "$name")
  work=$(mktemp -d)
  # shellcheck disable=SC2064 # the folder is known now
  trap "rm -rf '$work'" EXIT
  mkdir "$work/root"
  "$HERE/images/$name/root.sh" "$work/root" >&2
  buildah bud -q --isolation chroot -t "$tag" -f "$HERE/images/$name/Dockerfile" "$work" >/dev/null
  buildah push -q "$tag" "docker-archive:$archive.new:$tag"
  buildah rmi "$tag" >/dev/null
}

main() {
  local name=$1 archive
  reference "$name" >/dev/null
  archive=$IMAGES/$name-$(inputs "$name" | xargs cat | sha256sum | cut -c1-12).tar
  mkdir -p "$IMAGES"
  # Several clusters may start at once: one builds, the others wait for it.
  exec 9>"$IMAGES/$name.lock"
  flock 9
  if [ ! -f "$archive" ]; then
    if [ "$name" = shirabe ]; then
      "$SOURCE/deploy/image.sh" "$archive.new" "$(reference shirabe)" >&2
      rm -f "$IMAGES"/shirabe-*.tar # it changes with each build
    else
      build "$name" "$archive"
    fi
    mv "$archive.new" "$archive"
  fi
  echo "$archive"
}

main "${1:-}"
