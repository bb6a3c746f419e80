"""CUDA graphs on a GPU that is not there: replays of other batches give the CPU's values, and what cannot be captured runs plainly."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from glides import glide
from pretended_graphs import REFUSED
from random_codecs import built
from test_codecs import NAMES, assert_same_codes, assert_same_waves, sounds
from test_features import CASES, assert_same, voices

from codec_bench import memory
from codec_bench.codecs import load_codec
from codec_bench.networks import graphs
from codec_bench.networks.graphs import BUCKETS, TRIALS, Graphs, to_bucket
from codec_bench.networks.ladder import rows_of, rung_steps
from codec_bench.networks.ragged import uploaded

FEATURES = (
    "campplus",
    "dnsmos",
    "emotion2vec-plus-large",
    "eres2net",
    "redimnet-b5",
    "utmos",
    "wavlm-base-plus-sv",
    "wavlm-large-sv",
    "wespeaker-resnet34",
)
# Items of exactly one length share a pass of X-codec2 and NeuCodec, because padding would change their waves.
PLAIN = {"neucodec", "xcodec2"}
SECONDS = ((0.1, 0.16, 0.13), (0.16, 0.11, 0.15))
"""Two batches of one bucket."""
SIGNALS = {name: ((9001, 5200, 12_000), (5200, 11_500, 8000)) for name in FEATURES} | {
    "dnsmos": ((144_160, 150_000), (149_000, 144_160)),
    "redimnet-b5": ((9001, 5200, 12_000), (5200, 11_900, 8000)),
}
"""Lengths of two batches of one bucket; DNSMOS hears windows of 144,160 samples, ReDimNet's frames are 240 apart."""


@pytest.fixture
def padded_here(monkeypatch):
    """On the CPU, every pass that would be captured is given its bucket: padded, with lengths that the host does not know."""
    passes = []

    def run(self, mode, forward, moving, lengths, still=()):
        rows, steps = rows_of(len(lengths) + 1), rung_steps(max(lengths) + 1, self._steps_per_s, self._unit)
        tensors, bounded = to_bucket(moving, lengths, still, rows, steps)
        passes.append(self._name)
        return forward(*tensors, bounded)[: len(lengths)]

    def sized(self, mode, forward, given, padded, rows):
        passes.append(self._name)
        return forward(*padded())[:rows]

    monkeypatch.setattr(Graphs, "run", run)
    monkeypatch.setattr(Graphs, "sized", sized)
    return passes


def feature_of(name, folder, device):
    make, write = CASES[name]
    return make(device, None if write is None else write(folder))


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_in_a_bucket_is_as_without(name, tmp_path, padded_here, monkeypatch):
    feature = feature_of(name, tmp_path, "cpu")
    signals = voices(SIGNALS[name][0])
    found = feature.compute(signals)
    assert padded_here
    monkeypatch.undo()
    assert_same(found, feature.compute(signals))


@pytest.mark.parametrize("name", sorted(set(NAMES) - PLAIN - {"encodec-24khz@6"}))
def test_a_decoder_in_a_bucket_is_as_without(name, padded_here, monkeypatch):
    codec = built(name)
    codes = codec.encode(sounds(codec, (1.2, *SECONDS[0]) if name.startswith("encodec") else SECONDS[0]))
    found = codec.decode(codes)
    assert padded_here
    monkeypatch.undo()
    assert_same_waves(found, codec.decode(codes))


@pytest.mark.parametrize("name", FEATURES)
def test_replays_of_a_feature_are_the_cpus(name, tmp_path, there):
    make, write = CASES[name]
    weights = None if write is None else write(tmp_path)
    here, feature = make("cpu", weights), make("cuda:0", weights)
    first, other = map(voices, SIGNALS[name])
    expected = here.compute(other)
    feature.load()
    feature.graphs = "on"
    feature.compute(first)
    plain = there.launches
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        feature.compute(first)
        there.forget()
        assert_same(feature.compute(other), expected)
    assert there.replays == 1 and there.launches < plain / 2 and not there.captures


@pytest.mark.parametrize("name", NAMES)
def test_replays_of_a_decoder_are_the_cpus(name, there):
    here = built(name)
    more = (1.2,) if name == "encodec-48khz@6" else ()
    codes = [here.encode(sounds(here, (*more, *seconds))) for seconds in SECONDS]
    codec = load_codec(name, device="cuda:0", weights="random", graphs="on")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codec.decode(codes[0])
        codec.decode(codes[0])
        there.forget()
        assert_same_waves(codec.decode(codes[1]), here.decode(codes[1]))
    assert there.replays == (0 if name in PLAIN else 1)
    assert not there.captures


def test_replays_of_a_stream_are_the_cpus(there):
    here = built("encodec-24khz@6")
    codec = load_codec("encodec-24khz@6", device="cuda:0", weights="random", graphs="on")
    sound = glide(2240 + 7 * 640 + 100, rate_hz=24_000)
    ends = [0, 2240, *range(2240 + 640, 2240 + 7 * 640 + 1, 640), sound.num_samples]
    with here.streaming() as ours, codec.streaming() as theirs:
        for first, last in pairwise(ends):
            piece = type(sound)(sound.samples[:, first:last], sound.sample_rate_hz)
            there.forget()
            expected, found = ours.encode(piece), theirs.encode(piece)
            assert_same_codes([found], [expected])
            assert_same_waves([theirs.decode(expected)], [ours.decode(expected)])
            # The second of equal pieces is captured, and from then on each is a replay; the ends are not.
            steady = 2240 + 640 < last < sound.num_samples
            assert there.replays == (2 if steady else 0), last


