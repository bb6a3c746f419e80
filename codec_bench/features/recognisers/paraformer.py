"""Transcripts of Mandarin by Paraformer through FunASR's networks, in batches.

FunASR masks attention and memory, but its predictor's convolution reads unmasked frames after an item's end, which can
also end the last token; here they are zero. FunASR fails on a batch whose last item has no token; here, such items skip
the decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.audio.padded_passes import passes
from codec_bench.features.base import Result, Unavailable
from codec_bench.features.precision_names import parse_precision, suffix
from codec_bench.features.recognisers import funasr
from codec_bench.messages.errors import UserError
from codec_bench.networks.precision import computing

if TYPE_CHECKING:
    import torch

MODELS = ("paraformer-zh", "seaco-paraformer-zh")
CHUNK = "28s"
CHUNK_SAMPLES = 28 * funasr.RATE_HZ
ALLOWED: dict[str, tuple[str | None, ...]] = {
    "model": ("Paraformer", "BiCifParaformer", "SeacoParaformer"),
    "encoder": ("SANMEncoder",),
    "decoder": ("ParaformerSANMDecoder",),
    "predictor": ("CifPredictorV2", "CifPredictorV3"),
    "seaco_decoder": (None, "ParaformerSANMDecoder"),
    "frontend": ("WavFrontend",),
    "tokenizer": ("CharTokenizer",),
}


class Paraformer(funasr.FunasrFeature):
    """Transcripts by Paraformer: Mandarin with English words, unpunctuated.

    FunASR calls both published models `paraformer-zh`, one on each hub:

    * `paraformer-zh`: Paraformer-large, `funasr/paraformer-zh` on the Hugging Face hub,
      `iic/speech_paraformer-large_asr_nat-zh-cn-16k-common-vocab8404-pytorch` on ModelScope.
    * `seaco-paraformer-zh`: SeACo-Paraformer-large,
      `iic/speech_seaco_paraformer_large_asr_nat-zh-cn-16k-common-vocab8404-pytorch` on ModelScope, FunASR's
      `paraformer-zh` there since January 2024: the recogniser of seed-tts-eval and UltraEval-Audio. Its second decoder
      is for hotwords only.

    The text is FunASR's: `paraformer-zh` writes no spaces between Chinese characters, `seaco-paraformer-zh` one after
    every character and word. Error rates by character ignore these spaces.

    The whole signal is recognised in one pass, without voice activity detection and punctuation. Memory grows with the
    square of its length (about 5 GB for ten minutes). `@28s` cuts the signal every 28 s and joins the texts without
    spaces, as UltraEval-Audio does for long speech. A rest of less than 25 ms is ignored.

    Result: `{"transcript": str, "tokens": int64 (tokens,)}`; the tokens are entries of the model's `tokens.json`.

    Paper: Z. Gao, S. Zhang, I. McLoughlin, Z. Yan, "Paraformer", Interspeech 2022. Reference implementation: FunASR 1.4
    `AutoModel.generate`, one file at a time, right after `torch.manual_seed(0)`: the same tokens and text
    (log-probabilities to 1e-5 of their largest; closer ties may differ).

    Args:
        device: `cpu` or `cuda:N`.
        weights: a folder in the published layout or its `.pt` file; None for the published weights.
        model: `paraformer-zh` or `seaco-paraformer-zh`.
        point: `28s`, `tf32`, `bfloat16`, or None.

    Raises:
        UserError: no such model or point. MissingExtra: FunASR is not installed. WeightsError: the weights are missing
            or belong to another model (raised by `load`).
    """

    name = "paraformer-zh"
    languages = ("zh",)
    allowed = ALLOWED
    vocabulary = ("token_list", "tokens.json")

    def __init__(
        self, device: str = "cpu", weights: str | None = None, model: str = "paraformer-zh", point: str | None = None
    ) -> None:
        self.name, self.point = model, point
        self.protocol = self.protocol_id(model, point)
        self._precision = parse_precision(model, None if point == CHUNK else point)
        super().__init__(device, weights, model)

    @classmethod
    def protocol_id(cls, model: str = "paraformer-zh", point: str | None = None) -> str:
        """Return the id that names a model's method of transcribing in records.

        Weights and FunASR need not be installed.

        Args:
            point: the text after the `@` of its name, or None.

        Raises:
            UserError: no such model or point.
        """
        if model not in MODELS:
            raise UserError("no_variant", variant=model, name="Paraformer", hint=f"use {' or '.join(MODELS)}")
        if point == CHUNK:
            return f"{model}/funasr-1/{CHUNK}"
        try:
            return f"{model}/funasr-1{suffix(parse_precision(model, point))}"
        except UserError as error:
            raise UserError(error.message, hint=f"use {model}, {model}@{CHUNK}, @tf32 or @bfloat16") from None

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Transcribe signals `(samples,)`, float32 at 16 kHz."""
        self.load()
        reasons = [funasr.why_not(signal) for signal in signals]
        pieces, owners = [], []
        for index, (signal, reason) in enumerate(zip(signals, reasons)):
            step = CHUNK_SAMPLES if self.point == CHUNK else max(1, signal.size)
            for start in range(0, signal.size if reason is None else 0, step):
                segment = signal[start : start + step]
                if segment.size >= funasr.WINDOW:
                    pieces.append(segment)
                    owners.append(index)
        tokens_of: list[list[int]] = [[] for _ in pieces]
        most = round(self.batch_s * self.rate_hz)
        for group in passes(
            [segment.size for segment in pieces], self.device, most=most, most_on_cpu=most, slack=funasr.SIMILAR
        ):
            for index, tokens in zip(group, self._recognise([pieces[index] for index in group])):
                tokens_of[index] = tokens
        results: list[Result | Unavailable] = []
        for index, reason in enumerate(reasons):
            if reason is not None:
                results.append(Unavailable(reason))
                continue
            parts = [tokens for tokens, owner in zip(tokens_of, owners) if owner == index]
            text = "".join(self._text(tokens) for tokens in parts)
            results.append({"transcript": text, "tokens": np.asarray([*chain(*parts)], np.int64)})
        return results

    def _recognise(self, signals: Sequence[np.ndarray]) -> list[list[int]]:
        """Return each signal's most probable tokens, without special ones."""
        net = self._loaded().net
        tokens: list[list[int]] = [[] for _ in signals]
        places, logits, counts = self._logits(signals)
        special = {net.sos, net.eos, net.blank_id}
        best = logits.argmax(dim=-1).tolist() if places else []
        for index, row, count in zip(places, best, counts):
            tokens[index] = [token for token in row[:count] if token not in special]
        return tokens

    def _logits(self, signals: Sequence[np.ndarray]) -> tuple[list[int], Any, list[int]]:
        """Compute the log-probabilities of the predicted tokens of each signal.

        Returns:
            Indices of the signals that have tokens, log-probabilities `(items, tokens, vocabulary)`, tokens of each.
        """
        import torch

        from codec_bench.networks.transfer import sent

        net, front = self._loaded().net, self._loaded().front
        with computing(self.device, self._precision):
            with torch.autocast(torch.device(self.device).type, enabled=False):
                features, lengths = front(signals)
            # FunASR makes its masks from lengths on the CPU; lengths on a device would make the host wait.
            encoded, real_counts = net.encode(features, lengths)
            real = torch.arange(encoded.shape[1], device=self.device) < real_counts[:, None]
            encoded = encoded.float() * real[:, :, None]
            with torch.autocast(torch.device(self.device).type, enabled=False):
                embedded, counts = integrate_and_fire(net.predictor, encoded, lengths)
            places = [index for index, count in enumerate(counts) if count]
            counts = [counts[index] for index in places]
            if not places:
                return [], None, []
            if len(places) < len(signals):
                lengths, (here,) = lengths[places], sent([np.asarray(places, np.int64)], self.device)
                embedded, encoded, real_counts = embedded[here], encoded[here], real_counts[here]
            decoded, *_ = net.decoder(encoded[:, : int(lengths.max())], real_counts, embedded, torch.tensor(counts))
            return places, torch.log_softmax(decoded.float(), dim=-1), counts

    def _text(self, tokens: Sequence[int]) -> str:
        """Join tokens to text by FunASR's rules for the model."""
        from funasr.utils.postprocess_utils import sentence_postprocess

        recogniser = self._loaded()
        text, words = sentence_postprocess(recogniser.tokenizer.ids2tokens(tokens))
        # FunASR joins with spaces where it also has times, which is where the predictor has a second half.
        timed = recogniser.kind != "Paraformer" and hasattr(recogniser.net.predictor, "get_upsample_timestamp")
        return " ".join(words).strip() if timed else text


