"""The SDK as training code uses it: in a trial, outside one, told to stop, and on many ranks."""

import contextlib
import importlib.util
import io
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

SDK = Path(__file__).resolve().parents[2] / "sdk" / "python"
LEFT_OUT = ("SHIRABE_", "RANK", "LOCAL_RANK", "OMPI_COMM", "PMI_RANK", "SLURM_PROCID")


def load():
    """The module afresh: it remembers what it has saved."""
    spec = importlib.util.spec_from_file_location("shirabe", SDK / "shirabe" / "helper.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ShirabeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.metrics = self.dir / "metrics.jsonl"
        self.control = self.dir / "control.json"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(LEFT_OUT)}
        patch = mock.patch.dict(os.environ, environment, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        self.shirabe = load()

    def enter_trial(self):
        os.environ.update(
            SHIRABE_METRICS_FILE=str(self.metrics),
            SHIRABE_CHECKPOINT_DIR=str(self.dir / "checkpoints"),
            SHIRABE_CONTROL_FILE=str(self.control),
        )

    def ask(self, number, reason):
        self.control.write_text(json.dumps({"id": number, "reason": reason}))

    def lines(self):
        return [json.loads(line) for line in self.metrics.read_text().splitlines()]

    def printed(self, *args, **metrics):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.shirabe.report(*args, **metrics)
        return out.getvalue()

    def saved(self):
        return sorted(p.name for p in (self.dir / "checkpoints").glob("*"))


class Outside(ShirabeTest):
    def test_prints_and_never_fails(self):
        self.assertEqual(self.printed(3, loss=0.5, acc=1), "step=3 loss=0.5 acc=1.0\n")
        self.assertEqual(self.printed(loss="abc"), "loss=abc\n")
        self.assertEqual(self.shirabe.params(lr=0.1), {"lr": 0.1})
        self.assertIsNone(self.shirabe.resume())
        self.assertFalse(self.shirabe.should_stop() or self.shirabe.should_checkpoint())
        self.shirabe.done()

    def test_throws_checkpoints_away(self):
        with self.shirabe.checkpoint(1) as folder:
            (folder / "model").write_text("x")
        self.assertFalse(folder.exists())

    def test_leaves_sigterm_alone(self):
        self.shirabe.should_stop()
        self.assertIs(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)


class Metrics(ShirabeTest):
    def test_go_to_the_file_and_not_to_the_output(self):
        self.enter_trial()
        self.assertEqual(self.printed(120, loss=0.25, **{"val/loss": 1}), "")
        self.shirabe.report(loss=2)
        self.shirabe.done()
        self.assertEqual(
            self.lines(),
            [
                {"step": 120, "metrics": {"loss": 0.25, "val/loss": 1.0}},
                {"metrics": {"loss": 2.0}},
                {"done": True},
            ],
        )

    def test_keep_what_is_not_finite_and_what_is_no_number(self):
        self.enter_trial()
        self.shirabe.report(0, loss=float("nan"), worst=math.inf, name=None)
        self.assertIn('"loss": NaN, "worst": Infinity, "name": "None"', self.metrics.read_text())

    def test_that_are_arrays_say_so(self):
        class Array:
            shape = (2, 3)

            def __float__(self):
                raise TypeError("only 0-dimensional arrays can be converted")

        self.enter_trial()
        self.shirabe.report(1, loss=Array())
        self.assertEqual(self.lines()[0]["metrics"], {"loss": "an array of shape 2x3"})

    def test_are_printed_where_the_file_cannot_be_written(self):
        os.environ["SHIRABE_METRICS_FILE"] = str(self.dir / "absent" / "metrics")
        self.assertEqual(self.printed(loss=1), "loss=1.0\n")

    def test_come_from_rank_0_only(self):
        self.enter_trial()
        os.environ["RANK"] = "1"
        self.assertEqual(self.printed(1, loss=1), "")
        self.shirabe.done()
        self.assertFalse(self.metrics.exists())
        os.environ["RANK"] = "0"
        self.shirabe.report(1, loss=1)
        self.assertEqual(len(self.lines()), 1)


class Parameters(ShirabeTest):
    def test_override_the_defaults(self):
        (self.dir / "p.json").write_text('{"lr": 0.01, "opt": "adam"}')
        os.environ["SHIRABE_PARAMS_FILE"] = str(self.dir / "p.json")
        self.assertEqual(
            self.shirabe.params(lr=1, epochs=3), {"lr": 0.01, "epochs": 3, "opt": "adam"}
        )


class Checkpoints(ShirabeTest):
    def setUp(self):
        super().setUp()
        self.enter_trial()

    def test_appear_whole(self):
        with self.shirabe.checkpoint(5) as folder:
            (folder / "deep").mkdir()
            (folder / "deep" / "model").write_text("x")
            self.assertEqual(self.saved(), ["5.tmp"])
        self.assertEqual(self.saved(), ["5"])
        self.assertEqual((self.dir / "checkpoints/5/deep/model").read_text(), "x")

    def test_do_not_appear_after_an_exception(self):
        with self.assertRaises(ValueError):
            with self.shirabe.checkpoint(5):
                raise ValueError
        self.assertEqual(self.saved(), [])

    def test_replace_the_remains_of_a_crash_but_never_a_saved_step(self):
        (self.dir / "checkpoints/5.tmp").mkdir(parents=True)
        (self.dir / "checkpoints/5.tmp/torn").write_text("x")
        for text in ("first", "second"):
            with self.shirabe.checkpoint(5) as folder:
                (folder / "model").write_text(text)
        self.assertEqual([p.name for p in (self.dir / "checkpoints/5").iterdir()], ["model"])
        self.assertEqual((self.dir / "checkpoints/5/model").read_text(), "first")

    def test_of_negative_steps_are_refused_in_a_trial_and_of_step_0_warned_of(self):
        with self.assertRaisesRegex(ValueError, "step must be 1 or more, not -1: number steps"):
            with self.shirabe.checkpoint(-1):
                self.fail("entered")
        self.assertFalse((self.dir / "checkpoints").exists())
        with self.assertWarnsRegex(UserWarning, "step 0 is not taken: number steps") as warned:
            with self.shirabe.checkpoint(0):
                pass
        self.assertEqual(warned.filename, __file__)
        del os.environ["SHIRABE_CHECKPOINT_DIR"]
        with self.shirabe.checkpoint(0):
            pass

    def test_come_from_rank_0_only(self):
        os.environ["LOCAL_RANK"] = "3"
        with self.shirabe.checkpoint(5) as folder:
            (folder / "model").write_text("x")
        self.assertEqual(self.saved(), [])

    def test_are_resumed_from(self):
        os.environ["SHIRABE_RESUME_FROM"] = ""
        self.assertIsNone(self.shirabe.resume())
        os.environ["SHIRABE_RESUME_FROM"] = str(self.dir / "gone")
        self.assertIsNone(self.shirabe.resume())
        os.environ["SHIRABE_RESUME_FROM"] = str(self.dir)
        self.assertEqual(self.shirabe.resume(), self.dir)


class Requests(ShirabeTest):
    def setUp(self):
        super().setUp()
        self.enter_trial()

    def test_ask_for_one_checkpoint_each(self):
        self.assertFalse(self.shirabe.should_checkpoint())
        for number in (1, 2):
            self.ask(number, "checkpoint")
            self.assertTrue(self.shirabe.should_checkpoint())
            self.assertFalse(self.shirabe.should_stop())
            with self.shirabe.checkpoint(number):
                pass
            self.assertFalse(self.shirabe.should_checkpoint())

    def test_that_arrive_while_saving_are_not_lost(self):
        self.ask(1, "checkpoint")
        with self.shirabe.checkpoint(1):
            self.ask(2, "checkpoint")
        self.assertTrue(self.shirabe.should_checkpoint())

    def test_that_come_of_preemptions_alone_are_for_what_is_too_old(self):
        for every, wanted in (("0.001", True), ("3600", False), ("", False), ("nan", False),
                              ("often", False), ("-1", False)):
            os.environ["SHIRABE_CHECKPOINT_SECONDS"] = every
            time.sleep(0.002)
            self.assertEqual(self.shirabe.should_checkpoint(), wanted, every)
        os.environ["SHIRABE_CHECKPOINT_SECONDS"] = "60"
        with mock.patch("time.monotonic", lambda: 1e9):
            self.assertTrue(self.shirabe.should_checkpoint())
            with self.shirabe.checkpoint(1):
                pass
            self.assertFalse(self.shirabe.should_checkpoint() or self.shirabe.should_stop())

    def test_end_the_program(self):
        for reason, save in (("preempt", True), ("early-stop", False), ("cancel", False)):
            self.ask(1, reason)
            self.assertTrue(self.shirabe.should_stop(), reason)
            self.assertEqual(self.shirabe.should_checkpoint(), save, reason)

    def test_that_cannot_be_read_are_none(self):
        for text in ("", "{", "\x00"):
            self.control.write_text(text)
            self.assertFalse(self.shirabe.should_stop(), repr(text))

    def test_of_sigterm_alone_are_a_preemption(self):
        self.assertFalse(self.shirabe.should_stop())
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertTrue(self.shirabe.should_stop() and self.shirabe.should_checkpoint())
        with self.shirabe.checkpoint(1):
            pass
        self.assertFalse(self.shirabe.should_checkpoint())
        self.assertTrue(self.shirabe.should_stop())

    def test_leave_the_programs_own_handler_alone(self):
        heard = []
        signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
        self.shirabe.should_stop()
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(heard, [1])

    def test_agree_on_every_rank(self):
        def all_reduce(flags, op):
            self.assertEqual(op, "max")
            flags.value = 1  # another rank was asked to stop

        class Tensor:
            def __init__(self, values, device):
                self.value = values[0]

            def item(self):
                return self.value

        dist = types.SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            get_backend=lambda: "gloo",
            all_reduce=all_reduce,
            ReduceOp=types.SimpleNamespace(MAX="max"),
        )
        torch = types.SimpleNamespace(distributed=dist, tensor=Tensor)
        with mock.patch.dict(sys.modules, torch=torch):
            self.assertTrue(self.shirabe.should_stop())


