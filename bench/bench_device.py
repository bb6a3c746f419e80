"""Time 100,000 utterances by six metrics on one H200, on a virtual clock.

    python bench/bench_device.py [--utterances 6000]

Scheduler, plan, batches and record are real. A stage costs what its newest row of a GPU says: of committed code, or
else what its FLOPs and bytes say, in one variant; of any code in the other.
"""

from __future__ import annotations

import hashlib
import math
from unittest import mock

import numpy as np
from common import Cases, Options, bench, figures

from codec_bench.engine.arena import Arena

LONGEST = np.zeros(60 * 16_000, np.float32)


@bench("codec-bench", utterances=6000)
def main(options: Options) -> Cases:
    """Both ends."""
    import simulated_device

    def view(_: Arena, region: object) -> np.ndarray:
        """Silence: no worker writes the audio."""
        shape = region.shape  # type: ignore[attr-defined]
        return LONGEST[: math.prod(shape)].reshape(shape)

    with mock.patch.object(Arena, "view", view):
        for precision in ("half, committed code", "half"):
            result = simulated_device.simulate(simulated_device.Run(options.utterances, precision))
            if (result.items, result.failed) != (options.utterances, 0):
                raise SystemExit(f"{result.items} of {options.utterances} utterances ended, {result.failed} failed")
            values = {"s": result.wall_s * 1e5 / options.utterances}
            costs = hashlib.sha256(simulated_device.COSTS_FILE.read_bytes()).hexdigest()[:10]
            note = f"virtual clock, {options.utterances} utterances and in proportion; start not included"
            note += f"; stage costs {costs}"
            yield figures(values, case="100,000 utterances", variant=precision, n=100_000, note=note)
