"""How large the first batches on a GPU are: what its memory allows."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from codec_bench.engine import device, pool
from codec_bench.engine.device import cuda_count, memory_bytes
from codec_bench.engine.loading import first_batch_s
from codec_bench.engine.plan import FeaturePlan
from codec_bench.engine.stage import StageSpec

GIB = 1 << 30


def planned(mib_per_s, where="device"):
    return FeaturePlan("f", StageSpec("f", "feature", ("f",)), 16_000, where, 120.0, None, mib_per_s)


@pytest.mark.parametrize(("gib", "first_s"), [(139, 480), (24, 480), (12, 240), (6, 120), (4, 60)])
def test_the_first_batch_fills_half_of_the_memory_and_600_s_at_most(gib, first_s):
    assert first_batch_s(planned(20.0), gib * GIB) == first_s
    assert first_s <= 600 and first_s * 20 * 2**20 <= gib * GIB / 2


def test_it_is_what_is_declared_where_nothing_is_known_or_the_cpu_computes():
    assert {first_batch_s(*of) for of in ((planned(None), 139 * GIB), (planned(20.0), 0))} == {120.0}
    assert first_batch_s(planned(20.0, "cpu"), 139 * GIB) == 120.0


def driver(fails=""):
    """A driver of two GPUs of 80 and 24 GiB, one of whose functions fails."""
    gibs = {10: 80, 11: 24}

    def spoken(name, call):
        return lambda *options: 1 if name == fails else call(*options) or 0

    def position(position, number):
        position._obj.value = 10 + number
        return 0 if 10 + number in gibs else 101

    calls = {
        "cuInit": lambda flags: 0,
        "cuDeviceGetCount": lambda count: setattr(count._obj, "value", 2),
        "cuDeviceGet": position,
        "cuDeviceTotalMem_v2": lambda result, position: setattr(result._obj, "value", gibs[position.value] * GIB),
    }
    return SimpleNamespace(**{name: spoken(name, call) for name, call in calls.items()})


def test_the_driver_says_how_much_memory_a_device_has(monkeypatch):
    monkeypatch.setattr(device.ctypes, "CDLL", lambda _: driver())
    assert cuda_count() == 2
    assert [memory_bytes(f"cuda:{number}") for number in range(3)] == [80 * GIB, 24 * GIB, 0]
    for fails in ("cuInit", "cuDeviceGet", "cuDeviceTotalMem_v2"):
        monkeypatch.setattr(device.ctypes, "CDLL", lambda _, fails=fails: driver(fails))
        assert memory_bytes("cuda:0") == 0
    monkeypatch.setattr(device.ctypes, "CDLL", lambda name: ctypes.PyDLL(f"no-{name}"))
    assert memory_bytes("cuda:0") == cuda_count() == 0


def test_workers_of_one_gpu_share_its_memory(monkeypatch):
    monkeypatch.setattr(pool, "memory_bytes", {"cuda:0": 80 * GIB, "cuda:1": 24 * GIB}.__getitem__)
    for gpus, gib in ((["cuda:0"], 80), (["cuda:0", "cuda:1"], 24), (["cuda:0"] * 4 + ["cuda:1"], 20), ([], 0)):
        assert pool.Pool.memory_bytes(SimpleNamespace(_gpus=gpus, _specs={})) == gib * GIB
