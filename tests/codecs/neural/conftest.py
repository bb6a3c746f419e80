"""Fixtures that tests of neural codecs share."""

from __future__ import annotations

import pytest


@pytest.fixture
def all_together(monkeypatch):
    """Makes the whole batch one padded pass, as on a GPU, however different the lengths are."""
    for module in ("base", "snac"):
        monkeypatch.setattr(
            f"codec_bench.codecs.neural.{module}.passes", lambda lengths, device, **_: [list(range(len(lengths)))]
        )
