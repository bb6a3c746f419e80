"""Times encoding and decoding of utterances of LibriSpeech lengths, in exact batches against one by one, and transformers.

    python bench/bench_codecs.py                                              16 utterances; DAC and Mimi in a reduced size
    python bench/bench_codecs.py --full --utterances 2000 --device cuda:0     as published in size, on a GPU

The baseline is ours, one by one. Batches are formed as the engine forms them: sorted by length, up to the codec's own budget
of padded seconds. The codes of every variant must be equal (at least 99.99 %; one near tie is let pass) and its waves agree
within 1e-4, or the codec has no rows and the bench fails. transformers computes in float32, as ours does; on a GPU it is
also timed as it comes, with convolutions in TF32, and the frames that have other codes then are counted. Two floors: as many seconds without a single one of padding, in batches of the same budget; and
the products and convolutions of one utterance at the rate of torch's float32 matrix product. Weights are noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from common import (
    AS_IT_COMES,
    append_rows,
    as_it_comes,
    asked,
    codes_and_waves,
    cores,
    frames_apart,
    product_rate,
    race,
    waited,
)
from torch.utils.flop_counter import FlopCounterMode

from codec_bench import Audio, Codes
from codec_bench.audio.resample import mono, resample
from codec_bench.codecs import load_codec
from codec_bench.networks.precision import computing

NAMES = ("encodec-24khz@6", "dac-24khz-8cb", "mimi-8cb")
PEERS = ("encodec", "dac", "mimi")
"""Families that transformers has too."""


def utterances(count: int, rate_hz: int) -> list[Audio]:
    """Speech in lengths like those of LibriSpeech's test-clean: 1.3 to 35 s, half of them below 5.8 s, 7.4 s on average."""
    from codec_bench.data import open_source

    rng = np.random.default_rng(0)
    lengths_s = np.clip(rng.lognormal(np.log(5.8), 0.69, count), 1.3, 35.0)
    voices = [Audio.read(sample.audio) for sample in open_source("embedded")]
    speech = np.concatenate([resample(mono(v.samples), v.sample_rate_hz, rate_hz).reshape(-1) for v in voices])
    starts = rng.integers(0, len(speech), count)
    return [
        Audio(np.take(speech, start + np.arange(round(length_s * rate_hz)), mode="wrap"), rate_hz)
        for start, length_s in zip(starts, lengths_s, strict=True)
    ]


def batches(items: Sequence[Audio], budget_s: float) -> list[list[int]]:
    """Indices, shortest first, as many together as stay within the padded seconds."""
    out: list[list[int]] = []
    for index in sorted(range(len(items)), key=lambda k: items[k].num_samples):
        if out and (len(out[-1]) + 1) * items[index].duration_s <= budget_s:
            out[-1].append(index)
        else:
            out.append([index])
    return out


def ours(codec: Any, items: Sequence[Audio], groups: Sequence[Sequence[int]]) -> tuple[list[Codes], list[Audio]]:
    """Encodes and decodes group by group; results in the order of the items."""
    codes: list[Any] = [None] * len(items)
    waves: list[Any] = [None] * len(items)
    for group in groups:
        for k, item in zip(group, codec.encode([items[k] for k in group])):
            codes[k] = item
    for group in groups:
        for k, item in zip(group, codec.decode([codes[k] for k in group])):
            waves[k] = item
    return codes, waves


def as_arrays(codes: Sequence[Codes], audio: Sequence[Audio]) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """The streams of each item, and its samples."""
    return [[stream.values for stream in item.streams] for item in codes], [item.samples for item in audio]


