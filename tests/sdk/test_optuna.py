"""Programs written for Optuna: each runs after one changed import. With Optuna itself installed,
the programs are also run by it, so that they are what they claim to be."""

import importlib.util
import logging
import os
import signal
import subprocess
import sys
import threading
import unittest
from unittest import mock

from support import HERE, PATIENCE, SdkTest

import shirabe.compat.optuna as optuna

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


class ProgramsTest(SdkTest):
    def check(self, name):
        text = (HERE / "optuna_programs" / f"{name}.py").read_text()
        self.assertIn("\nimport optuna\n", text)
        if importlib.util.find_spec("optuna"):
            path = self.dir / "theirs"
            path.mkdir()
            (path / f"{name}.py").write_text(text)
            program = [sys.executable, f"{name}.py"]
            subprocess.run(program, cwd=path, check=True, timeout=PATIENCE, capture_output=True)
        changed = text.replace("\nimport optuna\n", "\nimport shirabe.compat.optuna as optuna\n")
        changed = changed.replace("\nfrom optuna.", "\nfrom shirabe.compat.optuna.")
        self.run_text(changed)

    def test_first(self):
        self.check("first")

    def test_kinds(self):
        self.check("kinds")

    def test_pruning(self):
        self.check("pruning")

    def test_attributes(self):
        self.check("attributes")

    def test_ask_and_tell(self):
        self.check("ask_and_tell")

    def test_stored(self):
        self.check("stored")

    def test_queued(self):
        self.check("queued")

    def test_several(self):
        self.check("several")

    def test_constrained(self):
        self.check("constrained")

    def test_constrained_trials(self):
        self.check("constrained_trials")  # needs Optuna 5, where that is installed


def plane(trial):
    return trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)


