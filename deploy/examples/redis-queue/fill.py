"""Cuts scikit-learn's handwritten digits into files, and puts their names into the queue in Redis.

    python3 deploy/examples/redis-queue/fill.py --data /tmp/digits-parts

Running it again adds nothing: the queue knows what waits, what a worker has, and what is done.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import redis
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from work_queue import WorkQueue


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder for the files")
    parser.add_argument("--items", type=int, default=24, help="files to make")
    parser.add_argument("--queue", default="digits", help="name of the queue in Redis")
    args = parser.parse_args()
    if args.items < 1:
        parser.error(f"--items {args.items}: at least 1")
    pixels, digits = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(
        pixels / 16.0, digits, test_size=0.25, random_state=0, stratify=digits
    )
    args.data.mkdir(parents=True, exist_ok=True)
    np.savez(args.data / "test.npz", x=x_test, y=y_test)
    names = [f"part-{i + 1:03}.npz" for i in range(args.items)]
    for name, rows in zip(names, np.array_split(np.arange(len(x_train)), args.items)):
        np.savez(args.data / name, x=x_train[rows], y=y_train[rows])
    url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    try:
        waiting = WorkQueue(redis.Redis.from_url(url), args.queue).fill(names)
    except redis.exceptions.ConnectionError as error:
        sys.exit(f"no Redis at REDIS_URL={url}: {error}")
    print(f"{args.items} files in {args.data}, {waiting} of them wait in the queue {args.queue}")


if __name__ == "__main__":
    main()
