"""Times WavLM in masked batches against s3prl one by one and transformers in unmasked batches, and checks the numbers.

    python bench/bench_wavlm_sv.py [--full] [--device cuda:0] [--precision tf32|float16|bfloat16] [--clips N] [--threads N]

All run the same network with the same weights on the same clips (noise with LibriSpeech's range of lengths). Without
`--full` the network is a small one that a CPU runs in seconds. s3prl and transformers give the hidden states alone, so they
are compared with the encoder alone; `embeddings` is the whole feature, with the head. In half precision ours has its weights in it,
and theirs run by autocast.

The floor is the matrix products of the unpadded clips, at the rate that one large product reaches here in the same run;
beside it, the bytes that a batch must at least move: the parameters once, and each layer's input and output.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from common import append_rows, interleaved, parsed, product_rate, row, waited, worst

from codec_bench.audio.passes import EIGHT_SECONDS, passes
from codec_bench.networks.ecapa import SpeakerNet
from codec_bench.networks.half import HALF, reduce_weights
from codec_bench.networks.precision import BY_WEIGHTS, Precision, computing
from codec_bench.networks.speech_config import WAVLM_LARGE, EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder, fairseq_name, padded, standardised

SMALL = EncoderConfig(
    "layer_norm", 256, 6, 4, 1024, True, ((128, 10, 5), *((128, 3, 2),) * 4, *((128, 2, 2),) * 2), relative_buckets=320
)
RATE_HZ = 16_000
AGREEMENT = {"float32": 1e-4, "tf32": 2e-2, "float16": 2e-2, "bfloat16": 2e-1}


def clips(count: int, shortest_s: float, longest_s: float) -> list[np.ndarray]:
    """Noise of lengths as LibriSpeech has them: skewed towards the short ones, with a long tail."""
    rng = np.random.default_rng(20260101)
    lengths_s = np.clip(shortest_s + rng.gamma(1.6, (longest_s - shortest_s) / 8, count), shortest_s, longest_s)
    return [rng.normal(0, 0.1, int(s * RATE_HZ)).astype(np.float32) for s in lengths_s]


def batches(signals: list[np.ndarray], budget_s: float) -> list[list[int]]:
    """Places of the clips, the longest first, in batches of so many padded seconds."""
    order = sorted(range(len(signals)), key=lambda k: -signals[k].size)
    out: list[list[int]] = []
    for place in order:
        if out and (len(out[-1]) + 1) * signals[out[-1][0]].size <= budget_s * RATE_HZ:
            out[-1].append(place)
        else:
            out.append([place])
    return out


def networks(config: EncoderConfig) -> tuple[SpeakerNet, Callable[..., object] | None, object]:
    """Ours, s3prl's (None where it is not installed) and transformers', with the same weights."""
    import transformers

    torch.manual_seed(0)
    theirs = transformers.WavLMModel(
        transformers.WavLMConfig(
            hidden_size=config.width, num_hidden_layers=config.layers, num_attention_heads=config.heads,
            intermediate_size=config.feed_forward, do_stable_layer_norm=True, feat_extract_norm="layer",
            conv_dim=[c for c, _, _ in config.conv_layers],
        )
    ).eval()  # fmt: skip
    state = {fairseq_name(name, config.extractor): value for name, value in theirs.state_dict().items()}
    ours = SpeakerNet(config).eval()
    ours.feature_extract["model"].load_state_dict(state)
    try:
        from codec_bench.features.speakers.s3prl import mended

        with mended():
            from s3prl.upstream.wavlm.WavLM import WavLM, WavLMConfig
    except ImportError:
        return ours, None, theirs
    upstream = WavLM(
        WavLMConfig(
            {
                "extractor_mode": "layer_norm", "encoder_layers": config.layers, "encoder_embed_dim": config.width,
                "encoder_ffn_embed_dim": config.feed_forward, "encoder_attention_heads": config.heads,
                "layer_norm_first": True, "conv_feature_layers": str(list(config.conv_layers)),
                "relative_position_embedding": True, "gru_rel_pos": True, "num_buckets": 320, "max_distance": 800,
            }
        )
    ).eval()  # fmt: skip
    upstream.load_state_dict(state)
    return ours, upstream, theirs


def by_autocast(call: Callable[[], object], device: str, precision: Precision) -> Callable[[], object]:
    """The call, in half precision by autocast if that is the precision."""
    if precision not in HALF:
        return call

    def run() -> object:
        with torch.autocast(device.split(":")[0], dtype=HALF[precision]):
            return call()

    return run


def least_bytes(config: EncoderConfig, net: torch.nn.Module, batch_lengths: list[list[int]]) -> float:
    """Parameters once a batch, and the input and output of every layer, in float32."""
    parameters = sum(p.numel() for p in net.parameters())
    total = 0.0
    for lengths in batch_lengths:
        total += 4 * parameters
        for samples in lengths:
            frames = samples
            for channels, kernel, stride in config.conv_layers:
                frames = (frames - kernel) // stride + 1
                total += 2 * 4 * frames * channels
            total += config.layers * 4 * frames * (2 * config.width + 2 * config.feed_forward)
    return total


def compare(name: str, found: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> float:
    """How far numbers lie from the expected ones, in parts of each clip's largest; stops where that is too far."""
    both = zip(expected, found, strict=True)
    return worst(((a / np.abs(a).max(), b / np.abs(a).max()) for a, b in both), tolerance, name)


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="WavLM-large itself")
    parser.add_argument("--precision", choices=AGREEMENT, default="float32")
    parser.add_argument("--clips", type=int, default=None)
    parser.add_argument("--batch-s", type=float, default=None, help="padded seconds per batch")
    options = parsed(parser, repeats=3, threads=1)
    warnings.simplefilter("ignore")
    device, cuda = options.device, options.device.startswith("cuda")
    precision: Precision = BY_WEIGHTS.get(options.precision, "float32")
    if cuda and not torch.cuda.is_available():
        sys.stdout.write(f"{device}: not measured (there is no GPU here)\n")
        return
    config = WAVLM_LARGE if options.full else SMALL
    signals = clips(options.clips or (256 if cuda else 12), 1.3 if cuda else 0.6, 35.0 if cuda else 12.0)
    groups = batches(signals, options.batch_s or (240.0 if cuda else 40.0))
    ours_groups = [
        [group[k] for k in part]
        for group in groups
        for part in passes([signals[k].size for k in group], device, most_on_cpu=EIGHT_SECONDS)
    ]
    net, upstream, theirs = (part.to(device) if part is not None else None for part in networks(config))
    reduce_weights(net, precision)
    encoder: SpeechEncoder = net.feature_extract["model"]
    on_device = [torch.from_numpy(x).to(device)[None] for x in signals]

    def ours_batched() -> list[np.ndarray]:
        out: list[np.ndarray | None] = [None] * len(signals)
        for group in ours_groups:
            last, frames = encoder(*padded([signals[k] for k in group], device))
            for place, item, count in zip(group, last, frames, strict=True):
                out[place] = item[:count].float().mean(0)
        return [x.cpu().numpy() for x in out]

    def ours_alone() -> list[np.ndarray]:
        return [encoder(x, [x.shape[1]])[0][0].float().mean(0).cpu().numpy() for x in on_device]

    def s3prl_alone() -> list[np.ndarray]:
        return [upstream.extract_features(x)[0][0].float().mean(0).cpu().numpy() for x in on_device]

    def transformers_batched() -> list[np.ndarray]:
        out: list[np.ndarray | None] = [None] * len(signals)
        for group in groups:
            waves, lengths = padded([signals[k] for k in group], device)
            last = theirs(waves).last_hidden_state
            for place, item, length in zip(group, last, lengths, strict=True):
                out[place] = item[: config.frames(length)].float().mean(0)
        return [x.cpu().numpy() for x in out]

    def embeddings() -> list[np.ndarray]:
        out = []
        for group in ours_groups:
            waves, lengths = padded([signals[k] for k in group], device)
            out.append(net(standardised(waves, lengths, 1e-5), lengths).cpu().numpy())
        return out

    variants = {
        "s3prl one by one": by_autocast(s3prl_alone, device, precision),
        "transformers unmasked batches": by_autocast(transformers_batched, device, precision),
        "codec-bench one by one": ours_alone,
        "codec-bench": ours_batched,
        "codec-bench embeddings": embeddings,
    }
    if upstream is None:
        del variants["s3prl one by one"]
        sys.stdout.write("s3prl: not measured (not installed)\n")
    baseline = next(iter(variants))
    with computing(device, precision):
        right = variants[baseline]() if upstream is not None else ours_alone()
        alone = [net(standardised(*padded([x], device), 1e-5), [x.size])[0].cpu().numpy() for x in signals]
        apart = {
            name: compare(
                name, call(), right, AGREEMENT[options.precision] if name.startswith("codec-bench") else np.inf
            )
            for name, call in variants.items()
            if name not in (baseline, "codec-bench embeddings")
        }
        found = [vector for batch in embeddings() for vector in batch]
        order = [place for group in ours_groups for place in group]
        apart["codec-bench embeddings"] = compare(
            "embeddings", found, [alone[k] for k in order], AGREEMENT[options.precision]
        )
        seconds = interleaved(
            {n: waited(c, torch.device(device)) for n, c in variants.items()}, repeats=options.repeats, warmup=1
        )
    rate = product_rate(torch.device(device), precision)
    flops = sum(config.flops(x.size) for x in signals)
    moved = least_bytes(config, encoder, [[signals[k].size for k in group] for group in ours_groups])
    duration_s = sum(x.size for x in signals) / RATE_HZ
    padded_s = sum(len(group) * signals[group[0]].size for group in ours_groups) / RATE_HZ
    note = (
        f"{'WavLM-large' if options.full else 'small'}, {options.precision}, {device}, {options.threads} thread(s), {len(signals)} clips, "
        f"{duration_s:.1f} s in {len(ours_groups)} batches of {padded_s:.1f} padded s"
    )
    floor = (
        f"floor {flops / rate:.3f} s: {flops / 1e12:.3f} TFLOP at {rate / 1e12:.3f} TFLOP/s of one product; "
        f"{moved / 1e9:.1f} GB moved at least"
    )
    sys.stdout.write(f"{note}\n{floor}\n{'variant':>30} {'p50 s':>8} {'x real':>8} {'ratio':>6}  apart\n")
    rows = []
    for variant, times in seconds.items():
        middle = float(np.median(times))
        ratio = float(np.median(seconds[baseline])) / middle
        agreement = f"within {apart[variant]:.1e}" if variant in apart else ""
        rows.append(
            row("clips", variant, times, n=len(signals), ratio=ratio, agreement=agreement, note=f"{note}; {floor}")
        )
        sys.stdout.write(f"{variant:>30} {middle:>8.3f} {duration_s / middle:>8.1f} {ratio:>6.2f}  {agreement}\n")
    if not cuda:
        sys.stdout.write("GPU: not measured (run with --full --device cuda:0)\n")
    path = append_rows("wavlm_sv", rows, ("codec-bench", "torch", "s3prl", "transformers"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    started = time.perf_counter()
    main()
    sys.stdout.write(f"took {time.perf_counter() - started:.0f} s\n")
