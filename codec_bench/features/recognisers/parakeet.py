"""Transcripts by NVIDIA's Parakeet: FastConformer with CTC or TDT.

The front end normalises each band over the whole recording, so every piece passes it alone. Frames beyond a piece's end
are zero, attention is masked, and the transducer stops at each piece's own last frame (that of transformers goes on
while others of its batch do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from codec_bench.features.base import Word
from codec_bench.features.recognisers.pieces import RATE_HZ, PieceTranscript, PiecewiseRecogniser
from codec_bench.features.recognisers.transformers_checkpoint import check_kind, parts_of
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.precision import computing

if TYPE_CHECKING:
    import torch

EUROPEAN = tuple("bg hr cs da nl en et fi fr de el hu it lv lt mt pl pt ro sk sl es sv ru uk".split())
"""The third version's languages, by its model card."""


@dataclass(frozen=True, slots=True)
class ParakeetCheckpoint:
    """A published checkpoint.

    Args:
        kind: the `model_type` of its configuration. languages: base codes of those that it transcribes.
    """

    kind: str
    languages: tuple[str, ...] = ("en",)


CHECKPOINTS = {
    "parakeet-ctc-0.6b": ParakeetCheckpoint("parakeet_ctc"),
    "parakeet-ctc-1.1b": ParakeetCheckpoint("parakeet_ctc"),
    "parakeet-tdt-0.6b-v2": ParakeetCheckpoint("parakeet_tdt"),
    "parakeet-tdt-0.6b-v3": ParakeetCheckpoint("parakeet_tdt", EUROPEAN),
}
"""The recognisers. Their weights have the same names in the catalogue."""
CHECKED_EVERY = 16
"""Steps of a transducer between checks of the host whether all items have ended."""
FRAMES_PER_S, FRAMES_UNIT = 100, 8
"""Frames of a spectrogram per second, and per frame of the encoder."""
SPACE = "▁"
"""The mark at the start of a token that begins a word."""
CLASSES = {"parakeet_ctc": "ParakeetForCTC", "parakeet_tdt": "ParakeetForTDT"}


class Token(NamedTuple):
    """A token: its id, its first frame, and the frame after its last one."""

    id: int
    begin: int
    end: int


