#!/usr/bin/env bash
# Runs as root in a fresh Debian, whose /package.deb it installs, uses and removes again:
#   inside_deb.sh VERSION DASHBOARD
set -euo pipefail
set -x
dpkg -i /package.deb
[[ $(dpkg-query -W -f '${Version}' shirabe) =~ ^"$1"(-1)?$ ]]
[ "$(shirabe version)" = "shirabe $1" ]
[ "$(kubectl-shirabe version)" = "shirabe $1" ]
shirabe version -o json | grep -q "\"dashboard\": \"$2\""
share=/usr/share
for file in $share/man/man1/shirabe.1.gz $share/bash-completion/completions/shirabe \
  $share/zsh/site-functions/_shirabe $share/fish/vendor_completions.d/shirabe.fish \
  $share/doc/shirabe/{copyright,LICENSE,THIRD-PARTY.txt} /etc/default/shirabe; do
  [ -s "$file" ]
done
gzip -dc $share/man/man1/shirabe.1.gz | grep -q '^.TH SHIRABE 1'

cp $share/doc/shirabe/examples/bash.yaml /tmp
cd /tmp
shirabe run -f bash.yaml --quiet
shirabe doctor

# As the unit says, by hand, since nothing is booted here.
unit=/usr/lib/systemd/system/shirabe.service
setting() { sed -n "s/^$1=//p" $unit; }
user=$(setting User)
home=$(setting WorkingDirectory)
[ "$(setting Environment)" = "SHIRABE_HOME=$home" ]
command=$(setting ExecStart)
install -d -m "$(setting StateDirectoryMode)" -o "$user" -g "$user" "$home"
options="--grpc 127.0.0.1:0 --http 127.0.0.1:0 --ready-file $home/ready"
# shellcheck disable=SC2086 # a command line
setpriv --reuid "$user" --regid "$user" --clear-groups env SHIRABE_HOME="$home" \
  ${command/\$SHIRABE_OPTIONS/$options} &
server=$!
for _ in {1..300}; do
  [ ! -s "$home/ready" ] || break
  sleep 0.1
done
address=$(sed -n 's/.*"grpc": *"\([^"]*\)".*/\1/p' "$home/ready")
export SHIRABE_SERVER=$address SHIRABE_TOKEN_FILE=$home/token
name=$(awk '$1 == "name:" {print $2; exit}' bash.yaml)
shirabe apply -f bash.yaml
shirabe wait "$name"
shirabe best "$name" -o json
[ -n "$(find "$home/trials" -user "$user" -name log)" ]
kill "$server"
wait "$server"
unset SHIRABE_SERVER SHIRABE_TOKEN_FILE

dpkg -r shirabe
[ ! -e /usr/bin/shirabe ] && [ -e /etc/default/shirabe ]
dpkg -P shirabe
rm -rf /root/.local
# What it has learned stays, and nothing else does.
[ -s "$home/shirabe.db" ]
left=$(find / -xdev -iname '*shirabe*' -not -path "$home*" -not -path '/proc/*')
[ -z "$left" ]
