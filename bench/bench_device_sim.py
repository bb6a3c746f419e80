"""How much of a GPU's time the scheduler uses, on a machine without one.

    python bench/bench_device_sim.py [--utterances 3000] [--precision float32 half] [--devices 1] [--fault worker memory long]
                                     [--cpus 14 6] [--metrics-ms 75]

The scheduler, the plan, the batches and the record are the real ones. The workers are not processes: a batch takes `a + b *
padded seconds` on a virtual clock, holds memory, and gives results without content. The costs of a stage on an H200 are
estimates (arithmetic from FLOPs and bytes, `device_sim.py`). Reading, signal metrics and making a batch ready cost what they took
when they were timed alone. What the main process computes between two events is measured here and added to the clock, so that a
scheduler that is too slow leaves the device idle here too.

`busy` is the time in which a device computes, over the time of the run and the number of devices.
"""

from __future__ import annotations

import os
from itertools import product

from common import append_rows, asked
from device_sim import COSTS, Run, compare, rows_of, shape_rows, simulate


def main() -> None:
    """Simulates, prints, writes rows."""
    options = asked(
        __doc__,
        utterances=3000,
        precision=tuple(COSTS),
        devices=(1,),
        fault=("none",),
        lanes=(2,),
        cpus=(0,),
        metrics_ms=22.26,
    )
    faults = tuple(name for name in options.fault if name != "none")
    rows, alone_s = [], {}
    for precision, lanes, cpus, devices in product(options.precision, options.lanes, options.cpus, options.devices):
        run = Run(options.utterances, precision, devices, cpus or None, faults, lanes, options.metrics_ms)
        found = simulate(run)
        compare(found, options.utterances)
        alone_s |= {(precision, lanes): found.wall_s} if devices == 1 else {}
        rows += rows_of(run, found, alone_s.get((precision, lanes)) if devices > 1 else None)
        rows += shape_rows(run, found)
    append_rows("device_sim", rows)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
