"""Trains a line on points with noise, by gradient descent; as a job of AI Platform would.

What a search decides comes as arguments, and --job-dir too. The metric is written as the library
cloudml-hypertune writes it, which is all that a program needs here.
"""

import argparse
import json
import os
import random


def report(tag, value, step):
    """What hypertune.report_hyperparameter_tuning_metric does."""
    path = os.environ.get("CLOUD_ML_HP_METRIC_FILE")
    if not path:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    line = {"timestamp": 0.0, "trial": os.environ.get("CLOUD_ML_TRIAL_ID", "0"),
            tag: str(float(value)), "global_step": str(step)}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def train(rate, batch, steps=20):
    """Yields the step and 1 / (1 + loss) after it."""
    draw = random.Random(1)
    points = [(x / 50, 3 * x / 50 + draw.gauss(0, 0.1)) for x in range(50)]
    slope = 0.0
    for step in range(1, steps + 1):
        some = draw.sample(points, min(batch, len(points)))
        slope -= rate * sum(2 * x * (slope * x - y) for x, y in some) / len(some)
        loss = sum((slope * x - y) ** 2 for x, y in points) / len(points)
        yield step, 1 / (1 + loss)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--job-dir", default="")
    parser.add_argument("--note", default="")
    args = parser.parse_args()
    print(f"job-dir {args.job_dir} note {args.note}")
    for step, score in train(args.learning_rate, args.batch_size):
        print(f"step {step} of learning rate {args.learning_rate:.4g}")
        report("accuracy", score, step)


if __name__ == "__main__":
    main()