def transformers(codec: Any, items: Sequence[Audio]) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """transformers' own class, one by one: codes `(codebooks, frames)` and waves."""
    net, family = codec._net, type(codec._net).__name__
    hop = {"EncodecModel": 1, "MimiModel": 1920}.get(family) or net.config.hop_length
    codebooks = round(codec.info.nominal_bitrate_bps / codec.info.frame_rate_hz) // (
        11 if family == "MimiModel" else 10
    )
    codes, waves = [], []
    for item in items:
        filled = np.pad(item.samples, ((0, 0), (0, -item.num_samples % hop)))[None]
        wave = torch.from_numpy(filled).to(net.device)
        if family == "EncodecModel":
            coded = net.encode(wave, bandwidth=codec.info.nominal_bitrate_bps / 1000)
            values, decoded = coded.audio_codes[0, 0], net.decode(coded.audio_codes, coded.audio_scales).audio_values
        elif family == "MimiModel":
            values = net.encode(wave, num_quantizers=codebooks).audio_codes[0]
            decoded = net.decode(values[None]).audio_values
        else:
            values = net.encode(wave, n_quantizers=codebooks).audio_codes[0]
            decoded = net.decode(audio_codes=values[None]).audio_values[:, None]
        codes.append([values.cpu().numpy()])
        waves.append(decoded[0, :, : item.num_samples].cpu().numpy())
    return codes, waves


def measure(name: str, options: argparse.Namespace, rate: float) -> list[dict[str, object]]:
    """The rows of one codec."""
    device = torch.device(options.device)
    full = options.full or name.startswith("encodec")  # EnCodec is small enough to have no reduced size
    weights = "random-full" if options.full and not name.startswith("encodec") else "random"
    codec = load_codec(name, device=options.device, weights=weights)
    items = utterances(options.utterances, codec.info.sample_rates_hz[0])
    seconds = sum(item.duration_s for item in items)
    groups, singly = batches(items, codec.batch_s), [[k] for k in range(len(items))]
    whole = np.concatenate([item.samples for item in items], axis=1)
    length = whole.shape[1] // len(items)
    even = [Audio(whole[:, k * length : (k + 1) * length], items[0].sample_rate_hz) for k in range(len(items))]

    base = as_arrays(*ours(codec, items, singly))
    said = {"batched": codes_and_waves(*as_arrays(*ours(codec, items, groups)), base), "floor": "no padding"}
    calls = {
        "one by one": partial(ours, codec, items, singly),
        "batched": partial(ours, codec, items, groups),
        "floor": partial(ours, codec, even, batches(even, codec.batch_s)),
    }
    note = f"{seconds:.1f} s of audio, {'published' if full else 'reduced'} size, {options.threads} threads, {device}, random weights"
    if name.startswith(PEERS):
        # DAC's decoder may make 8 samples fewer.
        said["transformers one by one"] = codes_and_waves(*transformers(codec, items), base, fewer_samples=8)
        calls["transformers one by one"] = partial(transformers, codec, items)
        if device.type == "cuda":
            calls[AS_IT_COMES] = as_it_comes(calls["transformers one by one"])
            flips, total = frames_apart(calls[AS_IT_COMES]()[0], base[0])
            said[AS_IT_COMES] = f"{flips} of {total} frames have other codes than in float32 ({flips / total:.2%})"
        with FlopCounterMode(display=False) as counter:
            transformers(codec, items[:1])
        work = counter.get_total_flops() / items[0].duration_s * seconds
        note += (
            f"; {work / 1e9:.3g} GFLOP of products and convolutions, {work / rate:.3g} s at {rate / 1e9:.0f} GFLOP/s"
        )
    calls = {variant: waited(call, device) for variant, call in calls.items()}
    case = f"encode and decode, {name}"
    return race(case, calls, n=len(items), repeats=options.repeats, note=note, agreement=said)


def main() -> None:
    """Runs the bench and appends its rows."""
    options = asked(__doc__, codecs=NAMES, utterances=16, full=False, repeats=3, threads=cores(), device="cpu")
    rate = product_rate(torch.device(options.device))
    wrong = []
    for name in options.codecs:
        try:
            with computing(options.device, "float32"):
                rows = measure(name, options, rate)
        except SystemExit as error:  # the next codec may be right
            wrong.append(f"{name}: {error}")
            continue
        append_rows("codecs", rows, packages=("codec-bench", "torch", "transformers", "numpy"))
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