def integrate_and_fire(predictor: Any, encoded: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, list[int]]:
    """Sum frames by their weights into token embeddings; a token ends at a sum of 1.

    A frame that ends a token is shared with the next one. The CPU finds these frames with the arithmetic of FunASR's
    predictor for one item; one matrix product then computes all embeddings.

    Args:
        predictor: FunASR's `CifPredictorV2` or `CifPredictorV3`.
        encoded: float32 `(items, frames, size)`, zero-padded.
        lengths: the frames of each item, on the CPU.

    Returns:
        Float32 `(items, tokens, size)`, zero-padded, and the tokens of each item.
    """
    import torch

    from codec_bench.networks.transfer import sent

    context = torch.relu(predictor.cif_conv1d(predictor.pad(encoded.transpose(1, 2)))).transpose(1, 2)
    weights = torch.sigmoid(predictor.cif_output(context))[..., 0]
    weights = torch.relu(weights * predictor.smooth_factor - predictor.noise_threshold).cpu()
    items, frames = weights.shape
    # A frame of silence after each item lets its last token end.
    tailed = torch.zeros((items, frames + 1))
    counts = []
    for item, length in enumerate(lengths.tolist()):
        tailed[item, :length] = weights[item, :length]
        tailed[item, length] = predictor.tail_threshold
        counts.append(int(torch.floor(tailed[item : item + 1, : length + 1].sum(dim=-1))))
    ends, over = _ends_running(tailed.numpy(), predictor.threshold) if _runs(predictor) else _ends_summed(tailed)
    token = np.cumsum(ends, axis=1) - ends  # the token that a frame belongs to
    share = np.zeros((items, max([1, *counts]), frames), np.float32)
    item_at, frame_at = np.indices((items, frames))
    for row, shares in (
        (token, np.where(ends, tailed.numpy() - over, tailed.numpy())),
        (token + 1, np.where(ends, over, 0)),
    ):
        inside = row[:, :frames] < np.asarray(counts)[:, None]
        share[item_at[inside], row[:, :frames][inside], frame_at[inside]] += shares[:, :frames][inside]
    return sent([share], encoded.device)[0] @ encoded, counts


