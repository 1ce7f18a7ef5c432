"""A stream never runs under two kinds of noise: every opening works out the digests of its statistics again."""

from fractions import Fraction

import pytest

import retroact as ra
from retroact.errors import InputError, VerificationError
from retroact.noise.mechanism import Mechanism
from retroact.noise.process import Process
from retroact.stream import choosing

SCHEMA = {"country": ra.Text(), "amount": ra.Integer(0, 100)}
STATISTICS = {"n": ra.Count(), "by": ra.Histogram("country"), "total": ra.Sum("amount")}
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "horizon": 1000}


def renamed(patch):
    """As if the class had another name."""
    spec = Process.spec
    patch.setattr(Process, "spec", lambda self, **more: {**spec(self, **more), "type": f"renamed {self.kind}"})


def shared_differently(patch):
    patch.setattr(choosing, "THRESHOLD_SHARE", Fraction(1, 4))


def calibrated_differently(patch):
    """Nothing that the names of coins are made of changes."""
    init = Mechanism.__init__

    def wider(self, process, share, *, norm1, norm2_squared, **more):
        init(self, process, share, norm1=2 * norm1, norm2_squared=4 * norm2_squared, **more)

    patch.setattr(Mechanism, "__init__", wider)


CHANGES = [renamed, shared_differently, calibrated_differently]


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    return str(tmp_path / "orders") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def opened(where, tmp_path, *given, **more):
    return ra.Stream.open(where, *given, key=ra.Key.for_testing(4), fence=tmp_path / "f", **more)


@pytest.mark.parametrize("change", CHANGES)
def test_other_noise_is_refused_before_anything_is_written(where, tmp_path, monkeypatch, change):
    with opened(where, tmp_path, SCHEMA, STATISTICS, **BUDGET) as stream:
        stream.add({"country": "DE", "amount": 3}, subject="u1")
        stream.close_round()
        stream.add({"country": "DE", "amount": 5}, subject="u1")
    fence = (tmp_path / "f").read_bytes()
    with monkeypatch.context() as patch:
        change(patch)
        patch.setattr("retroact.stream.open._attached", lambda *_, **__: pytest.fail("it was opened"))
        patch.setattr("retroact.store.store.Store.write_notes", lambda *_: pytest.fail("it was written"))
        for more in ({}, {"restored": True}):
            with pytest.raises(VerificationError, match=r"the noise of .* is not that of the rounds before"):
                opened(where, tmp_path, **more)
            # what is given is the same as ever
            with pytest.raises(VerificationError, match=r"the noise of .* is not that of the rounds before"):
                opened(where, tmp_path, SCHEMA, STATISTICS, **BUDGET, **more)
    assert (tmp_path / "f").read_bytes() == fence
    with pytest.raises(InputError, match=r"epsilon: 1\.0 in the store, 2.0 given"):
        opened(where, tmp_path, SCHEMA, STATISTICS, **{**BUDGET, "epsilon": 2.0})
    with opened(where, tmp_path) as stream:
        assert len(stream.close_round()) == 3


def test_statistics_that_files_cannot_describe(where, tmp_path, monkeypatch):
    own = {"q": ra.LinearQuery(lambda columns: columns["amount"][:, None], size=1, norm1=100, name="amounts")}
    with opened(where, tmp_path, SCHEMA, own, **BUDGET) as stream:
        stream.close_round()
    with pytest.raises(InputError, match="files cannot describe"):
        opened(where, tmp_path)
    with monkeypatch.context() as patch:
        calibrated_differently(patch)
        with pytest.raises(VerificationError, match="the noise of q is not that"):
            opened(where, tmp_path, SCHEMA, own, **BUDGET)
    opened(where, tmp_path, SCHEMA, own, **BUDGET).close()


def test_before_anything_came_in_a_given_specification_counts(where, tmp_path, monkeypatch):
    opened(where, tmp_path, SCHEMA, STATISTICS, **BUDGET).close()
    renamed(monkeypatch)
    with pytest.raises(VerificationError, match="the noise of"):
        opened(where, tmp_path)
    with opened(where, tmp_path, SCHEMA, STATISTICS, **BUDGET) as stream:
        stream.close_round()
    opened(where, tmp_path).close()
