#!/usr/bin/env python3
"""What a GPU's code costs where there is none: the time of `shirabe version`, and the sizes.

    bench/gpu/start.py BEFORE AFTER [RUNS]

BEFORE is the program as it was without that code, AFTER the one at hand, which runs with
SHIRABE_GPU=off, with auto, and without; all four in turn, so that what else the machine does falls
on each alike. Milliseconds: medians, of elapsed time and of processor time.
"""

import os
import resource
import statistics
import subprocess
import sys
import time


def run(program, gpu):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SHIRABE_")}
    if gpu:
        environment["SHIRABE_GPU"] = gpu
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run([program, "version"], env=environment, stdout=subprocess.DEVNULL, check=True)
    elapsed = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e3 * elapsed, 1e3 * used


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    first, second = sys.argv[1:3]
    runs = int(sys.argv[3]) if len(sys.argv) == 4 else 200
    kinds = [
        ("before", first, ""),
        ("after, SHIRABE_GPU=off", second, "off"),
        ("after, auto", second, "auto"),
        ("after, not set", second, ""),
    ]
    times = {name: [] for name, _, _ in kinds}
    for _ in range(runs):
        for name, program, gpu in kinds:
            times[name].append(run(program, gpu))
    print(f"| `shirabe version`, {runs} runs each | elapsed, ms | processor, ms | bytes |")
    print("| --- | ---: | ---: | ---: |")
    for name, program, _ in kinds:
        elapsed, used = (statistics.median(column) for column in zip(*times[name]))
        print(f"| {name} | {elapsed:.2f} | {used:.2f} | {os.path.getsize(program):,} |")


if __name__ == "__main__":
    main()
