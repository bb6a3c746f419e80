"""What the tests on a pretended device share: the limits of what a batch may cost, and the comparison of places."""

from __future__ import annotations

import pytest
from pretended import pretended

from codec_bench.machine import memory

WAITS, UPLOADS = 4, 6
"""How often a batch may make the host wait and send something to the device, whatever the number of items and layers.
"""


@pytest.fixture(autouse=True)
def _one_thread(one_thread):
    return one_thread


@pytest.fixture
def there(monkeypatch):
    """The pretended device, while a test runs, all of it this process's; it counts what happens."""
    monkeypatch.setattr(memory, "_shares", {})
    with pretended() as seen:
        yield seen
        assert not seen.early, f"another stream could take the memory that was used at {dict(seen.early)}"


@pytest.fixture
def within_limits(there):
    """Asserts that what has happened since the last time cost no more than a batch may, in
    full float32; counts anew.
    """

    def check(*, more_waits=0, more_uploads=0, blocking=0):
        assert there.launches, "nothing ran on the device"
        assert sum(there.waits.values()) <= WAITS + more_waits, f"the host waited at {dict(there.waits)}"
        uploads = {
            line: count for line, count in there.waits.items() if line.startswith(("upload ", "index of the host "))
        }
        assert sum(uploads.values()) <= blocking, f"the host waited for the uploads from {uploads}"
        assert sum(there.uploads.values()) <= UPLOADS + more_uploads, f"uploads from {dict(there.uploads)}"
        assert not there.rough, f"TensorFloat-32 was allowed at {dict(there.rough)}"
        there.reset()

    return check
