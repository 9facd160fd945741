"""The same as suggestions.sh for Optuna's gRPC storage proxy: how long a client waits for one point
of seven parameters. There the sampler runs in the client, and the proxy serves the storage (SQLite,
as its documentation has it), so that every client is a process of its own.

    PYTHONPATH=~/.cache/shirabe/bench/optuna-grpc \
        ~/.cache/shirabe/bench/optuna/bin/python3 bench/scale/suggestions_optuna.py \
            [SECONDS [SAMPLER TRIALS CLIENTS]]

All rows as a table, or the one row that is named (suggestions_peers.py asks for these).
"""

import multiprocessing
import os
import socket
import sys
import tempfile
import time

import optuna
from optuna.storages import GrpcStorageProxy, RDBStorage, run_grpc_proxy_server

optuna.logging.set_verbosity(optuna.logging.ERROR)


def serve(path, port):
    run_grpc_proxy_server(RDBStorage("sqlite:///" + path), host="127.0.0.1", port=port)


def point(trial):
    for i in range(5):
        trial.suggest_float(f"x{i}", 1, 64)
    trial.suggest_int("units", 1, 64)
    trial.suggest_categorical("optimizer", ["sgd", "adam", "lion"])


def client(sampler, port, trials, seconds, number, times):
    make = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler,
            "gp": getattr(optuna.samplers, "GPSampler", None)}[sampler]
    storage = GrpcStorageProxy(host="127.0.0.1", port=port)
    storage.wait_server_ready(timeout=60)
    study = optuna.create_study(storage=storage, sampler=make(seed=number),
                                study_name=f"{sampler}-{trials}-{number}-{os.getpid()}")
    distributions = {f"x{i}": optuna.distributions.FloatDistribution(1, 64) for i in range(5)}
    distributions["units"] = optuna.distributions.IntDistribution(1, 64)
    distributions["optimizer"] = optuna.distributions.CategoricalDistribution(
        ["sgd", "adam", "lion"])
    random = optuna.samplers.RandomSampler(seed=number)
    study.sampler, study.sampler_kept = random, study.sampler
    for _ in range(trials):
        trial = study.ask(distributions)
        study.tell(trial, sum((trial.params[f"x{i}"] - 20) ** 2 for i in range(5)))
    study.sampler = study.sampler_kept
    end, measured = time.monotonic() + seconds, []
    while time.monotonic() < end or len(measured) < 2:
        start = time.monotonic()
        trial = study.ask()
        point(trial)
        measured.append(time.monotonic() - start)
        study.tell(trial, 1.0)
    times.put(measured[1:])


def run(sampler, trials, clients, seconds):
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = multiprocessing.Process(target=serve, args=(folder + "/db", port), daemon=True)
        server.start()
        times = multiprocessing.Queue()
        workers = [multiprocessing.Process(target=client, args=(sampler, port, trials, seconds, i,
                                                                times)) for i in range(clients)]
        for worker in workers:
            worker.start()
        all_times = sorted(t for _ in workers for t in times.get())
        for worker in workers:
            worker.join()
        server.kill()
        server.join()
    at = [1000 * all_times[int(q * (len(all_times) - 1))] for q in (0.5, 0.99)]
    print(f"| {sampler} | {trials} | {clients} | {len(all_times)} | {at[0]:.2f} | {at[1]:.2f} |",
          flush=True)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 5
    if len(sys.argv) > 2:
        run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), SECONDS)
        sys.exit()
    print(f"Optuna {optuna.__version__}, gRPC storage proxy over SQLite")
    print("| sampler | trials | clients | requests | p50 ms | p99 ms |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for SAMPLER in ("random", "tpe", "gp"):
        for TRIALS, CLIENTS in ((100, 1), (100, 4), (1000, 1)):
            if SAMPLER != "gp" or TRIALS == 100:
                run(SAMPLER, TRIALS, CLIENTS, SECONDS)
