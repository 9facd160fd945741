"""Peers behind the protocol of ask.cc, each through its public interface, with its own defaults:

  peers.py NAME

runs in the environment of that peer (see run.py). `seconds` is the processor time since the last
answer, so that a model which is fitted as results come in counts as well.
"""

import json
import math
import random
import sys
import tempfile
import time
import warnings

import populations


class Peer:
    """ask(k) gives k points; tell(id, point, loss) their results, loss None for a failed one."""

    def __init__(self, header):
        self.space, self.seed = header["space"], header["seed"]
        self.trials, self.parallel = header["max_trials"], header["parallel"]
        self.best = (float("inf"), None)

    def add(self, point, loss):
        raise NotImplementedError(f"{type(self).__name__} takes no trials of others")

    def recommend(self):
        return self.best[1]


class Random(Peer):
    def __init__(self, header):
        super().__init__(header)
        import numpy

        import problems
        self.rng, self.sample = numpy.random.default_rng(self.seed), problems.sample

    def add(self, point, loss):
        pass

    def ask(self, count):
        return [self.sample(self.space, self.rng) for _ in range(count)]

    def tell(self, identity, point, loss):
        pass


class Optuna(Peer):
    def __init__(self, header, make):
        super().__init__(header)
        import optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna, self.open = optuna, []
        self.constrained = {} if not header["constraints"] else {"constraints_func": broken_by}
        self.study = optuna.create_study(directions=["minimize"] * header["objectives"],
                                         sampler=make(optuna.samplers, self))
        self.distributions = {p["name"]: self.distribution(p) for p in self.space}
        self.conditional = any("when" in p for p in self.space)

    def distribution(self, p):
        made = self.optuna.distributions
        if p["type"] in ("categorical", "discrete"):
            return made.CategoricalDistribution(p["values"])
        log, step = p.get("log", False), p.get("step")
        if p["type"] == "int":
            return made.IntDistribution(p["min"], p["max"], log=log, step=step or 1)
        return made.FloatDistribution(p["min"], p["max"], log=log, step=step)

    def add(self, point, loss):
        margins, loss = split(loss)
        told = {} if margins is None else {
            "user_attrs": {"margins": margins},
            "system_attrs": {"constraints": [-margin for margin in margins]}}
        failed = {"state": self.optuna.trial.TrialState.FAIL} if loss is None else {
            "values": loss if isinstance(loss, list) else [loss]}
        self.study.add_trial(self.optuna.trial.create_trial(
            params=point, distributions={name: self.distributions[name] for name in point},
            **failed, **told))

    def ask(self, count):
        if self.conditional:
            trials = [self.study.ask() for _ in range(count)]
            for trial in trials:
                self.suggest(trial)
        else:
            trials = [self.study.ask(self.distributions) for _ in range(count)]
        self.open += trials
        return [trial.params for trial in trials]

    def suggest(self, trial):
        """Parameter by parameter, as a function that is tuned asks for those that it has."""
        import problems
        for p in self.space:
            if problems.active(p, trial.params):
                suggest_one(trial, p)

    def tell(self, identity, point, loss):
        margins, loss = split(loss)
        if margins is not None:
            self.open[identity].set_user_attr("margins", margins)
        if loss is None:
            self.study.tell(self.open[identity], state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(self.open[identity], loss)


def suggest_one(trial, p):
    """Of Optuna and of Rustuna."""
    name, log, step = p["name"], p.get("log", False), p.get("step")
    if p["type"] in ("categorical", "discrete"):
        return trial.suggest_categorical(name, p["values"])
    if p["type"] == "int":
        return trial.suggest_int(name, p["min"], p["max"], step=step or 1, log=log)
    return trial.suggest_float(name, p["min"], p["max"], step=step, log=log)


def split(told):
    """Margins, None where there are no constraints, and the loss or losses."""
    return (told["margins"], told["loss"]) if isinstance(told, dict) else (None, told)


def broken_by(trial):
    return [-margin for margin in trial.user_attrs["margins"]]


def optuna_gp(samplers, peer):
    return samplers.GPSampler(seed=peer.seed, **peer.constrained)


def optuna_tpe(samplers, peer):
    """The sampler of many years, now an option."""
    return samplers.TPESampler(seed=peer.seed, multivariate=False, **peer.constrained)


def optuna_tpe_mv(samplers, peer):
    return samplers.TPESampler(seed=peer.seed, multivariate=True, constant_liar=True,
                                **peer.constrained)


def optuna_cmaes(samplers, peer):
    return samplers.CmaEsSampler(seed=peer.seed)


def optuna_nsga2(samplers, peer):
    return samplers.NSGAIISampler(seed=peer.seed, **peer.constrained)


class Rustuna(Peer):
    """Optuna's algorithms in Rust; trials are asked parameter by parameter."""

    def __init__(self, header, sampler):
        super().__init__(header)
        import rustuna
        self.rustuna, self.open = rustuna, []
        self.study = rustuna.create_study(
            sampler=getattr(rustuna.samplers, sampler)(seed=self.seed), direction="minimize")

    def distribution(self, p):
        made = self.rustuna.distributions
        if p["type"] in ("categorical", "discrete"):
            return made.CategoricalDistribution(p["values"])
        log, step = p.get("log", False), p.get("step")
        if p["type"] == "int":
            return made.IntDistribution(p["min"], p["max"], log=log, step=step or 1)
        return made.FloatDistribution(p["min"], p["max"], log=log, step=step)

    def add(self, point, loss):
        self.study.add_trial(self.rustuna.create_trial(
            params=point, value=loss,
            distributions={p["name"]: self.distribution(p) for p in self.space}))

    def ask(self, count):
        trials = [self.study.ask() for _ in range(count)]
        self.open += trials
        return [{p["name"]: suggest_one(trial, p) for p in self.space} for trial in trials]

    def tell(self, identity, point, loss):
        number = self.open[identity].number
        if loss is None:
            self.study.tell(number, state=self.rustuna.trial.TrialState.FAIL)
        else:
            self.study.tell(number, loss)


class Skopt(Peer):
    """As Katib makes it, but with the scale that the space asks for."""

    def __init__(self, header):
        super().__init__(header)
        import skopt
        self.optimizer = skopt.Optimizer([self.dimension(skopt.space, p) for p in self.space],
                                         base_estimator="GP", n_initial_points=10,
                                         random_state=self.seed)

    def dimension(self, made, p):
        if p["type"] in ("categorical", "discrete"):
            return made.Categorical(p["values"])
        prior = "log-uniform" if p.get("log") else "uniform"
        kind = made.Integer if p["type"] == "int" else made.Real
        return kind(p["min"], p["max"], prior=prior)

    def row(self, point):
        return [point[p["name"]] for p in self.space]

    def add(self, point, loss):
        self.optimizer.tell(self.row(point), loss)

    def ask(self, count):
        rows = self.optimizer.ask(count) if count > 1 else [self.optimizer.ask()]
        names = [p["name"] for p in self.space]
        return [{name: value.item() if hasattr(value, "item") else value
                 for name, value in zip(names, row)} for row in rows]

    def tell(self, identity, point, loss):
        if loss is not None:
            self.optimizer.tell(self.row(point), loss)


class Smac(Peer):
    """Its facade for hyperparameters: random forests, and a configuration may be asked for again
    with another seed, which is its default. Others' trials are its initial design."""

    def __init__(self, header):
        super().__init__(header)
        import logging

        import smac
        from ConfigSpace import ConfigurationSpace, InCondition
        logging.disable(logging.WARNING)
        self.smac, self.facade, self.given, self.open = smac, None, [], []
        self.space_of = ConfigurationSpace(seed=self.seed)
        made = {p["name"]: self.hyperparameter(p) for p in self.space}
        self.space_of.add(list(made.values()))
        self.space_of.add([InCondition(made[p["name"]], made[parent], values)
                           for p in self.space for parent, values in p.get("when", {}).items()])

    def hyperparameter(self, p):
        import ConfigSpace as made
        if p["type"] == "categorical":
            return made.CategoricalHyperparameter(p["name"], p["values"])
        if p["type"] == "discrete":
            return made.OrdinalHyperparameter(p["name"], p["values"])
        kind = (made.UniformIntegerHyperparameter if p["type"] == "int"
                else made.UniformFloatHyperparameter)
        return kind(p["name"], p["min"], p["max"], log=p.get("log", False))

    def add(self, point, loss):
        self.given.append((point, loss))

    def start(self):
        from ConfigSpace import Configuration
        made = self.smac.HyperparameterOptimizationFacade
        self.folder = tempfile.TemporaryDirectory()
        scenario = self.smac.Scenario(self.space_of, n_trials=self.trials, seed=self.seed,
                                      output_directory=self.folder.name)
        first = [Configuration(self.space_of, values=point) for point, _ in self.given]
        design = made.get_initial_design(scenario, n_configs=0 if first else None,
                                         additional_configs=first)
        # Both are for its own loop, which is not used.
        self.facade = made(scenario, lambda config, seed: 0.0, initial_design=design,
                           overwrite=True)
        for _ in self.given:
            info = self.facade.ask()
            asked = self.plain(info.config)
            self.answer(info, next(loss for point, loss in self.given if same(point, asked)))

    def plain(self, configuration):
        values = dict(configuration)
        return {p["name"]: values[p["name"]].item() if hasattr(values[p["name"]], "item")
                else values[p["name"]] for p in self.space if p["name"] in values}

    def recommend(self):
        incumbent = self.facade.intensifier.get_incumbent() if self.facade else None
        if incumbent is None:
            return super().recommend()
        return self.plain(incumbent)

    def answer(self, info, loss):
        from smac.runhistory.dataclasses import TrialValue
        from smac.runhistory.enumerations import StatusType
        value = (TrialValue(cost=loss) if loss is not None else
                 TrialValue(cost=float("inf"), status=StatusType.CRASHED))
        self.facade.tell(info, value)

    def ask(self, count):
        if self.facade is None:
            self.start()
        trials = [self.facade.ask() for _ in range(count)]
        self.open += trials
        return [self.plain(info.config) for info in trials]

    def tell(self, identity, point, loss):
        self.answer(self.open[identity], loss)


def same(point, other):
    """But for the rounding of what went through ConfigSpace."""
    return point.keys() == other.keys() and all(
        value == other[name] if isinstance(value, str) else math.isclose(
            value, other[name], rel_tol=1e-6) for name, value in point.items())


class Ax(Peer):
    """The Client with its defaults, which is BoTorch."""

    def __init__(self, header):
        super().__init__(header)
        import logging

        from ax.api.client import Client
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
        logging.disable(logging.WARNING)
        self.client = Client(random_seed=self.seed)
        parameters = []
        for p in self.space:
            if p["type"] in ("categorical", "discrete"):
                kind = {str: "str", int: "int"}.get(type(p["values"][0]), "float")
                parameters.append(ChoiceParameterConfig(
                    name=p["name"], values=p["values"], is_ordered=p["type"] == "discrete",
                    parameter_type=kind))
            else:
                parameters.append(RangeParameterConfig(
                    name=p["name"], bounds=(p["min"], p["max"]),
                    parameter_type="int" if p["type"] == "int" else "float",
                    scaling="log" if p.get("log") else "linear"))
        self.client.configure_experiment(name="bench", parameters=parameters)
        several = [f"loss{i}" for i in range(header["objectives"])]
        self.metrics = several if len(several) > 1 else ["loss"]
        bounds = [f"margin{i} >= 0" for i in range(header["constraints"])]
        self.client.configure_optimization(
            objective=", ".join(f"-{metric}" for metric in self.metrics),
            outcome_constraints=bounds or None)
        self.indices = []

    def results(self, told):
        margins, loss = split(told)
        results = dict(zip(self.metrics, loss if isinstance(loss, list) else [loss]))
        return results | {f"margin{i}": margin for i, margin in enumerate(margins or [])}

    def add(self, point, loss):
        self.client.complete_trial(self.client.attach_trial(point), self.results(loss))

    def ask(self, count):
        points = []
        while len(points) < count:
            trials = self.client.get_next_trials(max_trials=count - len(points))
            if not trials:
                break
            self.indices += trials.keys()
            points += trials.values()
        return points

    def tell(self, identity, point, loss):
        if loss is None:
            self.client.mark_trial_failed(self.indices[identity])
        else:
            self.client.complete_trial(self.indices[identity], self.results(loss))

    def recommend(self):
        return self.client.get_best_parameterization()[0]


class Vizier(Peer):
    """Its default designer; Python's public name for it needs packages that it does not."""

    def __init__(self, header):
        super().__init__(header)
        import jax
        from vizier import algorithms
        from vizier import pyvizier
        from vizier._src.algorithms.designers.gp_ucb_pe import VizierGPUCBPEBandit
        self.vz, self.vza = pyvizier, algorithms
        problem = pyvizier.ProblemStatement()
        for p in self.space:
            self.parameter(problem.search_space.root, p)
        problem.metric_information.append(pyvizier.MetricInformation(
            "loss", goal=pyvizier.ObjectiveMetricGoal.MINIMIZE))
        self.designer = VizierGPUCBPEBandit(problem, rng=jax.random.PRNGKey(self.seed))
        self.count, self.asked, self.open, self.news = 0, 0, {}, []

    def parameter(self, root, p):
        scale = self.vz.ScaleType.LOG if p.get("log") else self.vz.ScaleType.LINEAR
        if p["type"] == "categorical":
            root.add_categorical_param(p["name"], p["values"])
        elif p["type"] == "discrete":
            root.add_discrete_param(p["name"], p["values"])
        elif p["type"] == "int":
            root.add_int_param(p["name"], p["min"], p["max"], scale_type=scale)
        else:
            root.add_float_param(p["name"], p["min"], p["max"], scale_type=scale)

    def finish(self, trial, loss):
        if loss is None:
            trial.complete(self.vz.Measurement(), infeasibility_reason="failed")
        else:
            trial.complete(self.vz.Measurement(metrics={"loss": loss}))
        self.news.append(trial)

    def open_trial(self, parameters):
        self.count += 1
        return self.vz.Trial(parameters, id=self.count)

    def add(self, point, loss):
        self.finish(self.open_trial(point), loss)

    def ask(self, count):
        self.designer.update(self.vza.CompletedTrials(self.news),
                             self.vza.ActiveTrials(list(self.open.values())))
        self.news, points = [], []
        for suggestion in self.designer.suggest(count):
            trial = self.open_trial(suggestion.parameters)
            values = suggestion.parameters.as_dict()
            points.append({p["name"]: self.plain(p, values[p["name"]]) for p in self.space})
            self.open[self.asked] = trial
            self.asked += 1
        return points

    def plain(self, p, value):
        if "values" in p:
            return next(own for own in p["values"] if own == value)
        return int(value) if p["type"] == "int" else float(value)

    def tell(self, identity, point, loss):
        self.finish(self.open.pop(identity), loss)


PEERS = {
    "random": Random,
    "optuna-gp": lambda header: Optuna(header, optuna_gp),
    "optuna-tpe": lambda header: Optuna(header, optuna_tpe),
    "optuna-tpe-mv": lambda header: Optuna(header, optuna_tpe_mv),
    "optuna-cmaes": lambda header: Optuna(header, optuna_cmaes),
    "optuna-nsga2": lambda header: Optuna(header, optuna_nsga2),
    "rustuna-tpe": lambda header: Rustuna(header, "TPESampler"),
    "rustuna-cmaes": lambda header: Rustuna(header, "CmaEsSampler"),
    "rustuna-nsga2": lambda header: Rustuna(header, "NSGAIISampler"),
    "skopt": Skopt,
    "smac": Smac,
    "ax": Ax,
    "vizier": Vizier,
    "hyperopt": populations.Hyperopt,
    "cmaes-package": populations.Cmaes,
    "pycma": populations.Pycma,
    "pymoo-de": populations.pymoo_de,
    "pymoo-nsga2": populations.pymoo_nsga2,
}


class Session:
    def __init__(self, peer):
        self.peer, self.points = peer, []
        self.since = time.process_time()

    def handle(self, request):
        """What to answer; None where nothing is to be."""
        if "add" in request:
            for point, loss in request["add"]:
                self.note(point, loss)
                self.peer.add(point, loss)
            self.since = time.process_time()
        elif "tell" in request:
            for identity, loss in request["tell"]:
                self.note(self.points[identity], loss)
                self.peer.tell(identity, self.points[identity], loss)
        elif "recommend" in request:
            return {"point": self.peer.recommend()}
        else:
            points = self.peer.ask(request["ask"])
            self.points += points
            since, self.since = self.since, time.process_time()
            return {"points": points, "seconds": self.since - since}

    def note(self, point, loss):
        if isinstance(loss, float) and loss < self.peer.best[0]:
            self.peer.best = (loss, point)


def main():
    warnings.filterwarnings("ignore")
    # What packages print must not get between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    session = None
    for line in sys.stdin:
        request = json.loads(line)
        if "space" in request:
            random.seed(request["seed"])
            session = Session(PEERS[sys.argv[1]](request))
            continue
        answer = session.handle(request)
        if answer is not None:
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
