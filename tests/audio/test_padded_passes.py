"""Every signal is processed exactly once. Padding stays small on a CPU and within the memory budget on a GPU."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codec_bench.audio.padded_passes import SLACK, passes

lengths_of = st.lists(st.integers(1, 1_000_000), max_size=40)
most_of = st.none() | st.integers(1, 2_000_000)


@given(lengths_of, st.sampled_from(["cpu", "cuda:0"]), most_of, most_of, st.none() | st.floats(1, 2))
def test_every_signal_goes_through_once(lengths, device, most, most_on_cpu, slack):
    results = [i for group in passes(lengths, device, most=most, most_on_cpu=most_on_cpu, slack=slack) for i in group]
    assert sorted(results) == list(range(len(lengths)))


@given(lengths_of, st.integers(1, 2_000_000))
def test_a_cpu_pads_little(lengths, most):
    for group in passes(lengths, "cpu", most_on_cpu=most):
        actual = [lengths[index] for index in group]
        assert max(actual) <= SLACK * min(actual)
        assert len(actual) == 1 or len(actual) * max(actual) <= most
    assert all(len(group) == 1 for group in passes(lengths, "cpu", slack=None))


@given(lengths_of, st.integers(1, 2_000_000))
def test_a_gpu_keeps_to_the_budget(lengths, most):
    for group in passes(lengths, "cuda:0", most=most):
        assert len(group) == 1 or len(group) * max(lengths[index] for index in group) <= most
    assert len(list(passes(lengths, "cuda:0"))) == bool(lengths)
