"""Katib's own enas service, from its sources, at a free port of this machine.

    enas.py KATIB_FOLDER FILE

FILE gets its address once it answers.
"""

import concurrent.futures
import os
import pathlib
import sys

import grpc


def main() -> None:
    # As its image has it.
    python = pathlib.Path(sys.argv[1])
    apis = python / "pkg/apis/manager"
    sys.path[:0] = map(str, (python, apis / "v1beta1/python", apis / "health/python"))
    from pkg.apis.manager.v1beta1.python import api_pb2_grpc
    from pkg.suggestion.v1beta1.nas.enas.service import EnasService

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=10))
    api_pb2_grpc.add_SuggestionServicer_to_server(EnasService(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    address = pathlib.Path(sys.argv[2])
    address.with_suffix(".new").write_text(f"127.0.0.1:{port}")
    os.rename(address.with_suffix(".new"), address)
    server.wait_for_termination()


main()
