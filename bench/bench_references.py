"""Measures by networks against their reference implementations, one signal at a time and in batches, at equal threads.

    python bench/bench_references.py [--measures nisqa campplus] [--clips 12] [--threads 1] [--repeats 3]

A reference takes one signal at a time; a batch of ours takes all. Speech activity and DistillMOS have their published
weights, which are inside their packages. The other networks have the published architecture and size, and the same
weights of noise on both sides.

References: silero-vad's own function; DistillMOS's package; torchmetrics' NISQA; FunASR's CAM++ and ERes2Net behind
torchaudio's filter bank of Kaldi; s3prl's wav2vec 2.0 under SCOREQ's linear layer; transformers' CLAP window by window.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from common import Cases, Options, Rows, bench, clips, race, worst

from codec_bench.features import Unavailable, load_feature

warnings.filterwarnings("ignore", message="Empty filters detected")

NISQA = {
    "cnn_c_out_1": 16, "cnn_c_out_2": 32, "cnn_c_out_3": 64, "cnn_kernel_size": (3, 3), "cnn_dropout": 0.2, "cnn_pool_1": [24, 7],
    "cnn_pool_2": [12, 5], "cnn_pool_3": [6, 3], "td_sa_d_model": 64, "td_sa_nhead": 1, "td_sa_num_layers": 2, "td_sa_h": 64,
    "td_sa_dropout": 0.1, "pool_att_h": 128, "pool_att_dropout": 0.1, "ms_seg_length": 15, "ms_seg_hop_length": 4,
    "ms_max_segments": 1300, "ms_n_fft": 4096, "ms_hop_length": 0.01, "ms_win_length": 0.02, "ms_n_mels": 48, "ms_fmax": 20_000,
}  # fmt: skip
"""NISQA's published settings, as its file states them."""


class Pair(NamedTuple):
    """A measure and its reference: both give one array of numbers for a signal `(samples,)` at `rate_hz`."""

    feature: Any
    number: Callable[[Any], np.ndarray]
    theirs: Callable[[np.ndarray], np.ndarray]
    package: str
    tolerance: float


def speech_activity(folder: Path) -> Pair:
    """Stretches of speech by Silero's network."""
    from silero_vad import get_speech_timestamps, load_silero_vad

    threads = torch.get_num_threads()
    network = load_silero_vad()
    torch.set_num_threads(threads)  # the package sets one thread for the process

    def theirs(signal: np.ndarray) -> np.ndarray:
        found = get_speech_timestamps(torch.from_numpy(signal), network, sampling_rate=16_000)
        return np.array([(one["start"], one["end"]) for one in found]).reshape(-1, 2)

    feature = load_feature("speech-activity")
    return Pair(feature, lambda found: np.stack([found["starts"], found["ends"]], 1), theirs, "silero-vad", 0.0)


def distillmos(folder: Path) -> Pair:
    """DistillMOS's score. Most signals are shorter than its crop of 7.68 s, which the package fills with silence and
    computes.
    """
    from distillmos import ConvTransformerSQAModel

    network = ConvTransformerSQAModel().eval()
    theirs = lambda signal: network(torch.from_numpy(signal)[None]).numpy()[0]  # noqa: E731
    return Pair(load_feature("distillmos"), lambda found: np.array([found["mos"]]), theirs, "distillmos", 1e-4)


def nisqa(folder: Path) -> Pair:
    """NISQA's five scores."""
    import tiny_speech
    from torchmetrics.functional.audio import nisqa as reference

    feature = load_feature("nisqa", weights=tiny_speech.write_nisqa(folder, "nisqa"))
    network = reference._NISQADIM(NISQA)
    network.load_state_dict(torch.load(folder / "nisqa.tar", weights_only=True)["model_state_dict"])
    reference._load_nisqa_model = lambda: (network, NISQA)
    names = ("mos", "noisiness", "discontinuity", "coloration", "loudness")

    def theirs(signal: np.ndarray) -> np.ndarray:
        return reference.non_intrusive_speech_quality_assessment(torch.from_numpy(signal), feature.rate_hz).numpy()

    return Pair(feature, lambda found: np.array([found[name] for name in names]), theirs, "torchmetrics", 1e-4)


def speaker(folder: Path, name: str) -> Pair:
    """The speaker embedding of CAM++ or ERes2Net behind Kaldi's filter bank."""
    import tiny_speech
    from funasr.models.campplus.model import CAMPPlus
    from funasr.models.eres2net.eres2net import ERes2Net
    from torchaudio.compliance.kaldi import fbank

    path = folder / f"{name}.pt"
    tiny_speech.bare(type(load_feature(name, weights=__file__)), path)
    reference = CAMPPlus() if name == "campplus" else ERes2Net(feat_dim=80, embedding_size=192, m_channels=32)
    reference.load_state_dict(torch.load(path, weights_only=True))
    reference.eval()

    def theirs(signal: np.ndarray) -> np.ndarray:
        bands = fbank(torch.from_numpy(signal)[None], num_mel_bins=80, sample_frequency=16_000, dither=0)
        return reference((bands - bands.mean(0))[None])[0].numpy()

    return Pair(load_feature(name, weights=str(path)), lambda found: found["embedding"], theirs, "funasr", 1e-5)


