"""Programs written for Optuna, over Shirabe: change one import.

    import shirabe.compat.optuna as optuna

    study = optuna.create_study(direction="minimize")
    study.optimize(lambda trial: (trial.suggest_float("x", -10, 10) - 2) ** 2, n_trials=50)
    print(study.best_params)

Names, arguments and states are Optuna's. The space is what the first trial that ends well asks for,
and every later trial must ask for parameters of it: a search space that changes from trial to trial
is refused, as are constraints that do, and all that Shirabe has not (plots, samplers of one's own),
each with the reason, as a NotSupported. Without a sampler, Shirabe chooses the algorithm (`auto`).

Several objectives are create_study(directions=[…]), an objective that returns as many values, and
study.best_trials. Constraints are a sampler's constraints_func or trial.set_constraint; their
values, 0 or less where they are kept, are metrics of the trial with that bound.

Different from Optuna: a study with a storage lies in a folder of its own (beside the file that a
sqlite:/// address names), and goes on where a process that was killed left it; MedianPruner
compares the best of a trial with the others' running averages.
"""

from typing import Any

from . import distributions, exceptions, logging, pruners, samplers, study, trial
from .exceptions import NotSupported, TrialPruned
from .store import create_study, delete_study, get_all_study_names, load_study
from .study import Study
from .trial import Trial

__all__ = [
    "NotSupported",
    "Study",
    "Trial",
    "TrialPruned",
    "create_study",
    "delete_study",
    "distributions",
    "exceptions",
    "get_all_study_names",
    "load_study",
    "logging",
    "pruners",
    "samplers",
    "study",
    "trial",
]

_REFUSED = {
    "artifacts": "files of a trial belong into shirabe.Trial.folder",
    "copy_study": "a study is a folder: copy it while nothing uses it",
    "create_trial": "results from elsewhere come in by `shirabe import`",
    "get_all_study_summaries": "get_all_study_names and load_study give the same",
    "importance": "there is none here yet",
    "integration": "callbacks of frameworks report with trial.report and trial.should_prune",
    "search_space": "the space of a study is that of its first trial",
    "storages": "storage= is a folder, or a sqlite:/// address, which then names one",
    "visualization": "plots are not drawn here; study.trials_dataframe() has the numbers",
}


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        raise AttributeError(f"shirabe.compat.optuna has no {name}: {_REFUSED[name]}")
    raise AttributeError(f"module 'shirabe.compat.optuna' has no attribute {name!r}")
