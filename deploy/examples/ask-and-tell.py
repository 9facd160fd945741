#!/usr/bin/env python3
"""A worker of ask-and-tell.yaml: asks for trials until there are none, and runs each.

    python3 deploy/examples/ask-and-tell.py http://127.0.0.1:7451 [WORKER]

Start as many as you like, each with a name of its own. One that was killed is given its trial
again when it comes back. The "training" is gradient descent with momentum on a narrow valley.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk" / "python"))

from shirabe_client import Client  # noqa: E402


def losses(lr, momentum, steps=60):
    """The loss after each step, from (1, 1), of (x² + 20 y²) / 2."""
    x, y, vx, vy = 1.0, 1.0, 0.0, 0.0
    for _ in range(steps):
        vx, vy = momentum * vx - lr * x, momentum * vy - lr * 20 * y
        x, y = x + vx, y + vy
        yield min((x * x + 20 * y * y) / 2, 1e6)


def main(url, worker=None):
    experiment = Client(url).get("ask-and-tell")
    while trial := experiment.ask(worker):
        for step, loss in enumerate(losses(**trial.parameters), 1):
            why = trial.report(step, loss=loss)
            if why:
                print(f"{trial.name} stops at step {step}: {why}")
                break
        else:
            trial.tell(loss, step=step)
            print(f"{trial.name} loss={loss:.3g}")
    best = experiment.refresh().best
    print(f"best: {best.trial} loss={best.value:.3g}", best.parameters)


if __name__ == "__main__":
    main(*sys.argv[1:])
