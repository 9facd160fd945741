"""The same no-op trials through a peer: suggest at random, run the command, read its metric, store.

    peers.py optuna|ray TRIALS PARALLEL FOLDER

Runs in the peer's own environment (run.sh makes it) and prints one JSON object. Each peer is set up
as its documentation says for durable results on one machine: Optuna with an SQLite storage, Ray
Tune with its experiment folder; neither is slowed by output that nobody reads.
"""

import json
import logging
import os
import subprocess
import sys
import time

COMMAND = "/bin/echo"


def run_command(x):
    """What a user's wrapper does: start the program, wait, parse `loss=`."""
    output = subprocess.run([COMMAND, f"loss={x}"], capture_output=True, text=True, check=True)
    return float(output.stdout.partition("loss=")[2])


def run_optuna(trials, parallel, folder):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=f"sqlite:///{folder}/optuna.db",
                                sampler=optuna.samplers.RandomSampler(seed=1))
    start = time.perf_counter()
    study.optimize(lambda trial: run_command(trial.suggest_float("x", 0, 1)), n_trials=trials,
                   n_jobs=parallel)
    seconds = time.perf_counter() - start
    assert len(study.trials) == trials
    return seconds, optuna.__version__


def ray_objective(config):
    from ray import tune

    tune.report({"loss": run_command(config["x"])})


def run_ray(trials, parallel, folder):
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    import ray
    from ray import tune

    ray.init(num_cpus=parallel, logging_level=logging.ERROR, include_dashboard=False,
             log_to_driver=False)
    tuner = tune.Tuner(
        tune.with_resources(ray_objective, {"cpu": 1}),
        param_space={"x": tune.uniform(0, 1)},
        tune_config=tune.TuneConfig(num_samples=trials, metric="loss", mode="min",
                                    max_concurrent_trials=parallel),
        run_config=tune.RunConfig(storage_path=folder, name="noop", verbose=0))
    start = time.perf_counter()
    results = tuner.fit()
    seconds = time.perf_counter() - start
    assert len(results) == trials and results.num_errors == 0
    return seconds, ray.__version__


def main():
    peer, trials, parallel, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    seconds, version = {"optuna": run_optuna, "ray": run_ray}[peer](trials, parallel, folder)
    print(json.dumps({"seconds": seconds, "version": version}))


if __name__ == "__main__":
    main()
