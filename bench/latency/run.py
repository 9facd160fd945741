"""How long one suggestion takes after n trials, refits of the model included: Shirabe and a peer in
turn, one core, in one run. In the environment of the problems (bench/regret/run.sh makes it):

  bench/latency/run.py [--methods gp,optuna-gp] [--ask build/release/bin/regret_ask]

Each method is given n random trials of a smooth function in d = 10, then asked for one point after
the other, each told at once, until n has grown by a twentieth (at least 40 points): a model that is
refitted whenever the data have grown by some per cent is refitted here several times. The first of
them, which knows of no earlier model, stands apart as `cold`. Processor time is counted.

The floor is that of the arithmetic, at the rate of a matrix product on this core: screening m
candidates costs m·(n² + 2nd) flops (kernel rows and one triangular solve), and one value and
gradient of the marginal likelihood n³ (Cholesky n³/3, inverse 2n³/3); a suggestion without a refit
needs the first, one with a refit at least five of the second.
"""

import argparse
import os
import pathlib
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy reads it
import numpy  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "regret"))
import run  # noqa: E402  (of bench/regret)

D, CANDIDATES, GRADIENTS = 10, 2048, 5
SPACE = [{"name": f"x{i}", "type": "double", "min": 0.0, "max": 1.0} for i in range(D)]


def smooth(point):
    x = numpy.array([point[p["name"]] for p in SPACE])
    weights, centre = numpy.linspace(1, 2, D), numpy.linspace(0.2, 0.8, D)
    return float(weights @ (x - centre) ** 2 + 0.3 * numpy.sin(3 * x[:-1]) @ x[1:])


def matrix_rate():
    """Flops a second of processor time, of a product that fits the cache."""
    a = numpy.random.default_rng(1).random((500, 500))
    best = min(_seconds(lambda: a @ a) for _ in range(20))
    return 2 * 500**3 / best


def _seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def floors(n, rate):
    """Seconds without and with a refit."""
    screen = CANDIDATES * (n**2 + 2 * n * D) / rate
    return screen, screen + GRADIENTS * n**3 / rate


def times(command, n, count):
    """Seconds of `count` suggestions after n trials."""
    rng = numpy.random.default_rng(n)
    method = run.Method.start(command, {"method": "latency", "space": SPACE, "seed": 1,
                                        "max_trials": n + count, "parallel": 1})
    points = [{p["name"]: float(rng.random()) for p in SPACE} for _ in range(n)]
    method.send({"add": [[point, smooth(point)] for point in points]})
    seconds = []
    for i in range(count):
        answer = method.ask({"ask": 1})
        seconds.append(answer["seconds"])
        method.send({"tell": [[i, smooth(answer["points"][0])]]})
    method.close()
    return seconds


def numbers(text):
    return [int(part) for part in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description="latency of one suggestion")
    parser.add_argument("--methods", default="gp,optuna-gp", help="judged against the last")
    parser.add_argument("--ask", default="build/release/bin/regret_ask")
    parser.add_argument("--command", help="the program of a method that is neither")
    parser.add_argument("--sizes", type=numbers, default=[100, 300, 500, 1000])
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
    return parser.parse_args()


def command_of(args, method):
    args.method = method
    return run.command_of(args)[1]


def main():
    args = parse()
    methods, rate = args.methods.split(","), matrix_rate()
    print(f"One core, d = {D}, {rate / 1e9:.1f} Gflop/s in a matrix product. Milliseconds.\n")
    print("| n | method | mean | p50 | p99 | cold | floor, with a refit | times faster |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for n in args.sizes:
        ms = {m: 1e3 * numpy.array(times(command_of(args, m), n, max(40, n // 20) + 1))
              for m in methods}
        low, high = (1e3 * s for s in floors(n, rate))
        base = ms[methods[-1]][1:].mean()
        for m in methods:
            warm = ms[m][1:]
            p50, p99 = numpy.quantile(warm, [0.5, 0.99])
            factor = f"{base / warm.mean():.1f}" if m != methods[-1] else ""
            print(f"| {n} | {m} | {warm.mean():.3g} | {p50:.3g} | {p99:.3g} | {ms[m][0]:.3g} "
                  f"| {low:.2g}, {high:.2g} | {factor} |", flush=True)


if __name__ == "__main__":
    main()
