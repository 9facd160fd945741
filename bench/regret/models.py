"""Real models on the data that scikit-learn brings along, with spaces after bayesmark's, to which
categories and a list of batch sizes are added. The loss is the mean over five folds: log loss or
error rate of a classifier, mean squared error in units of the variance of a regressor.

Every value is computed for real and kept in models.sqlite under the user's cache folder, so that a
second method that asks for the same point does not wait. Training is seeded: a point has one value.
"""

import json
import math
import os
import pathlib
import sqlite3
import warnings

import problems

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
WORST = 20.0  # a log loss can be infinite


def real(name, low, high, log=False):
    return {"name": name, "type": "double", "min": low, "max": high, "log": log}


def whole(name, low, high):
    return {"name": name, "type": "int", "min": low, "max": high}


def one_of(name, *values):
    kind = "categorical" if isinstance(values[0], str) else "discrete"
    return {"name": name, "type": kind, "values": list(values)}


TREE = [whole("max_depth", 1, 15), real("min_samples_split", 0.01, 0.99),
        real("min_samples_leaf", 0.01, 0.49), real("max_features", 0.01, 0.99)]
SPACES = {
    "knn": [whole("n_neighbors", 1, 25), whole("p", 1, 4),
            one_of("weights", "uniform", "distance")],
    "svm": [real("C", 1e-2, 1e3, log=True), real("gamma", 1e-5, 1e1, log=True),
            real("tol", 1e-5, 1e-1, log=True), one_of("kernel", "rbf", "sigmoid")],
    "tree": [*TREE, real("min_weight_fraction_leaf", 0.01, 0.49),
             real("min_impurity_decrease", 0.0, 0.5)],
    "forest": [*TREE, one_of("bootstrap", "yes", "no")],
    "ada": [whole("n_estimators", 10, 100), real("learning_rate", 1e-4, 1e1, log=True)],
    "mlp": [whole("width", 10, 100), real("alpha", 1e-5, 1e1, log=True),
            one_of("batch_size", 8, 16, 32, 64, 128),
            real("learning_rate_init", 1e-5, 1e-1, log=True), real("beta_1", 0.5, 0.99),
            one_of("activation", "relu", "tanh", "logistic")],
}
# (model, data, scikit-learn's name of the score)
PAIRS = (("knn", "breast", "neg_log_loss"), ("svm", "wine", "neg_log_loss"),
         ("svm", "breast", "accuracy"), ("tree", "diabetes", "r2"),
         ("forest", "wine", "neg_log_loss"), ("forest", "diabetes", "r2"),
         ("ada", "breast", "neg_log_loss"), ("mlp", "wine", "neg_log_loss"),
         ("svm", "digits", "neg_log_loss"), ("mlp", "digits", "neg_log_loss"),
         ("mlp", "breast", "accuracy"), ("forest", "digits", "accuracy"),
         ("knn", "digits", "accuracy"), ("ada", "wine", "neg_log_loss"))
NAMES = [f"sklearn-{model}-{data}" for model, data, _ in PAIRS]
# Which model to train, and the parameters of that model alone, by log loss.
CHOSEN = ("knn", "svm", "forest", "ada", "mlp")
CHOICES = [f"choice-{data}" for data in ("wine", "breast", "digits")]


def estimator(model, regression, settings):
    from sklearn import ensemble, neighbors, neural_network, svm, tree
    if model == "knn":
        return neighbors.KNeighborsClassifier(**settings)
    if model == "svm":
        return svm.SVC(**settings, max_iter=20_000)
    if model == "tree":
        return tree.DecisionTreeRegressor(**settings, random_state=0)
    if model == "forest":
        settings["bootstrap"] = settings["bootstrap"] == "yes"
        kind = ensemble.RandomForestRegressor if regression else ensemble.RandomForestClassifier
        return kind(**settings, n_estimators=10, random_state=0)
    if model == "ada":
        return ensemble.AdaBoostClassifier(**settings, random_state=0)
    width = settings.pop("width")
    return neural_network.MLPClassifier((width,), **settings, max_iter=40, random_state=0)


def evaluate(model, data, score, settings):
    from sklearn import calibration, datasets, model_selection, pipeline, preprocessing
    load = {"breast": datasets.load_breast_cancer, "wine": datasets.load_wine,
            "diabetes": datasets.load_diabetes, "digits": datasets.load_digits}[data]
    x, y = load(return_X_y=True)
    if data == "digits":
        x, y = x[:500], y[:500]  # which take a network seconds
    made = estimator(model, score == "r2", dict(settings))
    if model == "svm" and score == "neg_log_loss":
        made = calibration.CalibratedClassifierCV(made, ensemble=False, cv=3)
    folds = (model_selection.KFold if score == "r2" else model_selection.StratifiedKFold)(
        5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = model_selection.cross_val_score(
            pipeline.make_pipeline(preprocessing.StandardScaler(), made), x, y, cv=folds,
            scoring=score)
    mean = float(values.mean())
    loss = -mean if score == "neg_log_loss" else 1 - mean
    return min(loss, WORST)  # NaN, from weights that grew without bounds, stays


class Model(problems.Problem):
    f_opt = 0.0  # not known: report.py measures from the best that was ever found

    def __init__(self, name):
        super().__init__(name)
        self.choose(name)
        folder = CACHE / "shirabe" / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        self.kept = sqlite3.connect(folder / "models.sqlite", timeout=60, isolation_level=None)
        self.kept.execute("PRAGMA journal_mode = WAL")
        self.kept.execute("CREATE TABLE IF NOT EXISTS losses (point TEXT PRIMARY KEY, loss REAL)")

    def choose(self, name):
        self.pair = next(pair for pair in PAIRS if name == f"sklearn-{pair[0]}-{pair[1]}")
        self.space = SPACES[self.pair[0]]

    def model_of(self, point):
        return self.pair, {p["name"]: point[p["name"]] for p in self.space}

    def loss(self, point):
        """Infinite where training came to nothing."""
        pair, settings = self.model_of(point)
        key = f"sklearn-{pair[0]}-{pair[1]}" + json.dumps(settings)
        found = self.kept.execute("SELECT loss FROM losses WHERE point = ?", (key,)).fetchone()
        if found is None:
            loss = evaluate(*pair, settings)
            loss = loss if math.isfinite(loss) else math.inf
            self.kept.execute("INSERT OR IGNORE INTO losses VALUES (?, ?)", (key, loss))
            return loss
        return found[0]

    def told(self, point, loss, rng):
        return loss if math.isfinite(loss) else None


class Choice(Model):
    def choose(self, name):
        self.data = name.removeprefix("choice-")
        self.space = [one_of("model", *CHOSEN)]
        for model in CHOSEN:
            self.space += [{**p, "name": f"{model}_{p['name']}", "when": {"model": [model]}}
                           for p in SPACES[model]]

    def model_of(self, point):
        model = point["model"]
        settings = {p["name"]: point[f"{model}_{p['name']}"] for p in SPACES[model]}
        return (model, self.data, "neg_log_loss"), settings