class Parakeet(PiecewiseRecogniser):
    """Transcripts by Parakeet, decoded greedily.

    `ctc` takes the most probable token of each frame, without repeats and blanks; `tdt` takes the most probable token
    and the most probable number of frames to advance. There is no language model. A signal longer than 60 s is cut
    (`PiecewiseRecogniser`); NeMo reads up to 24 minutes whole. `ctc` writes small letters, and `tdt` capitals,
    punctuation and digits. The third version detects the language and does not report it.

    Result: `transcript`; `fault` reports a transducer that did not reach the end of its frames.

    Papers: D. Rekesh et al., "Fast Conformer with linearly scalable attention", ASRU 2023; H. Xu et al., "Efficient
    sequence transduction by jointly predicting tokens and durations", ICML 2023. Reference implementation: transformers
    5.23 `ParakeetForCTC` and `ParakeetForTDT` with `ParakeetProcessor`, each signal alone: logits to 1e-5 of their
    scale, the same transcripts.

    Args:
        model: a key of `CHECKPOINTS`. device: `cpu` or `cuda:N`.
        weights: a transformers folder or a hub id in the local cache; None for the published ones.
        point: `tf32` or `bfloat16`; None for float32.

    Raises:
        WeightsError: the weights are missing or belong to another model.
    """

    times_words = True
    name = "parakeet"
    models: ClassVar[Mapping[str, str]] = {model: model for model in CHECKPOINTS}

    def __init__(self, model: str, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(model, device, weights, point)
        self.languages = CHECKPOINTS[model].languages
        self._kind = CHECKPOINTS[model].kind

    @classmethod
    def languages_of(cls, model: str) -> tuple[str, ...]:
        """Return the base codes of the languages that a recogniser transcribes."""
        return CHECKPOINTS[model].languages

    def _network(self) -> Any:
        """Load the network, front end and tokeniser, and check that they fit together."""
        from codec_bench.weights.pretrained import class_of, load_pretrained

        kind = class_of(CLASSES[self._kind])
        check_kind(self.name, self._folder, self._kind)
        self._extractor, self._tokenizer = parts_of(
            self._folder, RATE_HZ, "ParakeetFeatureExtractor", "ParakeetTokenizer"
        )
        net = load_pretrained(kind, str(self._folder), {})
        bands = net.config.encoder_config.num_mel_bins
        if self._extractor.feature_size != bands:
            raise WeightsError("mel_bands", folder=self._folder, bands=self._extractor.feature_size, expected=bands)
        return net

    @property
    def shortest(self) -> int:
        """The fewest samples: two frames, since the front end divides by their variance."""
        return 2 * int(self._extractor.hop_length)

    def transcribe(self, pieces: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[PieceTranscript]:
        """Transcribe each segment. The network ignores the language."""
        return self._transcribe_frames(pieces) if self._kind == "parakeet_ctc" else self._transduce(pieces)

    def logits(self, pieces: Sequence[np.ndarray]) -> tuple[torch.Tensor, list[int]]:
        """Run the CTC network on segments.

        Returns:
            float32 `(batch, frames, tokens)` on the device, and each segment's own frames.
        """
        import torch

        mels, counts = spectrograms(self._extractor, pieces, self.device)
        with computing(self.device, self._precision):
            logits = masked(lambda inputs: self._net(**inputs).logits, mels, counts)
        return logits.float(), _subsampled(self._net, torch.tensor(counts)).tolist()

    def _transcribe_frames(self, pieces: Sequence[np.ndarray]) -> list[PieceTranscript]:
        """Decode pieces by the best token of each frame (CTC)."""
        logits, frames = self.logits(pieces)
        best = logits.argmax(dim=-1).cpu().tolist()
        return [
            PieceTranscript(self._tokenizer.decode(ids[:count], group_tokens=True, skip_special_tokens=True).strip())
            for ids, count in zip(best, frames)
        ]

    def _transduce(self, pieces: Sequence[np.ndarray]) -> list[PieceTranscript]:
        """Transcribe segments with the transducer.

        A transcript that stops before its segment's end has a `fault`.
        """
        transcripts = []
        for tokens, reached, count in self._written(pieces):
            text = self._text(tokens)
            fault = None if reached >= count else Diagnostic("frames_not_read", frames=count)
            transcripts.append(PieceTranscript(text, fault=fault))
        return transcripts

    def _text(self, tokens: Sequence[Token]) -> str:
        ids = [token.id for token in tokens]
        return str(self._tokenizer.decode(ids, group_tokens=False, skip_special_tokens=True)).strip()

    def _written(self, pieces: Sequence[np.ndarray]) -> Iterator[tuple[list[Token], int, int]]:
        """Decode segments with the transducer.

        Yields:
            For each segment its tokens with frames, the frames that decoding passed, and the number of frames.
        """
        import torch

        def written(inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
            encoded = self._net.get_audio_features(**inputs).pooler_output
            frames = _subsampled(self._net, inputs["attention_mask"].sum(1))
            return torch.cat(transduced(self._net, encoded, frames), 1)

        mels, counts = spectrograms(self._extractor, pieces, self.device)
        with computing(self.device, self._precision):
            rows = masked(written, mels, counts).cpu().tolist()
        skipped = {self._net.config.blank_token_id, self._net.config.pad_token_id}
        for row, count in zip(rows, _subsampled(self._net, torch.tensor(counts)).tolist()):
            tokens, places = row[: len(row) // 2], row[len(row) // 2 :]
            steps = zip(tokens, places, places[1:])
            yield [Token(*step) for step in steps if step[0] not in skipped], places[-1], count

    def words(self, segment: np.ndarray) -> list[Word]:
        """Return the words of a segment with start and end in seconds.

        A word lasts from its first token to the end of its last; punctuation does not count. A token of `ctc` lasts
        while it is the most probable one, and one of `tdt` as many frames as the network predicts.
        """
        if self._kind == "parakeet_ctc":
            logits, (count,) = self.logits([segment])
            tokens = _runs(logits[0, :count].argmax(dim=-1).tolist(), self._net.config.pad_token_id)
        else:
            ((tokens, _, _),) = self._written([segment])
        frame_s = self._extractor.hop_length * self._net.config.encoder_config.subsampling_factor / RATE_HZ
        return [(text, begin * frame_s, end * frame_s) for text, begin, end in self._joined(tokens)]

    def _joined(self, tokens: Sequence[Token]) -> Iterator[tuple[str, int, int]]:
        """Join tokens to words; yield each text, first frame and frame after the last."""
        words: list[list[Token]] = []
        for token, token_text in zip(tokens, self._tokenizer.convert_ids_to_tokens([token.id for token in tokens])):
            if not words or token_text.startswith(SPACE):
                words.append([])
            words[-1].append(token)
        for word in words:
            spoken = [token for token in word if any(map(str.isalnum, self._text([token])))]
            if spoken:
                yield self._text(word), spoken[0].begin, spoken[-1].end


def transduced(net: Any, encoded: torch.Tensor, frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Decode a token-and-duration transducer greedily, all items together.

    An item ends after its last frame, or after as many steps as the model allows for its frames, so it does not depend
    on the others. The host checks every `CHECKED_EVERY` steps whether all have ended.

    Args:
        net: transformers' `ParakeetForTDT`. encoded: the projected encoder output, `(items, frames, width)`.
        frames: each item's own, int64 `(items,)`, on the same device.

    Returns:
        Tokens `(items, steps + 1)`, blank after an item's end, and the frames passed before each of them, of the same
        shape. The last token is blank; its frames are the item's total.
    """
    import torch

    from codec_bench.networks.transfer import sent

    config, decoder = net.config, net.decoder
    items = torch.arange(len(frames), device=frames.device)
    position = torch.zeros_like(frames)
    most = config.max_symbols_per_step * frames
    (durations,) = sent([np.asarray(config.durations, np.int64)], frames.device)
    token = torch.full_like(frames, config.blank_token_id)
    output, states = _predict(decoder, token, None)
    written: list[torch.Tensor] = []
    starts: list[torch.Tensor] = []
    while True:
        active = (position < frames) & (len(written) < most)
        if len(written) % CHECKED_EVERY == 0 and not active.any():
            break
        here = encoded[items, position.clamp(max=encoded.shape[1] - 1)]
        logits = net.joint(decoder_hidden_states=output, encoder_hidden_states=here)
        token = logits[:, : config.vocab_size].argmax(-1)
        step = durations[logits[:, config.vocab_size :].argmax(-1)]
        blank = token == config.blank_token_id
        step = torch.where(blank & (step == 0), 1, step)
        written.append(torch.where(active, token, config.blank_token_id))
        starts.append(position)
        position = position + torch.where(active, step, 0)
        speaks = active & ~blank
        predicted, moved = _predict(decoder, token, states)
        output = torch.where(speaks[:, None], predicted, output)
        states = tuple(torch.where(speaks[None, :, None], new, old) for new, old in zip(moved, states))
    end = torch.full_like(frames, config.blank_token_id)
    return torch.stack([*written, end], 1), torch.stack([*starts, position], 1)


def _runs(best: Sequence[int], blank: int) -> list[Token]:
    """Collapse the best token of each frame (CTC) to tokens with their frames.

    Args:
        best: the most probable token of each frame.
        blank: the token that is dropped.
    """
    out, at = [], 0
    for token, run in groupby(best):
        end = at + len(list(run))
        if token != blank:
            out.append(Token(token, at, end))
        at = end
    return out


def _predict(decoder: Any, token: torch.Tensor, states: Any) -> tuple[torch.Tensor, Any]:
    """Advance the prediction network by one token; return its output and states."""
    outputs, moved = decoder.lstm(decoder.embedding(token[:, None]), states)
    return decoder.decoder_projector(outputs)[:, 0], moved


def spectrograms(extractor: Any, pieces: Sequence[np.ndarray], device: str) -> tuple[torch.Tensor, list[int]]:
    """Compute the log-mel spectrogram of each segment alone, and pad them to a batch.

    Args:
        extractor: transformers' front end.
        pieces: segments, float32 `(samples,)`.

    Returns:
        Float32 `(batch, bands, frames)` on the device, and the number of valid frames of each segment.
    """
    import torch

    from codec_bench.networks.transfer import sent

    mels, counts = [], []
    for segment in pieces:
        features = extractor(segment, sampling_rate=RATE_HZ, return_tensors="pt")
        mels.append(features["input_features"][0])
        counts.append(int(features["attention_mask"].sum()))
    (there,) = sent([torch.nn.utils.rnn.pad_sequence(mels, batch_first=True).numpy()], device)
    return there.transpose(1, 2), counts


def masked(
    forward: Callable[..., Any], mels: torch.Tensor, counts: Sequence[int], still: Sequence[torch.Tensor] = ()
) -> Any:
    """Run a network on padded spectrograms with a mask of each segment's frames.

    On a GPU the inputs are padded to one of few shapes, because GPU libraries prepare an algorithm for every new one.

    Args:
        forward: a function of the network's arguments for the spectrograms and their mask, and of each of `still`.
        mels, counts: as returned by `spectrograms`.
        still: further tensors with a row per segment.
    """
    from codec_bench.networks.batch_shapes import in_shape
    from codec_bench.networks.ragged import inside

    def run(mels: torch.Tensor, *rest: Any) -> Any:
        *others, frame_counts = rest
        mask = inside(frame_counts, mels.shape[2], mels.device)
        return forward({"input_features": mels.transpose(1, 2).contiguous(), "attention_mask": mask}, *others)

    return in_shape(run, [mels], counts, still, steps_per_s=FRAMES_PER_S, unit=FRAMES_UNIT)


def _subsampled(net: Any, counts: torch.Tensor) -> torch.Tensor:
    frames: torch.Tensor = net._get_subsampling_output_length(counts).long()
    return frames
