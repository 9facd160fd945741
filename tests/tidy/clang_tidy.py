#!/usr/bin/env python3
"""Runs clang-tidy over our sources, as many at a time as asked for, and remembers what was clean.

    tests/tidy/clang_tidy.py BUILD_DIR JOBS

A file is checked again when it, a header of ours that it includes, or .clang-tidy has changed. What
is clean is remembered by content in the user's cache, so a fresh checkout starts warm.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = "clang-tidy-14"
OTHERS = {"build", "tests", "bench"}  # generated, or checked by the compiler alone


def digest_of(path, known={}):
    if path not in known:
        known[path] = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
    return known[path]


def headers_by_object(build):
    """What each object file was made from, as ninja knows since the build; only files of ours."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], text=True, check=True,
                             capture_output=True).stdout
    headers, current = {}, None
    for line in listing.splitlines():
        if not line.startswith(" "):
            current = headers.setdefault(line.split(":")[0], [])
            continue
        path = (build / line.strip()).resolve()
        if path.is_relative_to(ROOT):
            current.append(path)
    return headers


def sources(build):
    """(source, key) of every file that clang-tidy reads; equal keys have equal results."""
    headers = headers_by_object(build)
    config = digest_of(ROOT / ".clang-tidy")
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if source.is_relative_to(ROOT) and source.relative_to(ROOT).parts[0] not in OTHERS:
            if source.suffix != ".cc":
                continue
            output = entry["command"].split(" -o ")[1].split(" ")[0]
            inputs = [source] + headers.get(output, [])
            parts = [config, TOOL] + [digest_of(path) for path in inputs]
            yield source, hashlib.sha256("\n".join(parts).encode()).hexdigest()


def check(build, source):
    return subprocess.run(
        [TOOL, "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option",
         "--extra-arg=-Wno-unused-command-line-argument", source],
        text=True, capture_output=True)


def main():
    build, jobs = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    cache = pathlib.Path(home) / "shirabe" / "clang-tidy"
    cache.mkdir(parents=True, exist_ok=True)
    every = sorted(set(sources(build)))
    todo = [(source, key) for source, key in every if not (cache / key).exists()]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (source, key), result in zip(todo, pool.map(lambda s: check(build, s[0]), todo)):
            if result.returncode == 0:
                (cache / key).touch()
                continue
            failed += 1
            print(result.stdout or result.stderr, end="", flush=True)
    print(f"clang-tidy: {len(every)} files, {len(todo)} new or changed, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
