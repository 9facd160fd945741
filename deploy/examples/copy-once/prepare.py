"""Copies what a trial starts from, once: a later attempt finds it, and overwrites nothing.

    python3 prepare.py --from BASE --to FOLDER

The copy is made beside FOLDER and renamed to it when it is complete and on the disk, so that FOLDER
is there as a whole or not at all, wherever this is killed.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path


def sync(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def copy_once(source, target):
    """False if it was there already."""
    if target.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)  # of an attempt that was killed
    shutil.copytree(source, partial)
    for folder, _, files in os.walk(partial):
        for file in files:
            sync(Path(folder, file))
        sync(folder)
    partial.rename(target)
    sync(target.parent)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, required=True)
    parser.add_argument("--to", dest="target", type=Path, required=True)
    args = parser.parse_args()
    if not args.source.is_dir():
        sys.exit(f"--from {args.source} is not a folder")
    copied = copy_once(args.source, args.target)
    print(f"{args.target}: {'copied' if copied else 'is there already'}", flush=True)


if __name__ == "__main__":
    main()