class StudyTest(SdkTest):
    def states(self, objective, trials=12, **options):
        study = optuna.create_study(**options)
        study.optimize(objective, n_trials=trials)
        return "".join(trial.state.name[0] for trial in study.trials)

    def test_samplers(self):
        samplers = optuna.samplers
        for sampler in (
            None,
            samplers.QMCSampler(seed=1),
            samplers.GPSampler(seed=1),
            samplers.CmaEsSampler(seed=1, restart_strategy="ipop"),
            samplers.NSGAIISampler(population_size=4),
        ):
            self.assertEqual(self.states(plane, sampler=sampler), 12 * "C")
        brute = samplers.BruteForceSampler()
        with mock.patch.object(logging.getLogger("shirabe.compat.optuna"), "warning") as warned:
            self.assertEqual(self.states(lambda t: t.suggest_int("n", 0, 3), sampler=brute), "CCCC")
        warned.assert_not_called()  # it is there to try all points

    def test_pruners(self):
        def curve(trial):
            x = trial.suggest_float("x", 0, 1)
            for step in range(8):
                trial.report(x + step, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return x

        pruners = optuna.pruners
        for pruner, pruned in (
            (pruners.NopPruner(), False),
            (pruners.PercentilePruner(10.0, n_startup_trials=1), True),
            (pruners.SuccessiveHalvingPruner(reduction_factor=2), True),
            (pruners.PatientPruner(None, 2), True),
            (pruners.ThresholdPruner(upper=3), True),
            (pruners.WilcoxonPruner(), True),
        ):
            # Seeded: points that only ever get better are not pruned.
            states = self.states(
                curve, pruner=pruner, sampler=optuna.samplers.RandomSampler(seed=1)
            )
            self.assertEqual("P" in states, pruned, type(pruner))

    def test_threads_run_as_many_trials_as_were_asked_for(self):
        for trials in range(3, 12):
            study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
            study.optimize(plane, n_trials=trials, n_jobs=3)
            self.assertEqual([t.state.name for t in study.trials], ["COMPLETE"] * trials)

    def test_what_cannot_be_had_is_refused_with_the_reason(self):
        def branches(trial):
            kind = trial.suggest_categorical("kind", ["a", "b"])
            return trial.suggest_float("x" if kind == "a" else "y", 0, 1)

        def widens(trial):
            return trial.suggest_float("x", 0, trial.suggest_int("n", 1, 9))

        grid = optuna.samplers.GridSampler({"x": [0, 1], "y": [0, 1]})
        for refused, reason in (
            (lambda: self.states(branches), "a space that changes from trial to trial cannot"),
            (lambda: self.states(widens), "ranges that change from trial to trial cannot"),
            (lambda: self.states(lambda t: 1.0), "asks for no parameter"),
            (lambda: optuna.create_study(storage="mysql://x"), "studies lie in a folder"),
            (lambda: self.states(plane, sampler=object()), "code of others does not run"),
            (lambda: optuna.samplers.CmaEsSampler(constraints_func=len), "nothing of this kind"),
            (lambda: self.states(self.constrained_at(0, 1)), "1 has the constraints none, and the"),
            (lambda: self.states(self.constrained_at(3)), "3 has the constraints 'c', and the"),
            (lambda: self.states(self.constrained_at(0), sampler=grid), "began with none"),
            (lambda: self.constrained_without_its_function(), "constraints none, and the .* '0'"),
            (lambda: optuna.pruners.MedianPruner(interval_steps=3), "leave it at 1"),
            (lambda: self.late_point(), "enqueue_trial: the search has begun"),
        ):
            with self.assertRaisesRegex(optuna.NotSupported, reason):
                refused()
        for name in ("visualization", "importance", "storages"):
            with self.assertRaisesRegex(AttributeError, f"has no {name}: "):
                getattr(optuna, name)

    def constrained_at(self, *numbers):
        def objective(trial):
            if trial.number in numbers[:1]:
                trial.set_constraint("c", -1)
            return plane(trial)

        return objective

    def constrained_without_its_function(self):
        given = {"study_name": "c", "storage": self.dir / "c", "load_if_exists": True}
        sampler = optuna.samplers.TPESampler(constraints_func=lambda t: (t.params["x"] - 0.5,))
        first = optuna.create_study(sampler=sampler, **given)
        first.optimize(plane, n_trials=3)
        first.close()
        again = optuna.load_study(study_name="c", storage=self.dir / "c", sampler=sampler)
        again.optimize(plane, n_trials=3)
        kept = [t.constraints == {"0": t.params["x"] - 0.5} for t in again.trials]
        self.assertEqual(kept, [True] * 6)
        again.close()
        with self.assertLogs("shirabe.compat.optuna", "INFO") as told:
            optuna.create_study(**given).optimize(plane, n_trials=1)
        self.assertIn("Using an existing study", told.output[0])

    def late_point(self):
        study = optuna.create_study()
        study.optimize(plane, n_trials=1)
        study.enqueue_trial({"x": 0.5})

    def test_a_study_that_is_killed_goes_on(self):
        text = """
import os, sys
import shirabe.compat.optuna as optuna
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    if trial.number == 3 and len(sys.argv) == 1:
        os.kill(os.getpid(), 9)
    return x
study = optuna.create_study(study_name="s", storage="here", load_if_exists=True)
study.optimize(objective, n_trials=5)
print([(t.number, t.state.name) for t in study.trials])
"""
        self.ended(self.start(text), -9)
        out = self.run_text(text, "again")
        self.assertEqual(eval(out), [(n, "COMPLETE") for n in range(8)])

    def test_a_study_goes_on_while_the_child_of_a_killed_process_is_slow_to_end(self):
        text = """
import os, pathlib, signal, sys
import shirabe.compat.optuna as optuna
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    if trial.number == 1 and len(sys.argv) == 1:
        lists = pathlib.Path("/proc/self/task").glob("*/children")
        child = int("".join(children.read_text() for children in lists))
        os.kill(child, signal.SIGSTOP)
        print(child, flush=True)
        os.kill(os.getpid(), 9)
    return x
study = optuna.create_study(study_name="s", storage="here", load_if_exists=True)
study.optimize(objective, n_trials=3)
print([(t.number, t.state.name) for t in study.trials])
"""
        child = int(self.ended(self.start(text), -9)[0])
        wakes = threading.Timer(1, os.kill, (child, signal.SIGCONT))
        wakes.start()
        self.addCleanup(wakes.join)
        out = self.run_text(text, "again")
        self.assertEqual(eval(out), [(n, "COMPLETE") for n in range(4)])

    def test_attributes_are_numbers_of_any_library_and_others_are_refused_at_once(self):
        study = optuna.create_study()

        def objective(trial):
            trial.set_user_attr("acc", Scalar(0.5))
            trial.set_user_attr("all", {"of": (Scalar(1), None)})
            kept = [1]
            trial.set_user_attr("kept", kept)
            kept.append(object())  # after it was stored
            for value in ({1}, [Array(1)], object()):
                with self.assertRaisesRegex(TypeError, "'bad' is a (set|list|obj).*no (set|Arr|o)"):
                    trial.set_user_attr("bad", value)
            return plane(trial)

        study.optimize(objective, n_trials=3)
        with self.assertRaisesRegex(TypeError, "'s' is a set"):
            study.optimize(lambda trial: trial.set_user_attr("s", set()), n_trials=3)
        study.optimize(objective, n_trials=1)
        self.assertEqual("".join(t.state.name[0] for t in study.trials), "CCCFC")
        attrs = {"acc": 0.5, "all": {"of": [1, None]}, "kept": [1]}
        self.assertEqual([study.trials[n].user_attrs for n in (0, 2, 4)], [attrs] * 3)
        study.set_user_attr("acc", Scalar(0.5))
        self.assertEqual(study.user_attrs, {"acc": 0.5})
        with self.assertRaisesRegex(TypeError, "'s' is a set"):
            study.set_user_attr("s", set())

    def test_a_trial_has_what_it_asked_for(self):
        def objective(trial):
            self.assertIs(trial.study, study)
            if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "adam":
                return 1
            return trial.suggest_float("momentum", 0, 1)

        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
        study.enqueue_trial({"optimizer": "sgd"})
        study.optimize(objective, n_trials=12)
        asked = {"sgd": ["momentum", "optimizer"], "adam": ["optimizer"]}
        self.assertEqual({t.params["optimizer"] for t in study.trials}, set(asked))
        for trial in study.trials:
            self.assertEqual(sorted(trial.params), asked[trial.params["optimizer"]])
            self.assertEqual(sorted(trial.distributions), sorted(trial.params))

    def test_it_says_that_all_points_were_tried(self):
        study = optuna.create_study()
        for _ in range(2):
            with self.assertLogs("shirabe.compat.optuna", "WARNING") as told:
                study.optimize(lambda trial: trial.suggest_int("n", 1, 3), n_trials=10)
            self.assertRegex("".join(told.output), "all 3 points have been tried, and none is tri")
        self.assertEqual(len(study.trials), 3)

    def test_an_interrupt_ends_it_as_in_optuna(self):
        study = optuna.create_study()

        def objective(trial):
            if trial.number == 2:
                raise KeyboardInterrupt
            return plane(trial)

        with self.assertRaises(KeyboardInterrupt):
            study.optimize(objective, n_trials=9)
        study.optimize(plane, n_trials=2)
        self.assertEqual([t.state.name for t in study.trials], ["COMPLETE"] * 4)


class Array:
    """As NumPy's and PyTorch's."""

    shape = (1,)

    def __init__(self, value):
        self._value = value

    def item(self):
        return self._value


class Scalar(Array):
    shape = ()


def both(trial):
    x = trial.suggest_float("x", 0, 1)
    return x, 1 - x


class SeveralObjectivesTest(SdkTest):
    def test_samplers_and_threads(self):
        samplers = optuna.samplers
        for sampler in (
            None,
            samplers.RandomSampler(seed=1),
            samplers.QMCSampler(seed=1),
            samplers.GPSampler(seed=1, n_startup_trials=4),
            samplers.TPESampler(seed=1, multivariate=True),
            samplers.NSGAIISampler(population_size=4),
            samplers.GridSampler({"x": [0.0, 0.25, 0.5, 0.75, 1.0, 0.1, 0.2, 0.3]}),
        ):
            study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
            study.optimize(both, n_trials=8, n_jobs=2)
            again = [list(both(Replay(trial))) for trial in study.trials]
            self.assertEqual([trial.values for trial in study.trials], again)
            self.assertEqual(len(study.best_trials), len(study.trials))
        study = optuna.create_study(
            directions=["minimize"] * 2, sampler=samplers.CmaEsSampler(seed=1)
        )
        with self.assertRaisesRegex(ValueError, "cmaes searches for the best of one objective"):
            study.optimize(both, n_trials=3)

    def test_a_pruner_is_not_asked(self):
        study = optuna.create_study(
            directions=["minimize"] * 2, pruner=optuna.pruners.ThresholdPruner(upper=0)
        )
        study.optimize(both, n_trials=4)
        self.assertEqual({t.state.name for t in study.trials}, {"COMPLETE"})

    def test_a_stored_study_keeps_directions_names_and_constraints(self):
        given = {"study_name": "s", "storage": self.dir / "s"}
        ways = ["maximize", "minimize"]
        for trials in (0, 4):  # before and after the space is known
            study = optuna.create_study(**given, directions=ways, load_if_exists=True)
            study.set_metric_names(["speed", "error"])
            study.set_user_attr("by", "us")
            study.optimize(both, n_trials=trials)
            study.close()
            loaded = optuna.load_study(**given)
            self.assertEqual(loaded.directions, ways)
            self.assertEqual(loaded.metric_names, ["speed", "error"])
            self.assertEqual(loaded.user_attrs, {"by": "us"})
            self.assertEqual([len(t.values) for t in loaded.trials], [2] * trials)
            loaded.close()
        with self.assertRaisesRegex(ValueError, "must match the length of the metric names"):
            loaded.set_metric_names(["speed"])

    def test_directions_that_are_wrong(self):
        for directions, message in (([], "greater than 0"), (["up"], "minimize or maximize")):
            with self.assertRaisesRegex(ValueError, message):
                optuna.create_study(directions=directions)
        with self.assertRaisesRegex(ValueError, "not both"):
            optuna.create_study(direction="minimize", directions=["minimize"])

    def test_told_values_that_are_wrong(self):
        study = optuna.create_study(directions=["minimize"] * 2)
        for values, why in (
            (1.0, "The number of the values 1 did not match the number of the objectives 2"),
            ((1.0, "x"), "The value 'x' could not be cast to float"),
            ((1.0, float("nan")), "The value nan is not acceptable"),
        ):
            with self.assertWarnsRegex(UserWarning, why):
                told = study.tell(study.ask(), values)
            self.assertEqual((told.state.name, told.values), ("FAIL", None))
            with self.assertRaisesRegex(ValueError, why):
                study.tell(study.ask(), values, state=optuna.trial.TrialState.COMPLETE)

    def test_constraints_that_are_wrong(self):
        study = optuna.create_study()
        trial = study.ask()
        with self.assertRaisesRegex(ValueError, "NaN"):
            trial.set_constraint("c", float("nan"))
        with self.assertRaisesRegex(TypeError, "constraint 'c' is 'x': give a number"):
            trial.set_constraint("c", "x")
        trial.set_constraint("c", 1)
        with self.assertWarnsRegex(UserWarning, "'c' is set already"):
            trial.set_constraint("c", 2)
        study.tell(trial, plane(trial))
        self.assertEqual(study.trials[0].constraints, {"c": 1.0})

        def infinite(trial):
            trial.set_constraint("c", float("inf") if trial.number == 2 else 0)
            return plane(trial)

        study.optimize(infinite, n_trials=3)
        self.assertEqual([t.state.name[0] for t in study.trials], ["C", "C", "F", "C"])
        reason = study.trials[2].system_attrs["fail_reason"]
        self.assertIn("The constraint 'c' is inf: it must be finite", reason)

        def raises(trial):
            raise KeyError("lost")

        sampler = optuna.samplers.TPESampler(constraints_func=raises)
        with self.assertRaises(KeyError):
            optuna.create_study(sampler=sampler).optimize(plane, n_trials=3)

    def test_what_the_log_says(self):
        lines = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(record.getMessage())
        logger = optuna.logging.get_logger("shirabe.compat.optuna")
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)
        optuna.logging.set_verbosity(optuna.logging.INFO)
        self.addCleanup(optuna.logging.set_verbosity, optuna.logging.CRITICAL)
        optuna.logging.disable_default_handler()
        self.addCleanup(optuna.logging.enable_default_handler)
        optuna.create_study(directions=["minimize"] * 2).optimize(both, n_trials=1)
        line = r"^Trial 0 finished with values: \[.*\] and parameters: .*\}\.$"
        self.assertRegex(lines[-1], line)

        def constrained(trial):
            trial.set_constraint("c", 1 - trial.number)
            return trial.suggest_float("x", 0, 1) - trial.number

        optuna.create_study().optimize(constrained, n_trials=2)
        self.assertRegex(lines[-2], r"value: \S+ and parameters: .*\}\.$")
        self.assertRegex(lines[-1], r"\. Best is trial 1 with value: -\S+\.$")

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
    def test_columns(self):
        study = optuna.create_study(directions=["minimize"] * 2)
        study.optimize(both, n_trials=2)
        columns = list(study.trials_dataframe(attrs=("number", "value", "params")).columns)
        self.assertEqual(columns, ["number", "values_0", "values_1", "params_x"])
        study.set_metric_names(["speed", "error"])
        self.assertIn("values_error", study.trials_dataframe().columns)


class Replay:
    """A trial that has ended, to call its objective again."""

    def __init__(self, trial):
        self._params = trial.params

    def suggest_float(self, name, low, high):
        return self._params[name]


if __name__ == "__main__":
    unittest.main()
