"""Times WavLM in masked batches against s3prl one by one and transformers in unmasked batches, and checks the numbers.

    python bench/bench_wavlm_sv.py [--full] [--device cuda:0] [--clips N] [--batch-s SECONDS] [--threads N]

All run the same network with the same weights on the same clips (noise with LibriSpeech's range of lengths). Without
`--full` the network is a small one that a CPU runs in seconds. Compared are the hidden states' means over time.

The floor is the products and convolutions of the unpadded clips, at the rate that one large product reaches here in the same run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from unittest import mock

import numpy as np
import torch
from common import append_rows, asked, product_rate, race, waited, worst
from reduced_scorers import speaker_config
from torch.utils.flop_counter import FlopCounterMode

from codec_bench.audio.passes import EIGHT_SECONDS, passes
from codec_bench.networks import speech_transformer
from codec_bench.networks.precision import computing
from codec_bench.networks.speech_config import WAVLM_LARGE, EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder, fairseq_name, padded

RATE_HZ = 16_000
AGREEMENT = 1e-4


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


def networks(config: EncoderConfig) -> tuple[SpeechEncoder, Callable[..., object] | None, object]:
    """Ours, s3prl's (None where it is not installed) and transformers', with the same weights.

    Numbers for large networks are drawn where torch makes its tensors: on a CPU for seconds.
    """
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
    ours = SpeechEncoder(config).eval()
    ours.load_state_dict(state)
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


def compare(name: str, found: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> float:
    """How far numbers lie from the expected ones, in parts of each clip's largest; stops where that is too far."""
    both = zip(expected, found, strict=True)
    return worst(((a / np.abs(a).max(), b / np.abs(a).max()) for a, b in both), tolerance, name)


def main() -> None:
    """Runs the bench and appends its rows."""
    options = asked(__doc__, full=False, clips=0, batch_s=0.0, repeats=3, threads=1, device="cpu")
    warnings.simplefilter("ignore")
    device, cuda = options.device, options.device != "cpu"
    config = WAVLM_LARGE if options.full else speaker_config()
    signals = clips(options.clips or (64 if cuda else 12), 1.3 if cuda else 0.6, 35.0 if cuda else 12.0)
    groups = batches(signals, options.batch_s or (240.0 if cuda else 40.0))
    ours_groups = [
        [group[k] for k in part]
        for group in groups
        for part in passes([signals[k].size for k in group], device, most_on_cpu=EIGHT_SECONDS)
    ]
    with torch.device(device):
        encoder, upstream, theirs = (part.to(device) if part is not None else None for part in networks(config))
    on_device = [torch.from_numpy(x).to(device)[None] for x in signals]

    def batched(chosen: list[list[int]], hidden: Callable[..., torch.Tensor]) -> list[np.ndarray]:
        out: list[np.ndarray | None] = [None] * len(signals)
        for group in chosen:
            waves, lengths = padded([signals[k] for k in group], device)
            for place, item, length in zip(group, hidden(waves, lengths), lengths, strict=True):
                out[place] = item[: config.frames(length)].mean(0).cpu().numpy()
        return out

    def alone(hidden: Callable[[torch.Tensor], torch.Tensor]) -> list[np.ndarray]:
        return [hidden(x)[0].mean(0).cpu().numpy() for x in on_device]

    calls = {
        "s3prl one by one": lambda: alone(lambda x: upstream.extract_features(x)[0]),
        "transformers unmasked batches": lambda: batched(groups, lambda waves, _: theirs(waves).last_hidden_state),
        "codec-bench one by one": lambda: alone(lambda x: encoder(x, [x.shape[1]])[0]),
        "codec-bench": lambda: batched(ours_groups, lambda waves, lengths: encoder(waves, lengths)[0]),
    }
    if upstream is None:
        del calls["s3prl one by one"]  # it is not installed
    with torch.inference_mode(), computing(device, "float32"):
        found = {name: call() for name, call in calls.items()}
        right = found["codec-bench one by one" if upstream is None else "s3prl one by one"]
        said = {
            name: f"within {compare(name, hidden, right, AGREEMENT if name.startswith('codec-bench') else np.inf):.1e}"
            for name, hidden in found.items()
        }
        rate = product_rate(torch.device(device))
        with FlopCounterMode(display=False) as counter, mock.patch.object(speech_transformer, "fuses", lambda q: False):
            calls["codec-bench one by one"]()  # Triton's launches are not counted, so torch computes
        flops = counter.get_total_flops()
        note = (
            f"{'WavLM-large' if options.full else 'small'}, float32, {device}, {options.threads} thread(s), {len(ours_groups)} batches; "
            f"floor {flops / rate:.3f} s: {flops / 1e12:.3f} TFLOP at {rate / 1e12:.3f} TFLOP/s of one product"
        )
        calls = {name: waited(call, torch.device(device)) for name, call in calls.items()}
        # Each has run once already.
        rows = race("clips", calls, n=len(signals), repeats=options.repeats, warmup=0, note=note, agreement=said)
    append_rows("wavlm_sv", rows, ("codec-bench", "torch", "s3prl", "transformers"))


if __name__ == "__main__":
    main()
