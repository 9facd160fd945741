#!/usr/bin/env python3
"""Two objectives and a constraint, without a server: settings of zlib for few bytes and little
time, within 128 KiB of memory.

    python3 deploy/examples/compress.py [TRIALS]

What is compressed is the source of Python's own library. The front is printed, and after it the
trial of it that is chosen where bytes count twice as much as time.
"""

import os
import sys
import time
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk" / "python"))

import shirabe  # noqa: E402

LIBRARY = Path(os.__file__).parent
TEXT = b"".join(path.read_bytes() for path in sorted(LIBRARY.glob("*.py")))[:400_000]
STRATEGIES = {"default": zlib.Z_DEFAULT_STRATEGY, "filtered": zlib.Z_FILTERED, "rle": zlib.Z_RLE}


def compress(level, window, memory, strategy):
    seconds = []
    for _ in range(3):
        began = time.thread_time()
        packer = zlib.compressobj(level, zlib.DEFLATED, window, memory, STRATEGIES[strategy])
        packed = packer.compress(TEXT) + packer.flush()
        seconds.append(time.thread_time() - began)
    return {
        "ratio": len(packed) / len(TEXT),
        "milliseconds": 1000 * min(seconds),
        "kibibytes": ((1 << (window + 2)) + (1 << (memory + 9))) / 1024,  # by zlib's zconf.h
    }


def main(trials=40):
    space = {
        "level": shirabe.int(1, 9),
        "window": shirabe.int(9, 15),
        "memory": shirabe.int(1, 9),
        "strategy": list(STRATEGIES),
    }
    found = shirabe.optimize(
        compress,
        space,
        minimize=["ratio", "milliseconds"],
        constraints={"kibibytes": {"max": 128}},
        first=[{"level": 6, "window": 15, "memory": 8, "strategy": "default"}],  # zlib's own: 256
        trials=int(trials),
    )
    broken = sum(bool(trial.broken) for trial in found)
    print(f"{len(found)} trials, {broken} of them need more than 128 KiB; the front:")
    chosen = found.best_by(weights={"ratio": 2, "milliseconds": 1})
    for trial in [*found.front, chosen]:
        kept = ", ".join(f"{name} {value:.3g}" for name, value in trial.values.items())
        print(f"trial {trial.number}: {kept}  {trial.params}")


if __name__ == "__main__":
    main(*sys.argv[1:])
