"""Features run on one thread, because waiting for a second one takes longer than it saves on small steps."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _one_thread(one_thread):
    return one_thread
