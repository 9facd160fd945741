"""Programs that report as Hugging Face's Trainer does (Kubeflow Trainer's status call, KEP-2779),
in real trials: with the environment alone, through preemptions and a killed server. Where
transformers and torch are at hand (in $SHIRABE_TRANSFORMERS, a python3, or this one) the real
Trainer is run too."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

from support import BINARY, PATIENCE, SdkTest

# As transformers.integrations.KubeflowCallback has it, without its throttle; then, as that does,
# the values that were logged last once more, without a step.
CALLBACK = """
import json, os, sys, urllib.request
from datetime import datetime, timezone

logged = {}

def post(progress, metrics):
    url = os.environ.get("KUBEFLOW_TRAINER_SERVER_URL")
    token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"], encoding="utf-8").read().strip()
    status = {"lastUpdatedTime": datetime.now(timezone.utc).isoformat(),
              "progressPercentage": progress, "estimatedRemainingSeconds": 1,
              "metrics": [{"name": str(k), "value": str(v)} for k, v in metrics.items()]}
    request = urllib.request.Request(
        url, data=json.dumps({"trainerStatus": status}).encode("utf-8"), method="POST",
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as reply:
        assert reply.status == 200

def step_end(step, steps, **logs):
    logged.update(logs)
    post(min(99, step * 100 // steps), {**logged, "current_step": step, "total_steps": steps,
                                        "current_epoch": round(step / steps, 2)})
"""

STEPS = CALLBACK + """
x = float(sys.argv[1])
post(0, {"total_steps": 4})
for step in range(1, 5):
    step_end(step, 4, loss=x + 4 - step, grad_norm="none")
step_end(4, 4, eval_loss=x)
post(100, logged)
"""

# Saves after each step; its first attempt asks to be run again after two.
PREEMPTED = CALLBACK + """
x = float(sys.argv[1])
folder, before = os.environ["SHIRABE_CHECKPOINT_DIR"], os.environ["SHIRABE_RESUME_FROM"]
first = int(os.path.basename(before)) + 1 if before else 1
for step in range(first, 5):
    step_end(step, 4, loss=x + 4 - step)
    os.makedirs(f"{folder}/{step}.tmp")
    open(f"{folder}/{step}.tmp/state", "w").close()
    os.rename(f"{folder}/{step}.tmp", f"{folder}/{step}")
    if os.environ["SHIRABE_ATTEMPT"] == "1" and step == 2:
        sys.exit(75)
"""

# Reports, and waits for each file that the test makes before it goes on.
HALTING = CALLBACK + """
import time
for step in range(1, 4):
    while True:
        try:
            step_end(step, 3, loss=10 - step)
            break
        except OSError:
            time.sleep(0.05)
    open(f"{sys.argv[2]}/reported-{step}", "w").close()
    while not os.path.exists(f"{sys.argv[2]}/go-{step}"):
        time.sleep(0.02)
"""

# Not a word about Shirabe.
FINE_TUNING = """
import json, sys, torch
from transformers import Trainer, TrainingArguments

class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x=None, labels=None):
        y = self.layer(x).squeeze(-1)
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}

def rows(n):
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(n))
    y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])
    return [{"x": a, "labels": b} for a, b in zip(x, y)]

arguments = TrainingArguments(
    output_dir="out", learning_rate=float(sys.argv[1]), num_train_epochs=3, logging_steps=5,
    per_device_train_batch_size=16, eval_strategy="epoch", save_strategy="no", report_to="none",
    use_cpu=True, disable_tqdm=True)
trainer = Trainer(model=Line(), args=arguments, train_dataset=rows(256), eval_dataset=rows(64))
trainer.train()
with open(sys.argv[2] + "/history.jsonl", "a") as file:
    print(json.dumps(trainer.state.log_history), file=file)
