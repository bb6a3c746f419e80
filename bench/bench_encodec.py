"""Times EnCodec in batches against one item at a time, ours and the `encodec` package's, on the same seeded weights.

    python bench/bench_encodec.py [--recordings DIR] [--model 24khz] [--threads 2] [--device cpu]

Encoding and decoding together. The baseline is ours, one by one. Every variant's codes must be equal (at least 99.99 %; one near
tie is let pass) and its waves agree within 1e-4, or the bench stops. The floor is the same batch of samples without a single one of padding:
as many seconds, cut into items of one length.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench_codecs import as_arrays
from common import append_rows, codes_and_waves, interleaved, parsed, row

from codec_bench import Audio, Codes
from codec_bench.audio.resample import mono, resample
from codec_bench.codecs import load_codec


def items_of(folder: str | None, rate_hz: int, channels: int, seconds: float) -> list[Audio]:
    """Real speech at the codec's rate, no item above 5 s, shortest first, up to this many seconds in all.

    Items are cut to half of these seconds, so that there are two in a short trial too.
    """
    if folder is None:
        from codec_bench.data import open_source

        paths = [Path(sample.audio) for sample in open_source("embedded")]
    else:
        lines = (Path(folder) / "manifest.jsonl").read_text("utf-8").splitlines()
        paths = [Path(folder) / json.loads(line)["audio"] for line in lines]
    out, total = [], 0.0
    for path in paths:
        audio = Audio.read(path)
        takes_s = min(audio.duration_s, seconds / 2)
        if audio.duration_s > 5 or total + takes_s > seconds:
            continue
        samples = mono(audio.samples)[: round(takes_s * audio.sample_rate_hz)]
        wave = resample(samples, audio.sample_rate_hz, rate_hz)
        out.append(Audio(np.stack([wave] * channels), rate_hz))
        total += takes_s
    return sorted(out, key=lambda audio: audio.num_samples)


def ours(codec: Any, groups: Sequence[Sequence[Audio]]) -> tuple[list[Codes], list[Audio]]:
    """Encodes and decodes group by group."""
    codes = [codec.encode(group) for group in groups]
    return [item for group in codes for item in group], [audio for group in codes for audio in codec.decode(group)]


def package(net: Any, items: Sequence[Audio]) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """The `encodec` package, one by one."""
    codes, waves = [], []
    with torch.inference_mode():
        for item in items:
            frames = net.encode(torch.from_numpy(item.samples)[None].to(next(net.parameters()).device))
            codes.append([torch.cat([chunk[0] for chunk, _ in frames], dim=1).cpu().numpy()])
            waves.append(net.decode(frames)[0, :, : item.num_samples].cpu().numpy())
    return codes, waves


def package_net(model: str, kbps: float, state: dict[str, torch.Tensor]) -> Any:
    """The `encodec` package's network with transformers' tensors under its own names."""
    import encodec

    net = getattr(encodec.EncodecModel, f"encodec_model_{model}")(pretrained=False)
    renamed = {}
    for name, tensor in state.items():
        inner = "convtr.convtr" if re.match(r"decoder\.layers\.(3|6|9|12)\.", name) else "conv.conv"
        name = name.replace("parametrizations.weight.original0", "weight_g")
        name = name.replace("parametrizations.weight.original1", "weight_v")
        if name.startswith("quantizer"):
            name = name.replace("quantizer.layers", "quantizer.vq.layers").replace(".codebook.", "._codebook.")
        else:
            name = name.replace(".layers.", ".model.", 1).replace(".conv.", f".{inner}.")
            name = name.replace(".norm.", f".{inner.split('.')[0]}.norm.")
        renamed[name] = tensor
    net.load_state_dict(renamed)
    net.set_target_bandwidth(float(kbps))
    return net.eval()


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"))
    parser.add_argument("--model", choices=("24khz", "48khz"), default="24khz")
    parser.add_argument("--kbps", type=float, default=6)
    parser.add_argument("--seconds", type=float, default=30.0, help="of audio in all")
    parser.add_argument("--batches", type=int, nargs="+", default=[4, 16])
    options = parsed(parser, repeats=5, threads=2)
    codec = load_codec(f"encodec-{options.model}@{options.kbps:g}", device=options.device, weights="random")
    items = items_of(options.recordings, codec.info.sample_rates_hz[0], codec.info.channels[0], options.seconds)
    seconds = sum(item.duration_s for item in items)
    net = package_net(options.model, options.kbps, codec._net.state_dict()).to(options.device)

    base = as_arrays(*ours(codec, [[item] for item in items]))
    calls: dict[str, Callable[[], object]] = {
        "encodec package": partial(package, net, items),
        "one by one": partial(ours, codec, [[item] for item in items]),
    }
    agreements = {
        "encodec package": codes_and_waves(*package(net, items), ([item[:1] for item in base[0]], base[1])),
        "one by one": "the baseline",
    }
    for size in options.batches:
        groups = [items[k : k + size] for k in range(0, len(items), size)]
        name = f"batches of {size}"
        agreements[name] = codes_and_waves(*as_arrays(*ours(codec, groups)), base)
        calls[name] = partial(ours, codec, groups)
    whole = np.concatenate([item.samples for item in items], axis=1)
    length = whole.shape[1] // len(items)
    even = [Audio(whole[:, k * length : (k + 1) * length], items[0].sample_rate_hz) for k in range(len(items))]
    size = options.batches[-1]
    calls["floor"] = partial(ours, codec, [even[k : k + size] for k in range(0, len(even), size)])

    times = interleaved(calls, repeats=options.repeats)
    rows = []
    sys.stdout.write(f"encodec-{options.model}@{options.kbps:g}: {len(items)} items, {seconds:.1f} s of audio\n")
    for variant, taken in times.items():
        ratio = float(np.median(times["one by one"]) / np.median(taken))
        speed = seconds / float(np.median(taken))
        note = f"{seconds:.1f} s of audio, {options.threads} threads, {options.device}, random weights"
        case = f"encode and decode, {options.model} at {options.kbps:g} kbps"
        said = agreements.get(variant, f"no padding, batches of {size}")
        rows.append(row(case, variant, taken, n=len(items), ratio=ratio, agreement=said, note=note))
        sys.stdout.write(f"{variant:>16} {np.median(taken):8.3f} s {speed:7.1f} x real time {ratio:6.2f}  {said}\n")
    append_rows("encodec", rows, packages=("torch", "transformers", "encodec", "numpy"))


if __name__ == "__main__":
    main()
