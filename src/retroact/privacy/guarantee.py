"""The promise, as a value that every release carries."""

from __future__ import annotations

from dataclasses import dataclass, field

from .measures import ApproximateDP, Measure, MixedDP, check_size


@dataclass(frozen=True)
class Guarantee:
    """Privacy of the whole published sequence of a stream, for one operation: adding or deleting one record.

    >>> from retroact.privacy import PureDP
    >>> Guarantee(PureDP(1.0), epsilon=1.0).for_subject(3).epsilon
    3.0
    """

    measure: Measure = field(repr=False)
    epsilon: float
    delta: float = 0.0
    unit: str = "one operation: one addition or one deletion of a record"
    adaptive: bool = True
    promises: tuple[str, ...] = ()

    def for_operations(self, count: int) -> Guarantee:
        """The guarantee for ``count`` operations together (group privacy)."""
        if check_size(count) == 1:
            return self
        return self._group(count, f"{count} operations")

    def for_subject(self, records: int) -> Guarantee:
        """The guarantee for everything a person ever adds or deletes, promised to be at most ``records`` records.

        For linear statistics the whole life of a record, from addition to deletion, is one interval, so a person with
        c records costs c operations, not 2c.
        """
        promise = f"a subject adds at most {records} record{'s' * (records != 1)} over the life of the stream"
        own = "an id belongs to one subject"
        return self._group(check_size(records), f"all records of one subject, at most {records}", promise, own)

    def _group(self, size: int, unit: str, *promises: str) -> Guarantee:
        measure = self.measure.group(size)
        if isinstance(measure, ApproximateDP):
            return Guarantee(measure, measure.value, measure.failure, unit, self.adaptive, self.promises + promises)
        delta = self.delta
        if isinstance(measure, MixedDP) and isinstance(self.measure, MixedDP):
            # Add what the approximate parts lose in a group; the Gaussian parts keep the rest of delta.
            delta = min(1.0, delta + measure.failure - self.measure.failure)
        return Guarantee(measure, measure.epsilon(delta), delta, unit, self.adaptive, self.promises + promises)

    @property
    def budget(self) -> str:
        return f"ε = {self.epsilon:.4g}" + (f", δ = {self.delta:.3g}" if self.delta else "")

    @property
    def text(self) -> str:
        streams = "adaptive streams" if self.adaptive else "oblivious streams only"
        conditions = "".join(f"; promised: {p}" for p in self.promises)
        return f"{self.budget} for {self.unit}, over the whole published sequence ({streams}{conditions})"

    def __str__(self) -> str:
        return self.text
