"""Laws of private choices over small domains, outcome by outcome."""

from retroact.oneshot.exponential import quantile_law


def probabilities(values, lower, upper, probability, epsilon):
    """The exact probability with which `quantile_point` gives each value of the domain."""
    law = quantile_law(values, lower, upper, probability, epsilon)
    return [law.probability(outcome) for outcome in range(lower, upper + 1)]