"""


class TrainerStatusTest(SdkTest):
    def run_trials(self, program, *words, metric="loss", trials=2, python=sys.executable):
        (self.dir / "train.py").write_text(program)
        command = [BINARY, "run", "--name", "reported", "--param", "x=0.001..0.1", "--minimize"]
        command += [metric, "--max-trials", str(trials), "--parallel", "1", "-q", "-o", "json"]
        command += [*words, "--", str(python), "train.py", "{x}", str(self.dir)]
        return subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.dir,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def shown(self, *words):
        done = subprocess.run(
            [BINARY, *words, "-o", "json"],
            env=self.environment,
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
        return json.loads(done.stdout)

    def points(self, trial=1):
        """(attempt, step, value) of what counts of the objective of a trial."""
        items = self.shown("get", "metrics", f"reported-{trial}")["items"]
        return [(p["attempt"], p["step"], p["value"]) for p in items]

    def parameter(self, trial=1):
        params = self.shown("get", "trials", "reported")["items"][trial - 1]
        (x,) = params["spec"]["parameterAssignments"]
        return float(x["value"])

    def await_file(self, name):
        end = time.monotonic() + PATIENCE
        while not (self.dir / name).exists():
            self.assertLess(time.monotonic(), end, f"no {name}")
            time.sleep(0.02)

    def test_each_new_value_is_recorded_once(self):
        self.ended(self.run_trials(STEPS))
        for trial in (1, 2):
            x = self.parameter(trial)
            wanted = [(1, step, x + 4 - step) for step in range(1, 5)]
            self.assertEqual(self.points(trial), wanted)

    def test_what_is_logged_last_counts_too(self):
        self.ended(self.run_trials(STEPS, metric="eval_loss"))
        self.assertEqual(self.points(), [(1, 4, self.parameter())])

    def test_an_attempt_after_a_preemption_reports_as_itself(self):
        self.ended(self.run_trials(PREEMPTED, trials=1))
        x = self.parameter()
        wanted = [(1 + step // 3, step, x + 4 - step) for step in range(1, 5)]
        self.assertEqual(self.points(), wanted)
        folder = self.dir / "home" / "trials" / "default" / "reported"
        tokens = {path.read_text() for path in folder.rglob("trainer-token")}
        self.assertEqual(len(tokens), 2, "each attempt has one of its own")

    def test_after_kill_minus_nine_the_next_process_listens(self):
        first = self.run_trials(HALTING, trials=1)
        self.await_file("reported-1")
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=PATIENCE)
        (self.dir / "go-1").touch()
        second = self.run_trials(HALTING, trials=1)
        self.await_file("reported-2")
        for step in (2, 3):
            (self.dir / f"go-{step}").touch()
        self.ended(second)
        self.assertEqual(self.points(), [(1, step, 10 - step) for step in range(1, 4)])

    def test_a_trial_within_a_kubeflow_job_reports_to_its_own_shirabe(self):
        self.environment["KUBEFLOW_TRAINER_SERVER_URL"] = "https://trainer.kubeflow.invalid/"
        self.environment["KUBEFLOW_TRAINER_SERVER_TOKEN"] = str(self.dir / "none")
        self.ended(self.run_trials(STEPS, trials=1))
        self.assertEqual(len(self.points()), 4)

    def test_the_trainer_of_transformers_reports_without_code(self):
        python = os.environ.get("SHIRABE_TRANSFORMERS", sys.executable)
        needed = "import torch; from transformers.integrations import KubeflowCallback"
        if subprocess.run([python, "-c", needed], check=False, capture_output=True).returncode != 0:
            self.skipTest("no transformers 5 with torch (SHIRABE_TRANSFORMERS names a python3)")
        del self.environment["PYTHONPATH"]
        # To load torch takes a busy machine a minute, for each trial.
        tuned = self.run_trials(FINE_TUNING, metric="eval_loss", python=python)
        self.ended(tuned, patience=5 * PATIENCE)
        histories = (self.dir / "history.jsonl").read_text().splitlines()
        for trial, text in enumerate(histories, 1):
            logged = [entry["eval_loss"] for entry in json.loads(text) if "eval_loss" in entry]
            reported = [value for _, _, value in self.points(trial)]
            # It reports every five seconds, and once more at the end; what it prints before its
            # first report has four digits.
            self.assertEqual(reported[-1], logged[-1])
            four = [{f"{value:.4g}" for value in values} for values in (reported, logged)]
            self.assertLessEqual(four[0], four[1])


if __name__ == "__main__":
    unittest.main()
