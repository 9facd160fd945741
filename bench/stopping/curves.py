"""Trains networks with random hyperparameters on scikit-learn's bundled digits and writes what each
had reached after every epoch: the real learning curves that replay.cc gives to the early-stopping
rules. One JSON object a line: {"trial": 1, "values": [validation accuracy by epoch]}.

    python3 bench/stopping/curves.py > bench/stopping/curves.jsonl
"""

import json
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

TRIALS, EPOCHS = 96, 40


def draw(random):
    return {
        "learning_rate_init": 10 ** random.uniform(-4.5, -0.5),
        "alpha": 10 ** random.uniform(-6, 0),
        "hidden_layer_sizes": (int(random.integers(4, 128)),),
        "batch_size": int(random.choice([16, 32, 64, 128])),
        "activation": str(random.choice(["relu", "tanh", "logistic"])),
        "solver": str(random.choice(["adam", "sgd"])),
    }


def main():
    warnings.simplefilter("ignore")
    pixels, digits = load_digits(return_X_y=True)
    x_train, x_valid, y_train, y_valid = train_test_split(
        pixels / 16.0, digits, test_size=0.25, random_state=0, stratify=digits
    )
    random = np.random.default_rng(1)
    for trial in range(1, TRIALS + 1):
        model = MLPClassifier(random_state=trial, **draw(random))
        values = []
        for _ in range(EPOCHS):
            model.partial_fit(x_train, y_train, classes=np.arange(10))
            values.append(round(float(model.score(x_valid, y_valid)), 6))
        print(json.dumps({"trial": trial, "values": values}), flush=True)


if __name__ == "__main__":
    main()
