"""Ends of intervals that are given only where the data pass a rule: they allow for the luck that it takes to pass.

How it is done
    A BLEU has an interval only if ten of the longest n-grams match. Where hardly any is expected to, the runs that pass
    are those with luck, whose values are too high, and Student's t held the truth in 0.75 to 0.86 of them. The value
    and the logarithm of what the rule counts scatter together. What of the count does not go with the value is taken as
    it was seen. Then the rule is passed exactly if the value is above a `cut`. The end is the least true value for
    which a value as large as the one that was seen, among those above the cut, is not rarer than (1 - level) / 2. Far
    above the cut, this is the end of Student's t.

References: Lee, Sun, Sun and Taylor 2016, "Exact post-selection inference, with application to the lasso", Annals of
Statistics 44(3) (the cut, and the law of the value above it).
"""

from __future__ import annotations

import math

import numpy as np

_FARTHEST, _STEP = 12.0, 0.02


def cut(value: float, error: float, counted: float, fewest: int, together: float) -> float:
    """Above which value the rule would have been passed.

    Args:
        value, error: what was found and its standard error. counted: what the rule counted. fewest: how many it asks
        for.
        together: the covariance of the value and the logarithm of the count. If it is negative the value lies below the
            cut.
    """
    # A count of whole things passes from half a thing below.
    return value - math.log(counted / (fewest - 0.5)) * error**2 / together if together else -math.inf


def passing_end(value: float, error: float, above: float, freedom: float, level: float) -> float:
    """The lower end of a two-sided interval of a value that is shown only if it is above a cut; -inf if every value
    below is possible.

    Args:
        value, error: what was found and its standard error. above: the cut, below the value. freedom: the degrees of
        freedom.
        level: of the interval.
    """
    from scipy.special import stdtr

    truths = value - error * np.arange(0.0, _FARTHEST + _STEP, _STEP)
    reached, passed = (stdtr(freedom, (truths - at) / error) for at in (value, above))
    allowed = reached > (1 - level) / 2 * passed
    if allowed.all():
        return -math.inf
    last = int(np.argmin(allowed))
    # Between the two the share of passing runs that reach the value is nearly straight on a scale of logarithms.
    shares = np.log(reached[last - 1 : last + 1] / passed[last - 1 : last + 1])
    return float(np.interp(-math.log((1 - level) / 2), -shares, truths[last - 1 : last + 1]))