def affine(x, lengths):
    """A pass of two launches: masked by the lengths, and with a number for each item."""
    own = torch.arange(x.shape[-1], device=x.device) < lengths.there[:, None]
    return (x * own).sum(1, keepdim=True) + 1


def batch(*lengths, seed=0):
    values = torch.zeros(len(lengths), max(lengths))
    for row, length in zip(values, lengths, strict=True):
        row[:length] = torch.randn(length, generator=torch.Generator().manual_seed(seed + length))
    return values


def passed(network, mode, *lengths, seed=0, forward=affine):
    values = batch(*lengths, seed=seed)
    found = network.run(mode, forward, [values.to("cuda:0")], uploaded(lengths, "cuda:0"))
    torch.testing.assert_close(found.cpu(), values.sum(1, keepdim=True) + 1)


def test_a_bucket_is_captured_when_it_comes_again_and_replayed_for_every_batch_in_it(there):
    network = Graphs("a network")
    for seed, lengths in enumerate([(5, 9), (10, 3), (9, 9), (4, 10)]):
        passed(network, "on", *lengths, seed=seed)
    assert there.captures == 1 and there.replays == 3 and network.captured() == 1
    passed(network, "on", 5, 9, 9)
    assert there.captures == 1, "another number of items is another bucket"


def test_without_being_asked_and_on_the_cpu_nothing_is_captured(there):
    network = Graphs("a network")
    for _ in range(4):
        passed(network, "off", 5, 9)
        assert network.run("on", lambda x, _: x + 1, [torch.ones(1, 3)], [3]).is_cpu
    assert not there.captures


def waiting(x, lengths):
    return affine(x, lengths) if lengths.there.max().item() else x


def sending(x, lengths):
    return affine(x, lengths) + torch.zeros(1, device="cpu").expand(2).contiguous().to(x.device)[0]


@pytest.mark.parametrize("forward", [waiting, sending])
def test_what_waits_for_the_device_or_sends_to_it_runs_plainly_with_one_warning(there, forward):
    network = Graphs("a network")
    passed(network, "on", 5, 9, forward=forward)
    with pytest.warns(UserWarning, match="a network cannot be captured") as said:
        for _ in range(3):
            passed(network, "on", 5, 9, forward=forward)
    assert len(said) == 1 and not there.replays
    assert REFUSED in str(network.findings()), "the first error is the reason, not that of the end of the capture"


def test_what_python_decided_during_the_capture_is_noticed(there):
    """A pass that reads the lengths of the first batch on the host: its replays are wrong for every other."""
    network = Graphs("a network")
    first = []

    def wrong(x, lengths):
        first.append(x.shape[-1])
        return affine(x, lengths) * (2.0 if len(first) == 3 else 1.0)

    def run():
        return network.run("on", wrong, [batch(5, 9).to("cuda:0")], uploaded((5, 9), "cuda:0"))

    run()
    with pytest.warns(UserWarning, match="differs from the plain pass"):
        run()
    assert network.captured() == 0


def test_by_measurement_the_faster_way_is_kept(there, monkeypatch):
    network = Graphs("a network")
    for seed in range(2 + TRIALS):
        passed(network, "auto", 5, 9, seed=seed)
    there.forget()
    passed(network, "auto", 5, 9, seed=9)
    assert there.replays == 1, "one launch is faster than four"
    assert "replayed" in network.findings()[0]
    slow = Graphs("another")
    event = torch.cuda.Event
    times = iter(np.tile([1.0, 2.0], TRIALS))
    monkeypatch.setattr(event, "elapsed_time", lambda self, later: next(times))
    for seed in range(1 + TRIALS):
        passed(slow, "auto", 5, 9, seed=seed)
    there.forget()
    passed(slow, "auto", 5, 9)
    assert not there.replays and not slow.captured() and slow.findings()[0].endswith("plain")


def test_a_network_has_a_bounded_number_of_captures_and_the_oldest_goes_first(there):
    network = Graphs("a network")
    sizes = [rung_steps(k, 1.0) for k in range(1, 200)]
    sizes = sorted(set(sizes))[: BUCKETS + 2]
    for size in sizes:
        for _ in range(2):
            passed(network, "on", size)
    assert network.captured() == BUCKETS
    there.forget()
    passed(network, "on", sizes[-1])
    passed(network, "on", sizes[0])
    passed(network, "on", sizes[0])
    assert there.replays == 1 and not there.captures, "what was dropped must come more often than before"


def test_when_the_memory_is_full_everything_is_dropped_and_made_again(there, monkeypatch):
    network, other = Graphs("a network"), Graphs("another")
    for each in (network, other):
        for _ in range(3):
            passed(each, "on", 5, 9)
    memory.give_back("cuda:0")
    assert not network.captured() and not other.captured()
    for _ in range(8):
        passed(network, "on", 5, 9)
    assert network.captured() == 1
    monkeypatch.setattr(graphs._Pool, "capture", lambda *_: (_ for _ in ()).throw(RuntimeError("CUDA out of memory")))
    for _ in range(2):
        passed(other, "on", 3)
    assert not network.captured(), "a capture that does not fit gives back what others hold"
    assert not other.findings()
