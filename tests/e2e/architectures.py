"""architectures.py ADDRESS: a Suggestion service in the shape of Katib's enas, on Katib's stubs.

It checks that what an experiment searches (spec.nasConfig) arrives as Katib sends it, and that its
own answers come back with the trials; anything else is INVALID_ARGUMENT, with what is wrong.
"""

import json
import random
import sys
from concurrent import futures

import grpc
from kubeflow.katib import katib_api_pb2 as api
from kubeflow.katib import katib_api_pb2_grpc as services

GIVEN = {}  # architecture: nn_config


def check(spec):
    """What deploy/examples/nas.yaml says."""
    graph = spec.nas_config.graph_config
    assert graph.num_layers == 4, graph
    assert list(graph.input_sizes) == [32, 32, 3] and list(graph.output_sizes) == [10], graph
    convolution, reduction = spec.nas_config.operations.operation
    assert (convolution.operation_type, reduction.operation_type) == ("convolution", "reduction")
    size, filters = convolution.parameter_specs.parameters
    assert size.name == "filter_size" and size.parameter_type == api.CATEGORICAL, size
    assert list(size.feasible_space.list) == ["3", "5", "7"], size
    assert list(filters.feasible_space.list) == ["32", "48"], filters
    (pool,) = reduction.parameter_specs.parameters
    assert pool.parameter_type == api.INT, pool
    assert (pool.feasible_space.min, pool.feasible_space.max) == ("2", "3"), pool
    assert not spec.parameter_specs.parameters and spec.algorithm.algorithm_name == "enas", spec


def sample(layers):
    """An architecture and its configuration, as texts with single quotes, as enas writes them."""
    arc = [[random.randrange(8)] + [random.randrange(2) for _ in range(i)] for i in range(layers)]
    embedding = {str(arc[i][0]): {"opt_id": arc[i][0], "opt_type": "convolution",
                                  "opt_params": {"filter_size": "3", "num_filter": "32"}}
                 for i in range(layers)}
    config = {"num_layers": layers, "input_sizes": [32, 32, 3], "output_sizes": [10],
              "embedding": embedding}
    return json.dumps(arc), json.dumps(config).replace('"', "'")


class Architectures(services.SuggestionServicer):
    def refuse_unless(self, holds, context):
        try:
            holds()
        except (AssertionError, ValueError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"nasConfig is not as it was: {error}")

    def ValidateAlgorithmSettings(self, request, context):
        self.refuse_unless(lambda: check(request.experiment.spec), context)
        return api.ValidateAlgorithmSettingsReply()

    def GetSuggestions(self, request, context):
        def holds():
            check(request.experiment.spec)
            for trial in request.trials:
                assigned = {a.name: a.value for a in trial.spec.parameter_assignments.assignments}
                assert GIVEN[assigned["architecture"]] == assigned["nn_config"], assigned
                if trial.status.condition == api.TrialStatus.SUCCEEDED:
                    assert trial.status.observation.metrics[0].name == "Validation-Accuracy"

        self.refuse_unless(holds, context)
        reply = api.GetSuggestionsReply()
        layers = request.experiment.spec.nas_config.graph_config.num_layers
        for _ in range(request.current_request_number):
            architecture, config = sample(layers)
            config = GIVEN.setdefault(architecture, config)
            reply.parameter_assignments.add(assignments=[
                api.ParameterAssignment(name="architecture", value=architecture),
                api.ParameterAssignment(name="nn_config", value=config)])
        return reply


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    services.add_SuggestionServicer_to_server(Architectures(), server)
    port = server.add_insecure_port(sys.argv[1])
    server.start()
    print(f"ready on port {port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
