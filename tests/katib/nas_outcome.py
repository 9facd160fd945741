"""Asserts what a search of architectures has found: nas_outcome.py TRIALS

TRIALS is what `shirabe get trials nas -o json` printed. The program of deploy/examples/nas.yaml
reports how many connections its architecture has; here they are counted again.
"""

import json
import sys


def main() -> None:
    trials = json.load(open(sys.argv[1]))["items"]
    assert len(trials) == 6, f"{len(trials)} trials"
    seen = set()
    for trial in trials:
        name = trial["metadata"]["name"]
        given = {a["name"]: a["value"] for a in trial["spec"]["parameterAssignments"]}
        layers = json.loads(given["architecture"])
        assert len(layers) == 4, f"{name}: an architecture of {len(layers)} layers: {layers}"
        assert all(len(layer) == n + 1 for n, layer in enumerate(layers)), f"{name}: {layers}"
        network = json.loads(given["nn_config"].replace("'", '"'))
        assert network["num_layers"] == 4, f"{name}: {network}"
        links = given["architecture"].count("1")
        [metric] = trial["status"]["observation"]["metrics"]
        assert float(metric["latest"]) == float(f"0.{40 + links}"), f"{name}: {links}: {metric}"
        seen.add(given["architecture"])
    assert len(seen) > 1, "all have the same architecture"
    print(f"6 trials, {len(seen)} architectures")


main()
