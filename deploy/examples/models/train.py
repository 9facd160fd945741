"""Scores one of three kinds of models on scikit-learn's bundled handwritten digits, by
cross-validation. Each kind has parameters of its own, and takes no others.

    validation-accuracy=0.9833
"""

import argparse
import os

# Trials run side by side: one thread each. Must be set before numpy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

SEED = int(os.environ.get("SHIRABE_SEED") or 0) % 2**32


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="model", required=True)
    svm = kinds.add_parser("svm")
    svm.add_argument("--c", type=float, required=True, help="how much a mistake costs")
    svm.add_argument("--kernel", choices=["linear", "rbf"], required=True)
    svm.add_argument("--gamma", type=float, help="of rbf: one over the square of its width")
    forest = kinds.add_parser("forest")
    forest.add_argument("--trees", type=int, required=True)
    forest.add_argument("--depth", type=int, required=True)
    neighbours = kinds.add_parser("knn")
    neighbours.add_argument("--neighbours", type=int, required=True)
    args = parser.parse_args()
    if args.model == "svm" and (args.gamma is None) == (args.kernel == "rbf"):
        parser.error("the kernel rbf has a gamma, and no other has one")
    return args


def make_model(args):
    if args.model == "svm":
        return SVC(C=args.c, kernel=args.kernel, gamma=args.gamma or "scale")
    if args.model == "forest":
        return RandomForestClassifier(args.trees, max_depth=args.depth, random_state=SEED)
    return KNeighborsClassifier(args.neighbours)


def main():
    x, y = load_digits(return_X_y=True)
    accuracy = cross_val_score(make_model(parse_arguments()), x[:1000], y[:1000], cv=3).mean()
    print(f"validation-accuracy={accuracy:.4f}")


if __name__ == "__main__":
    main()
