"""Walks towards a minimum and serves its loss for Prometheus while it runs.

    python3 -m pip install prometheus_client
    python3 train.py --lr 0.1 --port 9464      # and look at http://127.0.0.1:9464/metrics

The gauge named step says which step the others belong to. Shirabe reads the page about once a
second: the program stays for two seconds more, so that its last values are seen.
"""

import argparse
import time

from prometheus_client import Gauge, start_http_server


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--port", type=int, default=9464)
    options = parser.parse_args()
    loss = Gauge("loss", "what is left to lose", ["split"])
    step = Gauge("step", "the step of the values")
    start_http_server(options.port, addr="127.0.0.1")
    x = 5.0
    for number in range(1, options.steps + 1):
        x -= options.lr * 2 * x
        loss.labels("train").set(x * x)
        loss.labels("valid").set(x * x + 0.1)
        step.set(number)
        time.sleep(0.05)
    time.sleep(2)


if __name__ == "__main__":
    main()
