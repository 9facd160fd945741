"""shirabe.optimize as clumsy and hostile programs use it: odd texts, broken functions, places that
cannot be written to, disks that fill. Each is an error that says what is wrong, or just works."""

import json
import os
import shutil
import subprocess
import unittest
import urllib.request
from unittest import mock

from support import BINARY, PATIENCE, SdkTest, bowl, eventually

import shirabe
from shirabe.texts import storable
from shirabe_client import Client

CAN_MOUNT = shutil.which("unshare") is not None and not subprocess.run(
    ["unshare", "--user", "--map-root-user", "--mount", "true"], stderr=subprocess.DEVNULL
).returncode


def reports(x, trial):
    trial.report(2**64, loss=x)
    return x


def bowl_of_one(x):
    return bowl(x, 0)


def interrupts(x):
    raise KeyboardInterrupt


def leaves(x):
    raise GeneratorExit("half \udcff")


class HostileTest(SdkTest):
    def optimize(self, fn, space=None, **more):
        given = {"minimize": "loss", "trials": 4, "algorithm": "random", "storage": self.storage}
        return shirabe.optimize(fn, space or {"x": shirabe.float(0, 1)}, **{**given, **more})

    def failures(self, fn, **more):
        """The reasons of a search of which every trial fails."""
        with self.assertRaises(shirabe.TrialFailed) as raised:
            self.optimize(fn, **more)
        return [trial.reason for trial in raised.exception.result]


