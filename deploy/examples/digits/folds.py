"""Cross-validates a support vector machine on scikit-learn's bundled handwritten digits.

Each fold is a step. What it reports is the mean accuracy of the folds so far: a trial that is
stopped after four of them keeps the mean of four, not the score of the last, which may be lucky.
"""

import argparse
import json
import os
import sys
from pathlib import Path

# Trials run side by side: one thread each. Must be set before numpy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

# From a checkout, or the image, which has the same folders; `pip install` of it does as well.
sys.path.append(str(Path(__file__).resolve().parents[3] / "sdk" / "python"))
import shirabe

RUN_ME_AGAIN = 75  # saved: costs the trial nothing


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--C", type=float, default=1.0, help="inverse of the penalty")
    parser.add_argument("--gamma", type=float, default=0.01, help="width of the kernel")
    parser.add_argument("--folds", type=int, default=10)
    return parser.parse_args()


def resume():
    """The scores of the folds that were done before the machine was taken away."""
    folder = shirabe.resume()
    return [] if folder is None else json.loads((folder / "scores.json").read_text())


def main():
    args = parse_arguments()
    pixels, digits = load_digits(return_X_y=True)
    # The same folds for all trials: they are compared fold by fold.
    folds = StratifiedKFold(args.folds, shuffle=True, random_state=0).split(pixels, digits)
    scores = resume()
    for fold, (train, test) in enumerate(folds, 1):
        if fold <= len(scores):
            continue
        model = SVC(C=args.C, gamma=args.gamma).fit(pixels[train] / 16.0, digits[train])
        scores.append(model.score(pixels[test] / 16.0, digits[test]))
        shirabe.report(fold, accuracy=sum(scores) / len(scores))
        with shirabe.checkpoint(fold) as folder:
            (folder / "scores.json").write_text(json.dumps(scores))
        if shirabe.should_stop() and fold < args.folds:
            sys.exit(RUN_ME_AGAIN)
    shirabe.done()


if __name__ == "__main__":
    main()
