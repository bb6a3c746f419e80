"""How much of a GPU's time the scheduler uses, on a machine without one.

    python bench/bench_device_sim.py [--utterances 3000] [--precision float32 half] [--devices 1] [--fault worker memory long]
    python bench/bench_device_sim.py --stretched [--utterances 3000] ...

The scheduler, the plan, the batches and the record are the real ones. The workers are not processes: a batch takes `a + b *
padded seconds` on a virtual clock, holds memory, and gives results without content. The costs of a stage on an H200 are
estimates (arithmetic from FLOPs and bytes, `device_sim.py`). Reading, signal metrics and making a batch ready cost what they took on the
machine that is named beside them. What the main process computes between two events is measured here and added to the clock, so
that a scheduler that is too slow leaves the device idle here too.

With `--stretched` no clock is virtual (`stretched.py`): files are read, metrics computed, batches made ready and the record
written, and a device's worker sleeps for as long as its batch takes. An H200 stands beside about 16 cores, so its times are
stretched by 16 over the cores of this machine. It also measures how many samples a core reads.

`busy` is the time in which a device computes, over the time of the run and the number of devices.
"""

from __future__ import annotations

import argparse
import os
from itertools import product

import stretched
from common import append_rows
from device_sim import COSTS, Run, compare, rows_of, simulate


def main() -> None:
    """Simulates, prints, writes rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--utterances", type=int, default=3000)
    parser.add_argument("--precision", nargs="+", default=list(COSTS), choices=list(COSTS))
    parser.add_argument("--devices", type=int, nargs="+", default=[1])
    parser.add_argument("--fault", nargs="+", default=[], choices=["worker", "memory", "long"])
    parser.add_argument("--lanes", type=int, nargs="+", default=[2], choices=[1, 2])
    parser.add_argument("--stretched", action="store_true", help="with real files, processes and times")
    parser.add_argument("--dry", action="store_true", help="write no rows")
    asked = parser.parse_args()
    if asked.stretched:
        rows = stretched.measured(asked)
    else:
        rows, alone_s = [], {}
        for precision, lanes, devices in product(asked.precision, asked.lanes, asked.devices):
            run = Run(asked.utterances, precision, devices, faults=tuple(asked.fault), lanes=lanes)
            found = simulate(run)
            compare(found, asked.utterances)
            alone_s |= {(precision, lanes): found.wall_s} if devices == 1 else {}
            one_s = alone_s.get((precision, lanes)) if devices > 1 else None
            rows += rows_of(run, found, "virtual clock; device costs estimated", one_s)
    if not asked.dry:
        append_rows("device_sim", rows)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
