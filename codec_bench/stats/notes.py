"""What a reader should know beside an interval or a test: a code with parameters, and its sentence.

A note never replaces a number that a named method gives. The sentence is for people; code decides by `Note.code`.
"""

from __future__ import annotations

from typing import Any

SENTENCES = {
    # There is no interval or no p.
    "no_value": "no item has a value",
    "zero_denominator": "the denominators (words, for an error rate) add up to 0, and a ratio over nothing has no value",
    "one_without_value": "one of the two systems has no value on these items",
    "too_few_units": "{units} independent units (speakers, or items of unknown speaker); {what} needs at least {needed}",
    "single_unit": "without one of the units no value is left, so the spread is unknown",
    # There is one, and this is worth knowing.
    "all_equal": "all values are equal",
    "equal_systems": "the two are equal in every unit",
    "constant_difference": "every unit gives the same difference",
    "few_units": "only {units} independent units (speakers, or items of unknown speaker)",
    "dominant_unit": "one speaker or item carries more than half of the variance",
    "ceiling": "{at_bound} of {items} items are at the best or the least possible value; the interval rests on the other {rest}",
    "heavy_tail": "{items} items have an error rate above 100 %",
    "sparse_tail": "few values lie beyond this quantile",
    "too_few_to_compare": "too few speakers to compare: {units}, and a comparison with the best needs {needed}",
}
IN_GENERAL = {
    "few_units": "few independent units (speakers, or items of unknown speaker)",
    "ceiling": "most items are at the best or the least possible value; the interval rests on the others",
    "heavy_tail": "some items have an error rate above 100 %",
    "too_few_units": "too few independent units (speakers, or items of unknown speaker)",
}
"""Of notes with several parameters at once."""
NEEDS_ATTENTION = ("few_units", "dominant_unit", "ceiling", "heavy_tail", "sparse_tail", "all_equal")
"""Notes on values that have an interval, the most important first; a value has at most one."""


class Note(str):
    """A note: its code, its parameters, and as a text its sentence.

    Args:
        code: one of `SENTENCES`. parameters: what the sentence names.
    """

    code: str
    parameters: dict[str, Any]

    def __new__(cls, code: str, **parameters: Any) -> Note:
        """Makes the note of a code."""
        made = super().__new__(cls, SENTENCES[code].format(**parameters))
        made.code, made.parameters = code, parameters
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.code,), self.parameters

    def as_dict(self) -> dict[str, Any]:
        """As JSON values: the code with its parameters."""
        return {"code": self.code, **self.parameters}


def too_few(units: int, needed: int, what: str) -> Note:
    """The note of so few units that there is no interval, or no p."""
    return Note("too_few_units", units=units, needed=needed, what=what)
