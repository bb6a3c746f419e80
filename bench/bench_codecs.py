"""Time encoding and decoding in exact batches, one by one, and by transformers.

    python bench/bench_codecs.py                                             16 utterances; reduced DAC and Mimi
    python bench/bench_codecs.py --full --utterances 2000 --device cuda:0    models in their published size, on a GPU

The baseline is ours, one by one. Batches are sorted by length, up to the codec's budget of padded seconds. A variant
with other codes or waves has no rows and fails the bench. transformers computes in float32; on a GPU it is also timed
with its default, convolutions in TF32. Floor: as many seconds without padding. Weights are noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from common import Cases, Options, Rows, add_tf32, batches, bench, codes_and_waves, cores, each, race, utterances

from codec_bench import Audio, Codes
from codec_bench.codecs import load_codec
from codec_bench.networks.precision import computing

NAMES = ("encodec-24khz@6", "dac-24khz-8cb", "mimi-8cb")


def ours(codec: Any, items: Sequence[Audio], groups: Sequence[Sequence[int]]) -> tuple[list[Codes], list[Audio]]:
    """Encodes and decodes group by group; results in the order of the items."""

    def done(call: Any, inputs: Sequence[Any]) -> list[Any]:
        outputs = {k: one for group in groups for k, one in zip(group, call([inputs[k] for k in group]))}
        return [outputs[k] for k in range(len(items))]

    codes = done(codec.encode, items)
    return codes, done(codec.decode, codes)


def as_arrays(codes: Sequence[Codes], audio: Sequence[Audio]) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """The streams of each item, and its samples."""
    return [[stream.values for stream in item.streams] for item in codes], [item.samples for item in audio]


def transformers(codec: Any, items: Sequence[Audio]) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """transformers' own class, one by one: codes `(codebooks, frames)` and waves."""
    net, family = codec._net, type(codec._net).__name__
    hop = {"EncodecModel": 1, "MimiModel": 1920}.get(family) or net.config.hop_length
    bitrate_bps = codec.info.nominal_bitrate_bps
    codebooks = round(bitrate_bps / codec.info.frame_rate_hz) // (11 if family == "MimiModel" else 10)
    options = {"EncodecModel": {"bandwidth": bitrate_bps / 1000}, "MimiModel": {"num_quantizers": codebooks}}
    codes, waves = [], []
    for item in items:
        filled = np.pad(item.samples, ((0, 0), (0, -item.num_samples % hop)))[None]
        coded = net.encode(torch.from_numpy(filled).to(net.device), **options.get(family, {"n_quantizers": codebooks}))
        if family == "EncodecModel":
            decoded = net.decode(coded.audio_codes, coded.audio_scales).audio_values
        else:  # DAC's waves have no dimension of channels
            decoded = net.decode(audio_codes=coded.audio_codes).audio_values.reshape(1, 1, -1)
        codes.append([coded.audio_codes.flatten(end_dim=-3)[0].cpu().numpy()])
        waves.append(decoded[0, :, : item.num_samples].cpu().numpy())
    return codes, waves


def measure(name: str, options: Options) -> Rows:
    """The rows of one codec, all of whose products are in true float32."""
    full = options.full or name.startswith("encodec")  # EnCodec is small enough for its published size
    codec = load_codec(name, device=options.device, weights="random-full" if full else "random")
    rate_hz = codec.info.sample_rates_hz[0]
    items = [Audio(wave, rate_hz) for wave in utterances(options.utterances, rate_hz)]
    groups = batches([item.duration_s for item in items], codec.batch_s)
    singly = [[k] for k in range(len(items))]
    joined = np.concatenate([item.samples for item in items], axis=1)
    length = joined.shape[1] // len(items)
    even = [Audio(joined[:, k * length : (k + 1) * length], rate_hz) for k in range(len(items))]
    calls = {
        "one by one": partial(ours, codec, items, singly),
        "batched": partial(ours, codec, items, groups),
        "floor": partial(ours, codec, even, batches([item.duration_s for item in even], codec.batch_s)),
        "transformers one by one": partial(transformers, codec, items),
    }
    with computing(options.device, "float32"):
        base = as_arrays(*calls["one by one"]())
        agreement = {
            "batched": codes_and_waves(*as_arrays(*calls["batched"]()), base),
            "floor": "no padding",
            # DAC's decoder may make 8 samples fewer.
            "transformers one by one": codes_and_waves(*calls["transformers one by one"](), base, fewer_samples=8),
        }
        if options.device != "cpu":
            add_tf32(calls, agreement, "transformers one by one", lambda output: output[0], base[0])
        note = f"{joined.shape[1] / rate_hz:.1f} s of audio, {'published' if full else 'reduced'} size, "
        note += f"{options.threads} threads, {options.device}, random weights"
        about = {"n": len(items), "repeats": options.repeats, "device": options.device}
        return race(f"encode and decode, {name}", calls, **about, note=note, agreement=agreement)


@bench(
    "codec-bench", "torch", "transformers", "numpy",
    codecs=NAMES, utterances=16, full=False, repeats=3, threads=cores(), device="cpu",
)  # fmt: skip
def main(options: Options) -> Cases:
    """Every requested codec."""
    return each(options.codecs, partial(measure, options=options))
