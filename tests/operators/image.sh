#!/usr/bin/env bash
# What the operators put into pods, as one image for the nodes of a test's cluster: Argo's executor,
# Tekton's entrypoint, and the kubectl by which an MPIJob's launcher reaches its workers. Made
# without a registry, and anew each time: it takes three seconds.
#
#   tests/operators/image.sh ARCHIVE   writes it there (docker-archive), as localhost/operators:1
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/operators/paths.sh
source "$HERE/paths.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$HERE/../cluster/images/tiny/root.sh" "$work/root"
install -D -t "$work/root/bin" "$ARGO/argoexec" "$KUBERNETES_BIN/kubectl"
# Tekton's images are made by ko, which has its programs there.
install -D -t "$work/root/ko-app" "$TEKTON"/{entrypoint,nop,workingdirinit}
# Without words of its own, it does what the training operator's kubectl-delivery does.
cat >"$work/Dockerfile" <<'END'
FROM scratch
COPY root/ /
ENV PATH=/bin:/ko-app
CMD ["cp", "/bin/kubectl", "/opt/kube/kubectl"]
END
buildah bud -q --isolation chroot -t localhost/operators:1 "$work" >/dev/null
buildah push -q localhost/operators:1 "docker-archive:$1:localhost/operators:1"
buildah rmi localhost/operators:1 >/dev/null
