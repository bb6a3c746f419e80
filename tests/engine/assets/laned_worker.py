"""A worker with two lanes whose device is no GPU: what is made ready ahead is ordinary memory."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from types import SimpleNamespace

from codec_bench.engine.double_buffer import ComputeDevice
from codec_bench.engine.worker import serve


class StandIn(ComputeDevice):
    """A device that is not there."""

    lanes = 2

    def __init__(self, device):
        self.device = device

    def ahead(self, make):
        value = make()
        return SimpleNamespace(taken=lambda: value)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), StandIn(sys.argv[2]))
