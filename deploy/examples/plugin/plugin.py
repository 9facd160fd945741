"""An algorithm of one's own: a service that Shirabe, and Katib, ask for the next points.

    pip install grpcio grpcio-tools
    python3 deploy/examples/plugin/plugin.py 127.0.0.1:6789

`suggest` is the algorithm; the rest is the service around it. Every request holds the whole
experiment, so the service keeps nothing: it may be stopped and started again at any time.
"""

import pathlib
import random
import sys
from concurrent import futures

import grpc

# The messages and the service, made of the .proto file when the program starts.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
api, services = grpc.protos_and_services("proto/katib/v1beta1/api.proto")


def suggest(ranges, results, count, rng):
    """Steps at random from the best point so far; the steps become shorter with time."""
    best = min(results, key=lambda result: result[1])[0] if results else None
    for _ in range(count):
        point = {}
        for name, (low, high) in ranges.items():
            start = best[name] if best else rng.uniform(low, high)
            value = start + rng.gauss(0, (high - low) / (2 + len(results)))
            # Outside of its range it is drawn again: a bound would be suggested twice.
            point[name] = value if low <= value <= high else rng.uniform(low, high)
        yield point


class Plugin(services.SuggestionServicer):
    def GetSuggestions(self, request, context):
        spec = request.experiment.spec
        ranges = {p.name: (float(p.feasible_space.min), float(p.feasible_space.max))
                  for p in spec.parameter_specs.parameters}
        sign = -1 if spec.objective.type == api.MAXIMIZE else 1
        results = []
        for trial in request.trials:
            if trial.status.condition != api.TrialStatus.SUCCEEDED:
                continue
            point = {a.name: float(a.value)
                     for a in trial.spec.parameter_assignments.assignments}
            for metric in trial.status.observation.metrics:
                if metric.name == spec.objective.objective_metric_name:
                    results.append((point, sign * float(metric.value)))
        reply = api.GetSuggestionsReply()
        # The same request is answered alike, and one after more trials otherwise.
        rng = random.Random(len(request.trials))
        for point in suggest(ranges, results, request.current_request_number, rng):
            reply.parameter_assignments.add(assignments=[
                api.ParameterAssignment(name=name, value=repr(value))
                for name, value in point.items()])
        return reply

    def ValidateAlgorithmSettings(self, request, context):
        for parameter in request.experiment.spec.parameter_specs.parameters:
            if parameter.parameter_type != api.DOUBLE:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT,
                              f"{parameter.name}: this algorithm knows parameters of type double")
        return api.ValidateAlgorithmSettingsReply()


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:6789"
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    services.add_SuggestionServicer_to_server(Plugin(), server)
    port = server.add_insecure_port(address)
    server.start()
    print(f"ready on port {port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
