"""Networks run on one thread: other cores run other tests, and two threads wait for each other."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _one_thread(one_thread):
    return one_thread
