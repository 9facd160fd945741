"""Walks towards a minimum and reports as programs for Google's AI Platform do.

    python3 -m pip install cloudml-hypertune
    python3 train.py --lr 0.1

The library writes to $CLOUD_ML_HP_METRIC_FILE, which every trial is given.
"""

import argparse
import time

import hypertune


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=250)
    options = parser.parse_args()
    reporter = hypertune.HyperTune()
    x = 5.0
    for step in range(options.steps):
        reporter.report_hyperparameter_tuning_metric(
            hyperparameter_metric_tag="loss", metric_value=x * x, global_step=step
        )
        x -= options.lr * 2 * x
        time.sleep(0.01)


if __name__ == "__main__":
    main()
