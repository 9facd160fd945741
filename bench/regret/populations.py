"""Peers of evolution and of hyperopt, for peers.py, each with the defaults of its package. What
lives in a box of its own is given the unit cube. A population hands out what is left of its
generation, so that fewer points may come than were asked for."""

import math


class Population:
    """generation() gives points in the unit cube, learn(losses) their results, in order."""

    def __init__(self, header):
        self.space, self.seed = header["space"], header["seed"]
        self.trials = header["max_trials"]
        self.best = (float("inf"), None)
        self.waiting, self.losses, self.first, self.size = [], {}, 0, 0

    def ask(self, count):
        if not self.waiting and len(self.losses) == self.size:
            if self.size:
                self.learn([self.losses[self.first + i] for i in range(self.size)])
                self.first += self.size
            self.losses, self.waiting = {}, [self.point(row) for row in self.generation()]
            self.size = len(self.waiting)
        points, self.waiting = self.waiting[:count], self.waiting[count:]
        return points

    def tell(self, identity, point, loss):
        self.losses[identity] = math.inf if loss is None else loss

    def recommend(self):
        return self.best[1]

    def point(self, row):
        return {p["name"]: value_at(p, min(max(float(u), 0.0), 1.0))
                for p, u in zip(self.space, row)}


def value_at(p, u):
    if p["type"] in ("categorical", "discrete"):
        return p["values"][min(int(u * len(p["values"])), len(p["values"]) - 1)]
    if p["type"] == "int" and not p.get("log"):
        return min(p["min"] + int(u * (p["max"] - p["min"] + 1)), p["max"])
    if p.get("log"):
        value = p["min"] * (p["max"] / p["min"]) ** u
        return round(value) if p["type"] == "int" else min(max(value, p["min"]), p["max"])
    return p["min"] + u * (p["max"] - p["min"])


class Cmaes(Population):
    """The package `cmaes` as its README restarts it: IPOP, twice the population each time."""

    def __init__(self, header):
        super().__init__(header)
        self.restarts = 0
        self.start(None)

    def start(self, population):
        import cmaes
        import numpy
        d = len(self.space)
        rng = numpy.random.default_rng([self.seed, self.restarts])
        mean = rng.random(d) if self.restarts else numpy.full(d, 0.5)
        self.cma = cmaes.CMA(mean=mean, sigma=1 / 6, bounds=numpy.tile([0.0, 1.0], (d, 1)),
                             seed=self.seed + self.restarts, population_size=population)

    def generation(self):
        self.rows = [self.cma.ask() for _ in range(self.cma.population_size)]
        return self.rows

    def learn(self, losses):
        self.cma.tell(list(zip(self.rows, losses)))
        if self.cma.should_stop():
            self.restarts += 1
            self.start(2 * self.cma.population_size)


class Pycma(Population):
    """The package `cma`, from the middle with a quarter of the range, as its documentation says."""

    def __init__(self, header):
        super().__init__(header)
        import cma
        self.es = cma.CMAEvolutionStrategy(
            len(self.space) * [0.5], 0.25,
            {"bounds": [0, 1], "seed": self.seed, "verbose": -9, "verb_log": 0})

    def generation(self):
        self.rows = self.es.ask()
        return self.rows

    def learn(self, losses):
        self.es.tell(self.rows, losses)


class Pymoo(Population):
    def __init__(self, header, make):
        super().__init__(header)
        from pymoo.core.problem import Problem
        d = len(self.space)
        self.objectives = header["objectives"]
        self.problem = Problem(n_var=d, n_obj=self.objectives, xl=0.0, xu=1.0)
        self.algorithm = make()
        self.algorithm.setup(self.problem, termination=("n_eval", self.trials), seed=self.seed,
                             verbose=False)

    def generation(self):
        self.infills = self.algorithm.ask()
        return self.infills.get("X")

    def learn(self, losses):
        import numpy
        from pymoo.core.evaluator import Evaluator
        from pymoo.problems.static import StaticProblem
        static = StaticProblem(self.problem, F=numpy.reshape(losses, (-1, self.objectives)))
        Evaluator().eval(static, self.infills)
        self.algorithm.tell(infills=self.infills)


def pymoo_de(header):
    from pymoo.algorithms.soo.nonconvex.de import DE
    return Pymoo(header, DE)


def pymoo_nsga2(header):
    from pymoo.algorithms.moo.nsga2 import NSGA2
    return Pymoo(header, NSGA2)


class Hyperopt:
    """Its TPE, one new trial a call of suggest, as its own loop does."""

    def __init__(self, header):
        import hyperopt
        self.space, self.seed = header["space"], header["seed"]
        self.best = (float("inf"), None)
        self.hyperopt, self.trials = hyperopt, hyperopt.Trials()
        self.domain = hyperopt.base.Domain(
            lambda point: 0, {p["name"]: self.parameter(hyperopt.hp, p) for p in self.space})
        self.added, self.asked = 0, 0

    def parameter(self, hp, p):
        if p["type"] in ("categorical", "discrete"):
            return hp.choice(p["name"], p["values"])
        if p.get("log"):
            low, high = math.log(p["min"]), math.log(p["max"])
            if p["type"] == "int":
                return hp.qloguniform(p["name"], low, high, 1)
            return hp.loguniform(p["name"], low, high)
        if p["type"] == "int":
            return hp.uniformint(p["name"], p["min"], p["max"])
        return hp.uniform(p["name"], p["min"], p["max"])

    def add(self, point, loss):
        from hyperopt.fmin import generate_trial
        raw = {p["name"]: p["values"].index(point[p["name"]]) if "values" in p
               else point[p["name"]] for p in self.space}
        self.trials.insert_trial_docs([generate_trial(self.added, raw)])
        self.trials.refresh()
        self.finish(self.added, loss)
        self.added += 1

    def ask(self, count):
        points = []
        for _ in range(count):
            ids = self.trials.new_trial_ids(1)
            seed = (self.seed * 1_000_003 + self.added + self.asked) % 2**31
            docs = self.hyperopt.tpe.suggest(ids, self.domain, self.trials, seed, verbose=False)
            self.trials.insert_trial_docs(docs)
            self.trials.refresh()
            self.asked += 1
            points.append({p["name"]: self.value(p, docs[0]["misc"]["vals"][p["name"]][0])
                           for p in self.space})
        return points

    def value(self, p, raw):
        if "values" in p:
            return p["values"][int(raw)]
        return min(max(int(raw), p["min"]), p["max"]) if p["type"] == "int" else float(raw)

    def tell(self, identity, point, loss):
        self.finish(self.added + identity, loss)

    def finish(self, index, loss):
        trial = self.trials._dynamic_trials[index]
        failed = loss is None
        trial["state"] = self.hyperopt.JOB_STATE_DONE
        trial["result"] = {"status": "fail"} if failed else {"status": "ok", "loss": loss}
        self.trials.refresh()

    def recommend(self):
        return self.best[1]
