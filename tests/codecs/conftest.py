"""Codecs run on one thread: other cores run other tests, and small networks do not become faster with two."""

from __future__ import annotations

from ctypes.util import find_library

import pytest


def pytest_collection_modifyitems(items):
    """Without the library of AMR-WB's encoder, its tests are skipped."""
    if find_library("vo-amrwbenc") is None:
        for item in items:
            if "amr-wb" in item.name or "amr_wb" in item.name:
                item.add_marker(pytest.mark.skip(reason="needs the library libvo-amrwbenc (Debian: libvo-amrwbenc0)"))


@pytest.fixture(scope="module", autouse=True)
def _one_thread(one_thread):
    return one_thread
