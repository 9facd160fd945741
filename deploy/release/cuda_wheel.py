#!/usr/bin/env python3
"""Makes the wheel shirabe-cuda: libshirabe-cuda.so, where the program of the wheel `shirabe`
in the same environment looks for it.

    deploy/release/cuda_wheel.py --library FILE --version V --tag TAG --licences FOLDER --out FOLDER

In the same way as deploy/release/wheel.py: two runs give the same bytes. Prints its path.
"""

import argparse
from pathlib import Path

import wheel

SUMMARY = "Computes Shirabe's Gaussian processes on an NVIDIA GPU"
DESCRIPTION = """
A library that `shirabe` opens where it is installed. It needs driver 580 or later, and a GPU of
compute capability 7.5 or later; without them `shirabe` computes as ever.
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("library", "licences", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("tag", "version"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    stem = f"shirabe_cuda-{args.version}"
    info = f"{stem}.dist-info"
    # pip puts what is below data/ into the environment's own folder, beside bin/.
    files: wheel.Files = {
        f"{stem}.data/data/lib/shirabe/libshirabe-cuda.so": (args.library.read_bytes(), 0o755)}
    licences = sorted(path.name for path in args.licences.iterdir())
    for name in licences:
        files[f"{info}/licenses/{name}"] = ((args.licences / name).read_bytes(), 0o644)
    metadata = ["Metadata-Version: 2.4", "Name: shirabe-cuda", f"Version: {args.version}",
                f"Summary: {SUMMARY}", "License-Expression: Apache-2.0",
                *[f"License-File: {name}" for name in licences],
                f"Requires-Dist: shirabe=={args.version}", "Requires-Python: >=3.9",
                "Description-Content-Type: text/markdown", DESCRIPTION]
    files[f"{info}/METADATA"] = ("\n".join(metadata).encode(), 0o644)
    tag = ["Wheel-Version: 1.0", "Generator: deploy/release/cuda_wheel.py",
           "Root-Is-Purelib: false", f"Tag: {args.tag}", ""]
    files[f"{info}/WHEEL"] = ("\n".join(tag).encode(), 0o644)
    files[f"{info}/RECORD"] = (wheel.record(files, f"{info}/RECORD"), 0o644)
    path = args.out / f"{stem}-{args.tag}.whl"
    wheel.write(path, files)
    print(path)


main()
