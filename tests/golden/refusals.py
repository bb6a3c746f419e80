"""Errors by their codes: what a refusal is called and the values that it shows, whatever its words."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from codec_bench.messages import of_error
from codec_bench.messages.errors import UserError


class Containing(str):
    """Equals every text that contains it."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return str(self) in str(other)

    def __ne__(self, other):
        return not self == other


@contextmanager
def refuses(code, *, error=UserError, hint="", **parameters):
    """Expect an error of a class that carries this code (or `one|other`), these values, and a text in its hint.

    Of a path its last parts are enough, of a cause its code, or its code with values in a mapping. Of a list one entry
    that is expected is enough.
    """
    with pytest.raises(error) as caught:
        yield caught
    carried = of_error(caught.value)
    assert carried.code in code.split("|"), caught.value
    assert hint in (getattr(caught.value, "hint", None) or ""), caught.value.hint
    for name, expected in parameters.items():
        assert _shows(carried.parameters[name], expected), (name, carried.parameters)


def _shows(value, expected):
    if isinstance(expected, dict) and not isinstance(value, list):
        return getattr(value, "code", None) == expected["code"] and all(
            _shows(value.parameters[name], one) for name, one in expected.items() if name != "code"
        )
    if isinstance(value, list) and not isinstance(expected, list | Containing):
        return any(_shows(one, expected) for one in value)
    if isinstance(expected, Containing):
        return expected == str(value)
    value = getattr(value, "code", value)
    return value == expected or str(value).endswith(f"/{expected}")