def scoreq(folder: Path) -> Pair:
    """SCOREQ's score without a reference."""
    import tiny_speech

    from codec_bench.networks.scoreq import ScoreqNet
    from codec_bench.networks.speech_config import WAV2VEC2_BASE

    net = tiny_speech.standing_in(ScoreqNet(WAV2VEC2_BASE, rates=True))
    inner = {
        name.removeprefix("ssl_model."): value for name, value in net.state_dict().items() if name.startswith("ssl")
    }
    encoder = tiny_speech.s3prl_net(WAV2VEC2_BASE, inner)
    path = folder / "scoreq.pt"
    torch.save(tiny_speech.scoreq_names(net.state_dict(), "pt_model."), path)

    def theirs(signal: np.ndarray) -> np.ndarray:
        wave = F.pad(torch.from_numpy(signal), (0, -len(signal) % 320))[None]
        states = encoder.extract_features(wave, padding_mask=None, mask=False)["x"]
        return net.mos_layer(F.normalize(states.mean(1), dim=1))[0].numpy()

    feature = load_feature("scoreq", weights=str(path))
    return Pair(feature, lambda found: np.array([found["scoreq"]]), theirs, "s3prl", 1e-4)


def clap(folder: Path) -> Pair:
    """CLAP's embedding: the mean of windows of 10 s, one a second."""
    import transformers

    torch.manual_seed(0)
    config = transformers.ClapConfig(audio_config={"projection_dim": 512}, projection_dim=512)
    network = transformers.ClapModel(config).eval()
    network.save_pretrained(folder)
    front = transformers.ClapFeatureExtractor(
        truncation="rand_trunc", padding="pad", frequency_min=50, frequency_max=14_000
    )

    def theirs(signal: np.ndarray) -> np.ndarray:
        heard = ((np.clip(signal, -1.0, 1.0) * 32767.0).astype(np.int16) / 32767.0).astype(np.float32)
        found = []
        for start in range(0, len(heard), 48_000):
            mels = front(heard[start : start + 480_000], sampling_rate=48_000, return_tensors="pt").input_features
            found.append(network.get_audio_features(input_features=mels.float()).pooler_output[0].numpy())
        return np.mean(found, axis=0)

    feature = load_feature("clap-htsat-unfused", weights=str(folder))
    return Pair(feature, lambda found: found["embedding"], theirs, "transformers", 1e-5)


MEASURES = {
    "speech-activity": speech_activity, "distillmos": distillmos, "nisqa": nisqa, "campplus": partial(speaker, name="campplus"),
    "eres2net": partial(speaker, name="eres2net"), "scoreq": scoreq, "clap": clap,
}  # fmt: skip


def compare(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float, what: str) -> float:
    """How far our numbers are from the reference's; stops where that is too far, or all signals have the same numbers.

    The tolerance is relative to the greatest number of the reference where that is above 1.
    """
    first, *others = expected
    tolerance *= max(1.0, *(float(np.abs(one).max(initial=0.0)) for one in expected))
    if all(one.shape == first.shape and np.abs(one - first).max(initial=0.0) <= 10 * tolerance for one in others):
        raise SystemExit(f"{what}: all signals have the same numbers, so agreement shows nothing")
    return worst(zip(expected, found, strict=True), tolerance, what)


def measure(name: str, options: Options) -> Rows:
    """The rows of one measure."""
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        pair = MEASURES[name](Path(folder))
        material, signals = clips(options.recordings, options.clips, pair.feature.rate_hz)

        def numbers(results: list[Any]) -> list[np.ndarray]:
            for result in results:
                if isinstance(result, Unavailable):
                    raise SystemExit(f"{name}: a signal has no result: {result}")
            return [pair.number(result) for result in results]

        variants: dict[str, Callable[[], list[np.ndarray]]] = {
            pair.package: lambda: [pair.theirs(signal) for signal in signals],
            "one by one": lambda: numbers([pair.feature.compute([signal])[0] for signal in signals]),
            "batched": lambda: numbers(pair.feature.compute(signals)),
        }
        found = {variant: call() for variant, call in variants.items()}
        expected = found.pop(pair.package)
        said = {
            variant: f"within {compare(of, expected, pair.tolerance, f'{name}, {variant}'):.1e}"
            for variant, of in found.items()
        }
        case = f"{name}, {len(signals)} clips, {options.threads} threads"
        return race(case, variants, n=len(signals), repeats=options.repeats, warmup=0, note=material, agreement=said)


@bench(
    "silero-vad", "distillmos", "torchmetrics", "funasr", "s3prl", "transformers", "torch",
    measures=tuple(MEASURES), recordings=None, clips=12, repeats=3, threads=1,
)  # fmt: skip
def main(options: Options) -> Cases:
    """Every measure that is asked for."""
    return (measure(name, options) for name in options.measures)
