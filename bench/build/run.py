#!/usr/bin/env python3
"""What a build costs: processor time from nothing, and the headers that it goes into.

    bench/build/run.py [--skip-build] [--tests]

Builds `shirabe` (with --tests everything that the tests need) with the release preset in an empty
folder, without ccache; then compiles the same batches once with clang's -ftime-trace and sums, by
header, what the compiler spent in it. Prints the tables of bench/RESULTS.md; takes as long as the
build and half of it again, on as many processors as there are.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import resource
import shlex
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEAREST = 10
SYSTEM = ("/usr/include/", "/usr/lib/")


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def build(folder, target):
    """(processor seconds, seconds, steps) of a build from nothing."""
    quiet = {"cwd": ROOT, "check": True, "stdout": subprocess.PIPE, "text": True,
             "env": {**os.environ, "CCACHE_DISABLE": "1"}}
    subprocess.run(["cmake", "--preset", "release", "-B", folder], **quiet)
    before, began = processor_seconds(), time.monotonic()
    output = subprocess.run(["cmake", "--build", folder, "--target", target], **quiet).stdout
    steps = output.strip().splitlines()[-1].split("]")[0].split("/")[-1]
    return processor_seconds() - before, time.monotonic() - began, steps


def commands(build_folder):
    """Arguments of the compiler for every source or batch of the product, but for its output."""
    for entry in json.loads((build_folder / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        output = words[words.index("-o") + 1]
        compiled = "/core.dir/" in "/" + output or "/cmd.dir/" in "/" + output
        if compiled and entry["file"].endswith(".cc"):
            first = next(i for i, word in enumerate(words) if word.startswith("-D"))
            arguments = words[first:words.index("-o")] + [entry["file"]]
            if "-include" in arguments:  # gcc's precompiled header, which clang does not read
                place = arguments.index("-include")
                del arguments[place:place + 2]
            yield entry["directory"], [a for a in arguments if a not in ("-O3", "-Werror")]


def trace(job):
    """The events of compiling one source; none where it asks for what only gcc knows."""
    directory, arguments = job
    with tempfile.TemporaryDirectory() as folder:
        compiled = subprocess.run(["clang++-14", "-w", "-O0", "-ftime-trace", *arguments, "-c",
                                   "-o", f"{folder}/a.o"], cwd=directory, stderr=subprocess.PIPE)
        if compiled.returncode != 0:
            print(f"left out, since clang does not compile it: {shown(arguments[-1])}")
            return []
        return json.loads(pathlib.Path(folder, "a.json").read_text())["traceEvents"]


def shown(path):
    path = os.path.normpath(path)
    for prefix in (*SYSTEM, f"{ROOT}/build/release/generated/", f"{ROOT}/"):
        path = path.removeprefix(prefix)
    return path


def add_headers(events, whole, own, units):
    """Adds the seconds of each header, with what it includes and without."""
    opened = []  # (end, header) of those that the present one lies in
    sources = [e for e in events if e["name"] == "Source"]
    for event in sorted(sources, key=lambda e: (e["ts"], -e["dur"])):
        header, seconds = shown(event["args"]["detail"]), event["dur"] / 1e6
        while opened and opened[-1][0] <= event["ts"]:
            opened.pop()
        if opened:
            own[opened[-1][1]] -= seconds
        own[header] += seconds
        if header not in [name for _, name in opened]:
            whole[header] += seconds
            units[header] += 1
        opened.append((event["ts"] + event["dur"], header))


def print_headers(build_folder):
    whole, own = collections.Counter(), collections.Counter()
    units = collections.Counter()
    jobs = list(commands(build_folder))
    total = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for events in pool.map(trace, jobs):
            add_headers(events, whole, own, units)
            total += sum(e["dur"] for e in events if e["name"] == "ExecuteCompiler") / 1e6
    print(f"\nClang, without optimisation: {len(jobs)} batches and single sources, {total:.0f} s.\n")
    print("| header | batches | s, with what it includes | s, itself |\n| --- | ---: | ---: | ---: |")
    headers = [name for name, _ in whole.most_common() if not name.endswith(".cc")]
    for name in headers[:DEAREST]:
        print(f"| `{name}` | {units[name]} | {whole[name]:.1f} | {own[name]:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-build", action="store_true", help="only the headers")
    parser.add_argument("--tests", action="store_true", help="build what the tests need as well")
    options = parser.parse_args()
    release = ROOT / "build" / "release"
    for command in (["--preset", "release"], ["--build", release, "--target", "proto_headers"]):
        subprocess.run(["cmake", *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    if not options.skip_build:
        folder = ROOT / "build" / "bench-build"
        shutil.rmtree(folder, ignore_errors=True)
        target = "all_tests" if options.tests else "shirabe"
        processor, seconds, steps = build(folder, target)
        print("| built from nothing | steps | processor minutes | minutes |")
        print("| --- | ---: | ---: | ---: |")
        print(f"| `{target}` | {steps} | {processor / 60:.1f} | {seconds / 60:.1f} |", flush=True)
        shutil.rmtree(folder)
    print_headers(release)


if __name__ == "__main__":
    main()
