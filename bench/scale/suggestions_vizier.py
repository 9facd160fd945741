"""The same as suggestions.sh for the service of OSS Vizier: how long a client waits for one
point of seven parameters. As its documentation has it, one server process suggests and keeps the
trials, in SQLite; the client sends no history, since the server has it.

    ~/.cache/shirabe/bench/vizier/bin/python3 bench/scale/suggestions_vizier.py \\
        SECONDS ALGORITHM TRIALS

ALGORITHM is random or gp (Vizier's default, GP bandits on JAX; it has no TPE). Prints one row.
"""

import logging
import multiprocessing
import os
import random
import sys
import tempfile
import time

NAMES = {"random": "RANDOM_SEARCH", "gp": "GAUSSIAN_PROCESS_BANDIT"}
OPTIMIZERS = ["sgd", "adam", "lion"]
WARM = 2  # suggestions before the clock counts: JAX compiles its programs


def serve(path, pipe):
    from vizier.service import servers

    logging.disable(logging.CRITICAL)
    server = servers.DefaultVizierServer(database_url="sqlite:///" + path)
    pipe.send(server.endpoint)
    pipe.recv()


def make_study(algorithm):
    from vizier.service import clients
    from vizier.service import pyvizier as vz

    config = vz.StudyConfig(algorithm=NAMES[algorithm])
    root = config.search_space.root
    for i in range(5):
        root.add_float_param(f"x{i}", 1, 64)
    root.add_int_param("units", 1, 64)
    root.add_categorical_param("optimizer", OPTIMIZERS)
    config.metric_information.append(
        vz.MetricInformation("loss", goal=vz.ObjectiveMetricGoal.MINIMIZE))
    return clients.Study.from_study_config(config, owner="bench", study_id=str(os.getpid()))


def add_history(study, trials):
    from vizier.service import pyvizier as vz

    rng = random.Random(1)
    for _ in range(trials):
        point = {f"x{i}": rng.uniform(1, 64) for i in range(5)}
        loss = sum((value - 20) ** 2 for value in point.values())
        point.update(units=rng.randint(1, 64), optimizer=rng.choice(OPTIMIZERS))
        trial = vz.Trial(parameters=point)
        trial.complete(vz.Measurement({"loss": loss}))
        study.add_trial(trial)


def measure(study, seconds):
    from vizier.service import pyvizier as vz

    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end or len(times) < WARM + 3:
        start = time.monotonic()
        (trial,) = study.suggest(count=1, client_id="bench")
        times.append(time.monotonic() - start)
        trial.complete(vz.Measurement({"loss": 1.0}))
        if len(times) == WARM:
            end = time.monotonic() + seconds
    return sorted(times[WARM:])


def main():
    seconds, algorithm, trials = float(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    here, there = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        server = multiprocessing.Process(target=serve, args=(folder + "/db", there), daemon=True)
        server.start()
        endpoint = here.recv()
        from vizier.service import clients

        logging.disable(logging.CRITICAL)
        clients.environment_variables.server_endpoint = endpoint
        study = make_study(algorithm)
        add_history(study, trials)
        times = measure(study, seconds)
        here.send("end")
        server.join()
    at = [1000 * times[int(q * (len(times) - 1))] for q in (0.5, 0.99)]
    print(f"| {algorithm} | {trials} | 1 | {len(times)} | {at[0]:.2f} | {at[1]:.2f} |", flush=True)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
