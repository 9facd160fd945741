"""The Python client, and Katib's names over it, against a real server with real trials."""

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
import warnings
from pathlib import Path
from unittest import mock

from support import PATIENCE, ROOT, SDK, ServerTest, asked

import make_replies
from shirabe_client import (
    Change,
    Client,
    Conflict,
    Denied,
    Detail,
    Invalid,
    NotFound,
    Observation,
    Unavailable,
    WaitTimeout,
    replies,
)
from shirabe_client.compat.katib import KatibClient, search


def objective(parameters):
    print(f"loss={parameters['x'] + parameters['bias']}")


class ClientTest(ServerTest):
    def test_ask_and_tell_to_the_end(self):
        experiment = self.client.create(asked("told"))
        self.assertEqual(experiment.state, "Created")
        seen = []
        while trial := experiment.ask("w"):
            self.assertEqual(experiment.ask("w").number, trial.number)
            self.assertIsInstance(trial.parameters["x"], float)
            self.assertIsInstance(trial.parameters["n"], int)
            self.assertIn(trial.parameters["kind"], ("a", "b c"))
            self.assertIsNone(trial.report(1, loss=2.0))
            trial.tell(trial.parameters["x"])
            trial.tell(trial.parameters["x"])  # the answer was lost
            self.assertEqual(trial.phase, "Succeeded")
            self.assertEqual(trial.objective, trial.parameters["x"])
            seen.append(trial.parameters["x"])
            with self.assertRaises(Conflict) as refused:
                trial.tell(7.0)
            self.assertEqual(refused.exception.code, "ALREADY_EXISTS")
        self.assertEqual(len(seen), 3)
        experiment.wait("succeeded", PATIENCE)
        self.assertEqual(experiment.best.value, min(seen))
        self.assertEqual(experiment.best.parameters["x"], min(seen))
        trials = experiment.trials(sort="objective")
        self.assertEqual([t.objective for t in trials], sorted(seen))
        points = trials[0].observations("loss")
        self.assertEqual([(p.step, p.value) for p in points], [(1, 2.0), (2, trials[0].objective)])
        self.assertTrue(any(e["reason"] for e in experiment.events()))

    def test_the_types_of_replies_are_those_of_the_server(self):
        with urllib.request.urlopen(self.url + "/openapi.json") as reply:
            made = make_replies.module(json.load(reply))
        there = (SDK / "shirabe_client" / "replies.py").read_text()
        self.assertEqual(there, made, "print it again: sdk/python/make_replies.py")

    def test_tuples_have_every_field_of_the_reply(self):
        for kind, reply, left_out in (
            (Observation, replies.ObservationView, {"trial"}),  # which it is asked of
            (Change, replies.Change, set()),
            (Detail, replies.ErrorDetail, set()),
        ):
            names = {re.sub("[A-Z]", r"_\g<0>", n).lower() for n in reply.__annotations__}
            self.assertEqual(set(kind._fields), names - left_out)

    def test_steps_are_whole_numbers_of_any_kind(self):
        class Whole:  # as NumPy's are
            def __index__(self):
                return 4

        trial = self.client.create(asked("steps")).ask("w")
        trial.report(Whole(), loss=1.0)
        self.assertEqual(trial.observations()[0].step, 4)
        with self.assertRaises(TypeError):
            trial.report(1.5, loss=1.0)
        with self.assertRaisesRegex(ValueError, "metric loss: 'x' is not a number"):
            trial.report(5, loss="x")

    def test_failures_and_numbers_that_json_lacks(self):
        experiment = self.client.create(asked("failing"))
        self.assertEqual(experiment.ask("w").tell(failed=True, message="it burns").phase, "Failed")
        trial = experiment.ask("w")
        self.assertEqual(trial.tell(math.nan).objective, None)
        self.assertTrue(math.isnan(trial.observations()[0].value))
        self.assertEqual(experiment.trial(1).phase, "Failed")

    def test_errors_say_code_message_and_field(self):
        with self.assertRaises(NotFound) as missing:
            self.client.get("nobody")
        self.assertEqual((missing.exception.status, missing.exception.code), (404, "NOT_FOUND"))
        wrong = asked("wrong")
        wrong["spec"]["maxTrialCount"] = 0
        with self.assertRaises(Invalid) as invalid:
            self.client.create(wrong)
        self.assertEqual(invalid.exception.details[0].field, "spec.maxTrialCount")
        self.client.create(asked("twice"))
        with self.assertRaises(Conflict):
            self.client.create(asked("twice"))
        with self.assertRaises(Denied):
            Client(self.url, "0123456789abcdef0123456789abcdef").list()
        with self.assertRaises(Denied):
            Client(self.url, "").list()
        with self.assertRaises(Unavailable):
            Client("http://127.0.0.1:1", "").list()
        with self.assertRaises(ValueError):
            Client("127.0.0.1:1")

    def test_apply_takes_yaml_and_changes_counts(self):
        path = Path(self.folder.name) / "applied.yaml"
        text = (ROOT / "deploy" / "examples" / "ask-and-tell.yaml").read_text()
        text = text.replace("name: ask-and-tell", "name: applied", 1)
        path.write_text(text)
        first = self.client.apply(path)
        self.assertEqual(self.client.apply(text).name, first.name)
        wanted = asked("counts")
        experiment = self.client.apply(wanted)
        experiment.scale(max_trials=2)
        experiment.ask("w").tell(1.0)
        experiment.ask("w").tell(2.0)
        experiment.wait("succeeded", PATIENCE)
        self.assertIn("counts", [e.name for e in self.client.list()])
        self.assertEqual([e.name for e in self.client.list(filter="name=counts")], ["counts"])
        experiment.delete()
        experiment.delete()
        with self.assertRaises(NotFound):
            experiment.refresh()

    def test_apply_finds_the_name_in_text_of_any_style(self):
        wanted = asked("styles")
        flow = json.dumps(wanted["spec"])
        path = Path(self.folder.name) / "styles.json"
        head = "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\n"
        path.write_text(json.dumps(wanted, indent=2))
        for text in (
            wanted,
            json.dumps(wanted),
            path,
            f"{head}metadata:\n  labels:\n    name: other\n  name: styles  # mine\nspec: {flow}\n",
            f"{head}\nmetadata: # head\n\n  # name: no\n   \n  annotations: {{name: other}}\n"
            f"  'name': \"styles\" # mine\nspec: {flow}\n",
            f"metadata:\n  annotations:\n    a: |\n      name: other\n  name: styles\n{head}"
            f"spec: {flow}\n",
            f"\"metadata\": {{labels: {{name: other}}, # name: no\n  name: styles}}\n{head}"
            f"spec: {flow}\n",
            f"metadata: {{'name': \"styles\", \"labels\": {{\"name\": \"other\"}}}}\n{head}"
            f"spec: {flow}\n",
        ):
            self.assertEqual(self.client.apply(text).name, "styles", text)
        self.client.delete("styles")
        for nameless in ({}, {"metadata": None}, {"metadata": {"name": ""}}, {"metadata": "x"}):
            with self.assertRaisesRegex(ValueError, "metadata.name is not to be found: give the"):
                self.client.apply(nameless)

    def test_a_worker_that_waits_for_others_asks_less_and_less(self):
        for name, wait, wanted in (
            ("waits", 20.0, [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]),
            ("waits-little", 0.3, [0.1, 0.2, 0.3, 0.3]),
            ("waits-not", 0.0, [1.0, 1.0, 1.0]),
        ):
            experiment = self.client.create(asked(name, maxTrialCount=1))
            trial = experiment.ask("a")
            pauses, why = [], []

            def sleep(seconds):
                pauses.append(seconds)
                why.append(experiment.reason)
                if len(pauses) == len(wanted):
                    trial.tell(1.0)
                elif len(pauses) > len(wanted):
                    time.sleep(0.01)

            with mock.patch("shirabe_client.experiment.time", sleep=sleep):
                self.assertIsNone(experiment.ask("b", wait=wait))
            self.assertEqual(pauses[: len(wanted)], wanted)
            self.assertTrue(all(why))
            self.assertIn("the experiment has ended: 1 trial is done", experiment.reason)

    def test_pause_resume_stop_and_suggest(self):
        experiment = self.client.create(asked("steered"))
        self.assertEqual(len(experiment.suggest(2)), 2)
        self.assertIsInstance(experiment.suggest(1)[0]["n"], int)
        experiment.pause()
        experiment.resume()
        experiment.ask("w").tell(1.0)
        with self.assertRaises(WaitTimeout):
            experiment.wait("completed", 0.05)
        experiment.stop()
        self.assertTrue(experiment.wait("completed", PATIENCE).ended)
        self.assertIsNone(experiment.ask("w"))

    def test_points_of_ones_own_notes_and_the_end_of_one_trial(self):
        experiment = self.client.create(asked("by-hand"))
        experiment.try_point({"x": 0.25})
        first = experiment.ask("w")
        self.assertEqual(first.parameters["x"], 0.25)
        experiment.try_point({"x": 0.5}, like=first)
        second = experiment.ask("v")
        self.assertEqual(second.parameters, {**first.parameters, "x": 0.5})
        with self.assertRaisesRegex(Invalid, 'parameter "x"'):
            experiment.try_point({"x": 1e9})
        first.report(1, **{experiment.objective: 3.5})
        first.stop()
        self.until(lambda: first.refresh().ended)
        self.assertEqual((first.phase, first.objective), ("EarlyStopped", 3.5))
        first.annotate("*odd*", add_tags=["again"])
        experiment.annotate("a plan", ["thesis", "gpu"])
        experiment.annotate(remove_tags=["gpu"])
        self.until(lambda: experiment.refresh().tags == ["thesis"] and first.refresh().tags)
        self.assertEqual((experiment.note, first.note), ("a plan", "*odd*"))
        with self.assertRaises(Invalid):
            experiment.annotate("x" * 20_000)

    def until(self, holds):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_importance_ablation_and_partial_dependence(self):
        experiment = self.client.create(asked("analysed", maxTrialCount=6))
        self.assertEqual(experiment.importance()["parameters"], [])
        self.assertIn("no trial", experiment.importance()["basis"]["tooFew"])
        for result in range(6):
            trial = experiment.ask("w")
            trial.tell(float(result))
        found = experiment.importance()
        self.assertEqual({one["parameter"] for one in found["parameters"]}, set(trial.parameters))
        self.assertEqual(experiment.importance("ped")["method"], "ped")
        path = experiment.ablation(start=1, end=6)
        self.assertEqual((path["fromTrial"], path["toTrial"]), (1, 6))
        both = experiment.partial_dependence("n", "x")
        self.assertEqual([axis["parameter"] for axis in both["axes"]], ["n", "x"])
        cells = len(both["axes"][0]["values"]) * len(both["axes"][1]["values"])
        self.assertEqual(len(both["mean"]), cells)
        with self.assertRaises(Invalid):
            experiment.partial_dependence("no-such")
        with self.assertRaises(Invalid):
            experiment.ablation(start=99)

    def test_several_objectives_and_constraints(self):
        front = {
            "askAndTell": True,
            "additionalObjectives": [{"metricName": "speed", "type": "maximize", "reference": 0}],
            "objectiveReference": 2,
            "constraints": [{"metricName": "memory", "max": 8}],
        }
        experiment = self.client.create(asked("front", shirabe=front, maxTrialCount=5))
        self.assertEqual(experiment.objectives, {"loss": "minimize", "speed": "maximize"})
        self.assertEqual(experiment.constraints, [{"metricName": "memory", "max": 8}])
        self.assertEqual((experiment.front, experiment.front_size), ([], 0))
        with self.assertRaisesRegex(ValueError, "front has no front"):
            experiment.best_by(order=["loss"])
        trials = []
        for loss, speed, memory in ((1, 5, 8), (0.5, 1, 7), (0, 9, 9), (1, 4, 1)):
            trials.append(experiment.ask("w").tell(loss, speed=speed, memory=memory))
        trials.append(experiment.ask("w").tell(loss=0.5, memory=1))
        self.assertEqual(trials[2].objectives, {"loss": 0.0, "speed": 9.0})
        self.assertEqual(trials[2].broken, {"memory": 1.0})
        held = {"metricName": "memory", "max": 8, "value": 9, "brokenBy": 1}
        self.assertEqual(trials[2].constraints, [held])
        self.assertEqual(trials[2].row()["broken.memory"], 1.0)
        self.assertEqual((trials[0].broken, trials[4].objectives), ({}, {"loss": 0.5}))
        experiment.wait("succeeded", PATIENCE)
        self.assertEqual([point.trial for point in experiment.front], ["front-2", "front-1"])
        self.assertEqual(experiment.front[1].values, {"loss": 1.0, "speed": 5.0})
        self.assertEqual(experiment.front[1].parameters, trials[0].parameters)
        self.assertEqual(experiment.front_size, 2)
        self.assertEqual(experiment.hypervolume, 1.5 * 1 + 1 * 4)
        self.assertEqual(experiment.reference, {"loss": 2.0, "speed": 0.0})
        self.assertEqual(experiment.best.trial, "front-2")
        self.assertEqual(experiment.best_by(weights={"speed": 1}).trial, "front-1")
        self.assertEqual(experiment.best_by(order=["loss"]).trial, "front-2")
        plain = self.client.create(asked("no-front"))
        trial = plain.ask("w").tell(1.0)
        self.assertEqual((trial.objectives, trial.constraints), ({"loss": 1.0}, []))
        self.assertEqual((plain.objectives, plain.constraints), ({"loss": "minimize"}, []))
        self.assertEqual((plain.hypervolume, plain.reference), (None, {}))

    def test_watch_goes_on_after_a_revision(self):
        experiment = self.client.create(asked("watched"))
        seen = []

        def look():
            for change in experiment.watch(after=0):
                seen.append(change.kind)
                if change.kind == "deleted":
                    return

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        experiment.ask("w").tell(1.0)
        experiment.delete()
        watcher.join(PATIENCE)
        self.assertFalse(watcher.is_alive())
        self.assertIn("experiment", seen)

    def test_a_result_of_a_trial_that_was_stopped_is_warned_of(self):
        trial = self.client.create(asked("stopped")).ask("w")
        trial.report(1, loss=0.5)
        trial.stop()
        end = time.monotonic() + PATIENCE
        while not trial.refresh().ended and time.monotonic() < end:
            time.sleep(0.05)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trial.tell(0.5)  # what it has
        with self.assertWarnsRegex(UserWarning, r"stopped-1 was stopped before \(.+\): this"):
            trial.tell(0.25)
        self.assertEqual(trial.objective, 0.5)

    def test_pages_of_many_trials(self):
        experiment = self.client.create(asked("many", maxTrialCount=12))
        while trial := experiment.ask("w"):
            trial.tell(1.0)
        path = experiment.client.path("many") + "/trials"
        self.assertEqual(len(list(self.client.pages(path, pageSize=5))), 12)
        rows = [t.row() for t in experiment.trials()]
        self.assertEqual(rows[0]["param.kind"], experiment.trial(1).parameters["kind"])
        try:
            import pandas  # noqa: F401
        except ImportError:
            with self.assertRaises(ImportError):
                experiment.to_pandas()
        else:
            frame = experiment.to_pandas()
            self.assertEqual(len(frame), 12)
            self.assertIn("param.x", frame.columns)

    def test_the_example_runs_to_its_end(self):
        examples = ROOT / "deploy" / "examples"
        experiment = self.client.create(examples / "ask-and-tell.yaml")
        program = subprocess.run(
            [sys.executable, examples / "ask-and-tell.py", self.url, "w"],
            env={**os.environ, "SHIRABE_TOKEN_FILE": self.token_file},
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        self.assertRegex(program.stdout, r"\nbest: ask-and-tell-\d+ loss=")
        self.assertEqual(experiment.refresh().state, "Succeeded")
        experiment.delete()

    def test_katib_tune_runs_a_function(self):
        katib = KatibClient(client=self.client)
        katib.tune(
            "tuned",
            objective=objective,
            parameters={"x": search.double(0, 1), "bias": search.double(0.5, 0.75)},
            objective_metric_name="loss",
            objective_type="minimize",
            max_trial_count=2,
            parallel_trial_count=1,
        )
        record = katib.wait_for_experiment_condition("tuned", timeout=PATIENCE)
        self.assertEqual(record.status.trials_succeeded, 2)
        self.assertTrue(katib.is_experiment_succeeded("tuned"))
        self.assertFalse(katib.is_experiment_running("tuned"))
        best = katib.get_optimal_hyperparameters("tuned")
        self.assertRegex(best.best_trial_name, "^tuned-[12]$")
        self.assertEqual(best.parameter_assignments[0].name, "x")
        details = katib.get_success_trial_details("tuned")
        self.assertEqual(len(details), 2)
        self.assertEqual(details[0]["metrics"][0].name, "loss")
        self.assertIn("loss=", katib.get_job_logs("tuned-1"))
        self.assertIn("loss=", "".join(self.client.get("tuned").trial(1).logs(follow=True)))
        metrics = katib.get_trial_metrics("tuned-1")
        self.assertEqual(metrics[0].metric.name, "loss")
        self.assertEqual(katib.get_suggestion("tuned").status.suggestion_count, 2)
        self.assertEqual(len(katib.list_trials("tuned")), 2)
        self.assertIn("tuned", [e.metadata.name for e in katib.list_experiments()])
        katib.delete_experiment("tuned")
        with self.assertRaises(NotFound):
            katib.get_experiment("tuned")

    def test_katib_refuses_in_words(self):
        katib = KatibClient(client=self.client)
        with self.assertRaisesRegex(ValueError, "storage-initializer"):
            katib.tune("x", model_provider_parameters=object())
        with self.assertRaisesRegex(ValueError, "packages_to_install"):
            katib.tune(
                "x",
                objective=objective,
                parameters={"x": search.int(1, 2)},
                objective_metric_name="loss",
                packages_to_install=["torch"],
            )
        with self.assertRaisesRegex(ValueError, "objective_metric_name"):
            katib.tune("x", objective=objective, parameters={"x": search.int(1, 2)})
        with self.assertRaisesRegex(NotFound, "EXPERIMENT-7"):
            katib.get_trial("x")

    def test_katib_models_are_taken_as_they_are(self):
        class V1beta1Experiment:
            attribute_map = {"api_version": "apiVersion", "metadata": "metadata", "spec": "spec"}

            def __init__(self):
                self.api_version = None
                self.metadata = {"name": "modelled"}
                self.spec = asked("modelled")["spec"]

        katib = KatibClient(client=self.client)
        katib.create_experiment(V1beta1Experiment())
        self.assertTrue(katib.is_experiment_created("modelled"))
        katib.edit_experiment_budget("modelled", max_trial_count=5)
        self.client.get("modelled").ask("w").tell(1.0)  # by now it has been done
        self.assertEqual(katib.get_experiment("modelled").spec.max_trial_count, 5)
        with self.assertRaises(ValueError):
            katib.edit_experiment_budget("modelled")


class TypesTest(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_the_client_is_typed(self):
        command = [sys.executable, "-m", "mypy", "--strict", "-p", "shirabe_client"]
        checked = subprocess.run(
            command, cwd=ROOT / "sdk" / "python", stdout=subprocess.PIPE, text=True
        )
        self.assertEqual(checked.returncode, 0, checked.stdout)

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_the_first_example_is_typed(self):
        text = (SDK / "README.md").read_text().split("## Tune a function")[1]
        program = text.split("```python\n")[1].split("```")[0]
        self.assertIn("shirabe.int(1, 8)", program)
        typed = "(lr: float, layers: int, opt: str) -> float"
        program = program.replace("(lr, layers, opt)", typed)
        program += "\nshirabe.float(0, 1), shirabe.choice([1, 2])\n"
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "first.py").write_text(program)
            checked = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "first.py"],
                cwd=folder,
                env={**os.environ, "MYPYPATH": str(SDK)},
                stdout=subprocess.PIPE,
                text=True,
            )
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_the_trial_helper_needs_no_client(self):
        text = (ROOT / "sdk" / "python" / "shirabe" / "helper.py").read_text()
        self.assertNotIn("shirabe_client", text)


if __name__ == "__main__":
    unittest.main()
