"""The receiver of deploy/examples/notifications as tests want it.

It fails, is slow, sends elsewhere or answers without end, as the file `mode` says at each request,
and writes each of them down.
"""

import json
import sys
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy/examples/notifications"))

from receiver import Receiver, is_signed  # noqa: E402 (after the path)

FOLDER = Path(sys.argv[1])
ENDLESS_PIECES = 100_000


class FaultyReceiver(Receiver):
    log = FOLDER / "received.jsonl"

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        mode = (FOLDER / "mode").read_text().strip()
        status = self.status_of(mode, body)
        self.record(mode, body)
        if mode == "slow":
            time.sleep(60)
        if mode == "redirect":
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if mode == "endless":
            return self.answer_without_end()
        return self.answer(status)

    def status_of(self, mode: str, body: bytes) -> int:
        if mode == "fail":
            return 500
        if mode == "slack":
            return 200
        return self.accept(body) if mode == "ok" else 200

    def record(self, mode: str, body: bytes) -> None:
        timestamp = self.headers.get("Shirabe-Timestamp", "")
        signature = self.headers.get("Shirabe-Signature", "")
        request = {
            "mode": mode,
            "path": self.path,
            "id": self.headers.get("Shirabe-Id"),
            "signed": is_signed(self.secret, timestamp, signature, body),
            "body": json.loads(body),
        }
        with (FOLDER / "requests.jsonl").open("a", encoding="utf-8") as requests:
            requests.write(json.dumps(request) + "\n")

    def answer_without_end(self) -> None:
        self.send_response(500)
        self.end_headers()
        try:
            for _ in range(ENDLESS_PIECES):
                self.wfile.write(b"x" * 4096)
        except OSError:
            pass


def main() -> None:
    FaultyReceiver.secret = (FOLDER / "secret").read_bytes().strip()
    if FaultyReceiver.log.exists():
        lines = FaultyReceiver.log.read_text(encoding="utf-8").splitlines()
        FaultyReceiver.seen = {json.loads(line)["id"] for line in lines}
    port = int(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", port), FaultyReceiver)
    server.daemon_threads = True
    ready = FOLDER / "port.new"
    ready.write_text(str(server.server_port))
    ready.rename(FOLDER / "port")
    server.serve_forever()


main()
