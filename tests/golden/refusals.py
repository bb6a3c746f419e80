"""Errors by their codes: what a refusal is called and the values that it shows, whatever its words."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from codec_bench.messages.errors import UserError


@contextmanager
def refuses(code, **parameters):
    """Expect a UserError of this code (or `one|other`) with these values.

    Of a path its last parts are enough, of a cause its code.
    """
    with pytest.raises(UserError) as caught:
        yield caught
    shown = getattr(caught.value.message, "parameters", {})
    assert caught.value.code in code.split("|"), caught.value
    for name, expected in parameters.items():
        value = getattr(shown[name], "code", shown[name])
        assert value == expected or str(value).endswith(f"/{expected}"), (name, shown)
