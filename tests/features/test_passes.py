"""Every signal goes through once; padding stays small on a CPU and within the budget on a GPU."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codec_bench.features.passes import CPU_SAMPLES, CPU_SLACK, passes

lengths_of = st.lists(st.integers(1, 1_000_000), max_size=40)


@given(lengths_of, st.sampled_from(["cpu", "cuda:0"]), st.none() | st.integers(1, 2_000_000))
def test_every_signal_goes_through_once(lengths, device, budget):
    found = [index for group in passes(lengths, device, budget) for index in group]
    assert sorted(found) == list(range(len(lengths)))


@given(lengths_of)
def test_a_cpu_pads_little(lengths):
    for group in passes(lengths, "cpu"):
        own = [lengths[index] for index in group]
        assert max(own) <= CPU_SLACK * min(own)
        assert len(own) == 1 or len(own) * max(own) <= CPU_SAMPLES


@given(lengths_of, st.integers(1, 2_000_000))
def test_a_gpu_keeps_to_the_budget(lengths, budget):
    for group in passes(lengths, "cuda:0", budget):
        assert len(group) == 1 or len(group) * max(lengths[index] for index in group) <= budget
    assert len(list(passes(lengths, "cuda:0"))) == bool(lengths)
