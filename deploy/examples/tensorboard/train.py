"""Fits a line to noisy points by gradient descent, and writes its losses for TensorBoard.

    python3 -m pip install tensorboardX
    python3 train.py --lr 0.1 --momentum 0.5 --events runs/1

Nothing in it knows of Shirabe: tensorboardX writes what torch.utils.tensorboard writes.
"""

import argparse
import random

from tensorboardX import SummaryWriter


def points(seed, count=200):
    source = random.Random(seed)
    xs = [source.uniform(-1, 1) for _ in range(count)]
    return [(x, 3 * x - 1 + source.gauss(0, 0.1)) for x in xs]


def loss(line, data):
    return sum((line[0] * x + line[1] - y) ** 2 for x, y in data) / len(data)


def gradient(line, data):
    errors = [(line[0] * x + line[1] - y, x) for x, y in data]
    return (
        2 * sum(error * x for error, x in errors) / len(data),
        2 * sum(error for error, _ in errors) / len(data),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--events", required=True, help="folder for the event files")
    options = parser.parse_args()
    train, valid = points(1), points(2)
    line, speed = [0.0, 0.0], [0.0, 0.0]
    with SummaryWriter(options.events) as writer:
        for epoch in range(1, options.epochs + 1):
            for i, slope in enumerate(gradient(line, train)):
                speed[i] = options.momentum * speed[i] - options.lr * slope
                line[i] += speed[i]
            writer.add_scalar("loss/train", loss(line, train), epoch)
            writer.add_scalar("loss/valid", loss(line, valid), epoch)


if __name__ == "__main__":
    main()
