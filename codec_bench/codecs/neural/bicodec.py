"""BiCodec of Spark-TTS: 50 content codes a second, 32 speaker codes.

Convolutions see zeros beyond an item's end, attention is masked, and the wave is normalised over its own samples. The
reference clip always has 6 s. Silence extends items to 400 samples (25 ms), which the reference refuses, and fills the
80 to 399 samples that it does not return. From 400 samples on, codes are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.audio.padded_passes import passes
from codec_bench.audio.resample import fit_length
from codec_bench.codecs.base import CodecInfo, check_input
from codec_bench.codecs.neural.base import PublishedCodec, check_streams, code_info, stack
from codec_bench.codecs.neural.random_weights import RANDOM, calm_branches, fill_with_noise, seeded
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.precision import computing
from codec_bench.types import Audio, Codes, CodeStream

_RATE_HZ, _HOP, _FIELD = 16_000, 320, 400
_CLIP_SAMPLES = 6 * _RATE_HZ
_CODEWORDS, _SPEAKER_CODES, _SPEAKER_ENTRIES = 8192, 32, 4096
# Of the volume normalisation, relative to full scale: the average that loud samples are brought to, and the level below
# which a sample is not counted.
_LOUD, _AUDIBLE = 0.2, 0.01
_SETTINGS = {"sample_rate": _RATE_HZ, "latent_hop_length": _HOP, "ref_segment_duration": 6, "volume_normalize": True}


class BiCodec(PublishedCodec):
    """BiCodec of Spark-TTS, for mono speech at 16 kHz.

    Codes: a stream `semantic` of one codebook with 8192 entries at 50 frames a second, and a stream `speaker` of 32
    codes with 4096 entries that is sent once: its frame rate is 0, and its 384 bits are in `Codes.bits`, not in the
    nominal bitrate. The level is not sent: the output is as loud as the normalised input.

    Args:
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of SparkAudio/Spark-TTS-0.5B.
    """

    checkpoints = ("spark-bicodec", "spark-wav2vec2-xlsr-53")

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        self._device = device
        self._speech, self._net, used = _load(weights, device)
        self.info = replace(self.describe(), weights=used)

    @classmethod
    def describe(cls) -> CodecInfo:
        """Return the codec's `CodecInfo`, without loading weights."""
        return code_info("spark-bicodec", _RATE_HZ, _HOP, _CODEWORDS)

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item, independently of its batch, to the original code's codes."""
        from codec_bench.networks.speech_encoder import padded
        from codec_bench.networks.transfer import fetched

        for audio in batch:
            check_input(audio, self.info)
        waves = [prepared(audio.samples[0]) for audio in batch]
        out: list[Any] = [None] * len(batch)
        with computing(self._device, "float32"):
            for group in passes([len(wave) for wave in waves], self._device):
                stacked, lengths = padded([waves[k] for k in group], self._device)
                clips, _ = padded([reference_clip(waves[k]) for k in group], self._device)
                outputs = self._in_shape_of_waves(self._encoded, stacked, lengths, self._speech.step, [clips])
                for k, length, semantic, who in zip(group, lengths, *fetched(outputs)):
                    out[k] = _codes(semantic[None, : _frames(length)], who[None], batch[k])
        return out

    def _encoded(self, waves: Any, clips: Any, lengths: Sequence[int]) -> Any:
        """Encode padded waves `(items, samples)`, and their speakers from reference clips.

        Args:
            lengths: samples of each wave.
        """
        from codec_bench.networks.bicodec import speech_features
        from codec_bench.networks.ragged import each, ragged_lengths, uploaded

        lengths = uploaded(lengths, self._device)
        frames = ragged_lengths(each(lengths, lambda count: (count - _FIELD) // _HOP + 1), self._device)
        return self._net.encode(speech_features(self._speech, waves, lengths), clips, frames)

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item as the original code does, then zeros to the item's length."""
        for item in codes:
            shapes = [(1, _frames(item.num_samples)), (1, _SPEAKER_CODES)]
            check_streams(item, self.info, shapes, [_CODEWORDS, _SPEAKER_ENTRIES])
        waves: list[Any] = [None] * len(codes)
        with computing(self._device, "float32"):
            for group in passes([item.num_samples for item in codes], self._device):
                frames = [codes[k].streams[0].values.shape[1] for k in group]
                semantic, speaker = (self._tensor([codes[k].streams[index].values for k in group]) for index in (0, 1))
                decoded = self._in_shape(self._decoded, [semantic], frames, [speaker])
                for k, count, (wave,) in zip(group, frames, decoded.cpu().numpy()):
                    waves[k] = fit_length(wave[: count * _HOP], codes[k].num_samples)
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _decoded(self, semantic: Any, speaker: Any, frames: Sequence[int]) -> Any:
        """Decode both kinds of codes to waves `(items, 1, samples)`."""
        from codec_bench.networks.ragged import ragged_lengths

        return self._net.decode(semantic, speaker, ragged_lengths(frames, self._device))[:, None]

    def _tensor(self, items: Sequence[np.ndarray]) -> Any:
        """Pad codes `(1, count)` of each item to an int64 tensor `(items, longest)`."""
        from codec_bench.networks.transfer import sent

        longest = max(item.shape[1] for item in items)
        return sent([stack(items, longest)[:, 0].astype(np.int64)], self._device)[0]


def prepared(wave: np.ndarray) -> np.ndarray:
    """Normalise a wave as BiCodec does: float64 `(samples,)`, at least 400.

    Peaks below 0.1 (from 0.001 up) are raised to 0.1. Then the samples between the 90th and 99th percentile of the
    magnitudes above 0.01 are brought to 0.2 on average, by a factor of 0.1 to 10, and peaks above 1 to 1. With at most
    ten samples above 0.01, the second step is omitted.
    """
    wave = np.asarray(wave, np.float64)
    wave = np.pad(wave, (0, max(0, _FIELD - wave.size)))
    magnitudes = np.sort(np.abs(wave))
    # The percentiles are those of the wave as it came, not as it was raised.
    audible = magnitudes[magnitudes > _AUDIBLE]
    if magnitudes[-1] < 0.1:
        wave = wave / max(magnitudes[-1], 1e-3) * 0.1
    if audible.size <= 10:
        return wave
    volume = audible[int(0.9 * audible.size) : int(0.99 * audible.size)].mean()
    wave = wave * np.clip(_LOUD / volume, 0.1, 10)
    return wave / max(1.0, np.abs(wave).max())


def reference_clip(wave: np.ndarray) -> np.ndarray:
    """Cut the first 6 s of a 16 kHz wave, repeated if shorter, for the speaker."""
    return np.resize(wave, _CLIP_SAMPLES)


def _frames(num_samples: int) -> int:
    return (max(num_samples, _FIELD) - _FIELD) // _HOP + 1


def _codes(semantic: np.ndarray, speaker: np.ndarray, audio: Audio) -> Codes:
    streams = (
        CodeStream(np.ascontiguousarray(semantic), _CODEWORDS, _RATE_HZ / _HOP, "semantic"),
        CodeStream(np.ascontiguousarray(speaker), _SPEAKER_ENTRIES, 0.0, "speaker"),
    )
    return Codes(streams, audio.num_samples, audio.sample_rate_hz)


def _load(weights: str | None, device: str) -> tuple[Any, Any, str]:
    """Load speech encoder and codec networks; also return which weights they have."""
    from codec_bench.networks import bicodec as bicodec_net
    from codec_bench.networks.bicodec_config import PUBLISHED
    from codec_bench.networks.speech_encoder import SpeechEncoder
    from codec_bench.weights import convert_cached, find_all, load_into, load_state, unfilled

    if weights == RANDOM:
        speech, net = _random_nets()
        return speech.to(device), net.to(device), RANDOM
    if weights is not None and Path(weights).is_file():
        raise WeightsError(
            "weights_are_one_file",
            weights=weights,
            codec="BiCodec",
            hint="give the folder that holds BiCodec/model.safetensors and wav2vec2-large-xlsr-53",
        )
    checkpoint, speech_checkpoint = find_all(("spark-bicodec", "spark-wav2vec2-xlsr-53"), weights)
    _check_settings(checkpoint.folder / "config.yaml")
    config = PUBLISHED
    speech = unfilled(lambda: SpeechEncoder(config.speech))
    state = bicodec_net.renamed_speech(load_state(speech_checkpoint.path), config.speech.layers)
    load_into(speech, state, path=speech_checkpoint.path)
    net = unfilled(lambda: bicodec_net.BiCodecNet(config))
    state = convert_cached(lambda: bicodec_net.renamed(load_state(checkpoint.path)), checkpoint.path)
    load_into(net, state, path=checkpoint.path)
    return speech.to(device), net.to(device), checkpoint.used


def _random_nets() -> tuple[Any, Any]:
    """Build small networks of seeded noise, whose output is not clipped, for tests."""
    import torch

    from codec_bench.networks import bicodec as bicodec_net
    from codec_bench.networks.bicodec_config import SMALL
    from codec_bench.networks.speech_encoder import SpeechEncoder

    with seeded():
        speech, net = SpeechEncoder(SMALL.speech).eval(), bicodec_net.BiCodecNet(SMALL).eval()
        fill_with_noise(speech)
        fill_with_noise(net)
        calm_branches(net.decoder, ".block.3.weight")
        last: Any = net.decoder.model[-1]
        last.weight.mul_(0.1)
        net.speaker_encoder.quantizer.project_in.weight.mul_(0.5)
        features = bicodec_net.speech_features(speech, 0.1 * torch.randn(1, _RATE_HZ), [_RATE_HZ])
        projected = net.quantizer.in_project(net.encoder(features.transpose(1, 2), None))[0].T
        words = net.quantizer.codebook.weight
        words.copy_(projected.mean(0) + projected.std(0) * torch.randn_like(words))
    return speech, net


def _check_settings(path: Path) -> None:
    """Check that a checkpoint's settings are those of this code, else WeightsError."""
    from codec_bench.config import load_yaml

    if not path.is_file():
        return
    document = load_yaml(path)
    settings = document if isinstance(document, dict) else {}
    wrong = {key: settings[key] for key, value in _SETTINGS.items() if key in settings and settings[key] != value}
    if wrong:
        says = ", ".join(f"{key} {got} (expected {_SETTINGS[key]})" for key, got in wrong.items())
        raise WeightsError("weights_of_another_model", folder=path, difference=says)
