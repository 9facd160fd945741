"""shirabe.optimize with the real program: what functions may do, and what is told of it."""

import collections
import contextvars
import functools
import math
import os
import signal
import tempfile
import threading
import time
import unittest
import unittest.mock

from support import SdkTest, bowl, dies, exits, is_killed, slow_first, told

import shirabe
from shirabe.connection import Connection

SPACE = {"x": shirabe.float(0, 1), "n": shirabe.int(0, 3)}
LINE = {"x": shirabe.float(0, 1)}


class OptimizeTest(SdkTest):
    def optimize(self, function, space=LINE, **options):
        given = {"minimize": "loss", "trials": 4, "algorithm": "random", "storage": self.storage}
        return shirabe.optimize(function, space, **{**given, **options})

    def reasons(self, function, **options):
        """Of the trials of a search that fails."""
        with self.assertRaises(shirabe.TrialFailed) as failed:
            self.optimize(function, **options)
        return [trial.reason for trial in failed.exception.result.trials]


class Works(OptimizeTest):
    def test_finds_the_best_and_tells_all(self):
        best = self.optimize(bowl, SPACE, trials=15, algorithm="auto")
        self.assertEqual(len(best), 15)
        self.assertEqual([t.number for t in best], list(range(1, 16)))
        self.assertEqual(best.value, min(t.value for t in best))
        self.assertEqual(best.value, bowl(**best.params))
        self.assertLess(best.value, 0.5)
        self.assertEqual(best.ended, "trials")
        self.assertEqual(best.curve()[-1], best.value)
        self.assertTrue(all(t.state == "done" and t.chosen for t in best.trials))
        self.assertIn(f"trial {best.best.number}", repr(best))
        page = best._repr_html_()
        self.assertIn("<svg", page)
        self.assertIn("<th>n</th>", page)

    def test_maximizes(self):
        best = self.optimize(lambda x: x, minimize=None, maximize="score")
        self.assertEqual(best.value, max(t.value for t in best))
        self.assertEqual(best.objective, "score")

    def test_every_way_to_take_parameters(self):
        def by_dict(params):
            return params["x"]

        def by_trial(trial):
            return trial.params["x"] + trial.number

        def with_trial(x, *, trial):
            return x * trial.number

        def with_more(x, scale=2, **rest):
            return x * scale

        ways = [by_dict, by_trial, with_trial, with_more, functools.partial(bowl, n=0), max_of]
        for function in ways:
            self.assertEqual(len(self.optimize(function, trials=2)), 2)
        for function in (lambda y, z: 0, lambda: 0, lambda x, needed: 0):
            with self.assertRaisesRegex(TypeError, "cannot be called with the parameters x"):
                self.optimize(function)

    def test_categories_are_the_objects_themselves(self):
        values = [True, "True", None, "None", len, (1, 2), "", "a b"]
        seen = []
        space = {"v": shirabe.choice(values), "size": [16, 32.5, 64], "r": range(2, 9, 3)}
        self.optimize(lambda **p: seen.append(p) or 1, space, trials=40)
        self.assertTrue(all(any(p["v"] is v for v in values) for p in seen))
        self.assertGreater(len({repr(p["v"]) for p in seen}), 4)
        self.assertEqual({type(p["size"]) for p in seen}, {int, float})
        self.assertEqual({p["r"] for p in seen}, {2, 5, 8})

    def test_functions_of_one_name_are_categories_too(self):
        def act(x):
            return x

        first, values = act, [act, lambda x: 1, lambda x: 2]

        def act(x):
            return -x

        values.append(act)
        self.assertEqual(shirabe.choice([first, len]).texts, ["act", "<built-in function len>"])
        self.assertEqual(shirabe.choice(values).texts, ["act", "<lambda>", "<lambda> 2", "act 3"])
        seen = []
        self.optimize(lambda f: seen.append(f) or 1, {"f": values}, algorithm="grid")
        self.assertEqual(set(seen), set(values))
        with self.assertRaisesRegex(ValueError, "a value is there twice"):
            shirabe.choice([first, first])

    def test_metrics_by_step_and_at_the_end(self):
        for workers in ("threads", "processes"):
            best = self.optimize(told, metrics=["other"], workers=workers, parallel=2)
            for trial in best:
                self.assertEqual(trial.metrics["loss"], trial.params["x"])
                self.assertEqual(trial.metrics["other"], 3)
                self.assertAlmostEqual(trial.metrics["accuracy"], 1 - trial.params["x"])
                self.assertEqual(trial.metrics["pid"] == os.getpid(), workers == "threads")

    def test_the_helpers_of_training_code_act_on_the_trial(self):
        def train(x):
            self.assertEqual(shirabe.params(epochs=3), {"epochs": 3, "x": x})
            self.assertIsNone(shirabe.resume())
            shirabe.report(1, loss=x)
            with shirabe.checkpoint(1) as folder:
                (folder / "model").write_text("1")
            self.assertEqual(shirabe.resume().name, "1")
            self.assertFalse(shirabe.should_stop() or shirabe.should_checkpoint())
            shirabe.done()

        best = self.optimize(train)
        self.assertEqual([t.reason for t in best], [""] * 4)
        self.assertEqual(best.value, best.params["x"])
        self.assertTrue((best.best.folder / "checkpoints" / "1" / "model").exists())

    def test_a_stopper_ends_trials(self):
        def train(x, trial):
            for step in range(1, 20):
                trial.report(step, loss=x)
                if trial.should_stop():
                    return 99.0  # too late: it has ended
            return x

        rule = ("medianstop", {"min_trials_required": 2, "start_step": 1})
        best = self.optimize(train, trials=12, stopper=rule)
        stopped = [t for t in best if t.state == "stopped"]
        self.assertTrue(stopped)
        self.assertTrue(all(t.value == t.params["x"] and "median" in t.reason for t in stopped))
        self.assertEqual(best.best.state, "done")

    def test_a_thread_that_a_function_starts_reports_for_its_trial(self):
        def function(trial, context=False):
            errors = []

            def inside():
                try:
                    self.assertEqual(shirabe.params()["x"], trial.params["x"])
                    shirabe.report(1, loss=trial.params["x"])
                except RuntimeError as error:
                    errors.append(error)

            run = contextvars.copy_context().run if context else lambda target: target()
            thread = threading.Thread(target=run, args=(inside,))
            together.wait()
            thread.start()
            thread.join()
            together.wait()
            if errors:
                raise errors[0]

        for context, parallel in ((False, 1), (True, 2)):
            together = threading.Barrier(parallel, timeout=60)
            run = functools.partial(function, context=context)
            found = self.optimize(lambda x, trial: run(trial), parallel=parallel, trials=2)
            self.assertEqual([t.value for t in found], [t.params["x"] for t in found])
        with self.assertRaisesRegex(shirabe.TrialFailed, r"start it with .*copy_context\(\).run"):
            self.optimize(lambda x, trial: function(trial), parallel=2, trials=2)

    def test_what_still_runs_when_the_goal_is_reached_is_stopped_and_not_failed(self):
        for workers in ("threads", "processes"):
            # Not in self.dir: processes that the pool leaves behind would seem to be of the test.
            with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(
                os.environ, {"SLOW_FIRST": f"{folder}/other"}
            ):
                found = self.optimize(
                    slow_first, goal=0.5, parallel=2, trials=6, max_failed=0, workers=workers
                )
            self.assertEqual(found.ended, "goal")
            first = found.trials[0]
            self.assertEqual((first.state, first.value), ("stopped", None))
            self.assertEqual(first.reason, "the search ended before this trial did")
            self.assertIn("1 stopped", repr(found))
            self.assertEqual(found.value, 0.1)

    def test_goal_timeout_grid_and_first(self):
        self.assertEqual(self.optimize(lambda x: x, goal=0.9, trials=200).ended, "goal")
        slow = self.optimize(lambda x: time.sleep(0.1) or x, timeout=0.25, trials=100)
        self.assertEqual(slow.ended, "timeout")
        self.assertLess(len(slow), 10)
        grid = self.optimize(lambda x: x, {"x": [3, 1, 2]}, algorithm="grid", trials=100)
        self.assertEqual(sorted(t.params["x"] for t in grid), [1, 2, 3])
        self.assertEqual(grid.ended, "exhausted")
        first = self.optimize(lambda x: x, first=[{"x": 0.25}, {"x": 0.75}], trials=2)
        self.assertEqual([t.params["x"] for t in first], [0.25, 0.75])

    def test_the_same_seed_gives_the_same_points(self):
        runs = [self.optimize(bowl, SPACE, seed=7, trials=5) for _ in range(2)]
        self.assertEqual(*[[t.params for t in run] for run in runs])

    def test_more_workers_than_trials_and_no_trials(self):
        self.assertEqual(len(self.optimize(bowl, SPACE, trials=2, parallel=8)), 2)
        nothing = self.optimize(bowl, SPACE, trials=0)
        self.assertEqual((len(nothing), nothing.best), (0, None))
        with self.assertRaisesRegex(ValueError, "no trial of .* has a value"):
            nothing.params

    def test_searches_in_threads_and_within_each_other(self):
        def outer(x):
            inner = self.optimize(lambda y: x + y, {"y": [1, 2]}, trials=2, algorithm="grid")
            return inner.value

        found = []
        threads = [
            threading.Thread(target=lambda: found.append(self.optimize(outer, parallel=2)))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([len(best) for best in found], [4, 4])
        self.assertTrue(all(t.state == "done" for best in found for t in best))

    def test_goes_on_where_it_was(self):
        self.assertEqual(len(self.optimize(bowl, SPACE, name="again", trials=3)), 3)
        calls = []
        more = self.optimize(
            lambda **p: calls.append(p) or bowl(**p), SPACE, name="again", trials=5, parallel=2
        )
        self.assertEqual((len(more), len(calls)), (5, 2))
        done = self.optimize(lambda **p: self.fail("called"), SPACE, name="again", trials=5)
        self.assertEqual([t.value for t in done], [t.value for t in more])
        other = {"x": shirabe.float(0, 2), "m": [1]}
        with self.assertRaisesRegex(ValueError, "'m' is new; 'n' is missing; 'x' was double 0…1"):
            self.optimize(lambda **p: 1, other, name="again", trials=5)

    def test_an_argument_that_differs_from_the_stored_search_is_refused(self):
        def call(**given):
            kept = {"name": "same", "goal": 1e-9, "seed": 3, "first": [{"x": 0.1, "n": 3}]}
            return self.optimize(bowl, SPACE, **{**kept, **given})

        self.assertEqual(len(call(trials=2)), 2)
        for given, reason in (
            ({"goal": 0.5}, "goal was 1e-09 and is 0.5. Give this one another name, or call it as"),
            ({"goal": None}, "goal was 1e-09 and is none"),
            ({"seed": 4}, "seed was 3 and is 4"),
            ({"first": []}, r"first was {'x': 0.1, 'n': 3} and is none"),
            ({"seed": None, "first": [{"x": 0.2, "n": 3}]}, "'x': 0.2, 'n': 3}; seed was 3 and is"),
        ):
            with self.assertRaisesRegex(ValueError, reason):
                call(trials=4, **given)
        self.assertEqual(len(call(trials=4, parallel=2, timeout=60, max_failed=3)), 4)

    def test_a_search_that_is_over_takes_no_more_trials(self):
        for name, given, reason in (
            ("reached", {"goal": 0.9}, "reached the goal"),
            ("tried", {"space": {"x": [0.2, 0.4]}}, "all 2 points have been tried"),
        ):
            first = self.optimize(lambda x: x, name=name, trials=50, **given)
            again = self.optimize(lambda x: x, name=name, trials=50, **given)
            self.assertEqual((again.ended, len(again)), (first.ended, len(first)))
            over = f"trials=60: name='{name}' is over, and takes no more than .*=50 .*{reason}"
            with self.assertRaisesRegex(ValueError, over):
                self.optimize(lambda x: x, name=name, trials=60, **given)

    def test_to_pandas(self):
        best = self.optimize(bowl, SPACE)
        try:
            import pandas  # noqa: F401
        except ImportError:
            with self.assertRaises(ImportError):
                best.to_pandas()
        else:
            frame = best.to_pandas()
            self.assertEqual(
                list(frame.columns)[:5], ["number", "state", "value", "seconds", "params.x"]
            )


class Fails(OptimizeTest):
    def test_returns_that_are_no_result(self):
        for returned, reason in (
            ("0.5", "loss is the text '0.5': give a number"),
            (None, "the function returned nothing and reported no loss"),
            (1j, "loss is 1j: give one number"),
            ([1.0], "give one number"),
            ({"acc": 1.0}, "the function returned 'acc', but not 'loss'"),
            ({}, "but not 'loss'"),
            ({"loss": 1.0, "note": "x"}, "note is the text 'x'"),
        ):
            reasons = self.reasons(lambda x: returned)
            self.assertEqual(len(reasons), 3)  # it ends early
            self.assertIn(reason, reasons[0])

    def test_results_that_are_not_finite_never_win(self):
        values = iter([math.nan, -math.inf, 10**400, 5.0])
        best = self.optimize(lambda x: next(values))
        self.assertEqual([t.state for t in best], ["infeasible"] * 3 + ["done"])
        self.assertEqual(best.value, 5.0)
        self.assertIn("loss is nan", best.trials[0].reason)

    def test_numbers_of_other_libraries(self):
        class Scalar:
            shape = ()

            def __float__(self):
                return 0.5

        self.assertEqual(self.optimize(lambda x: Scalar()).value, 0.5)
        self.assertEqual(self.optimize(lambda x: True).value, 1.0)

    def test_exceptions_are_kept_and_the_search_goes_on(self):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        def fails(trial):
            if trial.number == 2:
                raise ValueError("it burns\nbadly")
            if trial.number == 3:
                raise shirabe.Infeasible("too large")
            if trial.number == 4:
                raise Mute
            if trial.number == 5:
                exits(0)
            return 1.0

        best = self.optimize(fails, trials=6)
        states = ["done", "failed", "infeasible", "failed", "failed", "done"]
        self.assertEqual([t.state for t in best], states)
        self.assertRegex(
            best.trials[1].reason, r"^ValueError: it burns badly \(test_optimize.py:\d+ in fails\)$"
        )
        trace = (best.trials[1].folder / "traceback.txt").read_text()
        self.assertIn('raise ValueError("it burns', trace)
        self.assertEqual(best.trials[2].reason, "too large")
        self.assertIn("Mute", best.trials[3].reason)
        self.assertIn("sys.exit('no more')", best.trials[4].reason)

    def test_ends_when_all_or_too_many_fail(self):
        def fails(x):
            raise KeyError("typo")

        with self.assertRaisesRegex(shirabe.TrialFailed, "the first 3 trials have all") as failed:
            self.optimize(fails, trials=50)
        self.assertIsInstance(failed.exception.__cause__, KeyError)
        self.assertEqual(len(failed.exception.result), 3)
        with self.assertRaisesRegex(shirabe.TrialFailed, "no trial has a result"):
            self.optimize(fails, trials=2)
        with self.assertRaisesRegex(shirabe.TrialFailed, "5 trials have failed, more than max_f"):
            self.optimize(fails, trials=50, max_failed=4)
        self.assertEqual(len(self.optimize(infeasible, trials=5)), 5)

    def test_ends_with_the_reason_however_it_ends_when_all_have_failed(self):
        def fails(x):
            time.sleep(0.05)
            raise KeyError("typo")

        for given in (
            {"space": {"x": [1, 2]}, "algorithm": "grid", "trials": 9, "name": "tried"},
            {"space": {"x": [1, 2]}, "algorithm": "grid", "trials": 9, "name": "tried"},  # again
            {"timeout": 0.2, "max_failed": 99, "trials": 99},
        ):
            with self.assertRaisesRegex(shirabe.TrialFailed, "no trial has a.* KeyError: 'typo'"):
                self.optimize(fails, **given)

        def interrupted(x):
            os.kill(os.getpid(), signal.SIGINT)
            fails(x)

        self.assertEqual(self.optimize(interrupted).ended, "interrupted")

    def test_other_exceptions_end_the_search_at_once(self):
        for error, parallel in ((GeneratorExit, 1), (KeyboardInterrupt, 1), (KeyboardInterrupt, 3)):

            def raises(x):
                raise error

            with self.assertRaises(error):
                self.optimize(raises, parallel=parallel, name="ends-at-once")
        done = self.optimize(lambda x: x, name="ends-at-once")
        self.assertEqual([t.state for t in done], ["done"] * 4)  # what was open is run again

    def test_workers_that_die_cost_their_trial(self):
        best = self.optimize(dies, workers="processes", parallel=2, trials=8, seed=1)
        reasons = {t.reason for t in best if t.state == "failed"}
        self.assertEqual(reasons, {"its worker process ended with exit code 3"})
        self.assertTrue(all((t.params["x"] > 0.5) == (t.state == "failed") for t in best))
        reason = "its worker process was killed by SIGKILL (out of memory?)"
        self.assertIn(reason, self.reasons(is_killed, workers="processes"))
        reason = "the function called sys.exit('no more')"
        self.assertIn(reason, self.reasons(exits, workers="processes")[0])

    def test_reports_that_are_wrong(self):
        for report, reason in (
            (lambda t: t.report(0.5, 3), "positional argument"),
            (lambda t: t.report(1.5, loss=1), "step must be a whole number, not 1.5"),
            (lambda t: t.report(-1, loss=1), "step must not be negative"),
            (lambda t: t.report(1, loss="a"), "loss is the text 'a'"),
            (lambda t: t.report(1), "report has no metric"),
        ):
            self.assertIn(reason, self.reasons(lambda trial: report(trial))[0])


class Refuses(OptimizeTest):
    def test_arguments_in_words(self):
        for options, message in (
            ({"minimize": None}, "say what is best: minimize="),
            ({"maximize": "loss"}, "'loss' is named twice"),
            ({"minimize": [], "maximize": ()}, "say what is best: minimize="),
            ({"minimize": ""}, "the name of a metric"),
            ({"trials": "5"}, "trials must be a whole number, not '5'"),
            ({"trials": -1}, "trials must be from 0"),
            ({"parallel": 0}, "parallel must be from 1"),
            ({"workers": "fork"}, 'workers must be "threads" or "processes"'),
            ({"name": "Bad Name"}, "lower-case letters"),
            ({"timeout": "soon"}, "timeout must be a number"),
            ({"goal": math.nan}, "goal must be finite"),
            ({"algorithm": "tpf"}, 'algorithm: unknown name "tpf"; did you mean "tpe"?'),
            ({"algorithm": ("tpe", {"gama": 1})}, 'did you mean "gamma"'),
            ({"stopper": "median2"}, "stopper: unknown name"),
            ({"metrics": "acc"}, "metrics is a list of names"),
            ({"first": [{"x": 2}]}, r'first\[0\]\["x"\]: 2 is not in float\(0.0, 1.0\)'),
            ({"first": [{"y": 2}]}, r"first\[0\]: the space has no 'y'"),
            ({"binary": "/nope"}, "binary=/nope is no program"),
        ):
            with self.assertRaisesRegex((ValueError, TypeError, FileNotFoundError), message):
                self.optimize(lambda x: x, **options)
        with self.assertRaisesRegex(TypeError, "fn is 5"):
            self.optimize(5)

    def test_spaces_in_words(self):
        for space, message in (
            ({"x": (0, 1)}, r'space\["x"\] is \(0, 1\): write shirabe.float\(0, 1\)'),
            ({"x": 5}, "it is no range: leave it out"),
            ({"x": []}, r'space\["x"\]: choice has no values'),
            ({"x": [1, 1.0]}, "there twice"),
            ({"x": {1, 2}}, "or a list of values"),
            ({}, "space is empty"),
            ([1], "give a dict"),
            ({1: [1]}, "must be a text"),
            ({"x": shirabe.int(0, 2**60)}, r'space\["x"\]: .* is beyond 2\^53'),
            ({f"x{i}": [1] for i in range(1001)}, "space: has 1001 items, and at most 1000"),
        ):
            with self.assertRaisesRegex((ValueError, TypeError), message):
                self.optimize(lambda params: 1, space)
        for make, message in (
            (lambda: shirabe.float(1, 0), "low is greater than high: swap them"),
            (lambda: shirabe.log(0, 1), "a logarithm needs low > 0"),
            (lambda: shirabe.int(1.5, 2), "low must be a whole number, not 1.5"),
            (lambda: shirabe.float("a", 1), "low must be a number, not 'a'"),
            (lambda: shirabe.float(0, math.inf), "high must be finite"),
            (lambda: shirabe.float(0, 1, step=0), "step must be greater than 0"),
            (lambda: shirabe.choice("abc"), "a list of values"),
        ):
            with self.assertRaisesRegex((ValueError, TypeError), message):
                make()

    def test_odd_names_and_large_spaces_are_fine(self):
        odd = {"a b": [1, 2], "ünï\n": shirabe.int(1, 3), "class": ["x"], "${x}": shirabe.log(1, 2)}
        seen = self.optimize(lambda params: len(params), odd)
        self.assertEqual(set(seen.params), set(odd))
        large = {f"x{i}": shirabe.float(0, 1) for i in range(1000)}
        self.assertEqual(len(self.optimize(lambda **p: sum(p.values()), large, trials=2)), 2)
        many = self.optimize(lambda x: x, {"x": list(range(10000))}, trials=2)
        self.assertEqual(len(many), 2)

    def test_the_storage_of_shirabe_run(self):
        home = self.dir / "home"
        before = os.environ.get("SHIRABE_HOME")
        os.environ["SHIRABE_HOME"] = str(home)
        self.addCleanup(
            lambda: (
                os.environ.update(SHIRABE_HOME=before) if before else os.environ.pop("SHIRABE_HOME")
            )
        )
        with self.assertRaisesRegex(ValueError, "belongs to `shirabe run`"):
            self.optimize(bowl, SPACE, storage=home)


class CostTest(OptimizeTest):
    """What a trial asks of the child, which no load changes."""

    def count(self, function, **options):
        """How often it is asked for what, by the last word of the address."""
        asked = collections.Counter()
        call = Connection.call

        def counted(connection, method, path, body=None):
            asked[path.rpartition(":")[2] if ":" in path else method] += 1
            return call(connection, method, path, body)

        with unittest.mock.patch.object(Connection, "call", counted):
            best = self.optimize(function, trials=10, **options)
        self.assertEqual(len(best), 10)
        return asked

    def test_a_trial_is_one_request(self):
        asked = self.count(lambda x: x)
        self.assertEqual(asked["tell"], 10)
        self.assertLessEqual(asked["ask"], 3)  # the first, and until the end is known

    def test_what_a_function_reports_is_one_more_each(self):
        def function(x, trial):
            trial.report(1, loss=x)
            return x

        asked = self.count(function, name="reports")
        self.assertEqual(asked["tell"], 20)
        self.assertLessEqual(asked["ask"], 3)

    def test_trials_that_fail_ask_for_nothing(self):
        """The search may end with one of them: then none has been given that no one runs."""

        def function(x):
            raise OSError("out of luck")

        with self.assertRaises(shirabe.TrialFailed) as failed:
            self.optimize(function, trials=10)
        self.assertEqual([t.state for t in failed.exception.result.trials], ["failed"] * 3)

    def test_trials_that_run_at_once_are_one_request_each(self):
        asked = self.count(lambda x: x, parallel=3, name="at-once")
        self.assertEqual(asked["tell"], 10)
        asked = self.count(bowl_of_one, parallel=2, workers="processes", name="in-processes")
        self.assertEqual(asked["tell"], 10)


def bowl_of_one(x):
    return (x - 0.3) ** 2


def max_of(*points):
    return max(points[0].values())


def infeasible(x):
    raise shirabe.Infeasible("nothing fits")


if __name__ == "__main__":
    unittest.main()
