"""Fits a line by gradient descent, and logs to MLflow: all attempts of a trial are one run.

    pip install mlflow-skinny
    python3 train.py --lr 0.1

MLflow chooses the id of a run itself, so the run of a trial is found by a tag. An attempt that goes
on from a checkpoint of step 22 logs from step 23 on; what the lost attempt logged beyond 22 is then
logged again, with the same steps. Without a server (MLFLOW_TRACKING_URI) it writes to ./mlruns.
"""

import argparse
import fcntl
import json
import os
import random
import sys
import time
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

os.environ.setdefault("MLFLOW_TRACKING_URI", Path("mlruns").absolute().as_uri())
# MLflow asks for this where its store is a folder.
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")

import mlflow

# From a checkout; `pip install` of it does as well.
sys.path.append(str(Path(__file__).resolve().parents[3] / "sdk" / "python"))
import shirabe

TRIAL_TAG = "shirabe.trial"
RUN_ME_AGAIN = 75  # saved: costs the trial nothing


def choose_experiment(name):
    """Made by the trial that comes first: in a folder, two at once would make two of one name."""
    uri = urlparse(mlflow.get_tracking_uri())
    if uri.scheme != "file":
        return mlflow.set_experiment(name).experiment_id
    folder = Path(url2pathname(uri.path))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(folder.name + ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return mlflow.set_experiment(name).experiment_id


def start_run(experiment, trial):
    """The run of this trial, which an earlier attempt may have begun."""
    experiment_id = choose_experiment(experiment)
    found = mlflow.search_runs(
        [experiment_id], f"tags.`{TRIAL_TAG}` = '{trial}'", output_format="list"
    )
    if found:
        return mlflow.start_run(run_id=found[0].info.run_id)
    return mlflow.start_run(run_name=trial, tags={TRIAL_TAG: trial})


def points(seed, count=200):
    source = random.Random(seed)
    xs = [source.uniform(-1, 1) for _ in range(count)]
    return [(x, 3 * x - 1 + source.gauss(0, 0.1)) for x in xs]


def descend(line, data, lr):
    errors = [(line[0] * x + line[1] - y, x) for x, y in data]
    line[0] -= lr * 2 * sum(error * x for error, x in errors) / len(data)
    line[1] -= lr * 2 * sum(error for error, _ in errors) / len(data)
    return sum(error**2 for error, _ in errors) / len(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds, as if it were work")
    args = parser.parse_args()
    data, line, done = points(1), [0.0, 0.0], 0
    folder = shirabe.resume()
    if folder is not None:
        line, done = json.loads((folder / "line.json").read_text()), int(folder.name)
    trial = os.environ.get("SHIRABE_TRIAL", "alone-1")
    with start_run(trial.rpartition("-")[0], trial):
        mlflow.log_param("lr", args.lr)
        for epoch in range(done + 1, args.epochs + 1):
            loss = descend(line, data, args.lr)
            time.sleep(args.pause)
            mlflow.log_metric("loss", loss, step=epoch)
            shirabe.report(epoch, loss=loss)
            # Saved after that: killed in between, a step is logged twice rather than never.
            with shirabe.checkpoint(epoch) as folder:
                (folder / "line.json").write_text(json.dumps(line))
            if shirabe.should_stop() and epoch < args.epochs:
                sys.exit(RUN_ME_AGAIN)
    shirabe.done()


if __name__ == "__main__":
    main()