class Texts(HostileTest):
    ODD = ("a \U0001f600 and \u00fc", "half \udcff", "NUL \0", "\x1b[31m \x7f \x85 \ufeff \u2028")

    def test_of_exceptions_are_kept(self):
        for kind in (ValueError, shirabe.Infeasible):
            for text in (*self.ODD, "\U0001f600" * 600, "z" * 10_000_000):

                def fails(trial, text=text, kind=kind):
                    if trial.number == 1:
                        raise kind(text)
                    return 1.0

                best = self.optimize(fails)
                self.assertEqual([t.state for t in best][1:], ["done"] * 3)
                shown = best.trials[0].reason
                kept = storable(" ".join(text.split()))
                if kind is ValueError:
                    kept = f"ValueError: {kept}"
                if "\x1b" not in text:  # a terminal's commands are left out
                    self.assertTrue(shown.startswith(kept[:400]), ascii(shown[:80]))
                self.assertLessEqual(len(shown), 510)

    def test_of_tracebacks_are_kept(self):
        def fails(x):
            raise ValueError("half \udcff")

        with self.assertRaises(shirabe.TrialFailed) as raised:
            self.optimize(fails)
        trace = (raised.exception.result.trials[0].folder / "traceback.txt").read_text("utf-8")
        self.assertIn("ValueError: half \\udcff", trace)

    def test_of_metrics_and_categories_are_kept(self):
        space = {"c": [*self.ODD, "plain"]}
        seen = []
        best = self.optimize(
            lambda c: seen.append(c) or {"loss": len(c), "half \udcff": 2}, space, trials=12
        )
        self.assertLessEqual(set(seen), set(space["c"]))
        self.assertEqual(best.trials[0].metrics["half \udcff"], 2)
        self.assertEqual(best.params["c"], min(seen, key=len))

    def test_of_names_that_cannot_be_stored_are_told(self):
        for bad in ("x\udcff", "x\0"):
            for more in (
                {"space": {bad: shirabe.float(0, 1)}},
                {"minimize": bad},
                {"constraints": {bad: {"max": 1}}},
                {"metrics": [bad]},
            ):
                with self.assertRaisesRegex(ValueError, "cannot be stored: rename it"):
                    self.optimize(lambda **_: 1.0, **more)
        with self.assertRaisesRegex(ValueError, "storage: the name .* cannot be stored"):
            self.optimize(lambda x: x, storage=str(self.dir / "s\udcff"))

    def test_of_optunas_names_too(self):
        import shirabe.compat.optuna as optuna

        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.addCleanup(optuna.logging.set_verbosity, verbosity)
        study = optuna.create_study(storage=str(self.storage), study_name="half \udcff")
        with self.assertRaisesRegex(ValueError, "the name 'x.udcff' holds NUL or half"):
            study.optimize(lambda trial: trial.suggest_float("x\udcff", 0, 1), n_trials=3)

        def fails(trial):
            trial.suggest_categorical("c", self.ODD)
            if trial.number == 1:
                raise ValueError("half \udcff and \U0001f600")
            return 1.0

        study = optuna.create_study(storage=str(self.storage), study_name="\U0001f600")
        study.optimize(fails, n_trials=3, catch=(ValueError,))
        states = [trial.state.name for trial in study.trials]
        self.assertEqual(states, ["COMPLETE", "FAIL", "COMPLETE"])

    def test_a_server_is_told_an_emoji_too(self):
        ready = self.dir / "ready"
        server = subprocess.Popen(
            [BINARY, "serve", "--insecure", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0",
             "--ready-file", ready],
            env=self.environment, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.addCleanup(server.wait, PATIENCE)
        self.addCleanup(server.terminate)
        eventually(lambda: ready.exists() and ready.stat().st_size)
        client = Client("http://" + json.loads(ready.read_text())["http"])
        experiment = client.create(
            {
                "apiVersion": "kubeflow.org/v1beta1",
                "kind": "Experiment",
                "metadata": {"name": "odd"},
                "spec": {
                    "objective": {"type": "minimize", "objectiveMetricName": "loss"},
                    "maxTrialCount": 1,
                    "parameters": [
                        {
                            "name": "x",
                            "parameterType": "categorical",
                            "feasibleSpace": {"list": ["\U0001f600", "\U0001f600 \x7f \u2028"]},
                        }
                    ],
                    "shirabe": {"askAndTell": True},
                },
            }
        )
        experiment.annotate(note="well \U0001f600 done")
        eventually(lambda: experiment.refresh().note == "well \U0001f600 done")
        self.assertIn("\U0001f600", experiment.ask().parameters["x"])
        # Other clients may write it as two escapes, as JSON does.
        path = "/api/v1/namespaces/default/experiments/odd:annotate"
        body = json.dumps({"note": "\U0001f600 again"}).encode()
        self.assertIn(b"\\ud83d\\ude00", body)
        head = {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(client.transport.url + path, body, head))
        eventually(lambda: experiment.refresh().note == "\U0001f600 again")


class Functions(HostileTest):
    def test_that_raise_keyboard_interrupt_in_a_worker_process_end_the_search(self):
        for parallel in (1, 2):
            with self.assertRaises(KeyboardInterrupt):
                self.optimize(interrupts, workers="processes", parallel=parallel, name="ends")
        done = self.optimize(bowl_of_one, name="ends")
        self.assertEqual([t.state for t in done], ["done"] * 4)  # what was open is run again

    def test_that_raise_what_is_no_exception_in_a_worker_process_fail(self):
        reasons = self.failures(leaves, workers="processes")
        self.assertRegex(reasons[0], r"^GeneratorExit: half \\udcff \(test_hostile.py:\d+ in leav")

    def test_that_report_steps_beyond_all_bounds_fail(self):
        for workers in ("threads", "processes"):
            for reason in self.failures(reports, workers=workers):
                self.assertIn("step must be at most 9223372036854775805, not 18446744", reason)
        for step in (2**63 - 3, 2**62):
            self.optimize(lambda x, trial, step=step: trial.report(step, loss=x))


class Places(HostileTest):
    def test_that_are_no_folder(self):
        (self.dir / "file").write_text("")
        for storage, error, text in (
            (self.dir / "file", FileExistsError, "give storage= or SHIRABE_HOME one that can be"),
            (self.dir / "file" / "below", NotADirectoryError, "file/below"),
            ("/proc/shirabe", FileNotFoundError, "the folder of the search cannot be used"),
            ("", ValueError, "storage is empty: give a folder"),
            (5, TypeError, "storage must be the path of a folder, not 5"),
            (b"x", TypeError, "storage must be the path of a folder, not b'x'"),
        ):
            with self.assertRaisesRegex(error, text):
                self.optimize(lambda x: x, storage=storage)

    def test_a_database_that_is_none(self):
        self.storage.mkdir()
        (self.storage / "shirabe.db").write_text("rubbish")
        with self.assertRaisesRegex(Exception, "shirabe.db is not a database: choose another"):
            self.optimize(lambda x: x)

    def test_a_program_that_is_another(self):
        with self.assertRaisesRegex(Exception, "it says nothing, and has ended with 1"):
            self.optimize(lambda x: x, binary="/bin/false")

    def test_a_user_without_a_home(self):
        homeless = mock.patch("pathlib.Path.home", side_effect=RuntimeError("no home directory"))
        unset = {k: v for k, v in os.environ.items() if k not in ("SHIRABE_HOME", "XDG_DATA_HOME")}
        with homeless, mock.patch.dict(os.environ, unset, clear=True):
            with self.assertRaisesRegex(FileNotFoundError, "give storage=, or set SHIRABE_HOME"):
                self.optimize(lambda x: x, storage=None)
            self.assertEqual(len(self.optimize(lambda x: x)), 4)

    @unittest.skipUnless(CAN_MOUNT, "no user namespaces to mount a small disk in")
    def test_a_home_that_is_read_only(self):
        _, err = self.on_a_disk("ro", "optimize(lambda x: x, SPACE, minimize='loss', trials=3)", 1)
        self.assertIn("Read-only file system: the folder of the search cannot be used", err)

    @unittest.skipUnless(CAN_MOUNT, "no user namespaces to mount a small disk in")
    def test_a_disk_that_fills_loses_no_trial_that_has_ended(self):
        out, _ = self.on_a_disk("size=4m", FILLS)
        self.assertRegex(out, r"No space left|disk full")
        self.assertIn("\n['done', 'done', 'done', 'done', 'done', 'done', 'done', 'done']\n", out)
        self.assertIn("first three once\n", out)

    def on_a_disk(self, options, text, code=0):
        """A program whose home is a disk of its own."""
        program = self.dir / "program.py"
        head = "from shirabe import float as float_, optimize\nSPACE = {'x': float_(0, 1)}\n"
        program.write_text(head + text)
        home = self.dir / "home"
        home.mkdir()
        mount = f'mount -t tmpfs -o {options} none "$1" && exec python3 "$2"'
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh",
             home, program],
            env=self.environment, cwd=self.dir, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr


FILLS = """
import os
HOME = os.environ["SHIRABE_HOME"]
calls = []

def f(x, trial):
    calls.append(trial.number)
    if trial.number == 4 and calls.count(4) == 1:
        with open(HOME + "/ballast", "wb") as file:
            try:
                while True:
                    file.write(b"x" * 4096)
                    file.flush()
            except OSError:
                pass
    trial.report(1, loss=x)
    return {"loss": x, "kept beside": 1}

def search():
    return optimize(f, SPACE, minimize="loss", trials=8, algorithm="random", name="fills")

try:
    search()
    print("it has not filled")
except Exception as error:
    print(error)
os.unlink(HOME + "/ballast")
print([trial.state for trial in search()])
if [calls.count(n) for n in (1, 2, 3)] == [1, 1, 1]:
    print("first three once")
"""


if __name__ == "__main__":
    unittest.main()
