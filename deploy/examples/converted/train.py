"""The program of sweep.yaml: its parameters come as arguments, its metric is a line of output."""

import argparse

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--layers", type=int, required=True)
parser.add_argument("--optimizer", choices=["adam", "sgd"], required=True)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

for epoch in range(1, args.epochs + 1):
    distance = (args.lr - 0.01) ** 2 * 1e4 + abs(args.layers - 3) / 10
    loss = distance + (0.1 if args.optimizer == "sgd" else 0.05) / epoch
    print(f"epoch {epoch} loss={loss:.6f}", flush=True)
