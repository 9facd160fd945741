#!/usr/bin/env python3
"""Time, memory and size of backup, restore and prune over many trials, beside the disk's floor.

    bench/scale/backup.py --shirabe build/release/bin/shirabe [--trials 100000] [--rows 10]

The floor of a backup is to read the database once and to write and fsync as many bytes as the
backup has; that of a restore is the same for the database. SQLite's own copy (its backup
interface) stands beside them. With --postgres ADDRESS (postgres://…, an empty database) the same
backup is restored into it and taken again.
"""

import argparse
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time


def run(arguments: list[str], env: dict[str, str]) -> tuple[float, float, float]:
    """Seconds, processor seconds and greatest MiB of memory of a command that must succeed."""
    began = time.monotonic()
    child = subprocess.Popen(arguments, env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    if child.returncode != 0:
        sys.exit(f"{arguments} ended with {child.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def size_of(path: pathlib.Path) -> float:
    """MiB of a database with its log, or of a file."""
    names = [path, path.with_name(path.name + "-wal")]
    return sum(name.stat().st_size for name in names if name.exists()) / 2**20


def floor_of(folder: pathlib.Path, mib: float) -> float:
    """Seconds to write and fsync as many bytes."""
    block = os.urandom(1 << 20)
    path = folder / "floor"
    began = time.monotonic()
    with path.open("wb") as file:
        for _ in range(max(1, round(mib))):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.monotonic() - began
    path.unlink()
    return seconds


def fill(database: pathlib.Path, rows: int) -> None:
    """Gives each trial of the imported experiment as many observations."""
    with sqlite3.connect(database) as connection:
        connection.execute(
            "WITH RECURSIVE steps(s) AS (SELECT 2 UNION ALL SELECT s + 1 FROM steps WHERE s < ?)"
            " INSERT INTO observation SELECT o.experiment, o.trial, o.attempt, s, o.metric,"
            " abs(random() / 9223372036854775807.0), o.time + s * 1000000000, 0, 0"
            " FROM observation o, steps WHERE o.step < 2",
            (rows,),
        )
    connection.close()


def show(what: str, measured: tuple[float, float, float], more: str = "") -> None:
    seconds, processor, memory = measured
    print(
        f"{what:34}{seconds:9.2f} s{processor:9.2f} s{memory:8.0f} MiB   {more}",
        flush=True,
    )


def copy_with_sqlite(database: pathlib.Path, copy: pathlib.Path) -> float:
    began = time.monotonic()
    source, target = sqlite3.connect(database), sqlite3.connect(copy)
    source.backup(target)
    target.close()
    source.close()
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    return time.monotonic() - began


def measure(arguments: argparse.Namespace, folder: pathlib.Path) -> None:
    shirabe = str(arguments.shirabe)
    env = {**os.environ, "SHIRABE_HOME": str(folder / "home")}
    env.pop("SHIRABE_DB", None)
    table = folder / "many.csv"
    with table.open("w") as file:
        file.write("lr,momentum,batch,loss\n")
        for i in range(arguments.trials):
            file.write(
                f"{i * 0.37:.6g},{i % 97 / 97:.6g},{2 ** (i % 9)},{i * 7919 % 104729}\n"
            )
    show(
        "import", run([shirabe, "import", "csv", str(table), "--minimize", "loss"], env)
    )
    database = folder / "home" / "shirabe.db"
    fill(database, arguments.rows)
    kept = folder / "backup"
    measured = run([shirabe, "backup", str(kept)], env)
    mib, stored = size_of(kept), size_of(database)
    floor = floor_of(folder, mib)
    show(
        "backup",
        measured,
        f"{mib:.1f} MiB of a database of {stored:.1f}; floor {floor:.2f} s",
    )
    copied = copy_with_sqlite(database, folder / "copy")
    print(f"{'  SQLite copying its pages':34}{copied:9.2f} s", flush=True)
    show("restore --dry-run", run([shirabe, "restore", "--dry-run", str(kept)], env))
    floor = floor_of(folder, stored)
    there = ["--db", f"sqlite:{folder / 'there.db'}"]
    show(
        "restore",
        run([shirabe, "restore", str(kept), *there], env),
        f"floor {floor:.2f} s",
    )
    show(
        "restore --replace",
        run([shirabe, "restore", str(kept), "--replace", *there], env),
    )
    if arguments.postgres:
        there = ["--db", arguments.postgres]
        show(
            "restore into PostgreSQL", run([shirabe, "restore", str(kept), *there], env)
        )
        again = folder / "again"
        show("backup of PostgreSQL", run([shirabe, "backup", str(again), *there], env))
    began = time.monotonic()
    run([shirabe, "prune", "--ended-before", "0s", "-A"], env)
    print(
        f"{'prune, all of it':34}{time.monotonic() - began:9.2f} s             "
        f"{size_of(database):.1f} MiB left",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--shirabe", type=pathlib.Path, default="build/release/bin/shirabe"
    )
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--postgres", default="")
    arguments = parser.parse_args()
    print(f"{'':34}{'time':>11}{'processor':>11}{'memory':>12}", flush=True)
    with tempfile.TemporaryDirectory(dir=os.environ.get("SHIRABE_BENCH_DIR")) as folder:
        measure(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    main()
