"""Whisper's network in CTranslate2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.features.base import Word
from codec_bench.features.recognisers.cublas import load_cublas
from codec_bench.features.recognisers.whisper_checkpoint import COMPUTE_TYPES, Tokens
from codec_bench.features.recognisers.whisper_network import (
    MAX_LENGTH,
    WINDOW_FRAMES,
    WhisperNetwork,
    WhisperOutput,
    joined_batches,
    refuse_if_too_large,
)
from codec_bench.machine.environment import own_threads
from codec_bench.machine.memory import give_back
from codec_bench.messages.errors import UserError, WeightsError

if TYPE_CHECKING:
    import torch


TOKENS_PER_S, FRAMES_PER_S = 50, 100
PUNCTUATION = ("\"'“¿([{-", "\"'.。,，!！?？:：”)]}、")
"""Marks that belong to the next word and to the last one: faster-whisper's defaults."""


class CTranslate2Whisper(WhisperNetwork):
    """A converted checkpoint in CTranslate2.

    Args:
        name: of the recogniser, for messages.
        folder: of the checkpoint, in CTranslate2's layout.
        compute_type: one of CTranslate2's.

    Raises:
        MissingExtra: cuBLAS 12 is missing for a GPU. UserError: the device cannot compute in the type.
        WeightsError: the file is broken. MemoryError: the model does not fit into memory.
    """

    def __init__(self, name: str, folder: Path, device: str, compute_type: str, tokens: Tokens) -> None:
        import ctranslate2

        self.device, self.tokens = device, tokens
        kind, _, index = device.partition(":")
        if kind == "cuda":
            load_cublas(name, f"{name}@torch computes without it")
            give_back(device)
        able = ctranslate2.get_supported_compute_types(kind, int(index or 0))
        if compute_type not in able:
            can = ", ".join(known for known in COMPUTE_TYPES["ct2"] if known in able)
            raise UserError(
                "compute_type_unsupported",
                name=name,
                compute_type=compute_type,
                device=device,
                hint=f"it can: {can}; {name} without a type computes in float32, which is another protocol",
            )
        try:
            self.model: Any = ctranslate2.models.Whisper(
                str(folder),
                device=kind,
                device_index=int(index or 0),
                compute_type=compute_type,
                intra_threads=own_threads() if kind == "cpu" else 0,
            )
        except Exception as error:  # a broken file raises RuntimeError, ValueError, MemoryError or a JSON error
            refuse_if_too_large(name, device, error)
            reason = " ".join(str(error).split())
            raise WeightsError(
                "weights_not_loaded",
                folder=folder,
                type=type(error).__name__,
                reason=reason,
                hint="the file may be cut short or of another kind: codec-bench weights verify",
            ) from error
        self.n_mels, self.multilingual = self.model.n_mels, self.model.is_multilingual

    def encode(self, batches: Iterable[torch.Tensor]) -> Any:
        """Encode windows to `(windows, 1500, width)`, on the model's device.

        Args:
            batches: float32 `(windows, n_mels, 3000)`; the results are joined.
        """
        import ctranslate2
        import torch

        if self.device == "cpu":
            views = (ctranslate2.StorageView.from_array(batch.numpy()) for batch in batches)
            outputs = [np.asarray(self.model.encode(view)) for view in views]
            return ctranslate2.StorageView.from_array(np.concatenate(outputs))
        batch = joined_batches(batches)
        torch.cuda.current_stream(self.device).synchronize()  # CTranslate2 reads the batch on another stream
        return self.model.encode(ctranslate2.StorageView.from_array(batch))

    def computes(self) -> bool:
        """Return whether the encoder's output for a silent window is finite."""
        import ctranslate2

        silence = np.zeros((1, self.n_mels, WINDOW_FRAMES), np.float32)
        encoded = self.model.encode(ctranslate2.StorageView.from_array(silence), to_cpu=True)
        return bool(np.isfinite(np.asarray(encoded)).all())

    def detect_languages(self, encoded: Any) -> list[tuple[str, float]]:
        """Return each window's most probable language and its probability."""
        best = [ranked[0] for ranked in self.model.detect_language(encoded)]
        return [(token.strip("<|>"), float(probability)) for token, probability in best]

    def words(
        self, encoded: Any, tokens: Sequence[int], language: str, begin_s: float, frames: int, before_s: float
    ) -> list[Word]:
        """Align the words of one window by faster-whisper's own rules.

        Args:
            encoded: the window's encoder output.
            tokens: its text.
            begin_s: start of the window in the signal.
            frames: mel frames of the window that hold signal.
            before_s: end of the last word of earlier windows.

        Returns:
            Words with start and end in seconds of the signal.
        """
        from faster_whisper.tokenizer import Tokenizer
        from faster_whisper.transcribe import WhisperModel

        tokenizer = Tokenizer(self.tokens.tokenizer, self.multilingual, task="transcribe", language=language)
        view = SimpleNamespace(model=self.model, tokens_per_second=TOKENS_PER_S, frames_per_second=FRAMES_PER_S)
        view.find_alignment = partial(WhisperModel.find_alignment, view)
        start = round(begin_s * FRAMES_PER_S)
        end_s = begin_s + frames / FRAMES_PER_S
        segment: dict[str, Any] = {"seek": start, "start": begin_s, "end": end_s, "tokens": list(tokens)}
        WhisperModel.add_word_timestamps(view, [[segment]], tokenizer, encoded, frames, *PUNCTUATION, before_s)
        return [(word["word"].strip(), float(word["start"]), float(word["end"])) for word in segment["words"]]

    def decode(self, encoded: Any, prompts: Sequence[Sequence[int]]) -> list[WhisperOutput]:
        """Decode each window greedily, after its prompt tokens."""
        decoded = self.model.generate(
            encoded,
            [list(prompt) for prompt in prompts],
            beam_size=1,
            max_length=MAX_LENGTH,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=True,
            suppress_tokens=self.tokens.suppressed,
        )
        written = [list(result.sequences_ids[0]) for result in decoded]
        return [
            WhisperOutput(tokens, result.scores[0] * len(tokens), result.no_speech_prob)
            for tokens, result in zip(written, decoded)
        ]
