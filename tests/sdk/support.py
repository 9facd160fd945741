"""What the tests of the Python SDK share: the program, a storage of their own, a server, and
functions that worker processes can import."""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "sdk" / "python"
HERE = Path(__file__).resolve().parent
BINARY = Path(os.environ.get("SHIRABE_BINARY", ROOT / "build" / "release" / "bin" / "shirabe"))
PATIENCE = 60  # seconds
for folder in (SDK, HERE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from shirabe_client import Client  # noqa: E402


@unittest.skipUnless(BINARY.exists(), f"{BINARY} is not built")
class SdkTest(unittest.TestCase):
    """A folder for each test, which ends with no child running."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.storage = self.dir / "storage"
        self.addCleanup(self.check_no_child_is_left)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SHIRABE_")}
        path = os.pathsep.join([str(SDK), str(HERE), *sys.path])
        self.environment = {
            **kept,
            "PYTHONPATH": path,
            "SHIRABE_BINARY": str(BINARY),
            "SHIRABE_HOME": str(self.dir / "home"),
        }
        os.environ["SHIRABE_BINARY"] = str(BINARY)

    def start(self, text, *words):
        """A Python program of this text."""
        program = self.dir / "program.py"
        program.write_text(text)
        return subprocess.Popen(
            [sys.executable, str(program), *words],
            env=self.environment,
            cwd=self.dir,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=interruptible,
        )

    def ended(self, program, code=0, patience=PATIENCE):
        out, err = program.communicate(timeout=patience)
        self.assertEqual(program.returncode, code, out + err)
        return out, err

    def run_text(self, text, *words):
        return self.ended(self.start(text, *words))[0]

    def check_no_child_is_left(self):
        deadline = time.monotonic() + PATIENCE
        while found := processes_with(str(self.dir)):
            if time.monotonic() > deadline:
                raise AssertionError(f"still there: {found}")
            time.sleep(0.05)


@unittest.skipUnless(BINARY.exists(), f"{BINARY} is not built")
class ServerTest(unittest.TestCase):
    """A server for all tests of the class, and a client of it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        home = Path(cls.folder.name)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SHIRABE_")}
        ready = home / "ready"
        words = ["serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", ready]
        cls.server = subprocess.Popen(
            [BINARY, *words],
            env={**kept, "SHIRABE_HOME": str(home)},
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE
        while not ready.exists():
            if cls.server.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the server does not start")
            time.sleep(0.02)
        found = json.loads(ready.read_text())
        cls.url = f"http://{found['http']}"
        cls.token_file = found["tokenFile"]

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait(PATIENCE)
        cls.folder.cleanup()

    def setUp(self):
        self.client = Client(self.url, token_file=self.token_file)


def asked(name, **spec):
    """An experiment whose caller runs the trials."""
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": name},
        "spec": {
            "objective": {"type": "minimize", "objectiveMetricName": "loss"},
            "algorithm": {"algorithmName": "random"},
            "maxTrialCount": 3,
            "parameters": [
                {
                    "name": "x",
                    "parameterType": "double",
                    "feasibleSpace": {"min": "0", "max": "1"},
                },
                {"name": "n", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "9"}},
                {
                    "name": "kind",
                    "parameterType": "categorical",
                    "feasibleSpace": {"list": ["a", "b c"]},
                },
            ],
            "shirabe": {"askAndTell": True, "seed": 5},
            **spec,
        },
    }


def interruptible():
    """A shell's background job ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def processes_with(text):
    """The processes whose command line or environment has the text, but not this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if text.encode() in words and state != "Z":
            found.append((int(entry.name), words[:200]))
    return found


def eventually(what):
    deadline = time.monotonic() + PATIENCE
    while not (found := what()):
        if time.monotonic() > deadline:
            raise AssertionError("it does not happen")
        time.sleep(0.02)
    return found


# ---- functions of trials, which worker processes import ------------------------------------------


def bowl(x, n):
    return (x - 0.3) ** 2 + n


def front(x, z):
    """ZDT1 in two dimensions: the front is z = 0, second = 1 - sqrt(first)."""
    g = 1 + 9 * z
    return {"first": x, "second": g * (1 - math.sqrt(x / g)), "size": 100 * (x + z)}


def told(x, trial):
    for step in range(1, 4):
        trial.report(step, loss=x + 1 / step, other=step)
    return {"loss": x, "accuracy": 1 - x, "pid": os.getpid()}


class Number:
    """As NumPy's are."""

    shape = ()

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value

    def __index__(self):
        return self.value


def noted(x, trial):
    trial.notes.update(epoch=Number(3), of=[Number(0.5), None])
    return {"loss": x, "beside": 1}


def slow_first(x, trial):
    """The first trial returns a second after another has, however long that takes to start; the
    file $SLOW_FIRST says so."""
    other = Path(os.environ["SLOW_FIRST"])
    if trial.number > 1:
        other.touch()
        return 0.1
    began = time.monotonic()
    while not other.exists() and time.monotonic() < began + PATIENCE:
        time.sleep(0.01)
    time.sleep(1)
    return 0.9


def dies(x):
    if x > 0.5:
        os._exit(3)
    return x


def exits(x):
    sys.exit("no more")


def is_killed(x):
    os.kill(os.getpid(), 9)
