"""Errors by their codes: what a refusal is called and the values that it shows, whatever its words."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from codec_bench.messages.errors import UserError


class Containing(str):
    """Equals every text that contains it."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return str(self) in str(other)

    def __ne__(self, other):
        return not self == other


@contextmanager
def refuses(code, *, hint="", **parameters):
    """Expect a UserError of this code (or `one|other`) with these values, and a text in its hint.

    Of a path its last parts are enough, of a cause its code, or its code with values in a mapping.
    """
    with pytest.raises(UserError) as caught:
        yield caught
    shown = getattr(caught.value.message, "parameters", {})
    assert caught.value.code in code.split("|"), caught.value
    assert hint in (caught.value.hint or ""), caught.value.hint
    for name, expected in parameters.items():
        if isinstance(expected, dict):
            assert expected.items() <= shown[name].as_dict().items(), (name, shown)
            continue
        value = getattr(shown[name], "code", shown[name])
        assert value == expected or str(value).endswith(f"/{expected}"), (name, shown)
