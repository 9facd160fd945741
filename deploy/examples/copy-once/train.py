"""Goes on training a model where it lies: FOLDER/model.json was copied there once for the trial.

    python3 train.py --model FOLDER --lr 0.1

The file is replaced as a whole after each epoch, with the epoch in it: it is its own checkpoint.
Copied again, it would start over, and say so: the epoch would go back.
"""

import argparse
import json
import os
import time
from pathlib import Path


def save(path, model):
    partial = path.with_name(path.name + ".partial")
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(model, file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--pause", type=float, default=0.05, help="seconds, as if it were work")
    args = parser.parse_args()
    path = args.model / "model.json"
    model = json.loads(path.read_text(encoding="utf-8"))
    print(f"begins at epoch {model['epoch']}", flush=True)
    while model["epoch"] < args.epochs:
        model["weight"] -= args.lr * 2 * (model["weight"] - model["target"])
        model["epoch"] += 1
        time.sleep(args.pause)
        save(path, model)
        loss = (model["weight"] - model["target"]) ** 2
        print(f"epoch={model['epoch']} loss={loss}", flush=True)


if __name__ == "__main__":
    main()
