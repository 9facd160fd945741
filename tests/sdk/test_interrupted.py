"""Searches that are killed, interrupted and gone on with; and what they leave: nothing."""

import importlib.util
import json
import os
import signal
import threading
import time
import unittest

from support import BINARY, PATIENCE, SdkTest, eventually, processes_with

from shirabe.study import Study
from shirabe_client.errors import Unavailable

PROGRAM = """
import json, os, sys, time
import shirabe

def train(x, trial):
    found = trial.resume()
    first = int(found.name) + 1 if found else 1
    with open("calls", "a") as file:
        file.write(json.dumps([trial.number, first, trial.params, trial.seed]) + "\\n")
    for step in range(first, 5):
        trial.report(step, loss=x + 1 / step)
        with trial.checkpoint(step) as folder:
            (folder / "step").write_text(str(step))
        while WAITS and trial.number == 3 and step == 2 and not os.path.exists("go"):
            time.sleep(0.01)
            if OBEYS and trial.should_stop():
                assert trial.stop_reason == "interrupted", trial.stop_reason
                return None
    return x

if __name__ == "__main__":
    best = shirabe.optimize(
        train, {"x": shirabe.float(0, 1)}, minimize="loss", trials=6, name="killed", seed=4,
        algorithm="random", storage="storage", parallel=PARALLEL, workers=WORKERS, progress=True,
    )
    print(json.dumps([best.ended, [[t.number, t.state, t.value] for t in best]]))
"""


class InterruptedTest(SdkTest):
    def program(self, waits=True, obeys=False, parallel=1, workers="threads"):
        head = f"WAITS, OBEYS, PARALLEL, WORKERS = {waits}, {obeys}, {parallel}, {workers!r}\n"
        return self.start(head + PROGRAM)

    def calls(self):
        try:
            lines = (self.dir / "calls").read_text().splitlines()
        except OSError:
            return []
        return [json.loads(line) for line in lines]

    def waits(self):
        """Until trial 3 stands at its second step, and the others have had their time."""
        saved = self.dir / "storage/trials/default/killed/killed-3/output/checkpoints/2"
        eventually(saved.exists)

    def goes_on(self, **options):
        """The same call, to its end."""
        before = len(self.calls())
        (self.dir / "go").write_text("")
        out, _ = self.ended(self.program(**options))
        ended, trials = json.loads(out)
        self.assertEqual(ended, "trials")
        self.assertEqual([t[:2] for t in trials], [[n, "done"] for n in range(1, 7)])
        return self.calls()[before:]

    def test_killed_with_the_program_nothing_that_ended_is_lost(self):
        for workers, parallel in (("threads", 1), ("threads", 3), ("processes", 2)):
            with self.subTest(workers=workers, parallel=parallel):
                program = self.program(workers=workers, parallel=parallel)
                self.waits()
                done = {c[0] for c in self.calls()}
                os.kill(program.pid, signal.SIGKILL)
                program.communicate()
                eventually(lambda: not processes_with(str(self.dir)))
                calls = self.goes_on(workers=workers, parallel=1)
                third = [c for c in calls if c[0] == 3]
                self.assertEqual([c[1] for c in third], [3])  # from its checkpoint, once
                earlier = [c for c in self.calls() if c[0] == 3]
                self.assertEqual(earlier[0][2:], earlier[1][2:])  # same point, same seed
                # With one worker, what ended is not run again.
                if parallel == 1:
                    self.assertEqual({c[0] for c in calls} & done, {3})
                self.forget()

    def test_the_child_that_is_killed_is_started_again(self):
        program = self.program()
        self.waits()
        (child,) = [p for p, words in processes_with(str(self.dir)) if b"\0serve\0" in words]
        os.kill(child, signal.SIGKILL)
        (self.dir / "go").write_text("")
        out, _ = self.ended(program)
        self.assertEqual([t[1] for t in json.loads(out)[1]], ["done"] * 6)

    def test_ctrl_c_once_waits_and_the_same_call_goes_on(self):
        for obeys in (False, True):
            for workers, parallel in (("threads", 1), ("threads", 2), ("processes", 2)):
                with self.subTest(obeys=obeys, workers=workers, parallel=parallel):
                    program = self.program(obeys=obeys, workers=workers, parallel=parallel)
                    self.waits()
                    os.killpg(program.pid, signal.SIGINT)
                    if not obeys:
                        line = self.line_of(program, "stopping: waits for")
                        self.assertIn("Ctrl-C again ends at once", line)
                        (self.dir / "go").write_text("")
                    out, err = self.ended(program)
                    self.assertIn('the same call with name="killed" goes on', err)
                    ended, trials = json.loads(out)
                    self.assertEqual(ended, "interrupted")
                    states = {number: state for number, state, _ in trials}
                    self.assertEqual(states[3], "running" if obeys else "done")
                    calls = self.goes_on(parallel=1)
                    self.assertEqual([c[1] for c in calls if c[0] == 3], [3] if obeys else [])
                    self.forget()

    def test_ctrl_c_twice_ends_at_once(self):
        for workers, parallel in (("threads", 1), ("threads", 2), ("processes", 2)):
            with self.subTest(workers=workers, parallel=parallel):
                program = self.program(workers=workers, parallel=parallel)
                self.waits()
                os.killpg(program.pid, signal.SIGINT)
                self.line_of(program, "stopping: waits for")
                os.killpg(program.pid, signal.SIGINT)
                _, err = program.communicate(timeout=60)
                self.assertNotEqual(program.returncode, 0)
                self.assertIn("KeyboardInterrupt", err)
                self.goes_on()
                self.forget()

    def test_a_thread_that_was_left_behind_stores_nothing(self):
        study = Study(self.storage, "behind", str(BINARY))
        self.assertIsNone(study.stored())
        other = Study(self.storage, "behind", str(BINARY))  # the child goes on for it
        self.addCleanup(other.close)
        asked, over, said = threading.Event(), threading.Event(), []

        def thread():
            study.stored()
            asked.set()
            over.wait(PATIENCE)
            for call in (study.stored, study.delete):
                try:
                    call()
                    said.append("answered")
                except Unavailable as error:
                    said.append(error.message)

        left = threading.Thread(target=thread)
        left.start()
        asked.wait(PATIENCE)
        study.close()
        over.set()
        left.join(PATIENCE)
        self.assertEqual(said, ["the search is over"] * 2)
        self.assertIsNone(other.stored())

    def line_of(self, program, text):
        line = ""
        while text not in line:
            line = program.stderr.readline()
            self.assertTrue(line, "it has ended")
        return line

    def forget(self):
        """Begins with nothing again."""
        eventually(lambda: not processes_with(str(self.dir)))
        for path in ("go", "calls", "storage"):
            os.rename(self.dir / path, self.dir / f"old-{path}-{len(os.listdir(self.dir))}")


