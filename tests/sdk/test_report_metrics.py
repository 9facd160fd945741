"""Katib's report_metrics, in a real trial and outside of one."""

import inspect
import json
import os
import subprocess
import sys
import unittest
from unittest import mock

from support import BINARY, SdkTest

from shirabe_client.compat.katib import report_metrics

PROGRAM = """
import sys
from shirabe_client.compat.katib import report_metrics
for step in range(3):
    report_metrics({"loss": float(sys.argv[1]) + step, "val-acc": "0.5"}, timeout=5)
"""


class ReportMetricsTest(SdkTest):
    def test_in_a_trial(self):
        (self.dir / "train.py").write_text(PROGRAM)
        command = [BINARY, "run", "--name", "pushed", "--param", "x=0..1", "--minimize", "loss"]
        command += [
            "--max-trials",
            "2",
            "-q",
            "-o",
            "json",
            "--",
            sys.executable,
            "train.py",
            "{x}",
        ]
        done = subprocess.run(
            command, env=self.environment, cwd=self.dir, check=True, capture_output=True, timeout=60
        )
        best = json.loads(done.stdout)
        self.assertIn("pushed-", json.dumps(best))
        shown = subprocess.run(
            [BINARY, "export", "pushed", "-o", "jsonl"],
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        lines = [json.loads(line) for line in shown.stdout.splitlines()]
        self.assertEqual(len(lines), 2, shown.stdout)

    def test_outside_of_one(self):
        with mock.patch.dict(os.environ, clear=True):
            with self.assertRaisesRegex(ValueError, "Trial name is not passed"):
                report_metrics({"loss": 1})
            os.environ["KATIB_TRIAL_NAME"] = "t-1"
            with self.assertRaisesRegex(ValueError, "metric loss: 'x' cannot be converted"):
                report_metrics({"loss": "x"})
            with self.assertRaisesRegex(RuntimeError, "Unable to push metrics of Trial t-1"):
                report_metrics({"loss": 1})
            os.environ["SHIRABE_METRICS_FILE"] = str(self.dir / "metrics.jsonl")
            report_metrics({"loss": 1, "acc": True})
            # As Katib's has them: by position and by name, and any name of a metric.
            report_metrics({"step": 3, "timestamp": 5, "loss": "2"}, "katib-db-manager:6789", 120)
            report_metrics(metrics={}, db_manager_address="", timeout=5)
        lines = (self.dir / "metrics.jsonl").read_text().splitlines()
        self.assertEqual(json.loads(lines[0]), {"metrics": {"loss": 1.0, "acc": 1.0}})
        self.assertEqual(
            json.loads(lines[1]), {"metrics": {"step": 3.0, "timestamp": 5.0, "loss": 2.0}}
        )

    def test_it_takes_what_katibs_takes(self):
        # Of kubeflow-katib 0.19; their defaults are an address and a time that are not used here.
        names = list(inspect.signature(report_metrics).parameters)
        self.assertEqual(names, ["metrics", "db_manager_address", "timeout"])


if __name__ == "__main__":
    unittest.main()
