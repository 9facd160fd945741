"""Trains a small neural network on scikit-learn's bundled handwritten digits, epoch by epoch.

It needs nothing from the network. In a trial of Shirabe it reports each epoch, saves a checkpoint
now and then, and goes on from the newest when its machine was taken away; anywhere else it prints

    step=3 loss=0.2183 validation-accuracy=0.9417 weights=2410

The same seed and parameters give the same numbers, interrupted or not.
"""

import argparse
import json
import os
import pickle
import sys
import time
from pathlib import Path

# Trials run side by side: one thread each. Must be set before numpy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

# From a checkout, or the image, which has the same folders; `pip install` of it does as well.
sys.path.append(str(Path(__file__).resolve().parents[3] / "sdk" / "python"))
import shirabe

RUN_ME_AGAIN = 75  # saved: costs the trial nothing


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lr", type=float, default=0.001, help="learning rate")
    parser.add_argument("--alpha", type=float, default=0.0001, help="L2 penalty")
    parser.add_argument("--hidden", type=int, default=32, help="hidden units")
    parser.add_argument("--batch-size", type=int, default=32, help="examples a step")
    parser.add_argument("--activation", choices=["relu", "tanh", "logistic"], default="relu")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait after an epoch")
    parser.add_argument("--checkpoint-every", type=int, default=1, metavar="EPOCHS")
    parser.add_argument("--json", metavar="FILE", help="write the metrics there, as JSON lines")
    return parser.parse_args()


def new_model(args):
    return MLPClassifier(
        hidden_layer_sizes=(args.hidden,),
        activation=args.activation,
        learning_rate_init=args.lr,
        alpha=args.alpha,
        batch_size=args.batch_size,
        random_state=int(os.environ.get("SHIRABE_SEED") or 0) % 2**32,
    )


def load(args):
    """The model, and the epochs it has been trained for. A pickled model has all that the next
    epoch depends on: the weights, the optimiser's moments and the random state."""
    folder = shirabe.resume()
    if folder is None:
        return new_model(args), 0
    with open(folder / "model.pickle", "rb") as file:
        model = pickle.load(file)
    # What may change in training has changed if the checkpoint is that of another trial.
    model.set_params(learning_rate_init=args.lr, alpha=args.alpha, batch_size=args.batch_size)
    model._optimizer.learning_rate_init = args.lr
    print(f"going on after epoch {folder.name}", flush=True)
    return model, int(folder.name)


def save(model, epoch):
    with shirabe.checkpoint(epoch) as folder:
        with open(folder / "model.pickle", "wb") as file:
            pickle.dump(model, file)


def report(file, epoch, metrics):
    if file is None:
        shirabe.report(epoch, **metrics)
        return
    # Katib's JSON format wants the numbers in quotes; Shirabe reads them either way.
    line = {"epoch": epoch, "timestamp": time.time()}
    line.update((name, f"{value:.4f}") for name, value in metrics.items())
    file.write(json.dumps(line) + "\n")
    file.flush()


def main():
    args = parse_arguments()
    pixels, digits = load_digits(return_X_y=True)
    # The split is the same for all trials, or they could not be compared.
    x_train, x_valid, y_train, y_valid = train_test_split(
        pixels / 16.0, digits, test_size=0.25, random_state=0, stratify=digits
    )
    model, done = load(args)
    file = open(args.json, "w", encoding="utf-8") if args.json else None
    for epoch in range(done + 1, args.epochs + 1):
        model.partial_fit(x_train, y_train, classes=np.arange(10))
        accuracy = model.score(x_valid, y_valid)
        weights = sum(layer.size for layer in model.coefs_ + model.intercepts_)
        metrics = {"loss": model.loss_, "validation-accuracy": accuracy, "weights": weights}
        report(file, epoch, metrics)
        if epoch % args.checkpoint_every == 0 or shirabe.should_checkpoint():
            save(model, epoch)
        if shirabe.should_stop() and epoch < args.epochs:
            sys.exit(RUN_ME_AGAIN)
        time.sleep(args.pause)
    shirabe.done()


if __name__ == "__main__":
    main()
