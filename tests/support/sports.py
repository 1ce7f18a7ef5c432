"""People and their sports, and a model of each kind for them."""

import numpy as np

import retroact as ra

SCHEMA = {
    "height": ra.Number(100, 220, step=0.1, clip=True),
    "weight": ra.Number(30, 160, step=0.1, clip=True),
    "age": ra.Integer(0, 99),
    "smokes": ra.Boolean(),
    "town": ra.Category(["Ulm", "Bern", "Linz"]),
    "sport": ra.Category(["row", "run", "swim"]),
}
COLUMNS = ["height", "weight", "age", "smokes"]
GAUSSIAN = {
    "ridge": ra.Ridge(["height", "age", "town"], "weight"),
    "classifier": ra.Classifier(COLUMNS, "sport"),
    "covariance": ra.Covariance(COLUMNS),
    "correlation": ra.Correlation(COLUMNS),
    "pca": ra.PCA([*COLUMNS, "town"], 2),
}
PURE = {
    "nearest_mean": ra.NearestMean(COLUMNS, "sport"),
    "categorical_nb": ra.CategoricalNB([*COLUMNS, "town"], "sport"),
}
MODELS = {**GAUSSIAN, **PURE}


def people(count=20_000, seed=1):
    rng = np.random.default_rng(seed)
    sport = rng.choice(3, count, p=[0.2, 0.5, 0.3])
    height = rng.normal(np.array([188.0, 170.0, 178.0])[sport], 7)
    weight = 0.7 * height - 52 + np.array([10.0, -6.0, 0.0])[sport] + rng.normal(0, 6, count)
    smokes = rng.random(count) < np.array([0.1, 0.2, 0.5])[sport]
    age = np.clip(rng.normal(38, 14, count), 0, 99).round()
    town = np.array(["Ulm", "Bern", "Linz"])[rng.integers(0, 3, count)]
    names = np.array(["row", "run", "swim"])[sport]
    return {"height": height, "weight": weight, "age": age, "smokes": smokes, "town": town, "sport": names}


def released(statistic, columns=None, *, epsilon=4.0, delta=1e-6, seed=1, horizon=63):
    stream = ra.Stream(
        SCHEMA, {"model": statistic}, epsilon=epsilon, delta=delta, horizon=horizon, key=ra.Key.for_testing(seed)
    )
    stream.add(people() if columns is None else columns)
    return stream.close_round()["model"]
