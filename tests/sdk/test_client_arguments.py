"""Arguments of the Python client and of Katib's names over it: those taken, and those refused."""

import functools
import unittest

from support import PATIENCE, Number, ServerTest, asked

from shirabe_client import EndedOtherwise, NotFound, WaitTimeout
from shirabe_client.compat.katib import KatibClient, search


def decorated(function):
    @functools.wraps(function)
    def inner(parameters):
        function(parameters)

    return inner


@decorated
def decorated_objective(parameters):
    print(f"loss={parameters['x']}")


class ArgumentsTest(ServerTest):
    def test_numbers_of_other_libraries_are_taken(self):
        wanted = asked("numbers", maxTrialCount=Number(2))
        wanted["spec"]["shirabe"]["seed"] = Number(5)
        experiment = self.client.create(wanted)
        experiment.try_point({"x": Number(0.25), "n": Number(3)})
        trial = experiment.ask("w")
        self.assertEqual((trial.parameters["x"], trial.parameters["n"]), (0.25, 3))
        experiment.scale(max_trials=Number(1))
        trial.tell(1.0)
        self.assertIsNone(experiment.ask("w"))
        with self.assertRaisesRegex(TypeError, "JSON has no set: give None, bools"):
            experiment.try_point({"x": {1}})

    def test_arguments_that_are_wrong_are_named(self):
        experiment = self.client.create(asked("named"))
        trial = experiment.ask("w")
        for call, kind, message in (
            (lambda: self.client.get(""), ValueError, "name='' has no name of an exp.*: give NAME"),
            (lambda: self.client.delete("default/"), ValueError, "name='default/' has no name"),
            (lambda: self.client.get(None), TypeError, "name must be the name of an .*, not None"),
            (lambda: self.client.create(None), TypeError, "spec must be YAML or J.*, not None"),
            (lambda: self.client.delete("x", "1s"), TypeError, "timeout must be .*, not '1s'"),
            (lambda: experiment.try_point(None), TypeError, "parameters must be {name: value}, no"),
            (lambda: experiment.try_point({}, like="a"), TypeError, "like must be a whole number"),
            (lambda: experiment.ask(wait="1s"), TypeError, "wait must be a number of .*, not '1s'"),
            (lambda: experiment.wait(timeout="1"), TypeError, "timeout must be a num.*, not '1'"),
            (lambda: experiment.annotate(add_tags="abc"), TypeError, "'abc': write add_tags="),
            (lambda: trial.annotate(remove_tags=5), TypeError, "remove_tags must be a .*, not 5"),
            (lambda: trial.report("x", loss=1), TypeError, "step must be a whole num.*, not 'x'"),
            (lambda: trial.tell(1, step=1.5), TypeError, "step must be a whole number, not 1.5"),
        ):
            with self.assertRaisesRegex(kind, message):
                call()
        self.assertEqual((experiment.refresh().tags, trial.refresh().phase), ([], "Running"))

    def test_an_experiment_that_ends_otherwise_is_no_timeout(self):
        katib = KatibClient(client=self.client)
        experiment = self.client.create(asked("ends", maxFailedTrialCount=0))
        experiment.ask("w").tell(failed=True)
        experiment.wait("completed", PATIENCE)
        for wait in (
            lambda: experiment.wait("succeeded"),
            lambda: katib.wait_for_experiment_condition("ends"),
        ):
            with self.assertRaisesRegex(EndedOtherwise, "^ends has ended Failed") as ended:
                wait()
            self.assertIsInstance(ended.exception, WaitTimeout)
        with self.assertRaisesRegex(WaitTimeout, "^goes-on is .* after 0.01 s, not yet completed"):
            self.client.create(asked("goes-on")).wait("completed", 0.01)

    def test_katib_refuses_objectives_whose_source_cannot_run(self):
        katib = KatibClient(client=self.client)
        given = {"parameters": {"x": search.double(0, 1)}, "objective_metric_name": "loss"}
        named = lambda parameters: print("loss=1")  # noqa: E731

        def outer():
            count = 1

            def inner(parameters):
                nonlocal count
                count += 1

            return inner

        for bad, why in (
            (lambda parameters: print("loss=1"), ""),
            (named, "its source is no def"),
            (outer(), "no binding for nonlocal"),
            (decorated_objective, "@decorated does not travel with it: remove the decorator"),
            (functools.partial(print), "got partial"),
            (print, ""),
        ):
            with self.assertRaisesRegex(ValueError, f"^objective must be a function def.*{why}"):
                katib.tune("no-source", objective=bad, **given)
        with self.assertRaises(NotFound):
            katib.get_experiment("no-source")

        def inner(parameters):
            print(f"loss={parameters['x']}")

        katib.tune("inner", objective=inner, max_trial_count=1, **given)
        katib.wait_for_experiment_condition("inner", timeout=PATIENCE)


if __name__ == "__main__":
    unittest.main()
