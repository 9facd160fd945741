"""The examples that save and resume: as a program of their own, with the environment of a trial."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "examples"
LEFT_OUT = ("SHIRABE_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_COMM", "PMI_RANK", "SLURM_PROCID")
PATIENCE = 300  # seconds until a program counts as stuck


def find_torch(*more):
    """A Python that has torch: this one, that of $SHIRABE_TORCH, or of one of more folders."""
    if importlib.util.find_spec("torch"):
        return sys.executable
    for home in (os.environ.get("SHIRABE_TORCH"), *more):
        python = Path(home or "/nonexistent") / "bin/python3"
        probe = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
        if python.exists() and subprocess.run([python, "-c", probe]).returncode == 0:
            return str(python)
    return None


TORCH = find_torch()
# Starting torch takes its time: of the one that set-up installs a single test makes use.
TORCHRUN = find_torch("/usr")
NO_TORCH = "no Python with torch: deploy/setup.sh test installs one; or name one in SHIRABE_TORCH"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Attempts:
    """The attempts of one trial, each with a checkpoint folder of its own."""

    def __init__(self, folder, script, arguments, python=sys.executable):
        self.folder = folder
        self.command = [python, str(EXAMPLES / script), *arguments]
        self.count = 0

    def environment(self, resume):
        self.count += 1
        own = self.folder / f"a{self.count}"
        (own / "checkpoints").mkdir(parents=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(LEFT_OUT)}
        return {
            **kept,
            "SHIRABE_TRIAL": "example-1",
            "SHIRABE_ATTEMPT": str(self.count),
            "SHIRABE_SEED": "5",
            "SHIRABE_METRICS_FILE": str(own / "metrics"),
            "SHIRABE_CHECKPOINT_DIR": str(own / "checkpoints"),
            "SHIRABE_CONTROL_FILE": str(own / "control"),
            "SHIRABE_RESUME_FROM": str(resume or ""),
            "GLOO_SOCKET_IFNAME": "lo",  # of torch: in place of what the machine's name resolves to
        }

    def start(self, resume=None, more=()):
        return subprocess.Popen(
            [*self.command, *more], env=self.environment(resume), stdout=subprocess.PIPE
        )

    def run(self, resume=None, more=()):
        with self.start(resume, more) as process:
            try:
                process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
            return process.returncode

    def lines(self, attempt):
        path = self.folder / f"a{attempt}" / "metrics"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def saved(self, attempt):
        folder = self.folder / f"a{attempt}" / "checkpoints"
        return sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit())

    def checkpoint(self, attempt, step):
        return self.folder / f"a{attempt}" / "checkpoints" / str(step)


class Example(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def check_exact_resume(self, attempts):
        """From every step that was saved, the rest is bit for bit that of the whole run."""
        self.assertEqual(attempts.run(), 0)
        whole = attempts.lines(1)
        self.assertEqual(whole[-1], {"done": True})
        steps = attempts.saved(1)
        self.assertEqual(steps, [line["step"] for line in whole[:-1]])
        for step in (steps[0], steps[len(steps) // 2], steps[-1]):
            self.assertEqual(attempts.run(attempts.checkpoint(1, step)), 0)
            self.assertEqual(attempts.lines(attempts.count), whole[step:], f"from step {step}")

    def check_sigterm(self, attempts, more=()):
        """Told to stop, it saves and asks to be run again; then it goes on from there."""
        with attempts.start(more=more) as process:
            deadline = time.monotonic() + PATIENCE
            # The second epoch is reported by a program that has looked at the control file before.
            while len(attempts.lines(1)) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 75)
        step = attempts.saved(1)[-1]
        self.assertEqual(step, attempts.lines(1)[-1]["step"])
        self.assertEqual(attempts.run(attempts.checkpoint(1, step)), 0)
        self.assertEqual(attempts.lines(2)[0]["step"], step + 1)


@unittest.skipUnless(importlib.util.find_spec("sklearn"), "scikit-learn is not installed")
class Digits(Example):
    def attempts(self, *arguments):
        return Attempts(self.folder, "digits/train.py", arguments)

    def test_resumes_with_the_same_numbers(self):
        self.check_exact_resume(self.attempts("--epochs=5"))

    def test_saves_itself_on_sigterm(self):
        self.check_sigterm(self.attempts("--epochs=200"), ["--pause=0.05"])

    def test_prints_outside_of_a_trial(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(LEFT_OUT)}
        command = [sys.executable, str(EXAMPLES / "digits/train.py"), "--epochs=2"]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        line = r"^step=1 loss=\S+ validation-accuracy=\S+ weights=\S+\nstep=2 "
        self.assertRegex(done.stdout, line)

    def test_writes_a_file_for_the_file_collector(self):
        path = self.folder / "metrics.json"
        attempts = self.attempts("--epochs=2", f"--json={path}")
        self.assertEqual(attempts.run(), 0)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([line["epoch"] for line in lines], [1, 2])
        self.assertIsInstance(lines[0]["validation-accuracy"], str)


@unittest.skipUnless(TORCH, NO_TORCH)
class Torch(Example):
    def attempts(self, *arguments):
        return Attempts(self.folder, "torch/train.py", arguments, TORCH)

    def test_resumes_with_the_same_numbers(self):
        self.check_exact_resume(self.attempts("--epochs=4"))

    def test_saves_itself_on_sigterm(self):
        self.check_sigterm(self.attempts("--epochs=300"))

    def test_writes_from_rank_0_only(self):
        attempts = self.attempts("--epochs=2")
        environment = attempts.environment(None)
        environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), WORLD_SIZE="2")
        ranks = [
            subprocess.Popen(attempts.command, env={**environment, "RANK": str(rank)})
            for rank in range(2)
        ]
        for process in ranks:
            self.addCleanup(process.kill)
        self.assertEqual([process.wait(timeout=PATIENCE) for process in ranks], [0, 0])
        self.assertEqual([line.get("step") for line in attempts.lines(1)], [1, 2, None])
        self.assertEqual(attempts.saved(1), [1, 2])


@unittest.skipUnless(TORCHRUN, NO_TORCH)
class Torchrun(Example):
    """torchrun.yaml: two ranks, started by torchrun."""

    def attempts(self, *arguments):
        attempts = Attempts(self.folder, "torch/train.py", arguments, TORCHRUN)
        launcher = ["-m", "torch.distributed.run", "--nproc_per_node=2"]
        # The example says --standalone. Debian's torch 1.13 then listens on port 29400, be it
        # taken or not, and its ranks look up the machine's name, which is not known everywhere.
        own = ["--master_addr=127.0.0.1", f"--master_port={free_port()}"]
        # Python 3.11 makes it fail on the defaults of these.
        attempts.command[1:1] = [*launcher, *own, "--redirects=1", "--tee=1"]
        return attempts

    def test_killed_and_resumed_it_has_the_same_losses(self):
        attempts = self.attempts("--epochs=60")
        self.assertEqual(attempts.run(), 0)
        whole = attempts.lines(1)
        self.assertEqual([line.get("step") for line in whole], [*range(1, 61), None])
        self.assertEqual(attempts.saved(1), list(range(1, 61)), "rank 0 alone saves")
        program = subprocess.Popen(
            attempts.command, env=attempts.environment(None), start_new_session=True
        )
        deadline = time.monotonic() + PATIENCE
        while not attempts.saved(2) and time.monotonic() < deadline:
            time.sleep(0.005)
        os.killpg(program.pid, signal.SIGKILL)
        self.assertNotEqual(program.wait(timeout=PATIENCE), 0)
        step = attempts.saved(2)[-1]
        self.assertEqual(attempts.run(attempts.checkpoint(2, step)), 0)
        self.assertEqual(attempts.lines(3), whole[step:], f"from step {step}")


if __name__ == "__main__":
    unittest.main()
