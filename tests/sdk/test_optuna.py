"""Programs written for Optuna: each runs after one changed import. With Optuna itself installed,
the programs are also run by it, so that they are what they claim to be."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import unittest

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
        self.assertEqual(self.states(lambda t: t.suggest_int("n", 0, 3), sampler=brute), "CCCC")

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
            self.assertEqual("P" in self.states(curve, pruner=pruner), pruned, type(pruner))

    def test_what_cannot_be_had_is_refused_with_the_reason(self):
        def branches(trial):
            kind = trial.suggest_categorical("kind", ["a", "b"])
            return trial.suggest_float("x" if kind == "a" else "y", 0, 1)

        def widens(trial):
            return trial.suggest_float("x", 0, trial.suggest_int("n", 1, 9))

        for refused, reason in (
            (lambda: self.states(branches), "a space that changes from trial to trial cannot"),
            (lambda: self.states(widens), "ranges that change from trial to trial cannot"),
            (lambda: self.states(lambda t: 1.0), "asks for no parameter"),
            (lambda: self.states(lambda t: (plane(t), 1)), "2 values: a study has one objective"),
            (lambda: optuna.create_study(directions=["minimize"] * 2), "one objective"),
            (lambda: optuna.create_study(storage="mysql://x"), "studies lie in a folder"),
            (lambda: self.states(plane, sampler=object()), "code of others does not run"),
            (lambda: optuna.samplers.TPESampler(constraints_func=len), "nothing of this kind"),
            (lambda: optuna.pruners.MedianPruner(interval_steps=3), "leave it at 1"),
            (lambda: self.late_point(), "enqueue_trial: the search has begun"),
        ):
            with self.assertRaisesRegex(optuna.NotSupported, reason):
                refused()
        for name in ("visualization", "importance", "storages"):
            with self.assertRaisesRegex(AttributeError, f"has no {name}: "):
                getattr(optuna, name)

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


if __name__ == "__main__":
    unittest.main()