SCRIPT = """
import shirabe, sys, time
start = int(shirabe.resume().name) if shirabe.resume() else 0
shirabe.should_stop()
for step in range(start + 1, 8):
    shirabe.report(step, loss=1 / step)
    while step == 3 and not shirabe.should_stop():
        print("at 3", flush=True)
        time.sleep(0.01)
    if shirabe.should_stop():
        with shirabe.checkpoint(step):
            pass
        sys.exit(75)
shirabe.done()
"""


class Program(ShirabeTest):
    def test_saves_itself_on_sigterm_and_goes_on_from_there(self):
        self.enter_trial()
        os.environ["PYTHONPATH"] = str(SDK)
        command = [sys.executable, "-c", SCRIPT]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
            self.assertEqual(first.stdout.readline(), "at 3\n")
            first.send_signal(signal.SIGTERM)
            first.communicate(timeout=60)
            self.assertEqual(first.returncode, 75)
        self.assertEqual(self.saved(), ["3"])
        os.environ["SHIRABE_RESUME_FROM"] = str(self.dir / "checkpoints/3")
        second = subprocess.run(command, timeout=60)
        self.assertEqual(second.returncode, 0)
        steps = [line.get("step") for line in self.lines()]
        self.assertEqual(steps, [1, 2, 3, 4, 5, 6, 7, None])


if __name__ == "__main__":
    unittest.main()
