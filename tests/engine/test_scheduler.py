"""The scheduler keeps a device busy: over virtual workers, with the real plan, batches and record."""

from __future__ import annotations

import math

import numpy as np
import pytest
import simulated_device
from simulated_device import Run, simulate

from codec_bench.engine.arena import Arena


@pytest.fixture(autouse=True)
def _silence(monkeypatch):
    """No worker writes the sounds, so that all of them are silence.

    Looked at where they would lie, they would take 3 GB.
    """
    longest = np.zeros(3600 * 16_000, np.float32)
    monkeypatch.setattr(Arena, "view", lambda _, region: longest[: math.prod(region.shape)].reshape(region.shape))


@pytest.mark.parametrize(
    ("precision", "least", "count", "faults"),
    [
        ("float32", 0.95, 600, ()),
        ("half", 0.90, 600, ()),
        ("float32", 0.85, 900, ("worker",)),
        ("float32", 0.85, 600, ("memory",)),
        ("float32", 0.85, 600, ("long",)),
        pytest.param("half", 0.85, 6000, ("worker",), marks=pytest.mark.long),
    ],
)
def test_a_device_is_busy(precision, least, count, faults):
    result = simulate(Run(count, precision, faults=faults))
    assert (result.items, result.failed) == (count, 0)
    assert least <= result.busy <= 1 and result.main_s < result.wall_s
    for (length_s, items), audio_s in (batch for of_stage in result.shapes.values() for batch in of_stage):
        assert audio_s <= length_s * items * (1 + 1e-6), "no batch holds more audio than its shape"


def test_four_devices_are_nearly_four_times_as_fast(monkeypatch):
    # The time of the main process is excluded, so that this does not depend on how fast the machine is.
    monkeypatch.setattr(simulated_device.VirtualPool, "_tick", lambda self: None)
    one, four = (simulate(Run(1000, "half", devices)) for devices in (1, 4))
    assert one.wall_s / four.wall_s >= 3.5


def test_a_scheduler_that_reads_too_late_is_seen():
    starved = simulate(Run(300, "half", cpus=1))
    assert starved.busy < 0.7 and starved.items == 300


def test_a_second_lane_hides_what_makes_a_batch_ready(monkeypatch):
    monkeypatch.setattr(simulated_device.VirtualPool, "_tick", lambda self: None)
    one, two = (simulate(Run(600, "half", lanes=lanes)) for lanes in (1, 2))
    assert two.busy > one.busy + 0.02


def test_a_stage_has_few_shapes_and_little_padding(monkeypatch):
    monkeypatch.setattr(simulated_device.VirtualPool, "_tick", lambda self: None)
    result = simulate(Run(1500, "half", faults=("long",)))
    assert result.busy >= 0.85
    padded_s = audio_s = 0.0
    for stage, batches in result.shapes.items():
        assert len({shape for shape, _ in batches}) <= 40, stage
        padded_s += sum(length_s * items for (length_s, items), _ in batches)
        audio_s += sum(seconds for _, seconds in batches)
    assert 1.0 < padded_s / audio_s < 1.2
