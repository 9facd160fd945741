"""Functions with several objectives: bbob-biobj (coco-experiment) and DTLZ (Deb, Thiele, Laumanns
and Zitzler 2002). The regret is what the hypervolume of the points so far lacks of that of the true
front, as a share of it.

biobj-f001-d05   a pair of bbob's functions, instance 1, searched in [-5, 5]^d where both have
                 their optima. Objectives are counted from the best to the worst of the front, which
                 is the reference, as COCO does. How much the front holds is known from long runs of
                 NSGA-II:
                   fronts.py     makes references.json anew; it needs pymoo
dtlz2-m3-d07     DTLZ1, 2 or 7 of m objectives; references are those of BoTorch's test functions
"""

import functools
import itertools
import json
import pathlib
import re

import numpy

import problems

REFERENCES = pathlib.Path(__file__).resolve().parent / "references.json"
BIOBJ = [f"biobj-f{f:03}-d05" for f in range(1, 56, 4)]
DTLZ = [f"dtlz{k}-m{m}-d{m + 4:02}" for m in (2, 3) for k in (1, 2, 7)]
WORST = {1: 400.0, 2: 1.1, 7: 15.0}  # reference of each DTLZ


def front(vectors):
    """Those of two objectives that no other is better than, by rising first objective."""
    ordered = vectors[numpy.lexsort((vectors[:, 1], vectors[:, 0]))]
    lowest = numpy.minimum.accumulate(ordered[:, 1])
    return ordered[numpy.concatenate([[True], ordered[1:, 1] < lowest[:-1]])]


def area(found, reference):
    """Of a front."""
    widths = numpy.append(found[1:, 0], reference[0]) - found[:, 0]
    return float((widths * (reference[1] - found[:, 1])).sum())


def hypervolume(vectors, reference):
    """Of two or three objectives, all minimised."""
    vectors = vectors[(vectors < reference).all(axis=1)]
    if not len(vectors):
        return 0.0
    if len(reference) == 2:
        return area(front(vectors), reference)
    vectors = vectors[numpy.argsort(vectors[:, 2])]
    heights = numpy.append(vectors[1:, 2], reference[2]) - vectors[:, 2]
    volume, found = 0.0, numpy.empty((0, 2))
    for vector, height in zip(vectors, heights):
        found = front(numpy.vstack([found, vector[:2]]))
        volume += height * area(found, reference[:2])
    return volume


class Dominated:
    """What the hypervolume of the points so far lacks of that of the true front."""

    def __init__(self, reference, whole):
        self.reference, self.whole = reference, whole
        self.vectors = numpy.empty((0, len(reference)))

    def add(self, point, loss, told):
        self.vectors = numpy.vstack([self.vectors, told])

    @property
    def loss(self):
        return max(0.0, 1 - hypervolume(self.vectors, self.reference) / self.whole)


class Vectors(problems.Problem):
    """vector(x) gives the objectives of a point of the space."""

    f_opt = 0.0

    def make_space(self, dim, low, high):
        self.space = [{"name": f"x{i}", "type": "double", "min": low, "max": high}
                      for i in range(dim)]

    def best(self):
        return Dominated(self.reference, self.whole)

    def loss(self, point):
        return 0.0

    def told(self, point, loss, rng):
        return [float(v) for v in self.vector(numpy.array([point[p["name"]] for p in self.space]))]


