"""shirabe.optimize with several objectives and constraints, with the real program; and the front,
computed here and by that."""

import itertools
import json
import math
import os
import random
import re
import subprocess
import sys
import time
import unittest

from support import BINARY, ROOT, SDK, SdkTest, front

import shirabe
from shirabe_client.front import choose, front_of

SQUARE = {"x": shirabe.float(0, 1), "z": shirabe.float(0, 1)}
LINE = {"x": shirabe.float(0, 1)}
BOTH = ["first", "second"]


def line(x):
    return {"loss": x, "memory": 10 - 10 * x, "recall": x}


def dominates(a, b):
    return a != b and all(p <= q for p, q in zip(a, b))


def area(points, reference):
    """Of two losses each, from the reference: what is dominated."""
    total, ceiling = 0.0, reference[1]
    for first, second in sorted(points):
        if first < reference[0] and second < ceiling:
            total += (reference[0] - first) * (ceiling - second)
            ceiling = second
    return total


class ObjectivesTest(SdkTest):
    def optimize(self, function=front, space=SQUARE, **options):
        given = {"trials": 4, "algorithm": "random", "seed": 3, "storage": self.storage}
        if "minimize" not in options and "maximize" not in options:
            given["minimize"] = BOTH if function is front else "loss"
        return shirabe.optimize(function, space, **{**given, **options})

    def shirabe(self, *words):
        """The program, on the same storage."""
        done = subprocess.run(
            [BINARY, *words],
            env={**self.environment, "SHIRABE_HOME": str(self.storage)},
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    def reason(self, function, **options):
        """Of the trials of a search that fails."""
        with self.assertRaises(shirabe.TrialFailed) as failed:
            self.optimize(function, LINE, **options)
        return failed.exception.result.trials[0].reason


class SeveralObjectives(ObjectivesTest):
    def test_the_front_is_that_of_all_trials_and_of_the_program(self):
        reference = {"first": 1, "second": 10}
        best = self.optimize(trials=30, algorithm="auto", reference=reference, name="zdt")
        for trial in best:
            expected = front(**trial.params)
            self.assertEqual(trial.values, {name: expected[name] for name in BOTH})
            self.assertEqual(trial.value, expected["first"])
            self.assertEqual(trial.metrics["size"], expected["size"])
            self.assertEqual((trial.state, trial.broken, trial.feasible), ("done", {}, True))
        points = [tuple(t.values.values()) for t in best]
        kept = [p for p in points if not any(dominates(q, p) for q in points)]
        found = [tuple(t.values.values()) for t in best.front]
        self.assertEqual(found, sorted(set(kept)))
        self.assertGreater(len(found), 10)
        self.assertIs(best.best, best.trials[best.front[0].number - 1])
        self.assertEqual(best.reference, {"first": 1.0, "second": 10.0})
        self.assertAlmostEqual(best.hypervolume, area(points, (1, 10)), places=9)
        self.assertGreater(best.hypervolume, 9.4)  # of at most 10 - 1/3
        told = json.loads(self.shirabe("best", "zdt", "-o", "json"))["front"]
        names = [int(t["trial"].rpartition("-")[2]) for t in told["trials"]]
        self.assertEqual(names, [t.number for t in best.front])
        self.assertEqual(told["hypervolume"], best.hypervolume)

    def test_the_one_trial_by_weights_or_order_is_that_of_the_program(self):
        best = self.optimize(trials=25, name="chosen")
        self.assertGreater(len(best.front), 3)
        seen = set()
        even = dict.fromkeys(BOTH, 1)
        for weights in ({"first": 1}, {"second": 2}, {"first": 3, "second": 1}, even):
            words = [word for n, w in weights.items() for word in ("--weights", f"{n}={w}")]
            told = json.loads(self.shirabe("best", "chosen", "-o", "json", *words))
            seen.add(told["trial"])
            self.assertEqual(told["trial"], f"chosen-{best.best_by(weights=weights).number}")
        self.assertGreater(len(seen), 2)
        for order in (["first"], ["second", "first"]):
            words = [word for name in order for word in ("--order", name)]
            told = json.loads(self.shirabe("best", "chosen", "-o", "json", *words))
            self.assertEqual(told["trial"], f"chosen-{best.best_by(order=order).number}")
        for arguments, message in (
            ({}, "give weights="),
            ({"weights": {"size": 1}}, "'size' is no objective; they are first, second"),
            ({"weights": {"first": 0}}, "must be above 0"),
            ({"weights": {"first": "1"}}, "must be a number, not '1'"),
            ({"weights": {}}, "weights is empty"),
            ({"order": "first"}, "order is a list"),
            ({"order": ["third"]}, "'third' is no objective"),
            ({"weights": {"first": 1}, "order": ["first"]}, "one of them"),
        ):
            with self.assertRaisesRegex((ValueError, TypeError), message):
                best.best_by(**arguments)

    def test_a_search_that_is_cut_short_knows_its_front_too(self):
        best = self.optimize(
            lambda x: time.sleep(0.01) or {"first": x, "second": -x * x},
            LINE,
            minimize=BOTH,
            trials=500,
            timeout=0.4,
            parallel=3,
            reference={"first": 1, "second": 0},
        )
        self.assertEqual(best.ended, "timeout")
        points = [tuple(t.values.values()) for t in best if t.values]
        self.assertEqual(len(best.front), len(points))
        self.assertAlmostEqual(best.hypervolume, area(points, (1, 0)), places=9)

    def test_directions_and_which_objective_is_the_first(self):
        def function(x):
            return {"loss": x, "speed": x * x, "recall": 1 - x}

        best = self.optimize(function, LINE, minimize="loss", maximize=("speed", "recall"))
        ways = {"loss": "minimize", "speed": "maximize", "recall": "maximize"}
        self.assertEqual(list(best.directions.items()), list(ways.items()))
        self.assertEqual((best.objective, best.direction), ("loss", "minimize"))
        self.assertEqual(len(best.front), 4)
        self.assertEqual(best.value, min(t.params["x"] for t in best))
        best = self.optimize(function, LINE, maximize=["speed", "loss"])
        self.assertEqual((best.objective, best.direction), ("speed", "maximize"))
        self.assertEqual([t.value for t in best.front], [max(t.value for t in best)])

    def test_a_goal_of_each_is_reached_by_one_trial(self):
        def function(x):
            return {"a": x, "b": 1 - x}

        best = self.optimize(
            function, LINE, minimize=["a", "b"], goal={"a": 0.6, "b": 0.6}, trials=200
        )
        self.assertEqual(best.ended, "goal")
        self.assertTrue(0.4 <= best.trials[-1].params["x"] <= 0.6)
        self.assertFalse(any(0.4 <= t.params["x"] <= 0.6 for t in best.trials[:-1]))

    def test_reports_count_by_their_last_value_and_in_processes(self):
        def function(x, trial):
            for step in (1, 2, 3):
                trial.report(step, first=x + step, second=1 - x)
            return {"first": x}

        best = self.optimize(function, LINE, minimize=BOTH)
        for trial in best:
            x = trial.params["x"]
            self.assertEqual(trial.values, {"first": x, "second": 1 - x})
        best = self.optimize(
            workers="processes", parallel=2, constraints={"size": {"max": 120}}, trials=8, seed=1
        )
        self.assertTrue(all(t.values["first"] == t.params["x"] for t in best))
        self.assertTrue(best.front and any(t.broken for t in best))

    def test_what_is_shown(self):
        best = self.optimize(trials=6, constraints=["size <= 80"])
        broken = sum(bool(t.broken) for t in best)
        self.assertGreater(broken, 1)
        self.assertIn(f"6 trials, {broken} break constraints; front of", repr(best))
        self.assertIn("hypervolume", repr(best))
        self.assertIn(f"of trial {best.best.number}", repr(best))
        page = best._repr_html_()
        self.assertIn("<th>first</th><th>second</th><th>x</th>", page)
        self.assertEqual(page.count("<circle"), 6 - broken)
        self.assertEqual(page.count('r="3.5"'), len(best.front))
        self.assertIn(f"break constraints; front of {len(best.front)}", page)
        self.assertEqual(page.count("<tr>"), 1 + min(5, len(best.front)))
        three = self.optimize(
            lambda x: {"a": x, "b": 1 - x, "c": 1}, LINE, minimize=["a", "b", "c"]
        )
        self.assertIn("best a so far", three._repr_html_())

    def test_progress(self):
        text = """
import shirabe
from support import front
best = shirabe.optimize(
    front, {"x": shirabe.float(0, 1), "z": shirabe.float(0, 1)}, minimize=["first", "second"],
    constraints=["size <= 80"], trials=6, algorithm="random", seed=3, progress=True,
    storage="storage", name="shown")
print(len(best.front), sum(bool(t.broken) for t in best), best.best.number, best.value)
"""
        for _ in range(2):  # the second goes on with what is there
            out, err = self.ended(self.start(text))
            size, broken, number, value = out.split()
            self.assertIn(f"6/6 trials  front of {size}  best first={float(value):.6g} ", err)
            self.assertIn(f"(trial {number})  {broken} break constraints", err)
        first = self.ended(self.start(text.replace('"shown"', '"again"')))[1]
        line = r"trial \d done first=\S+ second=\S+ size=\S+; breaks size by \S+\n"
        self.assertRegex(first, line)

    def test_goes_on_with_the_same_objectives_only(self):
        given = {"name": "again", "constraints": {"size": {"max": 150.123456789}}}
        begun = self.optimize(**given)
        more = self.optimize(**given, trials=7)
        self.assertEqual([t.values for t in more][:4], [t.values for t in begun])
        self.assertEqual(len(more), 7)
        for options, message in (
            ({"minimize": "first"}, "the objectives were minimize first, minimize second and are"),
            ({"minimize": "first", "maximize": "second"}, "and are minimize first, maximize sec"),
            ({"minimize": ["second", "first"]}, "and are minimize second, minimize first"),
            ({"reference": {"second": 2.5}}, "and are minimize first, minimize second from 2.5"),
            ({"constraints": None}, "constraints were size <= 150.123456789 and are none"),
            ({"constraints": ["size <= 150.123456788"]}, "and are size <= 150.123456788"),
            ({"metrics": ["other"]}, "metrics were none and are other"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                self.optimize(**{**given, **options})


class Constraints(ObjectivesTest):
    def test_the_best_keeps_them_and_the_others_say_by_how_much_not(self):
        rules = {"memory": {"max": 6}, "recall": {"min": 0.2, "max": 0.9}}
        best = self.optimize(line, LINE, constraints=rules, trials=30)
        for trial in best:
            x = trial.params["x"]
            by = {
                "memory": max(10 - 10 * x - 6, 0),
                "recall": max(0.2 - x, x - 0.9, 0),
            }
            self.assertEqual(set(trial.broken), {name for name in by if by[name] > 0})
            for name, amount in trial.broken.items():
                self.assertAlmostEqual(amount, by[name])
            self.assertEqual((trial.state, trial.value), ("done", x))
        kept = [t.value for t in best if 0.4 <= t.params["x"] <= 0.9]
        self.assertEqual(best.value, min(kept))
        self.assertLess(min(t.value for t in best), best.value)
        self.assertTrue(best.best.feasible)
        self.assertEqual([t.number for t in best.front], [best.best.number])
        self.assertIsNone(best.hypervolume)
        curve = [value for value in best.curve() if value is not None]
        self.assertEqual((curve[-1], len(set(curve)) > 1), (best.value, True))
        words = [str(constraint) for constraint in best.constraints]
        self.assertEqual(words, ["memory <= 6", "0.2 <= recall <= 0.9"])
        row = next(t for t in best if "memory" in t.broken).row()
        self.assertGreater(row["broken.memory"], 0)

    def test_texts_are_the_same_as_mappings(self):
        texts = ["memory<=6e0", "recall >= 0.2", " recall ≤ 0.9 "]
        by_text = self.optimize(line, LINE, constraints=texts, name="texts")
        rules = {"recall": {"min": 0.2, "max": 0.9}, "memory": {"max": 6}}
        again = self.optimize(line, LINE, constraints=rules, name="texts")
        self.assertEqual([t.broken for t in by_text], [t.broken for t in again])
        one = self.optimize(line, LINE, constraints="a b=c <= -1", trials=0).constraints
        self.assertEqual(one, [("a b=c", None, -1.0)])

    def test_no_trial_keeps_them(self):
        best = self.optimize(line, LINE, constraints=["memory <= -1"])
        self.assertEqual((best.best, best.front, best.curve()), (None, [], [None] * 4))
        self.assertEqual([t.value for t in best], [t.params["x"] for t in best])
        near = min(best.trials, key=lambda trial: trial.broken["memory"])
        breaks = f"trial {near.number} breaks memory by {near.broken['memory']:.6g}"
        said = f"no trial keeps memory <= -1; {breaks}"
        for ask in (lambda: best.params, lambda: best.value, lambda: best.best_by(order=["loss"])):
            with self.assertRaisesRegex(ValueError, said):
                ask()
        self.assertIn(said, repr(best))
        self.assertIn("no trial keeps memory &lt;= -1", best._repr_html_())

    def test_one_on_the_objective_itself_and_a_stopper(self):
        def train(x, trial):
            for step in range(1, 9):
                trial.report(step, loss=x, memory=10 * x)
                if trial.should_stop():
                    return None
            return {"loss": x, "memory": 10 * x}

        rule = ("medianstop", {"min_trials_required": 2, "start_step": 1})
        rules = {"loss": {"min": 0.3}, "memory": {"max": 8}}
        best = self.optimize(train, LINE, constraints=rules, stopper=rule, trials=15)
        self.assertIn("stopped", [t.state for t in best])
        for trial in best:
            kept = 0.3 <= trial.params["x"] <= 0.8
            self.assertEqual((trial.broken == {}, trial.feasible), (kept, kept))
        done = [t.value for t in best if t.state == "done" and t.feasible]
        self.assertEqual(best.value, min(done))


class Incomplete(ObjectivesTest):
    def test_a_metric_that_is_missing_is_a_failure_that_names_it(self):
        wanted = {"minimize": ["a", "b"], "constraints": ["c <= 1"]}
        for returned, reason in (
            ({"a": 1, "b": 2}, "the function returned 'a', 'b', but not 'c': add it to the dict"),
            ({"a": 1}, "but not 'b', 'c': add them to the dict"),
            (None, "returned nothing and reported no a, b, c: return a dict with 'a', 'b', 'c'"),
            (0.5, "returned 0.5, and there are several objectives: return a dict with 'a', 'b'"),
            ((1, 2), r"returned (1, 2), and there are several objectives"),
            ({"a": 1, "b": "2", "c": 0}, "b is the text '2': give a number"),
        ):
            self.assertIn(reason, self.reason(lambda x: returned, **wanted))
        reason = "the function returned 'loss', but not 'c': return a dict with 'loss', 'c'"
        self.assertEqual(self.reason(lambda x: 1.0, constraints=["c <= 1"]), reason)

    def test_what_is_not_finite_is_infeasible(self):
        values = iter([math.nan, math.inf, 1.0, -math.inf])
        best = self.optimize(
            lambda x: {"loss": x, "memory": next(values)}, LINE, constraints=["memory <= 2"]
        )
        self.assertEqual([t.state for t in best], ["infeasible"] * 2 + ["done", "infeasible"])
        self.assertEqual(best.trials[0].reason, "memory is nan: a result must be finite")
        self.assertEqual(best.best.number, 3)

    def test_a_result_that_others_told_without_a_metric(self):
        def interrupted(x):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.optimize(interrupted, minimize=BOTH, name="told", space=LINE)
        self.shirabe("tell", "told/1", "first=0.5")
        best = self.optimize(
            lambda x: {"first": x, "second": 1 - x}, LINE, minimize=BOTH, name="told"
        )
        told = best.trials[0]
        self.assertEqual((told.state, told.value, told.values), ("infeasible", None, {}))
        self.assertIn("second was never reported", told.reason)
        self.assertEqual({t.number for t in best.front}, {2, 3, 4})


class Refuses(ObjectivesTest):
    def test_arguments_in_words(self):
        for options, message in (
            ({"minimize": ["a", ""]}, "or a list of names, not"),
            ({"minimize": {"a": 1}}, "or a list of names, not"),
            ({"minimize": ["a", "a"]}, "'a' is named twice"),
            ({"minimize": "a", "maximize": ["b", "a"]}, "maximize=.*'a' is named twice"),
            ({"minimize": [f"m{i}" for i in range(9)]}, "9 objectives, and at most 8"),
            ({"goal": 1}, r"goal=1: say which objective it is of, as goal=\{'first': 1\}"),
            ({"goal": {"size": 1}}, "goal: 'size' is no objective; they are first, second"),
            ({"goal": {"first": math.inf}}, r'goal\["first"\] must be finite'),
            ({"reference": 1}, "reference=1: say which objective"),
            ({"reference": {"loss": 1}, "minimize": "loss"}, "of several objectives is measured"),
            ({"stopper": "wilcoxon"}, "stopper: early-stopping rule wilcoxon compares trials"),
            ({"algorithm": "cmaes"}, "algorithm: algorithm cmaes searches for the best of one"),
            ({"constraints": {"m": 5}}, r'constraints\["m"\] is 5: give'),
            ({"constraints": {"m": {}}}, r'constraints\["m"\] is \{\}: give'),
            ({"constraints": {"m": {"most": 1}}}, r'constraints\["m"\] is .*: give'),
            ({"constraints": {"m": {"max": "a"}}}, r'\["m"\]\["max"\] must be a number, not \'a\''),
            ({"constraints": {"m": {"max": math.nan}}}, r'\["m"\]\["max"\] must be finite'),
            ({"constraints": {"m": {"min": 2, "max": 1}}}, "min 2 is greater than max 1"),
            ({"constraints": {"": {"min": 2}}}, "'' is not the name of a metric"),
            ({"constraints": 5}, "constraints is 5: give"),
            ({"constraints": ["memory 16e9"]}, 'cannot be read: write "memory <= 16e9"'),
            ({"constraints": ["m < 5"]}, "write <= or >="),
            ({"constraints": ["5 >= m"]}, "the bound must be a number, not 'm'"),
            ({"constraints": ["m <= 5", "m <= 6"]}, "'m' has a max already"),
            ({"constraints": [f"m{i} <= 1" for i in range(51)]}, "^constraints: has 51 items"),
        ):
            with self.assertRaisesRegex((ValueError, TypeError), message):
                self.optimize(**options)
        self.assertFalse(os.path.exists(self.storage / "trials"))  # nothing was begun


class Shown(ObjectivesTest):
    def test_what_the_readme_shows(self):
        text = (SDK / "README.md").read_text()
        section = text.partition("### Several objectives, and constraints")[2]
        out = self.run_text(section.partition("```python\n")[2].partition("```")[0])
        lines = out.splitlines()
        self.assertGreater(len(lines), 3)
        self.assertRegex(lines[0], r"^\d+ \{'error': \S+ 'latency': \S+ \{'width': .*\}$")
        self.assertRegex(lines[-1], r"^\{'width': \d+, 'depth': \d+\}$")

    def test_the_example(self):
        program = subprocess.run(
            [sys.executable, ROOT / "deploy" / "examples" / "compress.py", "15"],
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        )
        head, *front, chosen = program.stdout.splitlines()
        self.assertRegex(head, r"^15 trials, \d+ of them need more than 128 KiB; the front:$")
        self.assertIn(chosen, front)
        for line in front:
            point = re.search(r"'window': (\d+), 'memory': (\d+)", line)
            window, memory = map(int, point.groups())
            self.assertLessEqual((1 << (window + 2)) + (1 << (memory + 9)), 128 * 1024)


class FrontTest(unittest.TestCase):
    def test_against_every_pair(self):
        rng = random.Random(5)
        for count, objectives in itertools.product((0, 1, 2, 9, 40), (1, 2, 3, 5)):
            ways = {f"m{k}": rng.choice(("minimize", "maximize")) for k in range(objectives)}
            results = [{name: rng.randint(0, 6) for name in ways} for _ in range(count)]
            losses = [
                tuple(-r[n] if way == "maximize" else r[n] for n, way in ways.items())
                for r in results
            ]
            kept = [
                i
                for i, mine in enumerate(losses)
                if not any(dominates(other, mine) for other in losses)
                and mine not in losses[:i]
            ]
            found = front_of(results, ways)
            self.assertEqual(sorted(found), kept)
            self.assertEqual([losses[i] for i in found], sorted(losses[i] for i in found))

    def test_weights_are_of_parts_of_the_range(self):
        ways = {"error": "minimize", "speed": "maximize"}
        results = [
            {"error": 0.1, "speed": 1000.0},
            {"error": 0.2, "speed": 4000.0},
            {"error": 0.5, "speed": 5000.0},
        ]
        self.assertEqual(choose(results, ways, {"error": 1, "speed": 1}, None), 1)
        self.assertEqual(choose(results, ways, {"error": 9, "speed": 1}, None), 0)
        self.assertEqual(choose(results, ways, None, ["speed"]), 2)
        same = [{"error": 0.1, "speed": 1.0}, {"error": 0.1, "speed": 2.0}]
        self.assertEqual(choose(same, ways, {"error": 1}, None), 0)
        self.assertEqual(choose(same, ways, None, ["error", "speed"]), 1)


if __name__ == "__main__":
    unittest.main()
