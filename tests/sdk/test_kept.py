"""What is kept of a trial of shirabe.optimize beside its result: metrics that are not declared,
notes and checkpoints."""

import os
import signal
import unittest

from support import SdkTest, noted, told

import shirabe

LINE = {"x": shirabe.float(0, 1)}


class Broken:
    """A number that cannot be read."""

    shape = ()

    def item(self):
        raise RuntimeError("on another device")


class KeptTest(SdkTest):
    def optimize(self, function, **options):
        given = {"minimize": "loss", "trials": 4, "algorithm": "random", "storage": self.storage}
        return shirabe.optimize(function, LINE, **{**given, **options})

    def reason(self, function):
        """Of the first trial of a search that fails."""
        with self.assertRaises(shirabe.TrialFailed) as failed:
            self.optimize(function)
        return failed.exception.result.trials[0].reason

    def test_of_metrics_that_are_not_declared_the_last_value_is_kept(self):
        for workers in ("threads", "processes"):
            for trial in self.optimize(told, workers=workers):
                self.assertEqual(trial.metrics["other"], 3)

        def fails(x, trial):
            trial.report(1, seen=x)
            shirabe.report(2, loss=x, seen=2 * x, loss_of_last=1)
            if trial.number == 2:
                raise ValueError("after its reports")
            return {"loss": x, "loss_of_last": 5}

        for trial in self.optimize(fails):
            self.assertEqual(trial.metrics["seen"], 2 * trial.params["x"])
            self.assertEqual(trial.metrics["loss_of_last"], 1 if trial.number == 2 else 5)

    def test_metrics_of_an_attempt_that_was_interrupted_are_kept(self):
        # A shell has what it starts in the background ignore it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

        def function(x, trial):
            if trial.number == 1 and not trial.last_step:
                trial.report(1, loss=x, early=1, both=1)
                trial.notes["first"] = True
                os.kill(os.getpid(), signal.SIGINT)
                self.assertTrue(trial.should_stop())
                return None
            trial.report(2, loss=x, both=2)
            trial.notes["again"] = True
            return x

        self.assertEqual(self.optimize(function, name="kept").ended, "interrupted")
        first = self.optimize(function, name="kept").trials[0]
        self.assertEqual((first.metrics["early"], first.metrics["both"]), (1, 2))
        self.assertEqual((first.notes["first"], first.notes["again"]), (True, True))

    def test_notes_are_kept_with_the_result(self):
        kept = {"epoch": 3, "of": [0.5, None]}
        for workers in ("threads", "processes"):
            for trial in self.optimize(noted, workers=workers):
                self.assertEqual({k: trial.notes[k] for k in kept}, kept)

    def test_notes_that_cannot_be_stored_are_the_failure_of_their_trial(self):
        for notes, reason in (
            ({"good": 1, "bad": {1}}, r"trial.notes\['bad'\] cannot be stored: JSON has no set: g"),
            ({"bad": Broken()}, r"trial.notes\['bad'\] cannot be stored: on another device"),
            ({(1, 2): 3}, r"trial.notes\[\(1, 2\)\] cannot be stored: keys must be str"),
            ({"metrics": 5}, r"trial.notes\['metrics'\] cannot be stored: .*: choose another"),
            (5, "trial.notes must be a dict, not a value of the type int"),
        ):

            def function(x, trial, notes=notes):
                if trial.number == 2:
                    trial.notes = notes
                return x

            found = self.optimize(function)
            self.assertEqual([t.state for t in found], ["done", "failed", "done", "done"])
            self.assertRegex(found.trials[1].reason, reason)
            self.assertEqual("good" in found.trials[1].notes, "good" in str(notes))

    def test_checkpoints_of_any_step_that_is_not_negative_are_found(self):
        def train(x, trial):
            for step in (0, 7):
                with trial.checkpoint(step) as folder:
                    (folder / "model").write_text("x")
                self.assertEqual(trial.resume().name, str(step))
            return x

        self.assertEqual([t.reason for t in self.optimize(train)], [""] * 4)

    def test_checkpoints_that_are_wrong(self):
        for step, reason in (
            (-1, "ValueError: step must not be negative, as -1 is"),
            ("last", "TypeError: step must be a whole number, not 'last'"),
        ):

            def saves(trial):
                with trial.checkpoint(step):
                    pass

            self.assertIn(reason, self.reason(saves))


if __name__ == "__main__":
    unittest.main()
