#!/usr/bin/env python3
"""Receives the notifications of spec.shirabe.notifications: checks who sent them, drops repeats.

    openssl rand -hex 32 > team.secret
    python3 deploy/examples/notifications/receiver.py --secret team.secret --log received.jsonl

Python's standard library is enough. The three things that any receiver must do are in `accept`.
"""

import argparse
import hashlib
import hmac
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MAX_BODY = 1 << 20
MAX_AGE_SECONDS = 300


def is_signed(secret: bytes, timestamp: str, signature: str, body: bytes) -> bool:
    """Whether one who knows the secret made it, a moment ago: an old request is not sent again."""
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > MAX_AGE_SECONDS:
        return False
    digest = hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest("v1=" + digest, signature)


class Receiver(BaseHTTPRequestHandler):
    """One request. What is received goes to the log, one JSON object a line."""

    secret = b""
    log = Path("received.jsonl")
    seen: set[str] = set()

    def do_POST(self) -> None:  # noqa: N802 (the name that http.server calls)
        length = int(self.headers.get("Content-Length", 0))
        if length > MAX_BODY:
            return self.answer(413)
        body = self.rfile.read(length)
        return self.answer(self.accept(body))

    def accept(self, body: bytes) -> int:
        """The status of the answer: 2xx acknowledges it, with anything else it comes again."""
        timestamp = self.headers.get("Shirabe-Timestamp", "")
        signature = self.headers.get("Shirabe-Signature", "")
        if not is_signed(self.secret, timestamp, signature, body):
            return 401
        notification = json.loads(body)
        if notification["id"] in self.seen:
            return 200  # a repeat: acknowledged again, and nothing more
        with self.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(notification) + "\n")
        self.seen.add(notification["id"])
        return 200

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not a line of text for each request."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8787, help="0 for any free one")
    parser.add_argument("--port-file", type=Path, help="where the port is written to")
    parser.add_argument("--secret", type=Path, required=True, help="the file of secretFile")
    parser.add_argument("--log", type=Path, default=Receiver.log)
    flags = parser.parse_args()
    Receiver.secret = flags.secret.read_bytes().strip()
    Receiver.log = flags.log
    if flags.log.exists():  # what was received before this process
        lines = flags.log.read_text(encoding="utf-8").splitlines()
        Receiver.seen = {json.loads(line)["id"] for line in lines}
    server = ThreadingHTTPServer(("127.0.0.1", flags.port), Receiver)
    if flags.port_file:
        flags.port_file.write_text(str(server.server_port), encoding="utf-8")
    server.serve_forever()


if __name__ == "__main__":
    main()