def _runs(predictor: Any) -> bool:
    """Whether the predictor sums frame by frame (`CifPredictorV3`), not all at once."""
    return hasattr(predictor, "get_upsample_timestamp")


def _ends_running(weights: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Find frames that end a token, by a running float32 sum as in `CifPredictorV3`.

    Args:
        weights: `(items, frames)`; a token ends when their sum reaches `threshold`.

    Returns:
        Bools, and the part of each weight that belongs to the next token, both `(items, frames)`.
    """
    ends, over = np.zeros(weights.shape, bool), np.zeros_like(weights)
    total = np.zeros(len(weights), np.float32)
    for frame, weight in enumerate(weights.T):
        missing = np.float32(1) - total
        total = total + weight
        ends[:, frame] = total >= np.float32(threshold)
        total = np.where(ends[:, frame], total - np.float32(1), total)
        over[:, frame] = np.where(ends[:, frame], weight - missing, 0)
    return ends, over


def _ends_summed(weights: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Find frames that end a token, at each integer of float64 cumulative sums.

    Returns:
        As `_ends_running`: where tokens end, and the excess of the sum over the integer.
    """
    import torch

    sums = torch.cumsum(weights, dim=1, dtype=torch.float64).float()
    whole_sums = torch.floor(sums)
    ends = torch.diff(whole_sums, dim=1, prepend=torch.zeros((len(whole_sums), 1))) > 0
    return ends.numpy(), (sums - whole_sums).numpy()
