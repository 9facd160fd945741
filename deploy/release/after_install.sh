#!/bin/sh
# After a package was installed or upgraded: the user that the service runs as. The service itself
# is off until it is enabled; a running one goes on with the new program, and with its trials.
set -e
if ! getent passwd shirabe >/dev/null; then
  useradd --system --user-group --no-create-home --home-dir /var/lib/shirabe \
    --shell /usr/sbin/nologin --comment Shirabe shirabe
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart shirabe.service
fi
