"""Times WavLM in masked batches against s3prl one by one and transformers in unmasked batches, and checks the numbers.

    python bench/bench_wavlm_sv.py [--full] [--device cuda:0] [--clips N] [--batch-s SECONDS] [--threads N]

All run the same network with the same weights on the same clips (noise with LibriSpeech's lengths, a third of them on a
CPU). Without `--full` the network is a small one that a CPU runs in seconds. Compared are the hidden states' means over
time. The floor of the network is measured by `gpu_stages.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from common import Cases, Options, batches, bench, durations, race, worst
from reduced_scorers import SPEAKER

from codec_bench.audio.padded_passes import EIGHT_SECONDS, passes
from codec_bench.networks.precision import computing
from codec_bench.networks.speech_config import WAVLM_LARGE, EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder, fairseq_name, padded

RATE_HZ = 16_000
AGREEMENT = 1e-4


def networks(config: EncoderConfig) -> tuple[SpeechEncoder, Any, Any]:
    """Ours, s3prl's (None where it is not installed) and transformers', with the same weights.

    Numbers for large networks are drawn where torch makes its tensors: on a CPU for seconds.
    """
    import transformers
    from tiny_speech import s3prl_net

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
    return ours, s3prl_net(config, state) if find_spec("s3prl") else None, theirs


def compare(name: str, found: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> float:
    """How far numbers lie from the expected ones, in parts of each clip's largest; stops where that is too far."""
    both = zip(expected, found, strict=True)
    return worst(((a / np.abs(a).max(), b / np.abs(a).max()) for a, b in both), tolerance, name)


@bench(
    "codec-bench", "torch", "s3prl", "transformers", full=False, clips=0, batch_s=0.0, repeats=3, threads=1, device="cpu"
)  # fmt: skip
def main(options: Options) -> Cases:
    """All clips."""
    warnings.simplefilter("ignore")
    device, cuda = options.device, options.device != "cpu"
    config = WAVLM_LARGE if options.full else SPEAKER
    rng, lengths_s = np.random.default_rng(0), durations(options.clips or (64 if cuda else 12)) / (1 if cuda else 3)
    signals = [rng.normal(0, 0.1, round(s * RATE_HZ)).astype(np.float32) for s in lengths_s]
    groups = batches(lengths_s, options.batch_s or (240.0 if cuda else 40.0))
    ours_groups = [
        [group[k] for k in part]
        for group in groups
        for part in passes([signals[k].size for k in group], device, most_on_cpu=EIGHT_SECONDS)
    ]
    with torch.device(device):
        encoder, upstream, theirs = (part.to(device) if part is not None else None for part in networks(config))
    on_device = [torch.from_numpy(x).to(device)[None] for x in signals]

    def batched(chosen: list[list[int]], hidden: Callable[..., torch.Tensor]) -> list[np.ndarray]:
        found = {}
        for group in chosen:
            waves, lengths = padded([signals[k] for k in group], device)
            for place, item, length in zip(group, hidden(waves, lengths), lengths, strict=True):
                found[place] = item[: config.frames(length)].mean(0).cpu().numpy()
        return [found[k] for k in range(len(signals))]

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
        size = "WavLM-large" if options.full else "small"
        note = f"{size}, float32, {device}, {options.threads} thread(s), {len(ours_groups)} batches"
        # Each has run once already.
        about = {"n": len(signals), "note": note, "agreement": said}
        yield race("clips", calls, repeats=options.repeats, warmup=0, device=device, **about)
