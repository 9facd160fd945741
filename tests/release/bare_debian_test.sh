#!/usr/bin/env bash
# On a bare Debian 12, with the wheel and a checkout: the quick start installs what is missing and
# tunes the digits within two minutes of the first command. Needs the registries of Debian and PyPI.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/release/testing.sh
. tests/release/testing.sh
trap 'rm -rf "$work"' EXIT
root=$work/root
debian bookworm "$root"
mkdir "$root/checkout"
git archive HEAD | tar -C "$root/checkout" -xf -
mkdir "$root/checkout/dist"
cp "$ARTEFACTS"/*.whl "$root/checkout/dist"

# How this machine reaches the registries. Its certificates by another name: the package of Debian's
# writes its own.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
  [ ! -f "$file" ] || install -D -m 644 "$file" "$root$file"
done
for name in $(compgen -e | grep -E '^(PIP_.*|https?_proxy|no_proxy|HTTPS?_PROXY)$' || true); do
  INSIDE+=("$name=${!name}")
done
install -m 644 /etc/ssl/certs/ca-certificates.crt "$root/certificates.crt"
INSIDE+=(PIP_CERT=/certificates.crt)
cp /etc/apt/apt.conf.d/*prox* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true

began=$SECONDS
inside "$root" bash /checkout/deploy/quickstart.sh >"$work/out" 2>&1 || fail "quickstart.sh"
seconds=$((SECONDS - began))
grep -q '^from dist/shirabe-' "$work/out" || fail "it has taken another program"
grep -q '^experiment digits has ended: 12 trials' "$work/out" || fail "it has not tuned"
[ "$seconds" -le "${RELEASE_SECONDS:-120}" ] || fail "it took $seconds s"
echo "the digits are tuned on a bare Debian 12 after $seconds s"