class PlacesTest(SdkTest):
    HEAD = """
import json, os, sys, threading
import shirabe
SPACE = {"x": shirabe.float(0, 1)}
def search(fn, **more):
    given = {"minimize": "loss", "trials": 3, "algorithm": "random", "storage": "storage"}
    return shirabe.optimize(fn, SPACE, **{**given, **more})
"""

    # Hides cloudpickle from the lines after it.
    HIDE = "import importlib.util\nimportlib.util.find_spec = lambda name, *a: None\n"

    def test_a_program_without_the_guard_is_told(self):
        program = self.start(
            self.HEAD + "def f(x):\n    return x\nsearch(f, workers='processes', parallel=2)\n"
        )
        _, err = self.ended(program, 1)
        self.assertIn('under `if __name__ == "__main__":`', err)

    def test_a_prompt_has_worker_processes_too(self):
        text = self.HEAD + (
            "def f(x):\n    return {'loss': x, 'pid': os.getpid()}\n"
            "best = search(f, workers='processes', parallel=2)\n"
            "print(sorted({t.metrics['pid'] != os.getpid() for t in best}))\n"
        )
        for how in ("-", "-c"):
            command = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, {how!r}]"
            command += " + ([sys.argv[1]] if sys.argv[2] == '-c' else []), text=True, "
            command += "input=sys.argv[1]).returncode)"
            self.assertIn("[True]", self.run_text(command, text, how))

    def test_what_cannot_be_sent_is_told(self):
        text = self.HEAD + (
            self.HIDE + "try:\n    search(lambda x: x, workers='processes')\n"
            "except ValueError as error:\n    print(error)\n"
        )
        out = self.run_text(text)
        self.assertIn("workers='processes': <lambda> cannot be sent to a worker process", out)
        self.assertIn("use workers='threads'", out)

    CHOICES = """
class Scale:
    def __init__(self, by):
        self.by = by
def f(x, scale, trial):
    return {"loss": x * (scale.by if isinstance(scale, Scale) else scale(2)), "pid": os.getpid()}
def tries(values):
    SPACE["scale"] = values
    best = search(f, workers="processes")
    print(sorted({t.state for t in best}), {t.metrics["pid"] != os.getpid() for t in best})
"""

    def test_values_that_worker_processes_cannot_have_are_told(self):
        own = "if __name__ == '__main__':\n    class Own(Scale):\n        pass\n"
        for values, more, reason in (
            ("[lambda y: y]", self.HIDE, 'space["scale"] cannot be sent to a worker process (Can'),
            ("[threading.Lock()]", "", 'space["scale"] cannot be sent to a worker process (cannot'),
            ("[Own(1)]", own, 'cannot load space["scale"]: AttributeError'),
        ):
            text = f"{self.HEAD}{self.CHOICES}{more}if __name__ == '__main__':\n"
            text += f"    try:\n        tries({values})\n    except ValueError as error:\n"
            out = self.run_text(text + "        print(error)\n")
            self.assertIn(reason, out)
            self.assertIn("define it at the top level of a module", out)

    def test_worker_processes_have_the_values_of_a_prompt(self):
        text = self.HEAD + self.CHOICES + "tries([Scale(1), Scale(2)])\n"
        for hide in ("", self.HIDE):
            command = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', "
            out = self.run_text(command + "sys.argv[1]]).returncode)", hide + text)
            self.assertEqual(out, "['done'] {True}\n")

    @unittest.skipUnless(importlib.util.find_spec("cloudpickle"), "cloudpickle is not installed")
    def test_values_without_a_name_are_sent_by_value(self):
        guarded = "if __name__ == '__main__':\n    tries([lambda y: y, lambda y: 2 * y])\n"
        self.assertEqual(self.run_text(self.HEAD + self.CHOICES + guarded), "['done'] {True}\n")

    def test_forked_processes_leave_the_search_alone(self):
        out = self.run_text(
            self.HEAD
            + """
def f(x, trial):
    child = os.fork()
    if child == 0:
        trial.report(1, loss=x)
        sys.exit(0)  # as a child that was written without care, atexit and all
    assert os.waitpid(child, 0)[1] == 0
    trial.report(2, loss=x)
    return x
best = search(f)
pid = os.fork()
if pid == 0:
    inner = search(lambda x: x)
    print("inner", len(inner), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print([t.state for t in best])
"""
        )
        self.assertIn("inner 3", out)
        self.assertIn("['done', 'done', 'done']", out)

    def test_two_processes_share_a_search(self):
        text = self.HEAD + (
            "import time\n"
            "def f(x):\n    time.sleep(0.02)\n    return x\n"
            "best = search(f, name='shared', trials=20, parallel=2)\n"
            "print(len(best), len({t.params['x'] for t in best}))\n"
        )
        programs = [self.start(text) for _ in range(2)]
        for program in programs:
            out, _ = self.ended(program)
            self.assertEqual(out, "20 20\n")

    def test_what_a_process_that_is_killed_leaves_behind_another_goes_on_with(self):
        for workers in ("threads", "processes"):
            with self.subTest(workers=workers):
                text = self.HEAD + (
                    "import pathlib, time\n"
                    "def f(x):\n"
                    f"    folder = pathlib.Path({str(self.dir)!r})\n"
                    "    if (folder / 'dies').exists():\n"
                    "        (folder / f'{os.getpid()}-{x}').write_text('')\n"
                    "        time.sleep(60)\n"
                    "    return x\n"
                    "if __name__ == '__main__':\n"
                    f"    best = search(f, name='left-{workers}', trials=8, parallel=2, "
                    f"workers={workers!r})\n"
                    "    print(len(best), {t.state for t in best})\n"
                )
                (self.dir / "dies").write_text("")
                dies = self.start(text)
                eventually(lambda: len(list(self.dir.glob("*-0.*"))) == 2)
                (self.dir / "dies").unlink()
                other = self.start(text)
                time.sleep(1)
                os.killpg(dies.pid, signal.SIGKILL)
                dies.communicate()
                out, _ = self.ended(other)
                self.assertEqual(out, "8 {'done'}\n")
                for path in self.dir.glob("*-0.*"):
                    path.unlink()

    def test_threads_that_are_left_behind_start_nothing(self):
        out = self.run_text(
            self.HEAD
            + """
import signal, subprocess, time
def f(x, trial):
    if trial.number == 1:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
    time.sleep(0.5)
    return x
try:
    search(f, parallel=2)
except KeyboardInterrupt:
    time.sleep(1.5)
    print("children:", subprocess.run(["pgrep", "-P", str(os.getpid()), "shirabe"]).returncode)
"""
        )
        self.assertEqual(out, "children: 1\n")

    def test_suggestions_leave_the_gpu_to_the_objective_unless_told(self):
        text = (
            self.HEAD
            + """
import subprocess
def f(x, trial):
    child = subprocess.run(["pgrep", "-P", str(os.getpid()), "shirabe"], capture_output=True)
    names = open(f"/proc/{int(child.stdout)}/environ").read().split("\\0")
    print(sorted(name for name in names if name.startswith("SHIRABE_GPU")))
    return x
search(f, parallel=1, trials=1)
"""
        )
        self.assertIn("['SHIRABE_GPU=off']", self.run_text(text))
        self.environment["SHIRABE_GPU"] = "auto"
        self.environment["SHIRABE_GPU_LIBRARY_DIR"] = "/nowhere"
        self.assertIn(
            "['SHIRABE_GPU=auto', 'SHIRABE_GPU_LIBRARY_DIR=/nowhere']", self.run_text(text)
        )

    def test_from_another_thread_and_with_a_handler_of_its_own(self):
        out = self.run_text(
            self.HEAD
            + """
import signal
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(1))
found = []
thread = threading.Thread(target=lambda: found.append(search(lambda x: x, parallel=2)))
thread.start(); thread.join()
best = search(lambda x: os.kill(os.getpid(), signal.SIGINT) or x)
print(len(found[0]), len(best), len(heard), best.ended)
"""
        )
        self.assertEqual(out, "3 3 3 trials\n")


if __name__ == "__main__":
    unittest.main()