class Dtlz(Vectors):
    def __init__(self, name):
        super().__init__(name)
        self.kind, self.objectives, dim = map(int, re.findall(r"\d+", name))
        self.make_space(dim, 0.0, 1.0)
        self.reference = numpy.full(self.objectives, WORST[self.kind])
        self.whole = self.true_hypervolume()

    def vector(self, x):
        free = self.objectives - 1
        position, rest = x[:free], x[free:] - 0.5
        if self.kind == 7:
            g = 1 + 9 * x[free:].mean()
            waves = 1 + numpy.sin(3 * numpy.pi * position)
            h = self.objectives - (position / (1 + g) * waves).sum()
            return numpy.append(position, (1 + g) * h)
        g = (rest ** 2).sum()
        if self.kind == 1:
            g = 100 * (len(rest) + (rest ** 2 - numpy.cos(20 * numpy.pi * rest)).sum())
            high, low, scale = position, 1 - position, 0.5 * (1 + g)
        else:
            angle = position * numpy.pi / 2
            high, low, scale = numpy.cos(angle), numpy.sin(angle), 1 + g
        return scale * numpy.array([high[:free - i].prod() * (low[free - i] if i else 1)
                                    for i in range(self.objectives)])

    def true_hypervolume(self):
        box = float(self.reference.prod())
        if self.kind == 1:  # below the front lies a simplex of edge 1/2
            return box - 0.5 ** self.objectives / (2 if self.objectives == 2 else 6)
        if self.kind == 2:  # a part of the unit ball
            return box - numpy.pi / (4 if self.objectives == 2 else 6)
        steps = numpy.linspace(0, 1, 20_001 if self.objectives == 2 else 81)
        grid = itertools.product(steps, repeat=self.objectives - 1)
        tail = numpy.zeros(len(self.space) - self.objectives + 1)
        return hypervolume(numpy.array([self.vector(numpy.append(at, tail)) for at in grid]),
                           self.reference)


@functools.cache
def references():
    return json.loads(REFERENCES.read_text())


class Biobj(Vectors):
    objectives = 2

    def __init__(self, name, known=None):
        import cocoex

        super().__init__(name)
        function, dim = map(int, re.findall(r"\d+", name))
        # The suite owns its problems, and must live as long.
        self.suite = cocoex.Suite("bbob-biobj", "instances:1",
                                  f"function_indices:{function} dimensions:{dim}")
        self.problem = self.suite[0]
        self.make_space(dim, -5.0, 5.0)
        known = known or references()[name]
        self.ideal, self.nadir = numpy.array(known["ideal"]), numpy.array(known["nadir"])
        self.reference, self.whole = numpy.ones(2), known["whole"]

    def vector(self, x):
        return (numpy.array(self.problem(x)) - self.ideal) / (self.nadir - self.ideal)


def optimum(function, instance, dim):
    import cocoex
    suite = cocoex.Suite("bbob", f"instances:{instance}",
                         f"function_indices:{function} dimensions:{dim}")
    return problems.best_parameter(suite[0])


def known_of(name):
    """The ideal and nadir from the optima of both functions, and the hypervolume between them."""
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.optimize import minimize

    made = Biobj(name, {"ideal": [0.0, 0.0], "nadir": [1.0, 1.0], "whole": 1.0})
    pair = re.findall(r"bbob_f(\d+)_i(\d+)_d(\d+)", made.problem.name)
    ends = [optimum(*map(int, one)) for one in pair]
    at = numpy.array([made.vector(end) for end in ends])  # [whose optimum, objective]
    made.ideal, made.nadir = at.diagonal(), at[::-1].diagonal()

    class Plain(ElementwiseProblem):
        def __init__(self):
            super().__init__(n_var=len(made.space), n_obj=2, xl=-5.0, xu=5.0)

        def _evaluate(self, x, out, *args, **kwargs):
            out["F"] = made.vector(x)

    found = [minimize(Plain(), NSGA2(pop_size=300), ("n_gen", 400), seed=seed).F
             for seed in (1, 2, 3)]
    whole = hypervolume(numpy.vstack([numpy.eye(2), *found]), numpy.ones(2))
    return {"ideal": made.ideal.tolist(), "nadir": made.nadir.tolist(), "whole": whole}


if __name__ == "__main__":
    REFERENCES.write_text(json.dumps({name: known_of(name) for name in BIOBJ}, indent=1) + "\n")
