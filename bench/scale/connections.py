#!/usr/bin/env python3
"""What an idle connection by TLS holds in a server, and what a small call costs it. Prints lines of
Markdown for bench/RESULTS.md.

    connections.py SHIRABE [--count 600]

Each connection is a channel of its own, as a sidecar's is, and makes three calls with a token as
long as a pod's, which are answered at once since `serve` has no pods. Then as many calls are made,
each by a connection that is closed after it. Needs grpcio and openssl.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

import grpc

CALL = "/shirabe.v1.Pods/Sync"
# namespace team, experiment exp, trial 1, attempt 1
REQUEST = b"\n\x04team\x12\x03exp\x18\x01\x20\x01"
METADATA = (("authorization", "Bearer " + "x" * 900),)


def make_certificate(folder: pathlib.Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", folder / "key.pem",
         "-out", folder / "cert.pem", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True)


def start_server(program: str, folder: pathlib.Path) -> tuple[subprocess.Popen, str]:
    ready = folder / "ready"
    server = subprocess.Popen(
        [program, "serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--rate", "0",
         "--connections-per-address", "0", "--tls-cert", folder / "cert.pem", "--tls-key",
         folder / "key.pem", "--ready-file", ready],
        env={**os.environ, "SHIRABE_HOME": str(folder / "home")}, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not ready.exists() or not ready.read_text():
        if server.poll() is not None or time.monotonic() > until:
            raise SystemExit("the server does not start")
        time.sleep(0.1)
    return server, json.loads(ready.read_text())["grpc"].rsplit(":", 1)[1]


def resident_kb(pid: int) -> int:
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise SystemExit("the server is gone")


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(channel: grpc.Channel) -> None:
    try:
        channel.unary_unary(CALL)(REQUEST, timeout=30, metadata=METADATA)
    except grpc.RpcError as error:
        if error.code() not in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.PERMISSION_DENIED):
            raise


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=600)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_certificate(folder)
        server, port = start_server(arguments.program, folder)
        try:
            credentials = grpc.ssl_channel_credentials((folder / "cert.pem").read_bytes())
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
            before = resident_kb(server.pid)
            channels = []
            for _ in range(arguments.count):
                channels.append(grpc.secure_channel(f"localhost:{port}", credentials, options))
                ask(channels[-1])
            spent = cpu_seconds(server.pid)
            for channel in channels * 2:
                ask(channel)
            spent = cpu_seconds(server.pid) - spent
            time.sleep(2)
            each = (resident_kb(server.pid) - before) / arguments.count
            for channel in channels:
                channel.close()
            time.sleep(2)
            calls = arguments.count * 2
            alone = cpu_seconds(server.pid)
            for _ in range(calls):
                with grpc.secure_channel(f"localhost:{port}", credentials, options) as channel:
                    ask(channel)
            alone = cpu_seconds(server.pid) - alone
            time.sleep(2)
            left = (resident_kb(server.pid) - before) / calls
        finally:
            server.terminate()
            server.wait(30)
    print(f"| an idle connection by TLS, of {arguments.count} | {each:.0f} kB resident |")
    call_ms = spent / arguments.count / 2 * 1000
    print(f"| a call that is answered at once | {call_ms:.2f} ms of CPU |")
    print(f"| … by a connection of its own | {alone / calls * 1000:.2f} ms of CPU, "
          f"{left:.0f} kB resident after |")


if __name__ == "__main__":
    main()
