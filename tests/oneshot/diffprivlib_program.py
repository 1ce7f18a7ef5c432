"""Run by `test_diffprivlib` where diffprivlib is installed: prints what happened, as JSON."""

import json
import sys

import numpy as np
from diffprivlib.models import (
    PCA,
    DecisionTreeClassifier,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    RandomForestClassifier,
    StandardScaler,
)

from retroact.coins import Coins
from retroact.compilers import WindowSample
from retroact.errors import InputError
from retroact.oneshot import SUBSTITUTION, Diffprivlib
from retroact.schema import Boolean, Integer, Number, Rows, Schema, Text, Vector
from retroact.stream import Stream

SCHEMA = Schema({
    "x": Number(0, 10), "y": Number(-5, 5), "label": Boolean(), "class": Integer(0, 1),
    "at": Vector(2, radius=1, step=0.01), "name": Text(),
})  # fmt: skip
COINS = Coins(bytes(32))
OVERSPENDING = (DecisionTreeClassifier, GaussianNB, KMeans, LinearRegression, RandomForestClassifier)


def rows_of(size):
    random = np.random.default_rng(1)
    return SCHEMA.encode([
        {
            "x": round(x, 2), "y": round(min(5, max(-5, x - 5)), 2), "label": bool(x > 5), "class": int(x > 5),
            "at": [0.1, -0.2], "name": f"n{i}",
        }
        for i, x in enumerate(random.uniform(0, 10, size).tolist())
    ])[0]  # fmt: skip


def refused(make):
    try:
        make()
    except InputError as error:
        return str(error)
    return None


def in_a_stream():
    scaler = Diffprivlib(StandardScaler(epsilon=2.0, bounds=(0, 10)), ["x"], read=["mean_"])
    sample = WindowSample(scaler, window=2, size=500, gate=1000)
    stream = Stream({"x": Number(0, 10)}, {"mean": sample}, epsilon=10.0, delta=1e-5, horizon=4)
    answers = [stream.close_round()["mean"]]
    stream.add({"x": [round(i % 1000 / 100, 2) for i in range(3000)]})
    answers.append(stream.close_round()["mean"])
    return {
        "stream": [answer.to_dict()["value"] for answer in answers],
        "guarantee": stream.guarantee.text,
        "any size": refused(lambda: WindowSample(scaler, window=2)),
    }


def main():
    rows = rows_of(2000)
    scaler = Diffprivlib(StandardScaler(epsilon=2.0, bounds=(0, 10)), ["x"], read=["mean_", "var_"])
    scaler.check(SCHEMA, "algorithm")
    pca = Diffprivlib(
        PCA(n_components=1, epsilon=5.0, data_norm=20, bounds=([0, -5], [10, 5])), ["x", "y"], read=["components_"]
    )
    pca.check(SCHEMA, "algorithm")
    logistic = Diffprivlib(
        LogisticRegression(epsilon=5.0, data_norm=20), ["x", "at"], target="label", read=lambda fit: fit.coef_.shape
    )
    logistic.check(SCHEMA, "algorithm")
    shuffled = rows.take(np.random.default_rng(2).permutation(2000))
    leaky = Diffprivlib(StandardScaler(epsilon=1.0), ["x"], read=["mean_"])
    json.dump(
        {
            "contract": [str(scaler.contract.epsilon), str(scaler.contract.delta)],
            "substitution": scaler.contract.relation == SUBSTITUTION,
            "keyed": scaler.keyed,
            "spec": scaler.spec(),
            "repr": repr(scaler),
            "means": [scaler.run(r, SCHEMA, COINS)["mean_"][0] for r in (rows, rows, shuffled)],
            "fitted": hasattr(scaler.estimator, "mean_"),
            "components": np.abs(pca.run(rows, SCHEMA, COINS)["components_"]).tolist(),
            "shape": logistic.run(rows, SCHEMA, COINS),
            "leak": refused(lambda: leaky.check(SCHEMA, "algorithm")),
            "leak when run": refused(lambda: leaky.run(rows, SCHEMA, COINS)),
            "none": refused(lambda: scaler.run(Rows.empty(SCHEMA), SCHEMA, COINS)),
            "seeded": refused(lambda: Diffprivlib(LogisticRegression(random_state=1), ["x"], read=["coef_"])),
            "overspending": [
                refused(lambda made=made: Diffprivlib(made(), ["x"], read=["anything_"])) for made in OVERSPENDING
            ],
            "no privacy": refused(lambda: Diffprivlib(StandardScaler(epsilon=float("inf")), ["x"], read=["mean_"])),
            "other": refused(lambda: Diffprivlib(object(), ["x"], read=["mean_"])),
            "fields": refused(lambda: Diffprivlib(StandardScaler(), "x", read=["mean_"])),
            "read": refused(lambda: Diffprivlib(StandardScaler(), ["x"], read="mean_")),
            "text": refused(
                lambda: Diffprivlib(StandardScaler(bounds=(0, 1)), ["name"], read=["mean_"]).check(SCHEMA, "a")
            ),
            "unknown": refused(
                lambda: Diffprivlib(StandardScaler(bounds=(0, 1)), ["z"], read=["mean_"]).check(SCHEMA, "a")
            ),
            "attribute": refused(
                lambda: Diffprivlib(StandardScaler(bounds=(0, 1)), ["x"], read=["nope_"]).run(rows, SCHEMA, COINS)
            ),
            **in_a_stream(),
            "epsilon": refused(lambda: scaler.at(scaler.contract.epsilon / 2)),
        },
        sys.stdout,
    )


main()
