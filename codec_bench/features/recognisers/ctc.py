"""Transcripts by CTC: HuBERT and wav2vec 2.0 through transformers.

Large models normalise each frame by itself, attention is masked, and the positional convolution reads zeros beyond an
item's end. wav2vec2-base normalises its first convolution over the whole signal (group norm), here with the statistics
of each item's own frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from codec_bench.features.base import Word
from codec_bench.features.recognisers.pieces import RATE_HZ, PieceTranscript, PiecewiseRecogniser
from codec_bench.features.recognisers.transformers_checkpoint import config_of, parts_of
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.batch_shapes import in_shape
from codec_bench.networks.precision import computing

if TYPE_CHECKING:
    import torch

VARIANCE_FLOOR = 1e-7
WEIGHTS = {
    "hubert-large-ls960": "hubert-large-ls960-ft",
    "wav2vec2-base-960h": "wav2vec2-base-960h",
    "wav2vec2-large-960h-lv60-self": "wav2vec2-large-960h-lv60-self",
}
"""Recognisers of letters and their weights in the catalogue."""
PHONES = {"phones-wav2vec2-lv60": "wav2vec2-lv60-espeak"}
"""Recognisers of phones, likewise."""
UNUSED = r"masked_spec_embed$"
"""A tensor for training only. Published files may lack it."""
LEAKS = ("add_adapter", "conv_pos_batch_norm")
"""Configurations whose results would depend on the padding."""


class Ctc(PiecewiseRecogniser):
    """Transcripts by a CTC recogniser: the most probable letter per frame, collapsed.

    There is no language model. Each signal is brought to zero mean and unit variance by itself (if the checkpoint
    requests it), and padding is masked. A signal longer than 60 s is cut where it is quietest (0.1 s frames) between
    the 20th and the 30th second of each piece. The network may write letters for silence.

    Result: `{"transcript": str}`, in the checkpoint's letters (capitals and the apostrophe for the published ones).

    Papers: W.-N. Hsu et al., "HuBERT", TASLP 2021; A. Baevski et al., "wav2vec 2.0", NeurIPS 2020. Reference
    implementation: transformers 5.23 `HubertForCTC` and `Wav2Vec2ForCTC` with their processors, each signal alone:
    logits to 1e-5 of their scale, the same transcripts.

    Args:
        model: a key of `WEIGHTS`. device: `cpu` or `cuda:N`.
        weights: a transformers folder or a hub id in the local cache; None for the published ones.
        point: `tf32` or `bfloat16`; None for float32.

    Raises:
        WeightsError: the weights are missing or belong to another model.
    """

    times_words = True
    name = "ctc"
    languages: tuple[str, ...] = ("en",)
    models = WEIGHTS
    tokens: ClassVar[tuple[str, dict[str, Any]]] = ("Wav2Vec2CTCTokenizer", {})
    """The tokens' class and its arguments."""

    def _network(self) -> Any:
        """Load the network, front end and tokeniser; make group norms ignore padding."""
        from codec_bench.weights.pretrained import load_pretrained

        net = load_pretrained(_model_class(self._folder), str(self._folder), {})
        tokens, options = self.tokens
        extractor, self._tokenizer = parts_of(self._folder, RATE_HZ, "Wav2Vec2FeatureExtractor", tokens, **options)
        self._normalises = bool(extractor.do_normalize)
        entries = self._tokenizer.vocab_size  # without tokens that were added for training and have no output
        if entries > net.config.vocab_size:
            raise WeightsError("vocabulary_size", folder=self._folder, entries=entries, expected=net.config.vocab_size)
        self._convolutions = list(zip(net.config.conv_kernel, net.config.conv_stride))
        if net.config.feat_extract_norm == "group":
            norm = net.base_model.feature_extractor.conv_layers[0].layer_norm
            norm.forward = lambda channels: own_group_norm(channels, norm, self._first_frames)
        return net

    def frames(self, samples: int) -> int:
        """Count the network's frames for a number of samples; 0 below the receptive field."""
        for kernel, stride in self._convolutions:
            samples = (samples - kernel) // stride + 1 if samples >= kernel else 0
        return samples

    @property
    def shortest(self) -> int:
        """The fewest samples that give a frame: the convolutions' receptive field."""
        field = 1
        for kernel, stride in reversed(self._convolutions):
            field = (field - 1) * stride + kernel
        return field

    def logits(self, signals: Sequence[np.ndarray]) -> tuple[torch.Tensor, list[int]]:
        """Run the network on a padded batch of signals of at least `shortest` samples.

        Returns:
            Float32 `(batch, frames, letters)` on the device, and the number of valid frames of each signal.
        """
        from codec_bench.networks.speech_encoder import padded

        waves, lengths = padded([normalised(one) if self._normalises else one for one in signals], self.device)
        with computing(self.device, self._precision):
            logits = in_shape(self._masked, [waves], lengths, steps_per_s=RATE_HZ)
        return logits.float(), [self.frames(length) for length in lengths]

    def _masked(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Run the network on zero-padded waves with an attention mask; return logits.

        Args:
            lengths: samples of each signal.
        """
        from codec_bench.networks.ragged import inside, on_device, uploaded

        kernel, stride = self._convolutions[0]
        sizes = uploaded(lengths, self.device)
        self._first_frames = (on_device(sizes, self.device) - kernel) // stride + 1
        mask = inside(sizes, waves.shape[1], self.device)
        logits: torch.Tensor = self._net(waves, attention_mask=mask.long()).logits
        return logits

    def transcribe(self, pieces: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[PieceTranscript]:
        """Transcribe segments: the best letter of each frame, repeats and blanks removed.

        Args:
            pieces: segments `(samples,)` of at least `shortest` samples.
            languages: unused; the network knows one language.
        """
        logits, frames = self.logits(pieces)
        best = logits.argmax(dim=-1).cpu().numpy()
        texts = self._tokenizer.batch_decode([ids[:count] for ids, count in zip(best, frames)])
        return [PieceTranscript(text) for text in texts]

    def words(self, segment: np.ndarray) -> list[Word]:
        """Return each word with start and end in seconds, from its letters' frames."""
        logits, (count,) = self.logits([segment])
        ids = logits[0, :count].argmax(dim=-1).cpu().numpy()
        offsets = self._tokenizer.decode(ids, output_word_offsets=True).word_offsets
        frame_s = math.prod(stride for _, stride in self._convolutions) / RATE_HZ
        return [
            (one["word"], float(one["start_offset"] * frame_s), float(one["end_offset"] * frame_s)) for one in offsets
        ]


class CtcPhones(Ctc):
    """Phones by CTC: the most probable phone per frame, collapsed.

    It knows the phones of some 60 languages in eSpeak's IPA. No dictionary and no language model corrects them.
    Otherwise as `Ctc`.

    Result: `{"transcript": str}`, phones with spaces between them.

    Paper: Q. Xu, A. Baevski, M. Auli, "Simple and Effective Zero-shot Cross-lingual Phoneme Recognition", Interspeech
    2022. Reference implementation: transformers 5.23 `Wav2Vec2ForCTC` with its `Wav2Vec2PhonemeCTCTokenizer`, each
    signal alone: the same phones.

    Args:
        model: a key of `PHONES`. device: `cpu` or `cuda:N`.
        weights: a transformers folder or a hub id in the local cache; None for the published ones.
        point: `tf32` or `bfloat16`; None for float32.

    Raises:
        WeightsError: the weights are missing or belong to another model.
    """

    name = "ctc-phones"
    times_words = False
    languages = ()
    models = PHONES
    tokens = ("Wav2Vec2PhonemeCTCTokenizer", {"do_phonemize": False})  # texts become no phones here, which needs eSpeak


def normalised(signal: np.ndarray) -> np.ndarray:
    """Bring a signal `(samples,)` to zero mean and unit variance."""
    return (signal - signal.mean()) / np.sqrt(signal.var() + VARIANCE_FLOOR)


def own_group_norm(channels: torch.Tensor, norm: torch.nn.GroupNorm, frames: torch.Tensor) -> torch.Tensor:
    """Normalise each channel over an item's frames, without the padding.

    Args:
        channels: `(batch, channels, frames)`, overwritten.
        norm: its gains and offsets are used.
        frames: the number of valid frames of each item, `(batch,)`.
    """
    import torch

    padding = torch.arange(channels.shape[-1], device=channels.device) >= frames[:, None, None]
    counts = frames[:, None, None]
    # In place: this is by far the largest tensor of the network.
    centred = channels.float().masked_fill_(padding, 0.0)
    centred.sub_(centred.sum(-1, keepdim=True) / counts).masked_fill_(padding, 0.0)
    variance = torch.linalg.vector_norm(centred, dim=-1, keepdim=True).square() / counts
    return centred.mul_(norm.weight[:, None] * (variance + norm.eps).rsqrt()).add_(norm.bias[:, None])


def _model_class(folder: Path) -> Any:
    """Return the transformers class of a checkpoint, set to ignore a training tensor.

    Raises:
        WeightsError: its configuration names another kind of network, or an unsupported setting.
    """
    from transformers import HubertForCTC, Wav2Vec2ForCTC

    config = config_of(folder)
    kind = config["model_type"]
    known = {"hubert": HubertForCTC, "wav2vec2": Wav2Vec2ForCTC}
    if kind not in known:
        raise WeightsError("weights_kind", folder=folder, kind=kind, expected=" or ".join(known))
    for key in LEAKS:
        if config.get(key):
            raise WeightsError("weights_setting_unsupported", folder=folder, setting=key)
    ignored = {key: [UNUSED] for key in ("_keys_to_ignore_on_load_missing", "_keys_to_ignore_on_load_unexpected")}
    return type(known[kind].__name__, (known[kind],), ignored)
