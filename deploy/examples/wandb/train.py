"""Fits a line by gradient descent, and logs to Weights & Biases: a trial is one run.

    pip install wandb
    WANDB_MODE=offline python3 train.py --lr 0.1

The id of the run is the name of the trial, so that each attempt goes on with the run of the one
before. Offline, each leaves a folder wandb/offline-run-<time>-<id>; `wandb sync` takes those of one
id into one run, in the order in which they began. An attempt that goes on from a checkpoint of step
22 logs from step 23 on.
"""

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

import wandb

# From a checkout; `pip install` of it does as well.
sys.path.append(str(Path(__file__).resolve().parents[3] / "sdk" / "python"))
import shirabe

RUN_ME_AGAIN = 75  # saved: costs the trial nothing


def start_run(trial, config):
    return wandb.init(
        project=trial.rpartition("-")[0],
        id=trial,
        name=trial,
        resume="allow",
        config=config,
        settings=wandb.Settings(silent=True),
    )


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
    with start_run(trial, {"lr": args.lr}) as run:
        for epoch in range(done + 1, args.epochs + 1):
            loss = descend(line, data, args.lr)
            time.sleep(args.pause)
            run.log({"loss": loss}, step=epoch)
            shirabe.report(epoch, loss=loss)
            # Saved after that: killed in between, a step is logged twice rather than never.
            with shirabe.checkpoint(epoch) as folder:
                (folder / "line.json").write_text(json.dumps(line))
            if shirabe.should_stop() and epoch < args.epochs:
                sys.exit(RUN_ME_AGAIN)
    shirabe.done()


if __name__ == "__main__":
    main()
